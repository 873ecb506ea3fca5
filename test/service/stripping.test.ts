/** Stripping is the inverse of issuing. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { openFileKit } from '../../src/service/compose/tools.js';
import { corpusFiles } from '../fixtures/corpus.js';
import { sampled } from '../fixtures/sampling.js';
import { collect, inPieces, TestService } from '../fixtures/service.js';
import { WRITERS } from '../fixtures/writers.js';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
/** Reasons why issuing refuses a file of the corpus. Many of these files are broken on purpose. */
const REFUSALS = /^(?:audio_\w+|container_needs_sidecar|result_too_large)$/;

t.test('an issued file without its credential is the original, for each writer and the corpus', async (t) => {
  const service = await TestService.start();
  const kit = await openFileKit();
  t.teardown(() => Promise.all([service.stop(), kit.close()]));
  const { partnerId } = await service.partner();
  const { operator } = service.service.operations;
  const isTried = sampled(13);
  const corpus = (corpusFiles() ?? [])
    .filter(({ name }) => /\.wav$/i.test(name) && isTried())
    .map(({ name, path }) => ({ name, file: readFileSync(path) }));
  const writers = WRITERS.map(({ writer, deviation, file }) => ({ name: `${writer}: ${deviation}`, file }));
  const stripped = { corpus: 0, writers: 0 };
  for (const [from, files] of [
    ['writers', writers],
    ['corpus', corpus],
  ] as const)
    for (const { name, file } of files) {
      const audio = inPieces(file);
      const request = {
        partnerId,
        songTitle: 'Take one',
        fileName: 'take.wav',
        carrier: 'embedded',
      } as const;
      const issued = await operator
        .issueProof({ ...request, mend: true, audio })
        .catch((error: { reason?: string }) => error.reason ?? String(error));
      if (typeof issued === 'string') {
        t.match(issued, REFUSALS, `${name}: refused`);
        continue;
      }
      const asset = await collect(await (await operator.readAsset(issued.proofId, 'audio')).read());
      const { credential } = await kit.inspect(() => inPieces(asset));
      t.equal(credential?.originalSha256, issued.originalSha256, name);
      const original = await buffer(kit.readOriginal(credential!, () => inPieces(asset)));
      t.equal(sha256(original), issued.originalSha256, `${name}: the digest of the original`);
      if (issued.mended === undefined) t.ok(original.equals(file), `${name}: every byte of the original`);
      stripped[from] += 1;
    }
  t.equal(stripped.writers, WRITERS.filter(({ outcome }) => /issued|mended/.test(outcome)).length);
  t.comment(`${stripped.corpus} of ${corpus.length} tried WAV files of the corpus were issued and stripped`);
  if (corpus.length > 0) t.ok(stripped.corpus > 0);
});
