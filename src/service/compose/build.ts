import { readFileSync } from 'node:fs';
import { defined } from '../../core/domain/defined.js';
import type { Config } from '../config/config.js';

/** What distinguishes this build of the service from others. */
export interface Build {
  /** The version of the package. */
  readonly version: string;
  /** The commit that `npm run build` recorded. Absent if the sources had no Git repository. */
  readonly commit?: string;
}

/** Returns the commit of the running service: the configured one, otherwise the one that the build recorded. */
export function commitOf({ build }: Pick<Config, 'build'>, { commit }: Pick<Build, 'commit'>): string {
  return build.commit ?? commit ?? 'unknown';
}

/** Returns the name, version and commit of the running process for its banner. */
export function buildText(config: Pick<Config, 'build'>, build: Build): string {
  return `Takemark ${build.version} (${commitOf(config, build)})`;
}

/** Reads the version from the package, and the commit from what the build recorded beside the code. */
export function readBuild(): Build {
  const { version } = readJson('../../../../package.json') as { readonly version: string };
  return defined({ version, commit: recordedCommit() });
}

function recordedCommit(): string | undefined {
  try {
    return (readJson('../../../build.json') as { readonly commit?: string }).commit;
  } catch {
    return undefined;
  }
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
