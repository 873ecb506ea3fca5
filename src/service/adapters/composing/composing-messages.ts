import type { ComposedReport, StoredEvidence } from '../../../witness/report/compose-stored.js';

/** A message to the thread: the evidence of one report. */
export interface ToComposing {
  readonly id: number;
  readonly stored: StoredEvidence;
}

/** A message of the thread: the composed report, encoded as JSON, or why composing failed. */
export type FromComposing =
  | { readonly id: number; readonly composed: ComposedReport<Uint8Array> }
  | { readonly id: number; readonly fault: string };
