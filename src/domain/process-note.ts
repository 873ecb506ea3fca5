/**
 * Process note: a summary of a report in sentences, by a fixed policy of presentation (rule 9.17). It is made from the
 * report alone, says nothing that the report does not hold, and is no judgement.
 */
export interface ProcessNote {
  /** Version of the policy: one report and one policy give one note. */
  readonly policyVersion: string;
  readonly lines: readonly ProcessNoteLine[];
}

export interface ProcessNoteLine {
  /** Stable slug of what the line is about, for readers who put it into words of their own. */
  readonly code: string;
  readonly text: string;
}
