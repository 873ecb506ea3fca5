import { type DestinationStream, type Logger, pino } from 'pino';
import { defined } from '../domain/defined.js';
import { DomainError, ServerError } from '../domain/errors.js';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The most stack frames per error in a log line. */
const FRAMES = 12;
/** The most nested causes per error in a log line. */
const CAUSES = 3;

/**
 * Creates a log of JSON lines. Every line is built from values of closed kinds, so no free object can leak a
 * secret. A list of redacted names is not needed.
 */
export function createLog(level: LogLevel, destination: DestinationStream): Logger {
  return pino({ level, base: null, timestamp: () => `,"time":${Date.now()}` }, destination);
}

/**
 * Returns the loggable part of an error: its name, its code and its stack frames. Messages of libraries are
 * omitted, because they can quote their input. Our own messages are kept, because the caller or the operator
 * sees them anyway.
 */
export function describeError(error: unknown, depth = 0): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { name: typeof error };
  const { code, syscall } = error as { readonly code?: unknown; readonly syscall?: unknown };
  return {
    name: error.name,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof syscall === 'string' ? { syscall } : {}),
    ...(error instanceof DomainError ? defined({ message: error.message, reason: error.reason }) : {}),
    ...(error instanceof ServerError ? { message: error.message } : {}),
    at: framesOf(error).slice(0, FRAMES),
    ...(error.cause === undefined || depth === CAUSES
      ? {}
      : { cause: describeError(error.cause, depth + 1) }),
  };
}

/**
 * Returns the last log line of a process that ends with an uncaught error. Node's own output would print the
 * message and every member.
 */
export function crashLine(error: unknown): string {
  return `${JSON.stringify({ level: pino.levels.values['fatal'], time: Date.now(), event: 'crash', error: describeError(error) })}\n`;
}

/**
 * Returns the frames of a stack. A stack repeats the message, and lines of the message may look like frames.
 * If the message is not found in the stack, the two cannot be separated and no frames are returned.
 */
function framesOf({ stack = '', message }: Error): readonly string[] {
  const header = stack.indexOf(message);
  if (header < 0) return [];
  return stack
    .slice(header + message.length)
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .map((line) => line.trim());
}
