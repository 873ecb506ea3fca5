import t from 'tap';
import { EncodedJson } from '../../src/core/domain/encoded-json.js';
import { jsonWithParts } from '../../src/service/http/response/encoded-parts.js';

const encoded = (value: unknown) => new EncodedJson(Buffer.from(JSON.stringify(value)));

t.test('encoded parts are sent as they are, wherever a route has a report', (t) => {
  const report = { version: 1, text: 'ä "quoted" \u2028', list: [1, 2] };
  for (const [body, plain] of [
    [
      { a: 1, evidenceReport: encoded(report), b: '2' },
      { a: 1, evidenceReport: report, b: '2' },
    ],
    [
      { proofs: [{ id: 1, evidenceReport: encoded(report) }, { id: 2 }, { evidenceReport: encoded([]) }] },
      { proofs: [{ id: 1, evidenceReport: report }, { id: 2 }, { evidenceReport: [] }] },
    ],
  ] as const) {
    const { bytes } = jsonWithParts(200, body);
    t.equal(bytes?.toString(), JSON.stringify(plain));
    t.equal(JSON.stringify(body), JSON.stringify(plain), 'any other encoder writes the same');
  }
  t.end();
});

t.test('a body without encoded parts is encoded as every other', (t) => {
  const body = { proofs: [{ id: 1, evidenceReport: { version: 1 } }], nextCursor: 'x' };
  t.strictSame(jsonWithParts(200, body), { kind: 'json', status: 200, body });
  t.end();
});
