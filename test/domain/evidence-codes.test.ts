import t from 'tap';
import { EVIDENCE_CODES, findEvidenceCode } from '../../src/witness/domain/evidence-codes.js';
import { CONTENT_CLASSES } from '../../src/witness/domain/evidence-report.js';
import { TRACE_FINDINGS } from '../../src/witness/domain/trace.js';
import { EVIDENCE_RULES } from '../../src/witness/report/rules.js';

t.test('the registry has each code once, with everything that is said of one', async (t) => {
  const codes = EVIDENCE_CODES.map(({ code }) => code);
  t.strictSame(codes, [...new Set(codes)]);
  for (const { code, contentClass, meaning, sentence, since } of EVIDENCE_CODES) {
    t.match(code, /^[A-Za-z][A-Za-z0-9_]{2,63}$/);
    t.ok(CONTENT_CLASSES.includes(contentClass), code);
    t.match(since, /^\d+\.\d+\.\d+$/);
    for (const text of [meaning, sentence]) t.match(text, /^[A-Z'“].*\.$/, code);
    t.notMatch(sentence, /human|AI-free|fake|cheat|fraud|%|per ?cent/i, `${code}: neutral words`);
  }
  t.equal(findEvidenceCode('a_code_of_tomorrow'), undefined);
});

t.test('every finding about a trace and every rule is in the registry, in its class', async (t) => {
  for (const code of TRACE_FINDINGS)
    t.equal(findEvidenceCode(code)?.contentClass, 'unverifiable_coverage_gap', code);
  for (const { code, contentClass } of EVIDENCE_RULES)
    t.equal(findEvidenceCode(code)?.contentClass, contentClass, code);
});
