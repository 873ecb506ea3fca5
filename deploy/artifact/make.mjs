/**
 * Makes the directory that production runs. It has compiled code, shipped packages, migrations, and the units, alerts and
 * dashboards of operators. Files that Node does not load are left out of the packages. Run it after `npm run build`:
 * `node deploy/artifact/make.mjs --out DIR`. DIR must not exist, or be empty.
 */
import { chmod, copyFile, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, extname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Endings of files that Node or the service loads. librdkafka's libraries end with their version. */
const LOADED = new Set(['.js', '.cjs', '.mjs', '.json', '.node', '.wasm', '.1', '.cql', '.br', '.gz']);
const LICENCE = /^(?:licen[cs]e|notice|copying)/i;
/** Directories of a package that hold sources, or code for browsers beside the same code for Node. */
const UNUSED = new Map([
  ['node-rdkafka', ['bench', 'ci', 'deps', 'e2e', 'examples', 'src', 'test', 'build/Release/obj.target']],
  ['classic-level', ['deps']],
]);
/** What an operator installs beside the service. */
const FOR_OPERATORS = ['deploy/systemd', 'deploy/prometheus/alerts.yml', 'deploy/grafana/dashboards'];
const FOR_BROWSERS = { folder: 'dist-es', instead: 'dist-cjs' };

const { values } = parseArgs({ options: { out: { type: 'string' } } });
if (values.out === undefined) fail('usage: node deploy/artifact/make.mjs --out DIR');
const target = resolve(values.out);
if ((await readdir(target).catch(() => [])).length > 0) fail(`${target} is not empty`);

const read = async (path) => JSON.parse(await readFile(join(ROOT, path), 'utf8'));
const [manifest, lock] = await Promise.all([read('package.json'), read('package-lock.json')]);
const { commit } = await read('dist/build.json').catch(() => ({}));

// Another user than the one that makes the artifact must be able to read it.
process.umask(0o022);
// A run that fails leaves no directory that looks like an artifact.
const made = `${target}.part`;
await rm(made, { recursive: true, force: true });
await mkdir(made, { recursive: true });
try {
  await copyCode();
  const omitted = await copyPackages();
  await rm(target, { recursive: true, force: true });
  await rename(made, target);
  const bytes = await sizeOf(target);
  console.log(
    `${target}: Takemark ${manifest.version} (${commit ?? 'unknown'}), ${(bytes / 1e6).toFixed(1)} MB for ${process.platform} ${process.arch}, Node ${process.versions.node.split('.')[0]}`,
  );
  if (omitted.length > 0) console.log(`Not installed, so not included: ${omitted.join(', ')}`);
} finally {
  await rm(made, { recursive: true, force: true });
}

/** Copies what the build has made, and the files of the project that the code reads. */
async function copyCode() {
  await mkdir(join(made, 'docs'));
  for (const folder of ['dist/src', 'dist/docs', 'deploy/cassandra']) await copyLoaded(folder);
  const files = ['dist/core.wasm', 'LICENSE', 'docs/licences.md'];
  // A build outside a Git repository records no commit.
  if (commit !== undefined) files.push('dist/build.json');
  for (const file of files) await copyFile(join(ROOT, file), join(made, file));
  for (const path of FOR_OPERATORS) await cp(join(ROOT, path), join(made, path), { recursive: true });
  await chmod(join(made, 'dist/src/cli/main.js'), 0o755);
  const { name, version, license, type, engines, bin, dependencies, optionalDependencies } = manifest;
  const description = { name, version, license, type, engines, bin, dependencies, optionalDependencies };
  await writeFile(join(made, 'package.json'), `${JSON.stringify(description, null, 2)}\n`);
}

/** Copies every package that is not for development. @returns the optional packages that are not installed */
async function copyPackages() {
  const omitted = [];
  for (const [path, { version, dev, optional, os }] of Object.entries(lock.packages)) {
    if (path === '' || dev) continue;
    const installed = await read(join(path, 'package.json')).catch(() => undefined);
    if (installed === undefined && optional) {
      // A package with `os` is for some platforms only, and npm leaves out the others.
      if (os === undefined) omitted.push(basename(path));
    } else if (installed?.version.replace(/^v/, '') !== version)
      throw new Error(`${path} is ${installed?.version ?? 'absent'}, not ${version}: run npm ci`);
    else await copyLoaded(path);
  }
  return omitted;
}

/** Copies the files of a directory that Node loads, and licences. */
async function copyLoaded(root, path = '') {
  const entries = await readdir(join(ROOT, root, path), { withFileTypes: true });
  const files = entries.filter(
    (entry) => entry.isFile() && (LOADED.has(extname(entry.name)) || LICENCE.test(entry.name)),
  );
  if (files.length > 0) await mkdir(join(made, root, path), { recursive: true });
  for (const { name } of files) await copyFile(join(ROOT, root, path, name), join(made, root, path, name));
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  for (const name of folders)
    if (isWanted(root, path, name, folders)) await copyLoaded(root, path === '' ? name : `${path}/${name}`);
}

/** Returns whether a folder of a package has files that Node loads. Packages below a package are copied by themselves. */
function isWanted(root, path, name, siblings) {
  if (name === 'node_modules') return false;
  if (UNUSED.get(basename(root))?.includes(path === '' ? name : `${path}/${name}`)) return false;
  if (basename(path) === 'prebuilds') return isForThisMachine(name);
  return !(name === FOR_BROWSERS.folder && siblings.includes(FOR_BROWSERS.instead));
}

/** Returns whether a directory of prebuilt addons, such as `linux-x64` or `darwin-x64+arm64`, is for this machine. */
function isForThisMachine(name) {
  const [platform, architectures] = name.split('-');
  return platform === process.platform && architectures.split('+').includes(process.arch);
}

async function sizeOf(directory) {
  let bytes = 0;
  for (const name of await readdir(directory, { recursive: true })) {
    const found = await stat(join(directory, name));
    if (found.isFile()) bytes += found.size;
  }
  return bytes;
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
