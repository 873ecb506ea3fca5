/**
 * A process note: a summary of a report in sentences, by a fixed policy of presentation (rule 9.17). The note
 * is derived only from the report, adds nothing to it, and is not a judgement.
 */
export interface ProcessNote {
  /** The version of the policy. The same report and policy always give the same note. */
  readonly policyVersion: string;
  readonly lines: readonly ProcessNoteLine[];
}

export interface ProcessNoteLine {
  /** The stable slug of the line's topic, for readers that use their own wording. */
  readonly code: string;
  readonly text: string;
}
