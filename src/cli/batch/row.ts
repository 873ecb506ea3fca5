import { TakemarkError } from '../../client/errors.js';
import type { Verification } from '../../client/index.js';

/** What a batch says of one file. */
export type Row = JudgedRow | FailedRow;

export interface JudgedRow {
  readonly file: string;
  readonly sidecar?: string;
  readonly outcome: 'good' | 'not_good';
  readonly result: Verification;
}

/** No verdict: the file or the service failed. "I/O failure never becomes a verdict." */
export interface FailedRow {
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

export function failedRow({ file, sidecar }: Pick<Row, 'file' | 'sidecar'>, error: unknown): FailedRow {
  const known = error instanceof TakemarkError ? error : undefined;
  const { code, status, reason, requestId } = known ?? {};
  const facts = Object.fromEntries(
    Object.entries({ code, status, reason, requestId }).filter(([, value]) => value !== undefined),
  );
  return {
    file,
    ...(sidecar === undefined ? {} : { sidecar }),
    outcome: 'failed',
    error: { message: error instanceof Error ? error.message : String(error), ...facts },
  };
}
