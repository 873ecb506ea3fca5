import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import t from 'tap';
import { unitsOf } from '../../src/service/domain/upload.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { collect, inPieces, TestService } from '../fixtures/service.js';
import { chunk, fmtChunk, riff, wav } from '../fixtures/wav.js';

const MIB = 1_048_576;
const LIMIT = 65 * MIB;

/** Yields a WAV file of silence in pieces of 1 MiB. @param bytes the length of the file, an even number above 44 */
function* silence(bytes: number): Generator<Uint8Array> {
  const head = riff([fmtChunk(), chunk({ id: 'data', data: Buffer.alloc(0), size: bytes - 44 })], {
    riffSize: bytes - 8,
  });
  yield head;
  const piece = Buffer.alloc(MIB);
  for (let left = bytes - head.length; left > 0; left -= MIB) yield piece.subarray(0, left);
}

async function upload(
  { service }: TestService,
  caller: Caller,
  purpose: 'verify_large' | 'identify_large',
  bytes: number,
): Promise<string> {
  const { partner } = service.operations;
  const slot = await partner.createUpload(caller, { purpose, contentLength: bytes });
  const receiver = await partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
  for (const piece of silence(bytes)) await receiver.write(piece);
  return (await receiver.finish()).uploadId;
}

t.test('a slot of a large purpose states its units, within the limit of the service', async (t) => {
  const service = await TestService.start({ TAKEMARK_MAX_LARGE_MIB: '131' });
  t.teardown(() => service.stop());
  const { caller } = await service.partner();
  const { partner } = service.service.operations;
  for (const [contentLength, units] of [
    [1, 1],
    [LIMIT, 1],
    [LIMIT + 1, 2],
    [2 * LIMIT, 2],
    [131 * MIB, 3],
  ] as const) {
    const slot = await partner.createUpload(caller, { purpose: 'verify_large', contentLength });
    t.match(slot, { maxBytes: contentLength, units });
  }
  t.match(await partner.createUpload(caller, { purpose: 'verify' }), { maxBytes: LIMIT, units: 1 });

  const invalid = (message: string) => ({ code: 'invalid_request', reason: 'invalid_member', message });
  await t.rejects(
    partner.createUpload(caller, { purpose: 'identify_large', contentLength: 131 * MIB + 1 }),
    invalid('contentLength must be at most 137363456.'),
  );
  await t.rejects(
    partner.createUpload(caller, { purpose: 'verify_large' }),
    invalid('contentLength is missing. The purpose verify_large needs it.'),
  );
  await t.rejects(
    partner.createUpload(caller, { purpose: 'verify', contentLength: LIMIT + 1 }),
    invalid('contentLength must be at most 68157440.'),
  );
});

t.test('a file above 65 MiB is measured and judged, for one unit for each 65 MiB begun', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { operator, partner } = service.service.operations;
  const limits = { requestsPerSecond: 100, burst: 100, concurrentUploads: 4, rotationsPerDay: 1 };
  await operator.createPlan({ name: 'five', monthlyQuota: 5, ...limits });
  const { caller } = await service.partner('five');
  const bytes = LIMIT + 2;
  const uploadId = await upload(service, caller, 'verify_large', bytes);
  const used = async () => (await partner.readUsage(caller, { days: 1 })).used;
  t.equal(await used(), 0, 'an upload costs nothing');
  for (const time of ['the first verify', 'a repeated one']) {
    t.match(
      await partner.verifyUpload(caller, { uploadId }),
      { verdict: 'unreadable', audio: { bytes, container: 'riff', frames: (bytes - 44) / 2 } },
      time,
    );
    t.equal(await used(), 2, time);
  }
  const mismatch = { code: 'conflict', reason: 'purpose_mismatch' };
  await t.rejects(partner.identify(caller, { uploadId }), mismatch);

  const other = await upload(service, caller, 'identify_large', bytes);
  await t.rejects(partner.verifyUpload(caller, { uploadId: other }), mismatch);
  t.match(await partner.identify(caller, { uploadId: other }), { matches: [], samples: /^[0-9a-f]{64}$/ });
  t.equal(await used(), 4);

  await t.rejects(
    partner.createUpload(caller, { purpose: 'verify_large', contentLength: bytes }),
    {
      code: 'rate_limited',
      reason: 'quota_exceeded',
      message: /The call needs more units than the 1 left of the month/,
    },
    'no file is sent that the month cannot pay for',
  );
  t.match(await partner.createUpload(caller, { purpose: 'verify_large', contentLength: LIMIT }), {
    units: unitsOf(LIMIT),
  });
});

t.test('the post of a large file begins within the life of its slot, and may end later', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  service.clock.hold();
  const { caller } = await service.partner();
  const { partner } = service.service.operations;
  const contentLength = 64 * MIB;
  const begin = async () => {
    const slot = await partner.createUpload(caller, { purpose: 'verify_large', contentLength });
    const fields = new Map(Object.entries(slot.fields));
    return { slot, fields, receiver: await partner.receiveUpload(slot.uploadId, fields) };
  };
  const { slot, receiver } = await begin();
  const tooLate = await begin();
  const unused = await begin();
  unused.receiver.abort();
  for (const piece of silence(contentLength)) {
    await receiver.write(piece);
    await tooLate.receiver.write(piece);
  }
  // 64 MiB take 1,024 seconds at the least rate, and every post may last 15 minutes.
  service.clock.advance(15 * 60 + 15 * 60 + 1024 - 1);
  await receiver.finish();
  t.match(await partner.verifyUpload(caller, { uploadId: slot.uploadId }), {
    audio: { bytes: contentLength },
  });
  await t.rejects(
    partner.receiveUpload(unused.slot.uploadId, unused.fields),
    { code: 'forbidden', reason: 'form_policy_expired' },
    'a post that begins after the slot',
  );
  service.clock.advance(1);
  await t.rejects(tooLate.receiver.finish(), { code: 'forbidden', reason: 'form_policy_expired' });
});

t.test('a form that is longer than its slot allows is refused before its file arrives', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { caller } = await service.partner();
  const { partner } = service.service.operations;
  const form = (fields: Readonly<Record<string, string>>, bytes: number) => {
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    body.append('file', new Blob([...silence(bytes)] as Uint8Array<ArrayBuffer>[]), 'a.wav');
    return body;
  };
  const large = await partner.createUpload(caller, { purpose: 'verify_large', contentLength: 2 * MIB });
  const stored = await fetch(large.url, { method: 'POST', body: form(large.fields, 2 * MIB) });
  t.match(await stored.json(), { uploadId: large.uploadId, bytes: 2 * MIB });

  const small = await partner.createUpload(caller, { purpose: 'verify' });
  const refused = await fetch(small.url, { method: 'POST', body: form(small.fields, LIMIT + 2 * MIB) });
  t.equal(refused.status, 413);
  t.match(await refused.json(), {
    reason: 'body_too_large',
    error: 'The file must be at most 68157440 bytes, the `maxBytes` of its slot.',
  });
});

t.test('a file above 65 MiB is issued on request, and says which purpose verifies it', async (t) => {
  const service = await TestService.start({ TAKEMARK_MAX_LARGE_MIB: '66' });
  t.teardown(() => service.stop());
  const { partnerId, apiKey, caller } = await service.partner();
  const { operator, partner } = service.service.operations;
  async function* audio(bytes: number) {
    yield* silence(bytes);
  }
  const issue = (bytes: number, over: { readonly large?: boolean; readonly carrier?: 'sidecar' } = {}) =>
    operator.issueProof({
      partnerId,
      songTitle: 'Master',
      fileName: 'master.wav',
      carrier: 'embedded',
      audio: audio(bytes),
      ...over,
    });
  await t.rejects(issue(LIMIT), {
    code: 'unprocessable',
    reason: 'result_too_large',
    message: /exceed 68157440 bytes\. `--large` issues it/,
  });
  await t.rejects(issue(66 * MIB, { large: true }), {
    reason: 'result_too_large',
    message: 'With its credential the file would exceed 69206016 bytes.',
  });
  t.equal((await issue(LIMIT, { large: true, carrier: 'sidecar' })).asset.uploadPurpose, undefined);

  const { proofId, asset } = await issue(LIMIT, { large: true });
  t.match(asset, { uploadPurpose: 'verify_large' });
  const needed = { bytes: asset.bytes, uploadPurpose: 'verify_large' };
  t.match((await partner.readRecord(caller, { proofId })).delivery, needed);
  t.match((await partner.readProof(caller, { proofId })).delivery, needed);
  const file = await fetch(`${service.partnerUrl}/v1/proofs/${proofId}/asset`, {
    headers: { 'x-api-key': apiKey, range: 'bytes=0-9' },
  });
  t.equal(file.headers.get('upload-purpose'), 'verify_large');
  t.equal((await file.arrayBuffer()).byteLength, 10);

  const slot = await partner.createUpload(caller, {
    purpose: 'verify_large',
    contentLength: asset.bytes,
  });
  const receiver = await partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
  const stored = await (await operator.readAsset(proofId, 'audio')).read();
  for await (const piece of stored) await receiver.write(piece as Uint8Array);
  t.equal((await receiver.finish()).sha256, asset.sha256);
  t.match(await partner.verifyUpload(caller, { uploadId: slot.uploadId }), { verdict: 'valid', proofId });
});

t.test('the operator listener accepts a long body of an issuing only with `large`', async (t) => {
  const service = await TestService.start({ TAKEMARK_MAX_LARGE_MIB: '66' });
  t.teardown(() => service.stop());
  const { partnerId } = await service.partner();
  const query = `partnerId=${partnerId}&song=Master&fileName=master.wav&carrier=sidecar`;
  /** Returns `continue` if the body is asked for, or else the status. */
  const offer = async (bytes: number, large: string) => {
    const call = request(`${service.operatorUrl}/operator/v1/proofs?${query}${large}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.service.operatorToken}`,
        'content-type': 'application/octet-stream',
        'content-length': bytes,
        expect: '100-continue',
      },
    });
    call.on('error', () => undefined);
    call.flushHeaders();
    const response = once(call, 'response').then(([answer]) => (answer as IncomingMessage).statusCode);
    const outcome = await Promise.race([once(call, 'continue').then(() => 'continue'), response]);
    call.destroy();
    return outcome;
  };
  t.equal(await offer(LIMIT, ''), 'continue');
  t.equal(await offer(LIMIT + 1, ''), 413);
  t.equal(await offer(66 * MIB, '&large=true'), 'continue');
  t.equal(await offer(66 * MIB + 1, '&large=true'), 413);
});

t.test('the pieces in which a file arrives do not change what is issued', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, caller } = await service.partner();
  const { operator } = service.service.operations;
  const issue = (audio: Uint8Array, size: number) =>
    operator.issueProof({
      partnerId,
      songTitle: 'Take',
      fileName: 'take.wav',
      carrier: 'embedded',
      audio: inPieces(audio, size),
    });
  for (const [length, size] of [
    [1000, 1],
    [1000, 11],
    [1000, 12],
    [150_000, 65_536],
    [150_000, 1_000_000],
  ] as const) {
    const file = wav(length);
    const { proofId, originalSha256, asset } = await issue(file, size);
    t.equal(originalSha256, createHash('sha256').update(file).digest('hex'), `pieces of ${size}`);
    const issued = await collect(await (await operator.readAsset(proofId, 'audio')).read());
    t.equal(issued.length, asset.bytes);
    t.match(await service.verify(caller, issued), { verdict: 'valid', audio: { sha256: asset.sha256 } });
    file.writeUInt32LE(file.length + 2, 4);
    await t.rejects(
      issue(file, size),
      { reason: 'audio_malformed', message: new RegExp(`RIFF size ${file.length + 2}`) },
      'a head that states another length is explained as it was sent',
    );
  }
});
