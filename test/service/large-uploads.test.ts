import t from 'tap';
import { unitsOf } from '../../src/service/domain/upload.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { TestService } from '../fixtures/service.js';
import { chunk, fmtChunk, riff } from '../fixtures/wav.js';

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
  t.strictSame(await partner.identify(caller, { uploadId: other }), { matches: [] });
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
