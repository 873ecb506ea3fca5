/**
 * Packs a library as a package of its own, with what it imports and nothing else; prints the path of the archive. Run
 * it after `npm run build`: `node deploy/libraries/pack.mjs capture|client [directory]`.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BUILT = join(ROOT, 'dist/src');

const project = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const LIBRARIES = {
  capture: {
    folder: 'witness/capture',
    description: 'Writes signed capture traces of sessions in a DAW.',
    version: async () => project.version,
    files: { LICENSE: 'LICENSE', 'docs/capture-trace.md': 'docs/capture-trace.md' },
  },
  client: {
    folder: 'client',
    description: 'Calls a Takemark service: verifies credentialed audio, reads proofs, leads review cases.',
    version: async () => (await import(pathToFileURL(join(BUILT, 'client/version.js')).href)).CLIENT_VERSION,
    files: {
      LICENSE: 'LICENSE',
      'deploy/libraries/client-readme.md': 'README.md',
      'deploy/libraries/client-changelog.md': 'CHANGELOG.md',
    },
  },
};

const [name, directory = process.cwd()] = process.argv.slice(2);
const library = Object.hasOwn(LIBRARIES, name ?? '') ? LIBRARIES[name] : undefined;
if (library === undefined) {
  console.error(`name one of ${Object.keys(LIBRARIES).join(', ')}`);
  process.exit(2);
}
const target = resolve(directory);
const folder = await mkdtemp(join(tmpdir(), `takemark-${name}-`));
try {
  const { files, packages } = await importedBy(join(BUILT, library.folder, 'index.js'));
  for (const file of files) {
    const place = join(folder, relative(BUILT, file));
    await mkdir(dirname(place), { recursive: true });
    await cp(file, place);
  }
  for (const [from, to] of Object.entries(library.files)) await cp(join(ROOT, from), join(folder, to));
  const description = {
    name: `takemark-${name}`,
    version: await library.version(),
    description: library.description,
    license: project.license,
    type: 'module',
    engines: project.engines,
    exports: { '.': { types: `./${library.folder}/index.d.ts`, default: `./${library.folder}/index.js` } },
    ...(packages.size === 0
      ? {}
      : {
          dependencies: Object.fromEntries(
            [...packages].sort().map((each) => [each, project.dependencies[each]]),
          ),
        }),
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
