/**
 * The rules over lock file, licences and bill of materials: each finds the one thing that is wrong with a
 * document.
 */
import { readFile } from 'node:fs/promises';
import t from 'tap';

interface Package {
  version?: string;
  integrity?: string;
  resolved?: string;
  link?: boolean;
  dev?: boolean;
  license?: string;
  hasInstallScript?: boolean;
}

interface Lock {
  lockfileVersion: number;
  packages: Record<string, Package & { dependencies?: Record<string, string> }>;
}

interface Manifest {
  dependencies?: Record<string, string>;
  allowScripts?: Record<string, boolean>;
}

interface Licence {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
}

interface Component {
  'bom-ref': string;
  purl?: string;
  hashes?: { alg: string; content: string }[];
}

interface Bom {
  bomFormat: string;
  specVersion: string;
  metadata: { component: { 'bom-ref': string } };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

interface Rules {
  lockFaults(lock: Lock, manifest: Manifest): string[];
  licencesOf(lock: Lock, licenceOf: (path: string) => string | undefined): Licence[];
  licenceFaults(rows: readonly Licence[]): string[];
  licencePage(rows: readonly Licence[]): string;
  shippedPart(bom: Bom, lock: Lock): Bom;
  bomFaults(bom: Bom, lock: Lock): string[];
}

const ROOT = new URL('../../../', import.meta.url);
const rules = (await import(new URL('deploy/supply-chain/rules.mjs', ROOT).href)) as Rules;
const readJson = async <Document>(name: string) =>
  JSON.parse(await readFile(new URL(name, ROOT), 'utf8')) as Document;

const digest = `sha512-${'A'.repeat(86)}==`;
const lock = (): Lock => ({
  lockfileVersion: 3,
  packages: {
    '': { dependencies: { one: '^1.0.0' } },
    'node_modules/one': { version: '1.0.0', integrity: digest, license: 'MIT', hasInstallScript: true },
    'node_modules/one/node_modules/two': {
      version: '2.0.0',
      integrity: digest,
      license: '(MIT OR GPL-3.0-only)',
    },
    'node_modules/tool': { version: '3.0.0', integrity: digest, license: 'GPL-3.0-only', dev: true },
  },
});
const manifest = (): Manifest => ({ dependencies: { one: '^1.0.0' }, allowScripts: { one: false } });

t.test('the lock file of the project has no fault', async (t) => {
  t.strictSame(rules.lockFaults(await readJson('package-lock.json'), await readJson('package.json')), []);
});

t.test('each way in which a lock file pins less is found', async (t) => {
  t.strictSame(rules.lockFaults(lock(), manifest()), []);
  const altered = (change: (lock: Lock, manifest: Manifest) => void): string[] => {
    const [changedLock, changedManifest] = [lock(), manifest()];
    change(changedLock, changedManifest);
    return rules.lockFaults(changedLock, changedManifest);
  };
  const one = (lock: Lock): Package => lock.packages['node_modules/one']!;
  t.match(
    altered((lock) => void (lock.lockfileVersion = 2)),
    [/version 2/],
  );
  t.match(
    altered((lock) => void delete one(lock).integrity),
    [/node_modules\/one has no SHA-512/],
  );
  t.match(
    altered((lock) => void (one(lock).integrity = 'sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=')),
    [/no SHA-512/],
    'a weaker digest',
  );
  t.match(
    altered((lock) => void (one(lock).resolved = 'git+ssh://git@example.com/one.git#main')),
    [/registry over TLS/],
  );
  t.match(
    altered((lock) => void (one(lock).resolved = 'http://registry.example/one.tgz')),
    [/registry over TLS/],
  );
  t.match(
    altered((lock) => void (one(lock).link = true)),
    [/is a link/],
  );
  t.match(
    altered((lock) => void (lock.packages['node_modules/tool']!.hasInstallScript = true)),
    [/node_modules\/tool runs a script/],
  );
  t.match(
    altered((_, manifest) => void (manifest.allowScripts = { one: false, gone: true })),
    [/names gone/],
  );
  t.match(
    altered((_, manifest) => void (manifest.dependencies = { one: '^2.0.0' })),
    [/dependencies of package.json/],
  );
});

t.test('a licence that was not accepted is found, except of a development dependency', async (t) => {
  const licences = (change: (lock: Lock) => void = () => {}) => {
    const changed = lock();
    change(changed);
    return rules.licencesOf(changed, (path) => (path === 'node_modules/one' ? 'ISC' : undefined));
  };
  t.strictSame(
    licences().map(({ name }) => name),
    ['one', 'two'],
  );
  t.strictSame(rules.licenceFaults(licences()), []);
  t.match(
    rules.licenceFaults(
      licences((lock) => void (lock.packages['node_modules/one']!.license = 'GPL-3.0-only')),
    ),
    [/one@1.0.0 has the licence GPL-3.0-only/],
  );
  t.match(
    rules.licenceFaults(
      licences((lock) => void (lock.packages['node_modules/one']!.license = 'MIT AND GPL-3.0-only')),
    ),
    [/one@1.0.0/],
  );
  t.strictSame(
    licences((lock) => void delete lock.packages['node_modules/one']!.license)[0]?.licence,
    'ISC',
    'read from the package where the lock file has none',
  );
  t.match(
    rules.licenceFaults(
      licences((lock) => void delete lock.packages['node_modules/one/node_modules/two']!.license),
    ),
    [/two@2.0.0 has the licence unknown/],
  );
});

t.test('the page of licences lists what the lock file of the project holds', async (t) => {
  const rows = rules.licencesOf(await readJson('package-lock.json'), () => 'MIT');
  t.equal(
    await readFile(new URL('docs/licences.md', ROOT), 'utf8'),
    rules.licencePage(rows),
    'npm run build:licences',
  );
  t.ok(rows.length > 100, `${rows.length} packages`);
});

t.test('a package that the bill of materials leaves out or does not pin is found', async (t) => {
  const component = (reference: string): Component => ({
    'bom-ref': reference,
    purl: `pkg:npm/${reference}`,
    hashes: [{ alg: 'SHA-512', content: '00' }],
  });
  const whole = (): Bom => ({
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    metadata: { component: { 'bom-ref': 'takemark@1.0.0' } },
    components: ['one@1.0.0', 'two@2.0.0', 'tool@3.0.0'].map(component),
    dependencies: [
      { ref: 'takemark@1.0.0', dependsOn: ['one@1.0.0', 'tool@3.0.0'] },
      { ref: 'one@1.0.0', dependsOn: ['two@2.0.0'] },
      { ref: 'tool@3.0.0', dependsOn: [] },
    ],
  });
  const shipped = rules.shippedPart(whole(), lock());
  t.strictSame(
    shipped.components.map((one) => one['bom-ref']),
    ['one@1.0.0', 'two@2.0.0'],
  );
  t.strictSame(shipped.dependencies, [
    { ref: 'takemark@1.0.0', dependsOn: ['one@1.0.0'] },
    { ref: 'one@1.0.0', dependsOn: ['two@2.0.0'] },
  ]);
  t.strictSame(rules.bomFaults(shipped, lock()), []);
  t.match(rules.bomFaults({ ...shipped, components: shipped.components.slice(1) }, lock()), [
    /one@1.0.0 is not in/,
  ]);
  t.match(
    rules.bomFaults(
      {
        ...shipped,
        components: [component('two@2.0.0'), { 'bom-ref': 'one@1.0.0', purl: 'pkg:npm/one@1.0.0' }],
      },
      lock(),
    ),
    [/one@1.0.0 stands there without digest/],
  );
  t.match(rules.bomFaults({ ...shipped, bomFormat: 'SPDX' }, lock()), [/not CycloneDX/]);
});
