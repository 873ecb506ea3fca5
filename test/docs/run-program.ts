import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/** Runs a program to its end, with `environment` over this process's own. */
export async function runProgram(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const child = spawn(command, args, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, out, err };
}

/** Runs a program that has to succeed. */
export async function built(command: string, ...args: readonly string[]): Promise<void> {
  const { code, out, err } = await runProgram(command, args);
  if (code !== 0) throw new Error(`${command}: ${out}${err}`);
}
