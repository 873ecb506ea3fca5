import { readFile } from 'node:fs/promises';
import type { RotationState, RotationStore } from '../client/index.js';
import { replaceFile } from '../core/files/durable.js';
import { UsageError } from './command.js';

const KIND = 'key rotation';

/**
 * Returns a rotation store in a file that only its owner can read. Each save replaces the whole file, so that
 * a crash leaves the old or the new state.
 */
export function rotationFile(path: string): RotationStore {
  return {
    async load() {
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined;
        throw error;
      });
      return text === undefined ? undefined : parseState(text, path);
    },
    async save(state) {
      const text = `${JSON.stringify({ takemark: KIND, version: 1, ...state })}\n`;
      await replaceFile(path, text);
    },
  };
}

/** @throws UsageError for a file of another kind, which must not be replaced */
function parseState(text: string, path: string): RotationState {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const state = value as (Partial<RotationState> & { readonly takemark?: unknown }) | null | undefined;
  if (
    state?.takemark !== KIND ||
    typeof state.idempotencyKey !== 'string' ||
    typeof state.callingKey !== 'string' ||
    typeof state.startedAt !== 'number'
  ) {
    throw new UsageError(`${path} does not hold a key rotation`);
  }
  return state as RotationState;
}
