/**
 * npm run check:supply-chain [-- --write-licences]: the lock file, the licences, the bill of materials
 * (written to dist/), and, where the registry answers, the registry's signatures and its advisories. What
 * could not be asked is said, not passed over.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { bomFaults, licenceFaults, licencePage, licencesOf, lockFaults, shippedPart } from './rules.mjs';

const ROOT = new URL('../../', import.meta.url);
const LICENCES = new URL('docs/licences.md', ROOT);
const BOM = new URL('dist/sbom.cdx.json', ROOT);
const ASK_MS = 60_000;

const readJson = async (path) => JSON.parse(await readFile(new URL(path, ROOT), 'utf8'));
const lock = await readJson('package-lock.json');
const manifest = await readJson('package.json');
const faults = [];
const report = (what, found) => {
  console.log(`${found.length === 0 ? 'ok' : 'FAILED'}: ${what}`);
  for (const fault of found) console.log(`  ${fault}`);
  faults.push(...found);
};

report('the lock file pins every package', lockFaults(lock, manifest));

const installed = new Map();
for (const [path, { license }] of Object.entries(lock.packages)) {
  if (path === '' || license !== undefined) continue;
  const { licenses } = JSON.parse(
    await readFile(new URL(`${path}/package.json`, ROOT), 'utf8').catch(() => '{}'),
  );
  if (Array.isArray(licenses)) installed.set(path, licenses.map(({ type }) => type).join(' OR '));
}
const licences = licencesOf(lock, (path) => installed.get(path));
report(`${licences.length} packages have accepted licences`, licenceFaults(licences));
if (process.argv.includes('--write-licences')) await writeFile(LICENCES, licencePage(licences));
const written = await readFile(LICENCES, 'utf8').catch(() => '');
report(
  'the list of licences is the one in docs/',
  written === licencePage(licences) ? [] : ['docs/licences.md is of another day: npm run build:licences'],
);

const bom = shippedPart(
  JSON.parse((await npm('sbom', '--package-lock-only', '--sbom-format', 'cyclonedx')).stdout),
  lock,
);
// npm names it after the directory.
bom.metadata.component.name = manifest.name;
await mkdir(new URL('./', BOM), { recursive: true });
await writeFile(BOM, `${JSON.stringify(bom, undefined, 2)}\n`);
report('the bill of materials is whole: dist/sbom.cdx.json', bomFaults(bom, lock));

await ask(
  "the registry's signatures",
  ['audit', 'signatures'],
  /have (missing|invalid) (registry signatures|attestations)|invalid registry signature/,
);
await ask(
  'advisories on what users install',
  ['audit', '--omit', 'dev', '--audit-level', 'high'],
  /vulnerabilit/,
);

console.log(
  faults.length === 0 ? 'nothing is wrong with what the project is made of' : `${faults.length} faults`,
);
process.exit(faults.length === 0 ? 0 : 1);

/** A finding fails; a registry that does not answer is reported as what it is. */
async function ask(what, args, finding) {
  const { stdout, stderr, code } = await npm(...args, '--fetch-retries', '0', '--fetch-timeout', '15000');
  if (code === 0) report(what, []);
  else if (finding.test(stdout)) report(what, [stdout.trim()]);
  else
    console.log(
      `NOT CHECKED: ${what}: ${/^npm (?:error|warn)(?: audit)? (.*\S.*)$/m.exec(stderr)?.[1] ?? 'the registry did not answer'}`,
    );
}

function npm(...args) {
  return promisify(execFile)('npm', args, { cwd: ROOT, timeout: ASK_MS, maxBuffer: 64 * 1_048_576 }).then(
    ({ stdout, stderr }) => ({ stdout, stderr, code: 0 }),
    ({ stdout = '', stderr = '', code }) => ({ stdout, stderr, code: code ?? 1 }),
  );
}
