import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import t from 'tap';
import { RecordCodec } from '../../src/core/codec/record.js';
import { STORE_FORMAT } from '../../src/service/adapters/embedded/store.js';
import { readBuild } from '../../src/service/compose/build.js';
import { authenticatorOf, openSecrets } from '../../src/service/compose/identity.js';
import { readConfig } from '../../src/service/config/config.js';
import { TestClock, TestService } from '../fixtures/service.js';
import { type ReleasedData, readReleased, releases, unpack } from './released-data.js';

/** A clock that stays in the hour after a release wrote its data, so that nothing has expired. */
class ReleaseClock extends TestClock {
  readonly #at: number;

  constructor(writtenAt: number) {
    super();
    this.#at = (writtenAt + 60) * 1000;
  }

  override now(): number {
    return this.#at;
  }
}

const bytesOf = (base64: string): Buffer => Buffer.from(base64, 'base64');

const startOn = (directory: string, { writtenAt }: ReleasedData) =>
  TestService.start({ TAKEMARK_DATA_DIR: directory }, new ReleaseClock(writtenAt));

const eventsOf = (service: TestService, event: string) =>
  service.log
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line['event'] === event);

for (const version of await releases())
  t.test(`the data directory of release ${version} is served`, async (t) => {
    const data = await readReleased(version);
    const directory = t.testdir();
    await unpack(data, directory);
    const service = await startOn(directory, data);
    const { partner, operator } = service.service.operations;
    const caller = await partner.authenticate(data.apiKey);
    const { embedded, pair, erased } = data;
    t.match(await service.verify(caller, bytesOf(embedded.file)), { verdict: 'valid', good: true });
    t.match(await service.verify(caller, bytesOf(pair.file), bytesOf(pair.sidecar)), { verdict: 'valid' });
    t.match(await service.verify(caller, bytesOf(erased.file)), { verdict: 'unregistered' });
    t.strictSame((await partner.listProofs(caller, {})).proofs.map(({ song }) => song.title).sort(), [
      'Embedded',
      'Pair',
    ]);
    t.match(await partner.readReview(caller, { reviewId: data.reviewId }), {
      proofId: embedded.proofId,
      status: 'open',
    });
    const sha256 = createHash('sha256').update(bytesOf(pair.file)).digest('hex');
    const byDigest = () => partner.identify(caller, { digests: [{ sha256 }] });
    t.match(await byDigest(), { results: [{ matches: [{ proofId: pair.proofId, type: 'exact_file' }] }] });
    const slot = await partner.createUpload(caller, { purpose: 'identify' });
    const receiver = await partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
    await receiver.write(bytesOf(embedded.file));
    const { uploadId } = await receiver.finish();
    const identified = await partner.identify(caller, { uploadId });
    t.match(identified, { matches: [{ proofId: embedded.proofId, type: 'exact_file' }] });
    const samples = ('samples' in identified && identified.samples) || '';
    const bySamples = async () => {
      const found = await partner.identify(caller, { digests: [{ sha256: samples, of: 'samples' }] });
      return 'results' in found ? found.results[0]!.matches.map(({ proofId }) => proofId) : [];
    };
    t.strictSame(await bySamples(), [], 'samples of earlier proofs are not known');
    t.match(await operator.fillSamples({}), { failed: [] });
    t.ok((await bySamples()).includes(embedded.proofId), 'until an operator has them computed');
    t.match(await partner.eraseProof(caller, { proofId: pair.proofId }), { outcome: 'erased' });
    t.strictSame(await byDigest(), { results: [{ sha256, matches: [] }] });
    t.match(await operator.verifyAudit({ partnerId: data.partnerId }), { ok: true });
    const raised = eventsOf(service, 'store_format_raised');
    await service.stop({ keep: true });
    t.ok(raised.length <= 1);
    for (const line of raised) t.match(line, { to: STORE_FORMAT, wayBack: /copy from before this start/ });

    const again = await startOn(directory, data);
    t.strictSame(eventsOf(again, 'store_format_raised'), [], 'a second start raises nothing');
    t.match(eventsOf(again, 'started'), [{ version: '0.0.0-test', commit: 'unknown' }]);
    await again.stop();
  });

t.test('a start is refused when a newer version wrote the store', async (t) => {
  const data = await readReleased((await releases())[0]!);
  const directory = t.testdir();
  await unpack(data, directory);
  await (await startOn(directory, data)).stop({ keep: true });
  // The row of the format has a code, so another installation's later format would not be believed.
  const level = new ClassicLevel<string, Buffer>(join(directory, 'store'), { valueEncoding: 'buffer' });
  const config = readConfig({ TAKEMARK_DATA_DIR: directory });
  const { secrets } = await openSecrets(config);
  const codec = new RecordCodec(authenticatorOf(secrets, 'row', config));
  await level.put('meta/format', Buffer.from(codec.encode('meta/format', { format: STORE_FORMAT + 1 })));
  await level.close();
  await t.rejects(startOn(directory, data), {
    message: `The store in ${join(directory, 'store')} has format ${STORE_FORMAT + 1}, but this version reads only formats up to ${STORE_FORMAT}. Use the version that wrote the store, or a later version.`,
  });
});

t.test('the version of the package is the newest release of the changelog', async (t) => {
  const changelog = await readFile(new URL('../../../CHANGELOG.md', import.meta.url), 'utf8');
  const [newest, ...former] = [...changelog.matchAll(/^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$/gm)].map(
    ([, version]) => version,
  );
  t.equal(readBuild().version, newest);
  t.strictSame((await releases()).toSorted(), [newest, ...former].toSorted(), 'each release keeps its data');
});
