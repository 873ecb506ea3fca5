import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ClassicLevel } from 'classic-level';
import type { AuditHead } from '../../src/service/domain/audit.js';
import type { AuditHeads } from '../../src/service/ports/journals.js';

export const WRITER = fileURLToPath(new URL('./embedded-writer.js', import.meta.url));
/**
 * The options of plain node. The test runner's hooks slow a child down, and end the process at a write over a
 * size limit.
 */
export const PLAIN_NODE = ['env', '-u', 'NODE_OPTIONS', process.execPath] as const;
export const AUDIT_KEY = new Uint8Array(32).fill(7);

/**
 * Keeps heads in a file beside the store's directory, one line for each partner. Recorded heads outlive a
 * killed process. The file is rewritten at each start.
 */
export function fileHeads(directory: string): AuditHeads {
  const heads = new Map(readHeads(directory));
  const path = headsPath(directory);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, [...heads.values()].map(headLine).join(''));
  renameSync(`${path}.new`, path);
  return {
    record: async (head) => {
      if ((heads.get(head.partnerId)?.sequence ?? 0) >= head.sequence) return;
      heads.set(head.partnerId, head);
      appendFileSync(path, headLine(head));
    },
    get: async (partnerId) => heads.get(partnerId),
    close: async () => undefined,
  };
}

const headsPath = (directory: string) => `${directory}.heads`;
const headLine = ({ partnerId, sequence, mac }: AuditHead) => `${partnerId} ${sequence} ${mac}\n`;

export function readHeads(directory: string): ReadonlyMap<string, AuditHead> {
  const path = headsPath(directory);
  const heads = new Map<string, AuditHead>();
  for (const text of existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []) {
    const [partnerId, sequence, mac] = text.split(' ');
    if (mac !== undefined && (heads.get(partnerId!)?.sequence ?? 0) < Number(sequence))
      heads.set(partnerId!, { partnerId: partnerId!, sequence: Number(sequence), mac });
  }
  return heads;
}

export function writer(...args: readonly string[]): ChildProcess {
  const [command, ...before] = PLAIN_NODE;
  return spawn(command, [...before, WRITER, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
}

export async function line(child: ChildProcess, expected: string): Promise<void> {
  for await (const each of createInterface({ input: child.stdout! })) if (each === expected) return;
}

export async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

export async function withLevel(
  directory: string,
  use: (level: ClassicLevel<string, Uint8Array>) => Promise<void>,
): Promise<void> {
  const level = new ClassicLevel<string, Uint8Array>(directory, { valueEncoding: 'view' });
  await use(level);
  await level.close();
}
