/** What issuing and verifying say to WAV files as programs write them. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { issued } from '../fixtures/credentialed-file.js';
import { inPieces, TestService } from '../fixtures/service.js';
import { testSigning } from '../fixtures/signing.js';
import { chunk, fmtChunk, noise, riff } from '../fixtures/wav.js';
import { WRITERS } from '../fixtures/writers.js';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

function request(partnerId: string, file: Uint8Array, mend: boolean) {
  return {
    partnerId,
    songTitle: 'Take one',
    fileName: 'take.wav',
    carrier: 'embedded' as const,
    mend,
    audio: inPieces(file, 1000),
  };
}

const refused = (promise: Promise<unknown>): Promise<{ message: string; reason: string }> =>
  promise.then(
    () => ({ message: 'issued', reason: 'issued' }),
    (error: { message: string; reason: string }) => error,
  );

t.test('a file of each writer gets what the page says, and what is issued verifies', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, caller } = await service.partner();
  const { operator } = service.service.operations;
  const { signer } = testSigning();
  for (const { writer, deviation, file, outcome, warnings } of WRITERS) {
    const name = `${writer}: ${deviation}`;
    if (outcome === 'mended') {
      const { message, reason } = await refused(operator.issueProof(request(partnerId, file, false)));
      t.equal(reason, 'audio_malformed', name);
      t.match(message, /\(byte \d+: found .+, expected .+\)\. `--mend` repairs this/, name);
    }
    if (outcome === 'issued' || outcome === 'mended') {
      const result = await operator.issueProof(request(partnerId, file, outcome === 'mended'));
      t.strictSame(
        result.warnings?.map(({ code }) => code),
        warnings,
        `${name}: warnings`,
      );
      const mended = Buffer.concat([file, Buffer.alloc(1)]);
      for (const { offset, from, to } of result.mended?.changes ?? []) {
        t.equal(file[offset], from, `${name}: byte ${offset}`);
        mended[offset] = to;
      }
      const appended = result.mended?.changes.some(({ from }) => from === undefined) === true;
      const original = appended ? mended : mended.subarray(0, -1);
      t.equal(result.originalSha256, sha256(original), `${name}: the original`);
      t.equal(result.mended?.sentSha256, outcome === 'mended' ? sha256(file) : undefined, name);
      const asset = await (await operator.readAsset(result.proofId, 'audio')).read();
      const issuedFile = Buffer.concat(await asset.toArray());
      t.strictSame(
        issuedFile.subarray(8, original.length),
        original.subarray(8),
        `${name}: every byte is kept`,
      );
      t.match(await service.verify(caller, issuedFile), { verdict: 'valid' }, name);
      issuedFile[original.length - 2]! ^= 1;
      t.match(await service.verify(caller, issuedFile), { verdict: 'unreadable' }, `${name}: one bit`);
    } else {
      const { message, reason } = await refused(operator.issueProof(request(partnerId, file, true)));
      t.equal(reason, outcome, name);
      t.notMatch(message, /--mend/, name);
      if (outcome === 'audio_malformed' || outcome === 'audio_unfinished')
        t.match(message, /\(byte \d+: found .+, expected .+\)/, name);
    }
    // A foreign credential binds what follows the data, so the file must end with its chunk.
    const whole = riff([file.subarray(12)]);
    const breaks = ['mended', 'audio_malformed', 'audio_empty', 'audio_unfinished'].includes(outcome);
    t.match(
      await service.verify(caller, issued(whole, signer)),
      breaks ? {} : { verdict: 'unregistered', decision: { reasons: ['signer_unknown'] } },
      `${name}: foreign`,
    );
    const pair = await service.issue(partnerId, file, { carrier: 'sidecar' });
    t.match(await service.verify(caller, file, pair.sidecar), { verdict: 'valid' }, `${name}: as a pair`);
  }
});

t.test('docs/wav-files.md has a row for each file, with its result', async (t) => {
  const page = readFileSync(new URL('../../../docs/wav-files.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| (.+?) \| (.+?) \| `(\w+)`(?: \(`(\w+)`\))? \|$/gm)];
  t.strictSame(
    rows.map(([, writer, deviation, outcome, warning]) => [writer, deviation, outcome, warning]),
    WRITERS.map(({ writer, deviation, outcome, warnings }) => [writer, deviation, outcome, warnings?.[0]]),
  );
});

t.test('a refusal names offset, content and remedy of each break', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId } = await service.partner();
  const { operator } = service.service.operations;
  const fmt = fmtChunk();
  const data = chunk({ id: 'data', data: noise(100) });
  const junk = chunk({ id: 'JUNK', data: Buffer.alloc(4), size: 10 });
  const rows: readonly [file: Buffer, message: string][] = [
    [
      riff([fmt, data], { riffSize: 137 }),
      'The WAV file is malformed: riff_size_past_eof (byte 4: found RIFF size 137, expected RIFF size 136). `--mend` repairs this (`mend=true` in the operator API).',
    ],
    [
      riff([fmt, data, junk]),
      'The WAV file is malformed: chunk_past_end (byte 144: found chunk "JUNK" of 10 bytes, expected at most 4 bytes).',
    ],
    [
      riff([fmt, data, data], { riffSize: 245 }),
      'The WAV file is malformed: riff_size_past_eof (byte 4: found RIFF size 245, expected RIFF size 244), duplicate_data (byte 144: found a second data chunk, expected one data chunk).',
    ],
    [
      riff([fmt, chunk({ id: 'JUNK', data: Buffer.alloc(1), pad: 0x51 }), data]),
      'The WAV file is malformed: pad_nonzero (byte 45: found pad byte 0x51, expected pad byte 0x00).',
    ],
    [
      riff([fmt, chunk({ id: 'data', data: noise(100), size: 0xffff_ffff })], { riffSize: 0xffff_ffff }),
      'The recording was never closed: riff_size_streaming (byte 4: found RIFF size 4294967295, expected RIFF size 136), data_size_streaming (byte 36: found data size 4294967295, expected the size of the audio, at most 100). Open it in an audio program and save it again.',
    ],
    [
      riff([fmt, chunk({ id: 'LIST', data: Buffer.concat([Buffer.from('adtl'), data]) }), data]),
      'The WAV file is malformed: data_in_list (byte 48: found id "data" inside a LIST chunk, expected no such id, which some readers take for the audio).',
    ],
  ];
  for (const [file, message] of rows)
    t.equal((await refused(operator.issueProof(request(partnerId, file, false)))).message, message);
  t.match(
    await refused(
      operator.issueProof({ ...request(partnerId, riff([fmt, data]), true), carrier: 'sidecar' }),
    ),
    { reason: 'invalid_member' },
    'a sidecar is never mended',
  );
});

t.test(
  'a repeated request with its key returns the same repair, and one without the repair is another',
  async (t) => {
    const service = await TestService.start();
    t.teardown(() => service.stop());
    const { partnerId } = await service.partner();
    const { operator } = service.service.operations;
    const file = riff([fmtChunk(), chunk({ id: 'data', data: noise(100) })], { riffSize: 137 });
    const keyed = (mend: boolean) => ({ ...request(partnerId, file, mend), idempotencyKey: 'k'.repeat(16) });
    const first = await operator.issueProof(keyed(true));
    t.strictSame(await operator.issueProof(keyed(true)), { ...first, replayed: true });
    t.match(await refused(operator.issueProof(keyed(false))), { reason: 'idempotency_key_reused' });
  },
);
