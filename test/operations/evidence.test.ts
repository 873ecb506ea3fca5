/** Tests the report of a proof in every read, and what it says about altered evidence. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { z } from 'zod';
import { DomainError, recordDamaged } from '../../src/core/domain/errors.js';
import { openApiDocument } from '../../src/service/contract/openapi.js';
import { KNOWN_VALUES } from '../../src/service/contract/primitives.js';
import { decide } from '../../src/service/domain/decision.js';
import { SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import type { IssuedProof, Proof } from '../../src/service/domain/proof.js';
import { briefOf } from '../../src/service/domain/proof-brief.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { createCursors } from '../../src/service/operations/page.js';
import { readReport } from '../../src/service/operations/proofs/evidence.js';
import {
  type ListProofsDeps,
  listProofs,
  type ReadProofsDeps,
  readProof,
  readRecord,
} from '../../src/service/operations/proofs/read-proofs.js';
import { Fills } from '../../src/service/operations/proofs/summaries.js';
import { HeavyReads } from '../../src/service/operations/usage/heavy-reads.js';
import { createRateLimits } from '../../src/service/operations/usage/rate-limits.js';
import type { ProofStore } from '../../src/service/ports/stores.js';
import type { EvidenceFacts, EvidencePart } from '../../src/witness/domain/evidence.js';
import { EVIDENCE_CODES } from '../../src/witness/domain/evidence-codes.js';
import {
  asksForReview,
  type EvidenceReport,
  summariseEvidence,
} from '../../src/witness/domain/evidence-report.js';
import { outlineReport } from '../../src/witness/domain/report-outline.js';
import { composeStored } from '../../src/witness/report/compose-stored.js';
import { encodeEvidence } from '../../src/witness/report/evidence-body.js';
import {
  adverseReport,
  cleanReport,
  emptyReport,
  importedSource,
  sessionEvidence,
} from '../evidence/reports.js';
import { withPlainReport } from '../fixtures/plain-report.js';
import { secretsOf } from './doubles.js';

const FACTS: EvidenceFacts = {
  engineVersion: 1,
  session: sessionEvidence({ automation: 'unsupported', midi: 'unknown', mixer: 'partial' }),
  importedSources: [importedSource(1, 2, true)],
  importedSourceCount: 1,
  facts: [
    { code: 'placements_without_entry', contentClass: 'rule_inference', status: 'inferred', ruleVersion: 1 },
    { code: 'trace_truncated', contentClass: 'unverifiable_coverage_gap', status: 'unverifiable' },
  ],
  inputs: {},
};
const BODY = encodeEvidence('facts', FACTS);

function proofWith(evidence?: IssuedProof['evidence']): IssuedProof {
  const digest = '0'.repeat(64);
  return {
    state: 'issued',
    proofId: 'prf_1',
    partnerId: 'ptr_1',
    song: { title: 'Take one' },
    carrier: 'embedded',
    createdAt: 1_775_000_000,
    kid: digest,
    originalSha256: digest,
    boundAudioSha256: digest,
    credentialSha256: digest,
    asset: { bytes: 1, sha256: digest, fileName: 'take.wav', mediaType: 'audio/wav' },
    ...(evidence === undefined ? {} : { evidence }),
  };
}

const READER = { partnerId: 'ptr_1', plan: SHIPPED_PLANS[1]! };

const TRACED = proofWith({
  engineVersion: 1,
  traceSha256: FACTS.session.traceSha256,
  parts: [
    {
      part: 'facts',
      bytes: BODY.length,
      sha256: createHash('sha256').update(BODY).digest('hex'),
      place: 'registry',
    },
  ],
});

function depsWith(
  body: () => Promise<Uint8Array | undefined>,
  revokedFrom = Infinity,
  proof: Proof = TRACED,
): ListProofsDeps & { readonly seen: string[] } {
  const seen: string[] = [];
  return {
    seen,
    compose: async (stored) => composeStored(stored),
    reads: new HeavyReads(),
    fills: new Fills(new HeavyReads({ atOnce: 1 }), 0),
    limits: createRateLimits({ now: () => 0 }),
    cursors: createCursors(secretsOf(), 'beta'),
    secrets: secretsOf(),
    assets: { read: async () => undefined },
    stores: {
      getPartner: async () => undefined,
      listProofs: async () => [],
      listBriefs: async () => [],
      changeSummary: async () => 'settled',
      getProof: async () => proof,
      readEvidence: async (proofId, part) => {
        seen.push(`${proofId} ${part}`);
        return body();
      },
    },
    devices: {
      standing: async (_deviceId, at) =>
        at >= revokedFrom ? { standing: 'revoked', revokedFrom } : { standing: 'enrolled' },
    },
  };
}

/** Returns the report of a proof that is not erased meanwhile. */
async function reportOf(...read: Parameters<typeof readReport>): Promise<EvidenceReport | undefined> {
  const composed = await readReport(...read);
  if (composed === 'erased') throw new Error('the proof is erased');
  return composed && withPlainReport({ evidenceReport: composed.report }).evidenceReport;
}

t.test('a proof costs a read of its evidence only where it has some', async (t) => {
  const deps = depsWith(async () => BODY);
  const bare = await reportOf(deps, READER, proofWith());
  t.strictSame(deps.seen, [], 'verify reads nothing for a proof without a trace');
  t.notOk('session' in bare!, 'nothing was witnessed, and nothing reads as zero');
  t.match(summariseEvidence(bare!), { status: 'none_recorded' });

  const report = (await reportOf(deps, READER, TRACED))!;
  t.strictSame(deps.seen, ['prf_1 facts']);
  t.strictSame(report.session, { evidence: FACTS.session });
  t.strictSame(report.importedSources, FACTS.importedSources);
  t.match(report.facts, [{ code: 'placements_without_entry' }, { status: 'none_recorded' }]);
  t.strictSame(
    report.unverifiable.map(({ code }) => code),
    ['trace_truncated'],
    'what was witnessed is not a gap any more',
  );
  t.match(summariseEvidence(report), {
    status: 'recorded',
    codes: ['placements_without_entry', 'trace_truncated'],
  });
});

t.test('evidence that was altered or lost is reported, and fails no call', async (t) => {
  const other = encodeEvidence('facts', { ...FACTS, importedSources: [], importedSourceCount: 0 });
  const flipped = Uint8Array.from(BODY, (byte, at) => (at === 40 ? byte ^ 1 : byte));
  for (const [name, body] of Object.entries({
    'a bit': async (): Promise<Uint8Array | undefined> => flipped,
    'other facts, well-formed': async () => other,
    'a body that is cut': async () => BODY.subarray(0, 100),
    'an empty body': async () => new Uint8Array(),
    'a body that is gone': async (): Promise<Uint8Array | undefined> => undefined,
    'a row that is damaged': async () => {
      throw recordDamaged(new Error('mac'));
    },
  })) {
    const report = (await reportOf(depsWith(body), READER, TRACED))!;
    t.match(report.unverifiable.at(-1), { code: 'evidence_facts_altered', status: 'needs_review' }, name);
    t.ok(asksForReview(report), `${name}: a person decides`);
    t.match(
      summariseEvidence(report),
      { status: 'needs_review' },
      `${name}: never as though there was nothing`,
    );
    t.notOk('session' in report || 'importedSources' in report, `${name}: nothing of it is reported`);
  }
  await t.rejects(
    reportOf(
      depsWith(async () => {
        throw new DomainError('unavailable', 'away', { reason: 'store_unavailable' });
      }),
      READER,
      TRACED,
    ),
    { code: 'unavailable' },
    'a store that does not answer gives no finding',
  );
});

t.test('evidence gives no finding when an erasure deletes it during a read', async (t) => {
  const tombstone = {
    state: 'erased',
    proofId: 'prf_1',
    partnerId: 'ptr_1',
    erasedAt: 1_775_000_001,
  } as const;
  const deps = depsWith(async () => undefined, Infinity, tombstone);
  t.equal(await readReport(deps, READER, TRACED), 'erased');
  const found = { ...deps.stores, getProof: async () => (reads++ === 0 ? TRACED : tombstone) };
  let reads = 0;
  const caller = READER as Caller;
  for (const read of [readProof, readRecord]) {
    reads = 0;
    const all = { ...deps, stores: found } as unknown as ReadProofsDeps;
    const answer: Promise<unknown> = read(all, caller, { proofId: 'prf_1' });
    await t.rejects(answer, { code: 'not_found' });
  }
  const listed = await listProofs(
    {
      ...deps,
      stores: { ...deps.stores, listProofs: async () => [proofWith(), TRACED] },
    },
    caller,
    { include: 'evidenceReport' },
  );
  t.equal(listed.proofs.length, 1, 'the other proof is listed');
});

t.test('a device that was revoked since is a finding of every later read', async (t) => {
  const from = TRACED.createdAt;
  const revoked = (await reportOf(
    depsWith(async () => BODY, from),
    READER,
    TRACED,
  ))!;
  t.match(revoked.unverifiable.at(-1), {
    code: 'trace_device_revoked',
    status: 'needs_review',
    values: { revokedFrom: from },
  });
  t.equal(revoked.session?.evidence.device.standing, 'enrolled', 'as it stood at issuing');
  const later = (await reportOf(
    depsWith(async () => BODY, from + 1),
    READER,
    TRACED,
  ))!;
  t.notOk(asksForReview(later), 'issued before the time from which it is revoked');
});

t.test('a page with whole reports is bounded by entries and by bytes, and loses none', async (t) => {
  const all = Array.from({ length: 50 }, (_, at): IssuedProof => {
    // The proofs 20 to 29 have large evidence. The evidence of one exceeds a page.
    const bytes = at === 25 ? 5_000_000 : at >= 20 && at < 30 ? 400_000 : BODY.length;
    const part = { ...TRACED.evidence!.parts[0]!, bytes };
    const trace = { ...part, part: 'trace', bytes: 100_000_000, place: 'objects' } as const;
    return {
      ...TRACED,
      proofId: `prf_${String(at).padStart(2, '0')}`,
      createdAt: 2_000_000_000 - at,
      evidence: { ...TRACED.evidence!, parts: [part, trace] },
    };
  });
  const evidence = depsWith(async () => BODY);
  let reading = 0;
  let most = 0;
  const stores = {
    ...evidence.stores,
    listProofs: async (_partnerId: string, { before, limit }: Parameters<ProofStore['listProofs']>[1]) =>
      all.filter(({ createdAt }) => before === undefined || createdAt < before.createdAt).slice(0, limit),
    listBriefs: async () => all.map(briefOf),
    readEvidence: async (proofId: string, part: EvidencePart) => {
      reading += 1;
      most = Math.max(most, reading);
      await new Promise((resolve) => setImmediate(resolve));
      reading -= 1;
      return evidence.stores.readEvidence(proofId, part);
    },
  };
  const deps = { ...evidence, stores };
  const caller = READER as Caller;
  const pages: string[][] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await listProofs(deps, caller, {
      limit: 100,
      include: 'evidenceReport',
      ...(cursor === undefined ? {} : { cursor }),
    });
    t.ok(page.proofs.every((entry) => withPlainReport(entry).evidenceReport?.session !== undefined));
    pages.push(page.proofs.map(({ proofId }) => proofId));
    cursor = page.nextCursor;
  }
  t.strictSame(
    pages.flat(),
    all.map(({ proofId }) => proofId),
  );
  t.strictSame(
    pages.map(({ length }) => length),
    [20, 2, 2, 1, 1, 2, 20, 2],
  );
  t.ok(most > 1 && most <= 8, 'few bodies are read at once');
  const summaries = await listProofs(deps, caller, {});
  t.equal(summaries.proofs.length, 50, 'summaries need no shorter page');
  t.ok(
    summaries.proofs.every((proof) => proof.evidenceSummary !== undefined && !('evidenceReport' in proof)),
  );
});

t.test('reports of every kind are of the schema that partners read', async (t) => {
  const text = JSON.stringify(openApiDocument().components.schemas).replaceAll(
    '#/components/schemas/',
    '#/$defs/',
  );
  const definitions = JSON.parse(text) as Record<string, object>;
  const schema = z.fromJSONSchema({ ...definitions['EvidenceReport'], $defs: definitions } as never);
  for (const report of [emptyReport(), cleanReport(), adverseReport()]) {
    const sent = JSON.parse(JSON.stringify(report)) as unknown;
    t.ok(schema.safeParse(sent).success);
    t.notOk(schema.safeParse({ ...(sent as object), conflicts: [{}] }).success, 'a fact without a code');
  }
});

t.test('the decision reports how far source detail is delivered', async (t) => {
  const coverageOf = (report?: EvidenceReport, verdict: 'valid' | 'tampered' = 'valid') =>
    decide({ verdict, reasons: [], carrier: 'embedded' }, report && outlineReport(report))
      .sourceDetailCoverage;
  const whole = cleanReport();
  t.equal(coverageOf(whole), 'full');
  const { sourceDetail, ...without } = whole;
  t.equal(coverageOf(without), 'none');
  t.equal(coverageOf(emptyReport()), 'none');
  t.equal(coverageOf(), 'none');
  t.equal(coverageOf(whole, 'tampered'), 'none');
  for (const support of ['partial', 'unsupported', 'unknown'] as const)
    t.equal(
      coverageOf({ ...whole, session: { evidence: sessionEvidence({ mixer: support }) } }),
      'partial',
      `a channel that is ${support}`,
    );
  const cut = { ...sourceDetail!, placementCount: sourceDetail!.placements.length + 1 };
  t.equal(coverageOf({ ...whole, sourceDetail: cut }), 'partial', 'a list that was cut');
});

t.test('the document lists every code with its meaning', async (t) => {
  const { properties } = openApiDocument().components.schemas['EvidenceFact'] as {
    properties: { code: Record<string, unknown> };
  };
  t.strictSame(
    properties.code[KNOWN_VALUES],
    EVIDENCE_CODES.map(({ code }) => code),
  );
  t.strictSame(properties.code['x-codes'], EVIDENCE_CODES);
  t.notOk('enum' in properties.code, 'later ones pass');
});

t.test('no list of words in a response is closed', async (t) => {
  const { paths, components } = openApiDocument();
  const responses = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ operationId, responses }) =>
      Object.entries(responses).map(
        ([status, { content }]) => [`${operationId} ${status}`, content] as const,
      ),
    ),
  );
  const closed: string[] = [];
  let open = 0;
  const walk = (node: unknown, at: string, seen: ReadonlySet<string>): void => {
    if (node === false || typeof node !== 'object' || node === null) {
      if (node === false) closed.push(at);
      return;
    }
    for (const [name, value] of Object.entries(node)) {
      if (name === 'examples') continue;
      if (name === '$ref') {
        const target = String(value).split('/').at(-1)!;
        if (!seen.has(target)) walk(components.schemas[target], target, new Set([...seen, target]));
        continue;
      }
      if (name === 'enum' || (name === 'const' && value !== true))
        closed.push(`${at}: ${JSON.stringify(value)}`);
      if (name === KNOWN_VALUES) open += 1;
      walk(value, `${at}.${name}`, seen);
    }
  };
  for (const [name, content] of responses) walk(content, name, new Set());
  t.strictSame(closed, []);
  t.ok(open > 100, 'words that are known are listed');
});
