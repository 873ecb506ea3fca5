import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { COUNTER_WORDS, COUNTERS, type CounterName } from '../../src/witness/domain/session-evidence.js';
import { CHANNELS } from '../../src/witness/domain/trace.js';
import { adverseReport, cleanReport, emptyReport, sessionEvidence } from '../evidence/reports.js';
import { type Bench, setUp } from './bench.js';

const PROOF_ID = 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2';
const PROOF = {
  proofId: PROOF_ID,
  issuedAt: 1_790_020_000,
  song: { title: 'Late Train Home' },
  carrier: 'embedded',
};
const VERIFICATION = {
  proofId: PROOF_ID,
  verdict: 'valid',
  good: true,
  issuedAt: 1_790_020_000,
  verifiedAt: 1_790_030_000,
  decision: {
    status: 'needs_review',
    reasons: ['credential_valid', 'source_evidence_needs_review'],
    recommendedAction: 'review',
    credentialCarrier: 'embedded',
    sourceDetailCoverage: 'partial',
  },
};

const NOTE = { policyVersion: '1', lines: [{ code: 'takes', text: 'Nine takes were seen to grow.' }] };

/** Returns the bench, with the value in a file. */
async function withFile(
  test: Parameters<typeof setUp>[0],
  value: unknown,
): Promise<Bench & { readonly path: string }> {
  const bench = await setUp(test);
  return { ...bench, path: await bench.file('result.json', Buffer.from(JSON.stringify(value))) };
}

t.test('a result in a file is printed, conflicts first', async (t) => {
  const { takemark, path } = await withFile(t, { ...VERIFICATION, evidenceReport: adverseReport() });
  const { code, out, err } = await takemark('report', path);
  t.strictSame([code, err], [0, '']);
  const places = [
    'VALID',
    'needs_review, review',
    'Conflicts and open questions',
    'observed_import_vs_creator_origin_declaration',
    'a_code_of_tomorrow',
    'Declared',
    'Origin of the material: from scratch  sub_4711',
    'Imported files',
    'likelihood 0.93 of 1 attributed to example-generator',
    'Observed by the session agent',
    'Mixer changes',
  ].map((part) => out.indexOf(part));
  t.notOk(places.includes(-1), out);
  t.strictSame(
    places,
    places.toSorted((one, other) => one - other),
  );
  t.notMatch(out, /human|AI-free|%/i);
});

t.test('a line of a batch has its verdict, and a report alone is not called registered', async (t) => {
  const { takemark, file, directory } = await setUp(t);
  const page = join(directory, 'report.html');
  const shown = async (value: unknown) => {
    const path = await file('value.json', Buffer.from(JSON.stringify(value)));
    const { code, out } = await takemark('report', path, '--format', 'text', '--html', page, '--force');
    t.equal(code, 0);
    return out + (await readFile(page, 'utf8')).replaceAll(/<[^>]*>/g, ' ');
  };
  const result = { verdict: 'tampered', good: false };
  const tampered = await shown({ file: 'a.wav', outcome: 'not_good', result });
  t.match(tampered, /TAMPERED[\s\S]*Credential: not valid \(altered\)/);
  t.notMatch(tampered, /: registered|registered proof/);
  const alone = await shown(cleanReport());
  t.match(alone, /report that names no proof; no audio file[\s\S]*Credential: not known/);
  t.notMatch(alone, /: registered|registered proof/);
});

t.test('the address on a page is the one that the calls have', async (t) => {
  const { takemark, path, directory } = await withFile(t, PROOF);
  const page = join(directory, 'report.html');
  for (const address of ['https://beta.example/v1/', 'https://beta.example']) {
    t.match(await takemark('report', path, '--html', page, '--force', '--url', address), { code: 0 });
    t.match(await readFile(page, 'utf8'), '<code>https://beta.example/v1/verifications</code>');
  }
});

t.test('a channel that is not watched has its word on the terminal too', async (t) => {
  for (const channel of CHANNELS)
    for (const support of ['unsupported', 'unknown'] as const) {
      const report = { ...emptyReport(), session: { evidence: sessionEvidence({ [channel]: support }) } };
      const { takemark, path } = await withFile(t, report);
      const { out } = await takemark('report', path);
      for (const name of (Object.keys(COUNTERS) as CounterName[]).filter(
        (name) => COUNTERS[name] === channel,
      )) {
        const line = out.split('\n').find((other) => other.includes(`${COUNTER_WORDS[name]}  `));
        t.match(line, new RegExp(`  ${support} +${support}$`), `${name}: ${support}`);
      }
    }
});

t.test('a proof is read by its id, and one of another partner from its record', async (t) => {
  const { takemark, service } = await setUp(t);
  const record = {
    ...PROOF,
    delivery: { carrier: 'embedded' },
    evidenceReport: cleanReport(),
    processNote: NOTE,
  };
  service.on(`/v1/records/${PROOF_ID}`, () => ({ status: 200, body: record }));
  service.on(`/v1/proofs/${PROOF_ID}`, () => ({
    status: 404,
    body: { code: 'not_found', message: 'no such proof', requestId: 'rq_1' },
  }));
  t.match(await takemark('report', PROOF_ID), {
    code: 0,
    out: /Late Train Home\n {2}registered proof; no audio/,
  });
  service.on(`/v1/proofs/${PROOF_ID}`, () => ({
    status: 200,
    body: { ...PROOF, evidenceReport: emptyReport() },
  }));
  t.match(await takemark('report', PROOF_ID), { code: 0, out: /None recorded/ });
  t.match(await takemark('report', PROOF_ID, '--from-record'), {
    code: 0,
    out: /In short\n {2}Nine takes were seen to grow\.\n[\s\S]*from scratch/,
  });
});

t.test('a page is written, and replaces none without --force', async (t) => {
  const { takemark, path, directory } = await withFile(t, { ...VERIFICATION, evidenceReport: cleanReport() });
  const page = join(directory, 'report.html');
  t.strictSame(await takemark('report', path, '--html', page), { code: 0, out: '', err: `wrote ${page}\n` });
  const text = await readFile(page, 'utf8');
  t.match(text, '<!doctype html>');
  t.match(text, 'Arrangement');
  t.match(await takemark('report', path, '--html', page), { code: 2, err: /exists; give --force/ });
  t.match(await takemark('report', path, '--html', page, '--force', '--json'), {
    code: 0,
    out: /^\{"version":1/,
  });
  t.match(await takemark('report', path, '--html', path, '--force'), { code: 2, err: /the input file/ });
});

t.test('projections are JSON with a source for each value', async (t) => {
  const { takemark, path } = await withFile(t, { ...PROOF, evidenceReport: cleanReport() });
  for (const format of ['ddex-432', 'spotify', 'apple']) {
    const { code, out } = await takemark('report', path, '--format', format);
    const projection = JSON.parse(out);
    t.match(
      { code, projection },
      { code: 0, projection: { projectionVersion: 2, format, status: 'as_declared' } },
    );
    t.ok(projection.members.some(({ value }: { value?: string }) => value !== undefined));
  }
});

t.test('an invalid report is refused, and a proof without a report gets a message', async (t) => {
  const { takemark, file } = await setUp(t);
  const written = async (text: string): Promise<string> => file('value.json', Buffer.from(text));
  t.match(await takemark('report', await written('{')), {
    code: 3,
    err: /does not hold a single JSON value/,
  });
  t.match(await takemark('report', await written('{"evidenceReport":{"version":1}}')), {
    code: 3,
    err: /value\.json: evidenceReport\.facts is not there/,
  });
  t.match(await takemark('report', await written(JSON.stringify({ ...VERIFICATION, grade: 'B' }))), {
    code: 0,
    out: /this proof has no report[\s\S]*grade B: from an earlier registry/,
  });
  t.match(await takemark('report', await written(JSON.stringify(PROOF)), '--format', 'apple'), {
    code: 3,
    err: /no evidence report/,
  });
  for (const other of ['{}', '[]', '5', 'null', '{"error":"No."}', '{"result":5}', '{"proofId":5}'])
    t.match(await takemark('report', await written(other)), {
      code: 3,
      out: '',
      err: /value\.json: this is not a verification result, a proof, a record or a report/,
    });
  t.match(await takemark('report', 'no such thing'), { code: 2, err: /neither a file nor a proof id/ });
  t.match(await takemark('report', PROOF_ID, '--format', 'xml'), { code: 2 });
  t.match(await takemark('report', await written('{}'), '--from-record'), { code: 2 });
});
