/**
 * Packs the library for session agents as a package of its own, with what it imports and nothing else; prints the
 * path of the archive. Run it after `npm run build`: `node deploy/capture/pack.mjs [directory]`.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BUILT = join(ROOT, 'dist/src');
const ENTRY = join(BUILT, 'capture/index.js');
const NAME = 'takemark-capture';

const project = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const target = resolve(process.argv[2] ?? process.cwd());
const folder = await mkdtemp(join(tmpdir(), 'takemark-capture-'));
try {
  const { files, packages } = await importedBy(ENTRY);
  for (const file of files) {
    const place = join(folder, relative(BUILT, file));
    await mkdir(dirname(place), { recursive: true });
    await cp(file, place);
  }
  for (const name of ['LICENSE', 'docs/capture-trace.md']) await cp(join(ROOT, name), join(folder, name));
  const description = {
    name: NAME,
    version: project.version,
    description: 'Writes signed capture traces of sessions in a DAW.',
    license: project.license,
    type: 'module',
    engines: project.engines,
    exports: { '.': { types: './capture/index.d.ts', default: './capture/index.js' } },
    dependencies: Object.fromEntries([...packages].sort().map((name) => [name, project.dependencies[name]])),
  };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(description, null, 2)}\n`);
  await mkdir(target, { recursive: true });
  const npm = ['pack', '--json', '--ignore-scripts', '--pack-destination', target];
  const { stdout } = await promisify(execFile)('npm', npm, { cwd: folder });
  console.log(join(target, JSON.parse(stdout)[0].filename));
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** Files that a module needs, with their types, and the packages that they name. */
async function importedBy(entry) {
  const files = new Set();
  const packages = new Set();
  const waiting = [entry, entry.replace(/\.js$/, '.d.ts')];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (files.has(file)) continue;
    files.add(file);
    const text = await readFile(file, 'utf8');
    for (const [, name] of text.matchAll(/^(?:import|export)\b[^;]*?\bfrom '([^']+)'/gm)) {
      if (name.startsWith('.')) {
        const module = join(dirname(file), name);
        waiting.push(file.endsWith('.js') ? module : module.replace(/\.js$/, '.d.ts'));
        // Types may be all that a module gives to the other side.
        if (file.endsWith('.js')) waiting.push(module.replace(/\.js$/, '.d.ts'));
      } else if (!name.startsWith('node:')) packages.add(/^(?:@[^/]+\/)?[^/]+/.exec(name)[0]);
    }
  }
  return { files, packages };
}
