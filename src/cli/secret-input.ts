import { createInterface } from 'node:readline/promises';
import { addAbortSignal, type Readable, Writable } from 'node:stream';
import type { ReadStream } from 'node:tty';
import { UsageError } from './command.js';

/** Characters of a secret that is piped in: more than any key has. */
const MAX_LENGTH = 4096;

/**
 * A secret from a pipe, whole, or typed at a terminal, where nothing of it is shown.
 * @param prompt written to `prompts` where somebody types
 * @throws UsageError for more than 4,096 bytes
 */
export async function readSecret(
  input: Readable & Partial<Pick<ReadStream, 'isTTY'>>,
  prompts: Pick<Writable, 'write'>,
  prompt: string,
  signal: AbortSignal,
): Promise<string> {
  if (input.isTTY !== true) return readPiped(addAbortSignal(signal, input), signal);
  // The interface edits the line; its output, which would show the secret, is thrown away.
  const lines = createInterface({
    input,
    output: new Writable({ write: (_chunk, _encoding, done) => done() }),
    terminal: true,
  });
  // The terminal makes no signal of Ctrl+C while a line is edited.
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
    if (text.length > MAX_LENGTH) throw new UsageError('what is piped in is no API key');
  }
  // Ctrl+C ends what is before the pipe as well, amid what it was to write.
  signal.throwIfAborted();
  return text;
}
