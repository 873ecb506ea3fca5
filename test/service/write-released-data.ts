/**
 * Writes what this version leaves in a data directory, with what a later version must find in it, to
 * `test/service/released-data/<version>.json.gz`. Run it once for each release: `npm run build:released-data`.
 */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { readBuild } from '../../src/service/compose/build.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import type { ReleasedData } from './released-data.js';

const BINDINGS = { creatorId: 'creator', accountId: 'account', submissionId: 'submission', trackId: 'track' };

const directory = await mkdtemp(join(tmpdir(), 'takemark-released-'));
const service = await TestService.start({ TAKEMARK_DATA_DIR: directory });
const { operations } = service.service;
const { partnerId, apiKey, caller } = await service.partner();
const embedded = await service.issue(partnerId, wav(2000, {}, 1), { song: 'Embedded' });
const pair = await service.issue(partnerId, wav(2000, {}, 2), { song: 'Pair', carrier: 'sidecar' });
const erased = await service.issue(partnerId, wav(2000, {}, 3), { song: 'Erased' });
await operations.partner.eraseProof(caller, { proofId: erased.proofId });
const { proofId } = embedded;
const { reviewId } = await operations.partner.createReview(caller, { proofId, bindings: BINDINGS });
await service.verify(caller, embedded.file);
const writtenAt = Math.floor(Date.now() / 1000);
await service.stop({ keep: true });

const files: Record<string, string> = {};
for (const entry of await readdir(directory, { recursive: true })) {
  const path = join(directory, entry);
  if ((await stat(path)).isFile())
    files[relative(directory, path)] = (await readFile(path)).toString('base64');
}
await rm(directory, { recursive: true });
const data: ReleasedData = {
  writtenAt,
  partnerId,
  apiKey,
  reviewId,
  embedded: { proofId, file: embedded.file.toString('base64') },
  pair: {
    proofId: pair.proofId,
    file: pair.file.toString('base64'),
    sidecar: pair.sidecar!.toString('base64'),
  },
  erased: { proofId: erased.proofId, file: erased.file.toString('base64') },
  files,
};
// Compiled files run in dist/test/service.
const target = new URL(`../../../test/service/released-data/${readBuild().version}.json.gz`, import.meta.url);
await writeFile(target, gzipSync(JSON.stringify(data), { level: 9 }));
