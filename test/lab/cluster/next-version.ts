/** A build of the next version. It is this version with one more migration, which expands the schema. */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SCHEMA_VERSION } from '../../../src/service/adapters/cassandra/driver/migrations.js';

const PROJECT = new URL('../../../../', import.meta.url);
const MIGRATIONS = 'dist/src/service/adapters/cassandra/driver/migrations.js';

export interface NextVersion {
  /** The root of its compiled files. */
  readonly root: URL;
  remove(): Promise<void>;
}

export async function buildNextVersion(): Promise<NextVersion> {
  // A folder below the project, because both versions load its libraries. The process that reads audio
  // follows no link to them.
  const directory = await mkdtemp(new URL('dist/next-version-', PROJECT).pathname);
  const version = SCHEMA_VERSION + 1;
  const from = (path: string): string => new URL(path, PROJECT).pathname;
  await mkdir(join(directory, 'dist'), { recursive: true });
  await cp(from('dist/src'), join(directory, 'dist/src'), { recursive: true });
  await cp(from('dist/core.wasm'), join(directory, 'dist/core.wasm'));
  await cp(from('deploy'), join(directory, 'deploy'), { recursive: true });
  await cp(from('package.json'), join(directory, 'package.json'));
  await writeFile(
    join(directory, `deploy/cassandra/${String(version).padStart(3, '0')}-next.cql`),
    `-- min_compatible: ${SCHEMA_VERSION}
ALTER TABLE ping ADD IF NOT EXISTS next text;
CREATE TABLE IF NOT EXISTS next_version (name text PRIMARY KEY, at bigint);
`,
  );
  const path = join(directory, MIGRATIONS);
  const text = await readFile(path, 'utf8');
  const next = text.replace(`SCHEMA_VERSION = ${SCHEMA_VERSION}`, `SCHEMA_VERSION = ${version}`);
  if (next === text) throw new Error('the version of the schema is not where it was');
  await writeFile(path, next);
  return {
    root: pathToFileURL(`${join(directory, 'dist')}/`),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}
