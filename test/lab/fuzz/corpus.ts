/** The useful inputs that fuzzing has found, one a line in base64, the shortest first. */
import { readFile, writeFile } from 'node:fs/promises';

const FOLDER = new URL('../../../../test/lab/fuzz/corpus/', import.meta.url);
/** A larger corpus would be of no use in twenty seconds. */
const MOST_BYTES = 128 * 1024;

export async function readCorpus(target: string): Promise<readonly Buffer[]> {
  const lines = await readFile(new URL(`${target}.txt`, FOLDER), 'utf8').catch(() => '');
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Buffer.from(line, 'base64'));
}

export async function writeCorpus(target: string, inputs: readonly Uint8Array[]): Promise<void> {
  const lines: string[] = [];
  let bytes = 0;
  for (const input of inputs.toSorted((a, b) => a.length - b.length)) {
    const line = Buffer.from(input).toString('base64');
    bytes += line.length;
    if (bytes > MOST_BYTES) break;
    lines.push(line);
  }
  await writeFile(new URL(`${target}.txt`, FOLDER), `${lines.join('\n')}\n`);
}
