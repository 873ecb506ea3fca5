import type { Environment } from './partner-key.js';

/** The responses that a test key forces (rule 19.2). */
export const TEST_ANSWERS = ['rate_limited', 'unavailable', 'slow'] as const;
export type TestAnswer = (typeof TEST_ANSWERS)[number];

const PREFIX = 'test:';

/**
 * Returns the response that a key with this name forces. Returns undefined for other names, and in
 * production.
 */
export function testAnswerOf(environment: Environment, name: string): TestAnswer | undefined {
  return environment === 'beta' ? TEST_ANSWERS.find((answer) => name === `${PREFIX}${answer}`) : undefined;
}

/**
 * Returns whether a new key may have this name. Names of test keys are refused in production. A misspelt test
 * name is refused everywhere, because it would force nothing. Blanks and capitals are misspellings too.
 */
export function mayBeNamed(environment: Environment, name: string): boolean {
  const looksLikeTest = name.normalize('NFKC').replaceAll(/\s/g, '').toLowerCase().startsWith(PREFIX);
  return !looksLikeTest || testAnswerOf(environment, name) !== undefined;
}
