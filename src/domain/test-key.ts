import type { Environment } from './partner-key.js';

/** Answers that a test key forces (rule 19.2). */
export const TEST_ANSWERS = ['rate_limited', 'unavailable', 'slow'] as const;
export type TestAnswer = (typeof TEST_ANSWERS)[number];

const PREFIX = 'test:';

/** The answer that a key of this name forces; undefined for every other name, and for every name in production. */
export function testAnswerOf(environment: Environment, name: string): TestAnswer | undefined {
  return environment === 'beta' ? TEST_ANSWERS.find((answer) => name === `${PREFIX}${answer}`) : undefined;
}

/**
 * Tells whether a new key may have this name: names of test keys are for beta alone, and a misspelt one would
 * force nothing.
 */
export function mayBeNamed(environment: Environment, name: string): boolean {
  return !name.startsWith(PREFIX) || testAnswerOf(environment, name) !== undefined;
}
