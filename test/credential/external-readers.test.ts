import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { MAX_OBSERVED_IMPORTS, type ObservedProduction } from '../../src/core/domain/observed-production.js';
import { issued, readFile } from '../fixtures/credentialed-file.js';
import { hostileFlips, hostileKinds, hostileMutations, seededPicker } from '../fixtures/hostile-stores.js';
import { testSigning } from '../fixtures/signing.js';
import { needs } from '../fixtures/tools.js';
import { wav } from '../fixtures/wav.js';

/**
 * The path of a Python with independent readers: the packages in test/fixtures/c2pa-readers.txt. The laboratory
 * (test/lab/main.ts) creates its environment.
 */
const python = process.env.TAKEMARK_C2PA_PYTHON;
const skip = needs('c2pa-python');

interface Manifest {
  readonly assertions: readonly { readonly label: string; readonly data: Record<string, unknown> }[];
  readonly ingredients?: readonly Record<string, unknown>[];
  readonly claim_generator_info: readonly Record<string, unknown>[];
}
interface Judgement {
  readonly c2paRs: {
    readonly manifest: {
      readonly validation_state: string;
      readonly active_manifest: string;
      readonly manifests: Readonly<Record<string, Manifest>>;
    };
    readonly crjson: unknown;
  };
  readonly encypher: unknown;
}

const IMPORTS: ObservedProduction = {
  complete: false,
  captured: false,
  imports: [{ sha256: 'ab'.repeat(32), of: 'file' }, { sha256: 'cd'.repeat(32), of: 'samples' }, {}],
  importCount: 3,
  takes: 2,
  notes: 7,
  edits: 40,
};
const CASES = {
  untraced: undefined,
  traced: IMPORTS,
  captured: { complete: true, captured: true, imports: [], takes: 3 },
  full: {
    ...IMPORTS,
    imports: Array.from({ length: MAX_OBSERVED_IMPORTS }, (_, at) => ({
      sha256: at.toString(16).padStart(64, '0'),
      of: 'file' as const,
    })),
    importCount: 900,
  },
} satisfies Record<string, ObservedProduction | undefined>;

t.test(
  'c2pa-rs and encypher-c2pa trust what is issued, and show actions and ingredients',
  {
    skip,
  },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'takemark-readers-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    for (const algorithm of ['Ed25519', 'ES256'] as const) {
      const { signer, authority } = testSigning({ algorithm });
      writeFileSync(join(folder, 'authority.pem'), authority);
      const paths = Object.entries(CASES).map(([name, observed]) => {
        const path = join(folder, `${algorithm}-${name}.wav`);
        writeFileSync(path, issued(wav(1000), signer, 'prf_1', observed));
        return path;
      });
      const judgements = JSON.parse(
        execFileSync(python!, ['test/fixtures/c2pa-readers.py', join(folder, 'authority.pem'), ...paths], {
          encoding: 'utf8',
          maxBuffer: 64 * 1024 * 1024,
        }),
      ) as readonly Judgement[];
      const names = Object.keys(CASES);
      for (const [at, { c2paRs, encypher }] of judgements.entries()) {
        const name = `${algorithm} ${names[at]}`;
        const { manifest: report } = c2paRs;
        t.equal(report.validation_state, 'Trusted', `${name} in c2pa-rs`);
        t.match(JSON.stringify(report), '"assertion.dataHash.match"', `${name}: the audio is bound`);
        const manifest = report.manifests[report.active_manifest]!;
        const actions = manifest.assertions.find(({ label }) => label === 'c2pa.actions.v2')?.data;
        t.type(actions?.allActionsIncluded, 'boolean', `${name} says whether these are all actions`);
        t.match(manifest.claim_generator_info, [{ specVersion: '2.4.0' }]);
        t.notMatch(JSON.stringify(report), 'digitalsourcetype/composite', `${name} is not a composition`);
        t.match(
          encypher,
          { integrity: 'valid', trust: { status: 'valid_for_supplied_material' } },
          `${name} in encypher-c2pa`,
        );
        t.match(JSON.stringify(encypher), 'assertion.dataHash.match', `${name}: the audio is bound`);
        const expected = Object.values(CASES)[at];
        const sources = (manifest.ingredients ?? []).filter(
          ({ relationship }) => relationship === 'componentOf',
        );
        t.strictSame(
          sources.map(({ instance_id: digest }) => digest ?? null),
          (expected?.imports ?? []).map(({ sha256 }: { sha256?: string }) =>
            sha256 === undefined ? null : `nih:sha-256;${sha256}`,
          ),
          `${name}: imports by digest`,
        );
        t.strictSame(
          ((actions?.actions ?? []) as { action: string }[]).map(({ action }) => action),
          [
            expected?.captured === true ? 'c2pa.created' : 'c2pa.opened',
            ...(sources.length > 0 ? ['c2pa.placed'] : []),
            ...(expected?.takes === undefined ? [] : ['io.takemark.recorded']),
            ...(expected !== undefined && 'notes' in expected
              ? ['io.takemark.notes-entered', 'c2pa.edited']
              : []),
          ],
        );
      }
    }
  },
);

/** The number of changed files in a run. The seed of the laboratory makes each run different. */
const MUTATIONS = 3000;
const FLIPS = 500;
const SEED = Number(process.env['TAKEMARK_TEST_SEED'] ?? 1);

t.test('a store that c2pa-python refuses is never verified', { skip }, (t) => {
  const { trust } = testSigning();
  const folder = mkdtempSync(join(tmpdir(), 'takemark-hostile-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const names = new Map<string, string>();
  const read = (name: string, file: Buffer): void => {
    const { reading } = readFile(file, trust);
    if (reading?.kind !== 'foreign' || reading.report.integrity !== 'verified') return;
    const path = `${names.size}.wav`;
    names.set(path, name);
    writeFileSync(join(folder, path), file);
  };
  for (const [name, make] of hostileKinds()) read(name, make());
  for (const { name, file } of hostileMutations(MUTATIONS, seededPicker(SEED))) read(name, file);
  for (const { name, file } of hostileFlips(FLIPS, seededPicker(SEED + 1))) read(name, file);
  const states = JSON.parse(
    execFileSync(python!, ['test/fixtures/c2pa-states.py', folder], {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    }),
  ) as Readonly<Record<string, string>>;
  t.ok(names.size > 50, `${names.size} verified files`);
  for (const [path, name] of names)
    if (states[path] !== 'Valid') t.fail(`seed ${SEED}, ${name}: ${states[path]}`);
  t.end();
});
