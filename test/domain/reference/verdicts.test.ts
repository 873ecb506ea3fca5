import t from 'tap';
import type { ReferenceEntry } from '../../../src/core/domain/reference/entry.js';
import {
  DECISION_REASON_MEANINGS,
  DECISION_REASONS,
  REPORT_REASON_MEANINGS,
} from '../../../src/core/domain/reference/reasons.js';
import {
  ACTION_REFERENCE,
  findVerdict,
  STATUS_REFERENCE,
  VERDICT_REFERENCE,
} from '../../../src/core/domain/reference/verdicts.js';

t.test('every value has sentences, and the one for the artist accuses no person', async (t) => {
  const entries: readonly (readonly [string, ReferenceEntry])[] = [
    ...Object.entries(VERDICT_REFERENCE),
    ...Object.entries(STATUS_REFERENCE),
    ...Object.entries(ACTION_REFERENCE),
    ...Object.values(DECISION_REASONS).flatMap((reasons) => Object.entries(reasons)),
  ];
  for (const [word, { meaning, caller, artist }] of entries) {
    for (const sentence of [meaning, caller, artist]) t.match(sentence, /^[A-Z].*\.$/, word);
    t.notMatch(artist, /human|fake|cheat|fraud|tamper|forge/i, `${word}: neutral words`);
  }
});

t.test('each reason belongs to one verdict, and has a meaning of its own', async (t) => {
  const words = Object.values(DECISION_REASONS).flatMap((reasons) => Object.keys(reasons));
  t.strictSame(words, Object.keys(DECISION_REASON_MEANINGS), 'none appears twice');
  const meanings = Object.values(DECISION_REASON_MEANINGS);
  t.equal(new Set(meanings).size, meanings.length);
  for (const [word, meaning] of Object.entries(REPORT_REASON_MEANINGS)) t.match(meaning, /^[A-Z].*\.$/, word);
  for (const word of Object.keys(REPORT_REASON_MEANINGS)) t.notMatch(word, /^sidecar_/);
});

t.test('the first reason makes a verdict more exact, with its own verdict alone', async (t) => {
  t.match(findVerdict('tampered', 'signature_mismatch')?.meaning, /signature does not match/);
  t.match(findVerdict('unreadable', 'credential_missing')?.meaning, /no credential in it/);
  t.equal(findVerdict('tampered', 'credential_missing'), VERDICT_REFERENCE.tampered);
  t.equal(findVerdict('unreadable', 'a_reason_of_tomorrow'), VERDICT_REFERENCE.unreadable);
  t.equal(findVerdict('unreadable', 'constructor'), VERDICT_REFERENCE.unreadable);
  t.equal(findVerdict('a_verdict_of_tomorrow'), undefined);
  t.equal(findVerdict('constructor'), undefined);
});
