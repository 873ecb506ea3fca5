/**
 * Builds the wheel of the Python package and prints its path: `node deploy/libraries/pack-python.mjs [directory]`. It
 * needs Python 3.11 with pip, which downloads the build backend that deploy/python/pyproject.toml names.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const target = resolve(process.argv[2] ?? '.');
const folder = await mkdtemp(join(tmpdir(), 'takemark-python-'));
try {
  const source = join(folder, 'source');
  await cp(join(ROOT, 'deploy/python'), source, {
    recursive: true,
    filter: (path) => !path.endsWith('__pycache__'),
  });
  // The licence has to be below the folder of the package.
  await cp(join(ROOT, 'LICENSE'), join(source, 'LICENSE'));
  const wheels = join(folder, 'wheels');
  const pip = ['-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-deps', '--wheel-dir'];
  await promisify(execFile)('python3', [...pip, wheels, source]);
  const [wheel] = await readdir(wheels);
  await cp(join(wheels, wheel), join(target, wheel));
  console.log(join(target, wheel));
} finally {
  await rm(folder, { recursive: true, force: true });
}
