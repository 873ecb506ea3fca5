import { join } from 'node:path';
import { keepFile } from './kept-file.js';

/** Beside the store, so that the command line on the same machine finds it. */
export const OPERATOR_TOKEN_FILE = 'operator-token';

/** The operator's bearer token, made on the first start; 256 random bits. */
export async function loadOperatorToken({
  directory,
  random,
}: {
  readonly directory: string;
  readonly random: (length: number) => Uint8Array;
}): Promise<{ readonly token: string; readonly path: string; readonly made: boolean }> {
  const { text, made } = await keepFile(
    directory,
    OPERATOR_TOKEN_FILE,
    () => `${newOperatorToken(random)}\n`,
  );
  return { token: text.trim(), path: join(directory, OPERATOR_TOKEN_FILE), made };
}

export function newOperatorToken(random: (length: number) => Uint8Array): string {
  return Buffer.from(random(32)).toString('base64url');
}
