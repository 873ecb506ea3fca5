/** Tests the answers that clients get. `npm run check:clients` generates and runs the clients. */
import t from 'tap';
import { openApiDocument } from '../../../src/service/contract/openapi.js';
import { firstDifference, notFed, OpenValues } from './open-values.js';
import { isPlant, PLANTS, planted } from './plants.js';

const document = openApiDocument();

t.test('a later answer has unknown words, larger numbers and members that no document has', (t) => {
  const open = new OpenValues(document);
  const key = { keyId: 'key_1', name: 'n', status: 'active', scopes: ['verify', 'usage'], createdAt: 7 };
  const later = open.later('listKeys', 200, { keys: [key], unheardOf: 1 }) as {
    readonly keys: readonly Record<string, unknown>[];
    readonly unheardOf: number;
    readonly laterMember: unknown;
  };
  const [grown] = later.keys;
  t.match(grown, { keyId: 'key_1', name: 'n', status: /^later_/, plan: String, signed: true });
  const words = [grown!['status'], ...(grown!['scopes'] as readonly unknown[])];
  t.equal(new Set(words).size, 3, 'each word is another');
  t.ok((grown!['createdAt'] as number) > 2 ** 32);
  t.ok(grown!['laterMember'] && later.laterMember);
  t.equal(later.unheardOf, 1);
  t.strictSame([...open.fed], ['Key.status', 'Key.scopes[]']);
  const error = open.later('verify', 429, { error: 'e', code: 'rate_limited' });
  t.match(error, { error: 'e', code: /^later_/, reason: /^later_/ }, 'what was absent is there');
  t.throws(() => open.later('verify', 418, {}), /no answer 418/);
  t.end();
});

t.test('each form of an answer that has several grows as itself', (t) => {
  const open = new OpenValues(document);
  const match = { proofId: 'prf_1', type: 'exact_file', confidence: 1 };
  const upload = open.later('identify', 200, { matches: [match] });
  t.match(upload, { matches: [{ proofId: 'prf_1', type: /^later_/ }], laterMember: {} });
  const digests = open.later('identify', 200, { results: [{ sha256: 'a', matches: [match] }] });
  t.match(digests, { results: [{ sha256: 'a', matches: [{ type: /^later_/ }] }], laterMember: {} });
  t.notOk(Object.hasOwn(digests as object, 'matches'), 'without a member of the other form');
  t.ok(open.places().has('DigestsIdentification.results[].matches[].type'));
  t.end();
});

t.test('the check reports a place without an unknown value, and an operation without an answer', (t) => {
  const open = new OpenValues(document);
  open.later('listKeys', 200, {});
  const lacking = notFed(document, open, new Set(['listKeys']));
  t.ok(lacking.includes('no unknown value of Verification.verdict'));
  t.ok(lacking.includes('no unknown value of SourceDetail.placements[].origin'), 'from the document alone');
  t.ok(lacking.includes('no answer of verify'));
  for (const fed of ['no unknown value of Key.status', 'no answer of listKeys'])
    t.notOk(lacking.includes(fed), fed);
  t.end();
});

t.test('each plant changes what clients are generated from', (t) => {
  for (const plant of Object.keys(PLANTS))
    t.strictNotSame(isPlant(plant) && planted(document, plant), document, plant);
  t.strictSame(openApiDocument(), document, 'of a copy');
  t.notOk(isPlant('toString'));
  t.end();
});

t.test('the first difference is named by its place', (t) => {
  t.equal(firstDifference({ a: [{ b: 1 }] }, { a: [{ b: 1 }] }), undefined);
  t.equal(firstDifference({ a: [{ b: 2 }] }, { a: [{ b: 1 }] }), 'a.0.b: read 2, served 1');
  t.equal(firstDifference({ a: 1, c: 1 }, { a: 1 }), 'c: read 1, served undefined');
  t.equal(firstDifference(null, {}), 'the answer: read null, served {}');
  t.end();
});
