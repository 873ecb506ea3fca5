import { type DestinationStream, type Logger, pino } from 'pino';
import { defined } from '../domain/defined.js';
import { DomainError, ServerError } from '../domain/errors.js';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Frames of a stack that are kept. */
const FRAMES = 12;
/** Errors within errors that are followed. */
const CAUSES = 3;

/**
 * JSON lines. Redaction is by construction: every line is built here from values of closed kinds, so there is
 * no free object in which a secret could travel and no list of names to keep in step with the code.
 */
export function createLog(level: LogLevel, destination: DestinationStream): Logger {
  return pino({ level, base: null, timestamp: () => `,"time":${Date.now()}` }, destination);
}

/**
 * The part of an error that a log line may hold: its name, its code and where it was thrown. The message
 * stays out, since messages of libraries quote what they failed on; only our own, which the caller may see
 * anyway or the operator has to, is kept.
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
 * Line of a process that ends by an error which nothing caught: Node itself would print the message and every
 * member.
 */
export function crashLine(error: unknown): string {
  return `${JSON.stringify({ level: pino.levels.values['fatal'], time: Date.now(), event: 'crash', error: describeError(error) })}\n`;
}

/**
 * A stack repeats the message, whose lines may look like frames; where it is not found, nothing tells the two
 * apart.
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
