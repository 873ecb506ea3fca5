import { createInterface } from 'node:readline/promises';
import { addAbortSignal, type Readable, Writable } from 'node:stream';
import type { ReadStream } from 'node:tty';
import { UsageError } from './command.js';

/** The most characters of a piped secret. Every key is shorter. */
const MAX_LENGTH = 4096;

/**
 * Reads a secret from a pipe, or from a terminal without echo.
 * @param prompt written to `prompts` if the input is a terminal
 * @throws UsageError for more than 4,096 characters
 */
export async function readSecret(
  input: Readable & Partial<Pick<ReadStream, 'isTTY'>>,
  prompts: Pick<Writable, 'write'>,
  prompt: string,
  signal: AbortSignal,
): Promise<string> {
  if (input.isTTY !== true) return readPiped(addAbortSignal(signal, input), signal);
  // The interface edits the line. Its output would show the secret, so the output is discarded.
  const lines = createInterface({
    input,
    output: new Writable({ write: (_chunk, _encoding, done) => done() }),
    terminal: true,
  });
  // The terminal sends no signal for Ctrl+C while a line is edited.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  prompts.write(prompt);
  try {
    return await lines.question('', { signal });
  } finally {
    prompts.write('\n');
    lines.close();
  }
}

async function readPiped(input: AsyncIterable<unknown>, signal: AbortSignal): Promise<string> {
  let text = '';
  for await (const chunk of input) {
    text += String(chunk);
    if (text.length > MAX_LENGTH) throw new UsageError('the piped input is too long for an API key');
  }
  // Ctrl+C also ends the program that writes into the pipe, so the text may be incomplete.
  signal.throwIfAborted();
  return text;
}
