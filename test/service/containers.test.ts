/** A pair of every container that the contract names, and what embedding says to each. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { formatIdentifier } from '../../src/core/domain/identifiers.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { TestService } from '../fixtures/service.js';
import { needs } from '../fixtures/tools.js';
import { chunk, fmtChunk, id3Tag, noise, riff, wav } from '../fixtures/wav.js';

/** Containers that are verified as a pair: rule 8.4. */
const ENCODINGS: readonly [extension: string, container: string, mediaType: string, ...ffmpeg: string[]][] = [
  ['wav', 'riff', 'audio/wav'],
  ['aiff', 'aiff', 'audio/aiff'],
  ['caf', 'caf', 'audio/x-caf'],
  ['mp3', 'mp3', 'audio/mpeg', '-codec:a', 'libmp3lame'],
  ['m4a', 'mp4', 'audio/mp4', '-codec:a', 'aac'],
  ['w64', 'w64', 'application/octet-stream'],
];

t.test('a pair of every container is issued and verified', { skip: needs('ffmpeg') }, async (t) => {
  const service = await TestService.start();
  const directory = mkdtempSync(join(tmpdir(), 'takemark-containers-'));
  t.teardown(async () => {
    rmSync(directory, { recursive: true });
    await service.stop();
  });
  const { partnerId, caller } = await service.partner();
  const source = join(directory, 'source.wav');
  writeFileSync(source, wav(88_200, { channels: 2 }));
  for (const [extension, container, mediaType, ...codec] of ENCODINGS) {
    const path = join(directory, `take.${extension}`);
    execFileSync('ffmpeg', ['-v', 'error', '-i', source, ...codec, path]);
    const audio = readFileSync(path);
    const { file, sidecar, asset } = await service.issue(partnerId, audio, {
      carrier: 'sidecar',
      fileName: `take.${extension}`,
    });
    t.ok(file.equals(audio), `${extension}: the audio is untouched`);
    t.match(asset, { mediaType, fileName: `take.${extension}` }, `${extension}: media type and name`);
    t.match(
      await service.verify(caller, audio, sidecar),
      { verdict: 'valid', good: true, audio: { container } },
      `${extension}: valid`,
    );
    for (const offset of [0, audio.length >> 1, audio.length - 1]) {
      const changed = Buffer.from(audio);
      changed[offset]! ^= 1;
      t.match(
        await service.verify(caller, changed, sidecar),
        { verdict: 'audioChanged', good: false },
        `${extension}: audioChanged at ${offset}`,
      );
    }
    t.match(
      await service.verify(caller, Buffer.concat([audio, Buffer.of(0)]), sidecar),
      { verdict: 'audioChanged' },
      `${extension}: a byte more`,
    );
    t.match(
      await service.verify(caller, audio.subarray(0, -1), sidecar),
      { verdict: 'audioChanged' },
      `${extension}: a byte less`,
    );
    const alone = await service.verify(caller, audio);
    t.match(
      alone,
      {
        verdict: 'unreadable',
        decision: { reasons: [container === 'riff' ? 'credential_missing' : 'container_unsupported'] },
      },
      `${extension}: alone it says nothing`,
    );
    if (container !== 'riff')
      await t.rejects(
        service.issue(partnerId, audio),
        { code: 'unprocessable', reason: 'container_needs_sidecar' },
        `${extension}: cannot carry its credential`,
      );
  }
});

const JUNK = chunk({ id: 'JUNK', data: Buffer.alloc(4) });

/** Returns a file whose chunk table, which is bounded, ends before its last chunk. */
function credentialBehind(chunks: number, data: Buffer): Buffer {
  return riff([
    fmtChunk(),
    ...Array.from({ length: chunks }, () => JUNK),
    chunk({ id: 'data', data: noise(100) }),
    chunk({ id: 'C2PA', data }),
  ]);
}

t.test('issuing refuses what could not be verified, and says why', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, caller } = await service.partner();
  const issued = await service.issue(partnerId, wav(1000));
  const refusals: readonly [name: string, audio: Uint8Array, reason: string][] = [
    ['a file that carries a credential', issued.file, 'audio_already_credentialed'],
    ['a file with bytes after the RIFF end', Buffer.concat([wav(1000), Buffer.of(0, 0)]), 'audio_malformed'],
    [
      'a RIFF that was never closed',
      riff([fmtChunk(), chunk({ id: 'data', data: noise(100) })], { riffSize: 0xffff_ffff }),
      'audio_unfinished',
    ],
    [
      'a second data chunk',
      riff([fmtChunk(), chunk({ id: 'data', data: noise(100) }), chunk({ id: 'data', data: noise(100) })]),
      'audio_malformed',
    ],
    [
      'a credential after 300 other chunks',
      credentialBehind(300, issued.file.subarray(1052)),
      'audio_already_credentialed',
    ],
    [
      'a chunk of the credential’s id that is none',
      credentialBehind(300, Buffer.from('hello!')),
      'audio_already_credentialed',
    ],
    [
      'no room for one more chunk',
      riff([
        fmtChunk(),
        ...Array.from({ length: 4094 }, () => JUNK),
        chunk({ id: 'data', data: noise(100) }),
      ]),
      'audio_malformed',
    ],
    ['a WAV after an ID3v2 tag', Buffer.concat([id3Tag(), wav(1000)]), 'container_needs_sidecar'],
    ['no audio at all', wav(0), 'audio_empty'],
    ['an empty file', Buffer.alloc(0), 'audio_empty'],
  ];
  for (const [name, audio, reason] of refusals)
    await t.rejects(service.issue(partnerId, audio), { code: 'unprocessable', reason }, name);
  await t.rejects(
    service.issue(partnerId, new Uint8Array(0), { carrier: 'sidecar' }),
    { code: 'unprocessable', reason: 'audio_empty' },
    'an empty pair',
  );
  await t.rejects(
    service.issue('ptr_00000000000000000000000000', wav(1000)),
    { code: 'not_found' },
    'an unknown partner',
  );
  t.match(await service.verify(caller, issued.file), { verdict: 'valid' });
  const most = await service.issue(
    partnerId,
    riff([fmtChunk(), ...Array.from({ length: 4093 }, () => JUNK), chunk({ id: 'data', data: noise(100) })]),
  );
  t.match(await service.verify(caller, most.file), { verdict: 'valid' }, '4,096 chunks with the credential');
});

const PAGE = Buffer.from('# A page\n\nThis page is not audio.\n');

t.test('issuing refuses a file of unknown container unless the operator allows it', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, caller } = await service.partner();
  const refused = { code: 'unprocessable', reason: 'audio_unknown' };
  await t.rejects(service.issue(partnerId, PAGE, { carrier: 'sidecar' }), refused);
  await t.rejects(service.issue(partnerId, PAGE), refused);
  await t.rejects(
    service.issue(partnerId, PAGE, { allowUnknownContainer: true }),
    { code: 'unprocessable', reason: 'container_needs_sidecar' },
    'only a sidecar is possible',
  );
  const request = {
    carrier: 'sidecar',
    allowUnknownContainer: true,
    idempotencyKey: 'exotic format',
  } as const;
  const issued = await service.issue(partnerId, PAGE, request);
  t.equal(issued.unknownContainer, true);
  t.equal((await service.issue(partnerId, PAGE, request)).proofId, issued.proofId);
  await t.rejects(service.issue(partnerId, PAGE, { ...request, allowUnknownContainer: false }), {
    code: 'conflict',
    reason: 'idempotency_key_reused',
  });
  const { partner } = service.service.operations;
  t.equal((await partner.readProof(caller, issued)).unknownContainer, true);
  t.equal((await partner.readRecord(caller, issued)).unknownContainer, true);
  t.match((await partner.listProofs(caller, {})).proofs, [
    { proofId: issued.proofId, unknownContainer: true },
  ]);
  t.match(await service.verify(caller, PAGE, issued.sidecar), {
    verdict: 'valid',
    good: true,
    audio: { container: 'unknown' },
    decision: { status: 'verified_binding', reasons: ['credential_verified', 'container_unknown'] },
  });
  const known = await service.issue(partnerId, wav(100), { carrier: 'sidecar', allowUnknownContainer: true });
  t.notOk('unknownContainer' in known, 'a file of a known container is not marked');
  t.strictSame((await service.verify(caller, known.file, known.sidecar)).decision.reasons, [
    'credential_verified',
  ]);
});

t.test('a pair is issued with the container after an ID3v2 tag', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, caller } = await service.partner();
  for (const [container, mediaType, start] of [
    ['flac', 'audio/flac', 'fLaC\0\0\0\x22\x10\0\x10\0'],
    ['riff', 'audio/wav', 'RIFF\x04\0\0\0WAVE'],
  ] as const) {
    const audio = Buffer.concat([id3Tag(300), Buffer.from(start), noise(100)]);
    const issued = await service.issue(partnerId, audio, {
      carrier: 'sidecar',
      fileName: `take.${container}`,
    });
    t.equal(issued.asset.mediaType, mediaType);
    t.match(await service.verify(caller, audio, issued.sidecar), { verdict: 'valid', audio: { container } });
  }
  t.match(await service.verify(caller, Buffer.concat([id3Tag(), wav(100)])), {
    verdict: 'unreadable',
    decision: { reasons: ['tag_before_riff'] },
  });
});

t.test('a file of unknown container costs nothing unless a sidecar comes with it', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, caller } = await service.partner();
  const { partner } = service.service.operations;
  const used = async (): Promise<number> => (await partner.readUsage(caller, { days: 1 })).used;
  const exotic = noise(500);
  const { sidecar } = await service.issue(partnerId, exotic, {
    carrier: 'sidecar',
    allowUnknownContainer: true,
  });
  const { uploadId } = await service.upload(caller, exotic);
  const without = { verdict: 'unreadable', decision: { reasons: ['container_unsupported'] } };
  t.match(await partner.verifyUpload(caller, { uploadId }), without);
  const spent = { ...caller, plan: { ...caller.plan, monthlyQuota: 0 } };
  t.match(await partner.verifyUpload(spent, { uploadId }), without, 'it needs no unit either');
  const identified = await upload(service, caller, exotic);
  t.match(await partner.identify(caller, { uploadId: identified }), { matches: [{ type: 'exact_file' }] });
  const page = await upload(service, caller, PAGE);
  await t.rejects(partner.identify(caller, { uploadId: page }), { code: 'unprocessable' });
  t.equal(await used(), 0);
  t.match(await partner.verifyUpload(caller, { uploadId, sidecar: sidecar! }), { verdict: 'valid' });
  t.equal(await used(), 1, 'a pair is judged, so it costs a unit');
});

/** Returns the id of an upload that can be identified. */
async function upload(service: TestService, caller: Caller, audio: Uint8Array): Promise<string> {
  const { partner } = service.service.operations;
  const slot = await partner.createUpload(caller, { purpose: 'identify' });
  const receiver = await partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
  await receiver.write(audio);
  return (await receiver.finish()).uploadId;
}

t.test('a file of 65 MiB is taken, and one byte more is refused', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, caller } = await service.partner();
  const limit = 68_157_440;
  // An issued file that is exactly as large as an upload may be: its credential grows with nothing but its
  // own bytes.
  const probe = await service.issue(partnerId, wav(10_000_000));
  const credential = probe.file.length - 10_000_044;
  const largest = await service.issue(partnerId, wav(limit - credential - 44));
  t.equal(largest.file.length, limit);
  t.match(await service.verify(caller, largest.file), { verdict: 'valid', audio: { bytes: limit } });
  await t.rejects(service.issue(partnerId, wav(limit - credential - 42)), {
    code: 'unprocessable',
    reason: 'result_too_large',
  });
  await t.rejects(service.upload(caller, Buffer.concat([largest.file, Buffer.of(0)])), {
    code: 'payload_too_large',
  });
});

t.test('an Idempotency-Key is bound to the complete request', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  service.clock.hold();
  const { partnerId } = await service.partner();
  const request = { idempotencyKey: 'b7e23ec2-9d8c-4f2e-8d3f-0d7f6b8f3a11' };
  const first = await service.issue(partnerId, wav(1000), request);
  const again = await service.issue(partnerId, wav(1000), request);
  t.match(again, { proofId: first.proofId, replayed: true });
  t.ok(again.file.equals(first.file));
  const reused = { code: 'conflict', reason: 'idempotency_key_reused' };
  await t.rejects(service.issue(partnerId, wav(1002), request), reused, 'other audio');
  await t.rejects(
    service.issue(partnerId, wav(1000), { ...request, song: 'Take two' }),
    reused,
    'another title',
  );
  await t.rejects(
    service.issue(partnerId, wav(1000), { ...request, fileName: 'other.wav' }),
    reused,
    'another name',
  );
  await t.rejects(
    service.issue(partnerId, wav(1000), { ...request, carrier: 'sidecar' }),
    reused,
    'another carrier',
  );
  const other = await service.partner();
  t.not(
    (await service.issue(other.partnerId, wav(1000), request)).proofId,
    first.proofId,
    'keys of other partners are other keys',
  );
  const parallel = await Promise.all(
    Array.from({ length: 10 }, () =>
      service.issue(partnerId, wav(1000, {}, 7), { idempotencyKey: 'parallel' }),
    ),
  );
  t.equal(new Set(parallel.map(({ proofId }) => proofId)).size, 1, 'ten at once make one proof');
  service.clock.advance(24 * 3600 - 1);
  t.match(
    await service.issue(partnerId, wav(1000), request),
    { proofId: first.proofId, replayed: true },
    'remembered for 24 hours',
  );
  service.clock.advance(2);
  t.match(await service.issue(partnerId, wav(1000), request), { replayed: false }, 'and no longer');
});

t.test('uploads: one use, own partner, lives of slot and facts to the second', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  service.clock.hold();
  const { caller } = await service.partner();
  const { partner } = service.service.operations;
  const stranger = await service.partner();

  const open = await partner.createUpload(caller, { purpose: 'verify' });
  await t.rejects(partner.verifyUpload(caller, { uploadId: open.uploadId }), {
    code: 'conflict',
    reason: 'upload_incomplete',
  });
  await t.rejects(partner.verifyUpload(stranger.caller, { uploadId: open.uploadId }), { code: 'not_found' });
  for (const [uploadId, reason] of [
    ['upl_00000000000000000000000000', 'upload_expired'],
    [formatIdentifier('upload', service.clock.now(), Buffer.alloc(10)), undefined],
    ['upl_7', undefined],
  ] as const)
    await t.rejects(partner.verifyUpload(caller, { uploadId }), { code: 'not_found', reason }, uploadId);

  const fields = new Map(Object.entries(open.fields));
  const first = await partner.receiveUpload(open.uploadId, fields);
  await t.rejects(partner.receiveUpload(open.uploadId, fields), {
    code: 'conflict',
    reason: 'upload_in_progress',
  });
  first.abort();
  const second = await partner.receiveUpload(open.uploadId, fields);
  await second.write(wav(100));
  await second.finish();
  await t.rejects(partner.receiveUpload(open.uploadId, fields), {
    code: 'conflict',
    reason: 'upload_already_used',
  });
  await t.resolves(partner.verifyUpload(caller, { uploadId: open.uploadId }));
  await t.rejects(partner.verifyUpload(stranger.caller, { uploadId: open.uploadId }), { code: 'not_found' });

  const late = await partner.createUpload(caller, { purpose: 'verify' });
  const tooLate = await partner.createUpload(caller, { purpose: 'verify' });
  service.clock.advance(15 * 60 - 2);
  (await partner.receiveUpload(late.uploadId, new Map(Object.entries(late.fields)))).abort();
  service.clock.advance(3);
  await t.rejects(partner.receiveUpload(tooLate.uploadId, new Map(Object.entries(tooLate.fields))), {
    code: 'forbidden',
    reason: 'form_policy_expired',
  });
  await t.rejects(partner.verifyUpload(caller, { uploadId: tooLate.uploadId }), {
    code: 'not_found',
    reason: 'upload_expired',
  });
  service.clock.advance(45 * 60 - 5);
  await t.resolves(partner.verifyUpload(caller, { uploadId: open.uploadId }), 'facts live for an hour');
  service.clock.advance(10);
  await t.rejects(
    partner.verifyUpload(caller, { uploadId: open.uploadId }),
    { code: 'not_found', reason: 'upload_expired' },
    'and no longer',
  );

  const limited = await service.partner('trial');
  const slots = await Promise.all(
    [1, 2, 3].map(() => partner.createUpload(limited.caller, { purpose: 'verify' })),
  );
  const receivers = await Promise.all(
    slots
      .slice(0, 2)
      .map((slot) => partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)))),
  );
  await t.rejects(partner.receiveUpload(slots[2]!.uploadId, new Map(Object.entries(slots[2]!.fields))), {
    code: 'rate_limited',
    reason: 'concurrency_exceeded',
  });
  for (const receiver of receivers) receiver.abort();
  (await partner.receiveUpload(slots[2]!.uploadId, new Map(Object.entries(slots[2]!.fields)))).abort();

  const sized = await partner.createUpload(caller, { purpose: 'verify', contentLength: 100 });
  const short = await partner.receiveUpload(sized.uploadId, new Map(Object.entries(sized.fields)));
  await short.write(Buffer.alloc(99));
  await t.rejects(short.finish(), { code: 'invalid_request', reason: 'content_length_mismatch' });
  const long = await partner.receiveUpload(sized.uploadId, new Map(Object.entries(sized.fields)));
  t.throws(() => long.write(Buffer.alloc(101)), {
    code: 'payload_too_large',
    message: 'The file must be at most 100 bytes, the `maxBytes` of its slot.',
  });
});

t.test(
  'a form that lacks a field of its slot, or has another, is refused with the name of the field',
  async (t) => {
    const service = await TestService.start();
    t.teardown(() => service.stop());
    const { caller } = await service.partner();
    const { partner } = service.service.operations;
    const { uploadId, fields } = await partner.createUpload(caller, { purpose: 'verify' });
    for (const [sent, reason, message] of [
      [{ policy: fields['policy']! }, 'form_field_missing', 'The form lacks `signature` before the file.'],
      [{}, 'form_field_missing', 'The form lacks `policy` and `signature` before the file.'],
      [{ ...fields, acl: 'x' }, 'form_field_unknown', 'The form has the field `acl`,'],
    ] as const)
      await t.rejects(partner.receiveUpload(uploadId, new Map(Object.entries(sent))), {
        code: 'invalid_request',
        reason,
        message: new RegExp(`^${message}`),
      });
  },
);

t.test('the quota is exact, and the same upload is billed once', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { caller } = await service.partner('trial');
  const small = { ...caller, plan: { ...caller.plan, monthlyQuota: 5, concurrentUploads: 100 } };
  const { partner } = service.service.operations;
  const uploads = [];
  for (let i = 0; i < 20; i += 1) uploads.push(await service.upload(caller, wav(100, {}, i + 1)));
  const answers = await Promise.allSettled(
    uploads.flatMap(({ uploadId }) => [1, 2, 3].map(() => partner.verifyUpload(small, { uploadId }))),
  );
  t.equal(
    answers.filter(({ status }) => status === 'fulfilled').length,
    15,
    'five uploads, three times each',
  );
  for (const answer of answers)
    if (answer.status === 'rejected')
      t.match(answer.reason, { code: 'rate_limited', reason: 'quota_exceeded' });
  const retryAfter = answers.find((answer) => answer.status === 'rejected')!.reason
    .retryAfterSeconds as number;
  service.clock.advance(retryAfter);
  const fresh = await service.upload(caller, wav(100));
  await t.resolves(
    partner.verifyUpload(small, { uploadId: fresh.uploadId }),
    'after Retry-After the next call succeeds',
  );
});
