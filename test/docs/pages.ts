/** Pages of the project, for the tests that hold them to the code. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

export const ROOT = new URL('../../../', import.meta.url).pathname;

/** Returns the paths of the pages from the root. */
export async function pages(): Promise<readonly string[]> {
  const found = await Promise.all(
    ['docs', 'deploy', 'assembly', 'src'].map(async (folder) =>
      (await readdir(join(ROOT, folder), { recursive: true }))
        .filter((name) => name.endsWith('.md'))
        .map((name) => join(folder, name)),
    ),
  );
  return ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...found.flat()];
}
