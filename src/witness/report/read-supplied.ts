/**
 * Reads the JSON that the issuing side supplies with a trace. Reading is strict, and everything has a limit
 * (docs/evidence.md).
 */
import { defined } from '../../core/domain/defined.js';
import { DomainError } from '../../core/domain/errors.js';
import { COUNTERS, type CounterName } from '../domain/session-evidence.js';
import { type SessionSummary, SUPPLIED_LIMITS, type SuppliedDetection } from '../domain/session-summary.js';
import { TRACE_LIMITS } from '../domain/trace.js';

const SLUG = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const SHA256 = /^[0-9a-f]{64}$/;

type Members = Readonly<Record<string, unknown>>;

/**
 * Reads a session summary.
 * @throws DomainError for an invalid summary
 */
export function readSummary(bytes: Uint8Array): SessionSummary {
  const { durationSeconds, counters, ...rest } = readObject(bytes, SUPPLIED_LIMITS.summaryBytes, 'summary');
  const names = counters === undefined ? [] : Object.entries(objectOf(counters, 'summary', 'counters'));
  for (const [name, value] of names)
    if (
      !Object.hasOwn(COUNTERS, name) ||
      !isNumber(value, Number.MAX_SAFE_INTEGER) ||
      !Number.isInteger(value)
    )
      throw invalid('summary', 'counters');
  if (durationSeconds !== undefined && !isNumber(durationSeconds, TRACE_LIMITS.time / 1_000_000))
    throw invalid('summary', 'durationSeconds');
  if (Object.keys(rest).length > 0) throw invalid('summary', 'unknown member');
  return defined({
    durationSeconds,
    counters: counters === undefined ? undefined : (Object.fromEntries(names) as Record<CounterName, number>),
  });
}

/**
 * Reads a list of detections.
 * @throws DomainError for an invalid list
 */
export function readDetections(bytes: Uint8Array): readonly SuppliedDetection[] {
  const { detections, ...rest } = readObject(bytes, SUPPLIED_LIMITS.detectionsBytes, 'detections');
  if (Object.keys(rest).length > 0) throw invalid('detections', 'unknown member');
  if (!Array.isArray(detections) || detections.length > SUPPLIED_LIMITS.detections)
    throw invalid('detections', 'detections');
  return detections.map((one: unknown) => {
    const { sha256, detector, detectorVersion, likelihood, generator, ...others } = objectOf(
      one,
      'detections',
      'an entry',
    );
    if (!matches(sha256, SHA256)) throw invalid('detections', 'sha256');
    if (!matches(detector, SLUG)) throw invalid('detections', 'detector');
    if (!matches(detectorVersion, SLUG)) throw invalid('detections', 'detectorVersion');
    if (likelihood !== undefined && !isNumber(likelihood, 1)) throw invalid('detections', 'likelihood');
    if (generator !== undefined && !matches(generator, SLUG)) throw invalid('detections', 'generator');
    if (likelihood === undefined && generator === undefined)
      throw invalid('detections', 'likelihood or generator');
    if (Object.keys(others).length > 0) throw invalid('detections', 'unknown member');
    return defined({ sha256, detector, detectorVersion, likelihood, generator });
  });
}

function readObject(bytes: Uint8Array, most: number, what: string): Members {
  if (bytes.length > most)
    throw new DomainError('payload_too_large', `The ${what} may have at most ${most} bytes.`, {
      reason: 'body_too_large',
    });
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new DomainError('invalid_request', `The ${what} is not JSON.`, { reason: 'malformed_json' });
  }
  return objectOf(value, what, 'the whole');
}

function objectOf(value: unknown, what: string, member: string): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(what, member);
  return value as Members;
}

function matches(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}

function isNumber(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= most;
}

function invalid(what: string, member: string): DomainError {
  return new DomainError('invalid_request', `The ${what} does not have the documented form: ${member}.`, {
    reason: 'invalid_member',
  });
}
