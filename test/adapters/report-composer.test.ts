import { createHash } from 'node:crypto';
import t, { type Test } from 'tap';
import { EncodedJson } from '../../src/core/domain/encoded-json.js';
import { ReportComposer } from '../../src/service/adapters/composing/report-composer.js';
import type { EvidenceFacts } from '../../src/witness/domain/evidence.js';
import { composeStored, isLarge, type StoredEvidence } from '../../src/witness/report/compose-stored.js';
import { encodeEvidence } from '../../src/witness/report/evidence-body.js';
import { importedSource, sessionEvidence } from '../evidence/reports.js';

function storedWith(imports: number): StoredEvidence {
  const facts: EvidenceFacts = {
    engineVersion: 1,
    session: sessionEvidence({ midi: 'unknown' }),
    importedSources: Array.from({ length: imports }, (_, at) => importedSource(at + 1, 2, true)),
    importedSourceCount: imports,
    facts: [{ code: 'trace_truncated', contentClass: 'unverifiable_coverage_gap', status: 'unverifiable' }],
    inputs: {},
  };
  const bytes = encodeEvidence('facts', facts);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { declarations: [], altered: 0, facts: { sha256, bytes } };
}

function open(t: Test): ReportComposer {
  const composer = new ReportComposer();
  t.teardown(() => composer.stop());
  return composer;
}

t.test('a large report is encoded in the thread, and is the report that is composed at once', async (t) => {
  const composer = open(t);
  const [small, large] = [storedWith(1), storedWith(250)];
  t.strictSame([isLarge(small), isLarge(large)], [false, true]);
  t.strictSame(await composer.compose(small), composeStored(small));
  const { report, ...rest } = await composer.compose(large);
  const { report: expected, ...expectedRest } = composeStored(large);
  t.strictSame(rest, expectedRest);
  t.ok(report instanceof EncodedJson);
  t.equal(JSON.stringify(report), JSON.stringify(expected));
});

t.test('altered bodies are reported from the thread too', async (t) => {
  const composer = open(t);
  const large = storedWith(250);
  const bytes = Uint8Array.from(large.facts!.bytes!);
  bytes[100]! ^= 1;
  const { isAltered, outline } = await composer.compose({ ...large, facts: { ...large.facts!, bytes } });
  t.ok(isAltered);
  t.match(outline.summary, { status: 'needs_review', codes: ['evidence_facts_altered'] });
});

t.test('a report that the thread cannot compose fails alone, and the next one is composed', async (t) => {
  const composer = open(t);
  const large = storedWith(250);
  // The digest is right, but the bytes are not evidence.
  const bytes = new Uint8Array(20_000).fill(0xc1);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const [broken, sound] = await Promise.allSettled([
    composer.compose({ ...large, facts: { sha256, bytes } }),
    composer.compose(large),
  ]);
  t.equal(broken!.status, 'rejected');
  t.equal(sound!.status, 'fulfilled');
});

t.test('a report that is being composed at the stop is 503', async (t) => {
  const composer = open(t);
  const composing = composer.compose(storedWith(250));
  const refused = t.rejects(composing, { code: 'unavailable', reason: 'store_unavailable' });
  await composer.stop();
  await refused;
  await t.rejects(composer.compose(storedWith(250)), { code: 'unavailable' });
});
