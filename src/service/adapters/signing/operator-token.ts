import { join } from 'node:path';
import { OPERATOR_TOKEN_PATTERN } from '../../domain/operator-token.js';
import { keepFile } from './kept-file.js';

/** The name of the token's file. It is beside the store, where the command line on the same machine finds it. */
export const OPERATOR_TOKEN_FILE = 'operator-token';

/**
 * Loads the operator's bearer token. The first start makes it of 256 random bits.
 * @throws Error for a file that holds no token
 */
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
  const path = join(directory, OPERATOR_TOKEN_FILE);
  const token = text.trim();
  if (!OPERATOR_TOKEN_PATTERN.test(token))
    throw new Error(
      `${path} does not hold a token of 16 to 256 visible ASCII characters: restore the file, or remove it, and the next start creates a new token`,
    );
  return { token, path, made };
}

export function newOperatorToken(random: (length: number) => Uint8Array): string {
  return Buffer.from(random(32)).toString('base64url');
}
