import { TakemarkError } from '../../client/errors.js';
import type { EvidenceReport, Verification } from '../../client/index.js';
import { defined } from '../../core/domain/defined.js';
import { errorTextOf } from '../file-errors.js';
import { serviceErrorText } from '../service-errors.js';
import { verdictText } from '../verdict-texts.js';

/** The result of one file of a batch. */
export type FileResult = JudgedFile | FailedFile;

export interface JudgedFile {
  readonly file: string;
  readonly sidecar?: string;
  readonly outcome: 'good' | 'not_good';
  readonly result: Verification;
}

/** Returns true if a file is good and its evidence needs a person's decision (rule 9.2). */
export function asksForReview({ accepted, decision }: Verification): boolean {
  return accepted && decision?.status === 'needs_review';
}

/** Returns true for a good pair whose audio is in a format that the service does not know (rule 9.3). */
export function isOfUnknownFormat({ accepted, decision }: Verification): boolean {
  return accepted && decision?.reasons.includes('container_unknown') === true;
}

/** Returns the problem of a file in a few words, or undefined for a good file that needs no review. */
export function problemOf(entry: FileResult): string | undefined {
  if (entry.outcome === 'failed') return entry.error.message;
  if (entry.outcome === 'not_good') return verdictText(entry.result.verdict).title;
  return asksForReview(entry.result) ? 'NEEDS REVIEW' : undefined;
}

/**
 * Returns true if a report needs a person's decision (rule 9.21). The service derives the same from the
 * report.
 */
export function asksForDecision(report: EvidenceReport): boolean {
  const parts: readonly (readonly { readonly status?: string }[] | undefined)[] = [
    report.facts,
    report.conflicts,
    report.unverifiable,
  ];
  return parts.some((entries) => entries?.some(({ status }) => status === 'needs_review'));
}

/** A file without a verdict, because reading the file or calling the service failed (rules 5.8 and 17.7). */
export interface FailedFile {
  readonly file: string;
  readonly sidecar?: string;
  readonly outcome: 'failed';
  readonly error: {
    readonly message: string;
    readonly code?: string;
    readonly status?: number;
    readonly reason?: string;
    readonly requestId?: string;
  };
}

const AMBIGUOUS = 'sidecar_ambiguous';

/** Returns the result of a file whose sidecar may belong to another file. The file is not sent. */
export function ambiguousFile(file: string, message: string): FailedFile {
  return { file, outcome: 'failed', error: { message, code: AMBIGUOUS } };
}

export function isAmbiguous(entry: FileResult): boolean {
  return entry.outcome === 'failed' && entry.error.code === AMBIGUOUS;
}

export function failedFile(
  { file, sidecar }: Pick<FileResult, 'file' | 'sidecar'>,
  error: unknown,
  url: string,
): FailedFile {
  const known = error instanceof TakemarkError ? error : undefined;
  const { code, status, reason, requestId } = known ?? {};
  const facts = defined({ code, status, reason, requestId });
  return {
    ...defined({ file, sidecar }),
    outcome: 'failed',
    error: {
      message:
        known === undefined || known.code === 'source_failed'
          ? errorTextOf(file, error)
          : serviceErrorText(known, 'partner', url),
      ...facts,
    },
  };
}
