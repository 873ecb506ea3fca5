import t from 'tap';
import {
  ACTION_REFERENCE,
  EXACT_REASONS,
  findVerdict,
  type ReferenceEntry,
  STATUS_REFERENCE,
  VERDICT_REFERENCE,
} from '../../../src/domain/reference/verdicts.js';

t.test('every value is told in sentences, and the one for the artist accuses nobody', async (t) => {
  const entries: readonly (readonly [string, ReferenceEntry])[] = [
    ...Object.entries(VERDICT_REFERENCE),
    ...Object.entries(STATUS_REFERENCE),
    ...Object.entries(ACTION_REFERENCE),
    ...EXACT_REASONS.map(([reason, verdict]) => [reason, findVerdict(verdict, reason)!] as const),
  ];
  for (const [word, { meaning, caller, artist }] of entries) {
    for (const sentence of [meaning, caller, artist]) t.match(sentence, /^[A-Z].*\.$/, word);
    t.notMatch(artist, /human|fake|cheat|fraud|tamper|forge/i, `${word}: neutral words`);
  }
});

t.test('the first reason makes a verdict more exact, with its own verdict alone', async (t) => {
  t.match(findVerdict('unreadable', 'credential_missing')?.meaning, /no credential in it/);
  t.equal(findVerdict('tampered', 'credential_missing'), VERDICT_REFERENCE.tampered);
  t.equal(findVerdict('unreadable', 'a_reason_of_tomorrow'), VERDICT_REFERENCE.unreadable);
  t.equal(findVerdict('unreadable', 'constructor'), VERDICT_REFERENCE.unreadable);
  t.equal(findVerdict('a_verdict_of_tomorrow'), undefined);
  t.equal(findVerdict('constructor'), undefined);
});
