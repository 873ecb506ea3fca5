/**
 * Digests of whole reports: the same trace and declarations give the same bytes on every machine and release of Node. They
 * change with `ENGINE_VERSION` and with the layout of a report, and for nothing else.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { SeededRandom } from '../../src/cli/specimens/random.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import { openTrace } from '../../src/witness/capture/index.js';
import { BINDING_STATUS, type DeclarationEnvelope } from '../../src/witness/domain/declaration.js';
import { expm1, log1p } from '../../src/witness/domain/exact-logarithm.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { decodeEvidence, encodeEvidence } from '../../src/witness/report/evidence-body.js';
import { evaluateOverlay } from '../../src/witness/report/overlay.js';
import { settleFacts } from '../../src/witness/report/settle-facts.js';
import { ALL_SUPPORTED, opened } from '../capture/write-trace.js';

const EXPORTED = 'ee'.repeat(32);
const IMPORTED = 'ab'.repeat(32);

const DECLARED: DeclarationEnvelope = {
  surveyVersion: '1',
  submissionId: 'sub_1',
  subject: 'creator_1',
  submittedAt: 1_767_225_700,
  answers: { declaredOrigin: 'from_scratch', manualWork: 'entire', aiRoles: ['none'] },
  recordedAt: 1_767_225_800,
  bindingStatus: BINDING_STATUS,
};

async function simulated(): Promise<Buffer> {
  const to = new MemorySink();
  const key = seededDeviceKey(41);
  await simulateTrace({ minutes: 45, seed: 41, adverse: ['laundered'], to, key, exportSha256: EXPORTED });
  return to.bytes();
}

/** Returns a trace, mostly in beats, of imports that were bounced and recorded again. Its tempo ramps up and down. */
async function ramping(): Promise<Buffer> {
  const random = new SeededRandom(7);
  const to = new MemorySink();
  const writer = await openTrace({
    to,
    key: seededDeviceKey(7),
    header: {
      adapter: 'test',
      adapterVersion: '1.0',
      startedAt: 1_767_225_600,
      traceId: random.hex(16),
      channels: ALL_SUPPORTED,
    },
  });
  let at = 0;
  const append = (event: TraceEvent): void => writer.append(event);
  const next = (): number => (at += random.whole(1, 900_000));
  append({ kind: 'tempo.map', at });
  for (let start = 0; start < 640; start += 16)
    append({ kind: 'tempo.point', at, start, bpm: random.between(50, 190), endBpm: random.between(50, 190) });
  append({ kind: 'track.added', at, track: 1, type: 'audio' });
  for (let source = 1; source <= 120; source += 4) {
    const seconds = { frames: random.whole(10_000, 900_000), rate: 44_100 };
    append({
      kind: 'import.added',
      at: next(),
      source,
      manner: 'copied',
      originalSha256: IMPORTED,
      ...seconds,
    });
    append({ kind: 'source.derived', at: next(), source: source + 1, from: source, manner: 'bounce' });
    append({ kind: 'recording.started', at: next(), take: source, track: 1, input: 'internal' });
    append({ kind: 'recording.finished', at: next(), take: source, source: source + 2, ...seconds });
    append({ kind: 'source.derived', at: next(), source: source + 2, from: source + 1, manner: 'rendered' });
    append({ kind: 'source.appeared', at: next(), source: source + 3, claims: 'recording' });
    for (let copy = 0; copy < 4; copy += 1)
      append({
        kind: 'clip.created',
        at: next(),
        clip: source + copy,
        track: 1,
        source: source + copy,
        base: random.chance(0.8) ? 'beats' : 'seconds',
        start: random.between(0, 700),
        length: random.between(0.1, 30),
      });
    append({ kind: 'clip.moved', at: next(), clip: source, track: 1, start: random.between(0, 700) });
  }
  const mix = { frames: 300 * 48_000, rate: 48_000, rerender: 'matched' } as const;
  append({ kind: 'export.finished', at: next(), fileSha256: EXPORTED, ...mix });
  await writer.seal();
  return to.bytes();
}

const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function digestsOf(trace: Buffer) {
  const { facts, detail } = settleFacts(await replayTrace(opened(trace)), {
    standing: 'enrolled',
    originalSha256: EXPORTED,
    detections: [
      { sha256: IMPORTED, detector: 'ear', detectorVersion: '2', likelihood: 0.93, generator: 'gen-x' },
    ],
  });
  const report = composeReport({
    facts,
    detail,
    consent: { consentVersion: 'consent-1' },
    overlay: { revision: 1, engineVersion: facts.engineVersion, facts: evaluateOverlay(facts, [DECLARED]) },
    declarations: [DECLARED],
    altered: 0,
  });
  return {
    trace: sha256(trace),
    report: sha256(JSON.stringify(report)),
    facts: sha256(encodeEvidence('facts', facts)),
    detail: sha256(encodeEvidence('detail', detail)),
  };
}

t.test('a trace and declarations give the bytes that they gave on other machines', async (t) => {
  t.strictSame(await digestsOf(await simulated()), {
    trace: 'cdb92bb71d5d9e44680d7cc481e078de43c953ff2a0a47f76fcf41f5ed292e5f',
    report: '62c9e66292c752dae689264eaa4612573ee93e098b96450c5eb66863a62d9a5a',
    facts: 'd4db610641c3b6413ca1fbd69b7e98b0941ca7db4e4f159ef7628449846e7f0e',
    detail: 'fe4ecbec022426791c1af81d89d75eede7703f98c224a4d8c5c14be5271291ea',
  });
  t.strictSame(await digestsOf(await ramping()), {
    trace: '4eec01ddc28583e9d968c9774099a9e75a5a33ee1e1dfc38567b74e40540652d',
    report: 'e946590f58b7fd409412f09e363ab4cacb7fa6466541714fb36249c1cf38b665',
    facts: 'd6edad99c3494da6ce665af62ee60548a081e2a8d807acfcaca91bf95fda443b',
    detail: '574439216569ef9b97faeec1f9e4f91ae3ab897459c145e7bdab98dae1ea9565',
  });
});

t.test('a report keeps its bytes when its facts were fixed by engine version 2', async (t) => {
  const body = readFileSync(new URL('../../../test/fixtures/golden/evidence-facts-v2.bin', import.meta.url));
  const declared: DeclarationEnvelope = {
    ...DECLARED,
    answers: {
      declaredOrigin: 'from_scratch',
      aiShareBand: 'quarter_to_half',
      manualWork: 'entire',
      aiRoles: ['vocals'],
    },
  };
  const report = composeReport({
    facts: decodeEvidence('facts', body),
    overlay: {
      revision: 1,
      engineVersion: 2,
      facts: [
        {
          code: 'observed_import_vs_creator_origin_declaration',
          contentClass: 'explicit_conflict',
          status: 'needs_review',
          ruleVersion: 1,
          values: { imports: 8, dimension: 'declaredOrigin', answer: 'from_scratch', submissionId: 'sub_1' },
        },
      ],
    },
    declarations: [declared],
    altered: 0,
  });
  t.equal(sha256(JSON.stringify(report)), 'b0902675c4baaa605298fffc23c60c8708993ce5426812a92e7150ff52583412');
});

t.test('facts of the engine before give the report that they gave then', async (t) => {
  const body = readFileSync('test/fixtures/golden/evidence-engine-2.facts');
  const facts = decodeEvidence('facts', body);
  t.equal(facts.engineVersion, 2);
  t.strictSame(Buffer.from(encodeEvidence('facts', facts)), body);
  t.equal(
    sha256(JSON.stringify(composeReport({ facts, declarations: [], altered: 0 }))),
    '0766c2d7f7ac2cfffddf5d2ac98d79f3b9880bc53e9d053bff8d170d841a17c8',
  );
});

t.test('logarithm and exponential are those of every machine, to the last bit', async (t) => {
  const random = new SeededRandom(3);
  const values = Float64Array.from({ length: 20_000 }, (_, index) => {
    const value = random.between(-20, 20) / (1 << (index % 31));
    return index % 2 === 0 ? log1p(Math.abs(value)) : expm1(value);
  });
  t.equal(
    sha256(new Uint8Array(values.buffer)),
    '0bddbc5fefadc6348ce4cfb0a0c97be3e24e0976808d9ba7ae3b623709d47a50',
  );
  for (const [value, name] of [
    [1e-18, 'tiny'],
    [-0.3, 'below 0'],
    [0.41, 'near the bound of the series'],
    [3, 'small'],
    [1e9, 'large'],
  ] as const) {
    t.ok(Math.abs(log1p(value) / Math.log1p(value) - 1) < 1e-14, name);
    if (value < 700) t.ok(Math.abs(expm1(value) / Math.expm1(value) - 1) < 1e-14, name);
  }
  t.strictSame([log1p(0), log1p(-1), log1p(Infinity)], [0, -Infinity, Infinity]);
  t.strictSame([expm1(0), expm1(-1000), expm1(1000)], [0, -1, Infinity]);
});
