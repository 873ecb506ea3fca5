import { strict as assert } from 'node:assert';
import { setTimeout as delay } from 'node:timers/promises';
import { wav } from '../../fixtures/wav.js';
import type { ConfinedService } from './confined-service.js';
import { uploadOnce } from './partner-calls.js';

const MEBIBYTE = 1_048_576;
const IN_A_ROW = 4;
const ROWS = 10;
const BETWEEN_ROWS_MS = 1000;

/**
 * Plays an honest partner during an attack: ten times four uploads of 1 MiB in a row, without retries.
 * @throws AssertionError if less than nine of ten succeed
 */
export async function assertServed(service: ConfinedService, apiKey: string): Promise<string> {
  const audio = wav(MEBIBYTE);
  const counts = new Map<string, number>();
  for (let row = 0; row < ROWS; row += 1) {
    for (let i = 0; i < IN_A_ROW; i += 1) {
      const { status, reason } = await uploadOnce(service, apiKey, audio);
      const outcome = reason === undefined ? String(status) : `${status} ${reason}`;
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
    await delay(BETWEEN_ROWS_MS);
  }
  const words = `uploads of the other partner: ${[...counts].map(([outcome, count]) => `${count} x ${outcome}`).join(', ')}`;
  assert.ok((counts.get('201') ?? 0) >= 0.9 * ROWS * IN_A_ROW, words);
  return words;
}
