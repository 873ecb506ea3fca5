export const VERDICTS = [
  'valid',
  'audioChanged',
  'tampered',
  'unregistered',
  'unreadable',
  'local_seal',
] as const;
export type Verdict = (typeof VERDICTS)[number];

export const DECISION_STATUSES = ['verified_binding', 'needs_review', 'invalid_proof'] as const;
export type DecisionStatus = (typeof DECISION_STATUSES)[number];

export const RECOMMENDED_ACTIONS = [
  'accept_credential',
  'review',
  'reject',
  'request_matching_pair',
  'confirm_file',
] as const;
export type RecommendedAction = (typeof RECOMMENDED_ACTIONS)[number];
