import { hostname } from 'node:os';
import { type DestinationStream, type Logger, pino } from 'pino';
import { defined } from '../../core/domain/defined.js';
import { DomainError, ServerError } from '../../core/domain/errors.js';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The forms of level and time: numbers, or the word of the level and a time of RFC 3339. */
export type LogFormat = 'numbers' | 'words';

/** The levels between which a running process changes, besides the configured level. */
const CHANGED_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn'];

export interface LogParts {
  readonly level: LogLevel;
  readonly format?: LogFormat;
  /** The version of the process. Absent in a tool, which logs nothing. */
  readonly version?: string;
}

/** The most stack frames per error in a log line. */
const FRAMES = 12;
/** The most nested causes per error in a log line. */
const CAUSES = 3;

/**
 * Creates a log of JSON lines. Every line is built from values of closed kinds, so no free object can leak a
 * secret. A list of redacted names is not needed.
 */
export function createLog(
  { level, format = 'numbers', version }: LogParts,
  destination: DestinationStream,
): Logger {
  return pino(
    {
      level,
      base: baseOf(version),
      ...(format === 'numbers'
        ? { timestamp: () => `,"time":${Date.now()}` }
        : {
            timestamp: () => `,"time":"${new Date().toISOString()}"`,
            formatters: { level: (word) => ({ level: word }) },
          }),
    },
    destination,
  );
}

/** Returns the level that follows `current` when a running process is asked to change its level. */
export function nextLevel(configured: LogLevel, current: LogLevel): LogLevel {
  const levels = [configured, ...CHANGED_LEVELS.filter((level) => level !== configured)];
  return levels[(levels.indexOf(current) + 1) % levels.length]!;
}

/** Returns the members that every line has. `instance` distinguishes processes of a host, and of hosts. */
function baseOf(version: string | undefined) {
  return { service: 'takemark', ...defined({ version }), instance: `${hostname()}:${process.pid}` };
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
export function crashLine(error: unknown, { format, version }: Omit<LogParts, 'level'>): string {
  const now = new Date();
  const line = {
    level: format === 'words' ? 'fatal' : pino.levels.values['fatal'],
    time: format === 'words' ? now.toISOString() : now.getTime(),
    ...baseOf(version),
    event: 'crash',
    error: describeError(error),
    msg: 'crash',
  };
  return `${JSON.stringify(line)}\n`;
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
