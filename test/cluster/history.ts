/**
 * Tells whether what the clients of one review case saw can have happened one after the other: every answered
 * call at some moment between its sending and its answer, every unanswered one at any moment after its
 * sending, or never.
 */

export type EvidenceState = 'requested' | 'supplied' | 'accepted' | 'declined';

/** A case, as far as the clients can change it. */
export interface CaseState {
  readonly outcome: 'open' | 'accepted' | 'held' | 'rejected';
  readonly evidence: Readonly<Record<string, EvidenceState>>;
}

export type ReviewCall =
  | { readonly does: 'read' }
  | { readonly does: 'open'; readonly kind: string }
  | { readonly does: 'supply' | 'accept' | 'decline'; readonly kind: string }
  | { readonly does: 'resolve'; readonly outcome: 'accepted' | 'held' | 'rejected' };

export interface ReviewOperation {
  readonly call: ReviewCall;
  /** Milliseconds of one clock. */
  readonly sentAt: number;
  /** Undefined where no answer came, or one that leaves the outcome open. */
  readonly answer?: {
    readonly at: number;
    readonly result: { readonly state: CaseState } | { readonly refused: string };
  };
}

export interface ReviewHistory {
  readonly reviewId: string;
  readonly proofId: string;
  readonly partnerId: string;
  readonly operations: readonly ReviewOperation[];
}

const NEW_CASE: CaseState = { outcome: 'open', evidence: {} };

/** The state machine again, written from the contract and not from the code under test. */
function apply(
  state: CaseState,
  call: ReviewCall,
): { readonly state: CaseState } | { readonly refused: string } {
  switch (call.does) {
    case 'read':
      return { state };
    case 'open':
      if (isFinal(state.outcome)) return { refused: 'review_resolved' };
      if (state.evidence[call.kind] !== undefined) return { refused: 'evidence_kind_already_open' };
      return { state: { ...state, evidence: { ...state.evidence, [call.kind]: 'requested' } } };
    case 'resolve':
      if (isFinal(state.outcome))
        return state.outcome === call.outcome ? { state } : { refused: 'review_resolved' };
      if (state.outcome === call.outcome) return { state };
      if (Object.values(state.evidence).some((status) => status === 'requested' || status === 'supplied'))
        return { refused: 'evidence_requests_open' };
      return { state: { ...state, outcome: call.outcome } };
    default: {
      const status = state.evidence[call.kind];
      if (status === undefined) return { refused: 'not_found' };
      if (status === 'accepted' || status === 'declined') return { refused: 'evidence_request_final' };
      const next = ({ supply: 'supplied', accept: 'accepted', decline: 'declined' } as const)[call.does];
      return { state: { ...state, evidence: { ...state.evidence, [call.kind]: next } } };
    }
  }
}

function isFinal(outcome: CaseState['outcome']): boolean {
  return outcome === 'accepted' || outcome === 'rejected';
}

function textOf(state: CaseState): string {
  return `${state.outcome} ${Object.entries(state.evidence).sort().join(' ')}`;
}

/**
 * Tries every order that the times allow (Wing and Gong), and no set of done calls with the same state twice.
 */
export function isLinearizable(operations: readonly ReviewOperation[]): boolean {
  const tried = new Set<string>();
  const search = (done: bigint, state: CaseState): boolean => {
    const left = operations
      .map((operation, index) => ({ operation, index }))
      .filter(({ index }) => (done & (1n << BigInt(index))) === 0n);
    const firstAnswer = Math.min(...left.map(({ operation }) => operation.answer?.at ?? Infinity));
    if (firstAnswer === Infinity) return true;
    const key = `${done} ${textOf(state)}`;
    if (tried.has(key)) return false;
    tried.add(key);
    return left.some(({ operation: { call, sentAt, answer }, index }) => {
      if (sentAt > firstAnswer) return false;
      const step = apply(state, call);
      if (answer !== undefined) {
        const { result } = answer;
        if ('refused' in result !== 'refused' in step) return false;
        if ('refused' in result && 'refused' in step && result.refused !== step.refused) return false;
        if ('state' in result && 'state' in step && textOf(result.state) !== textOf(step.state)) return false;
      }
      return search(done | (1n << BigInt(index)), 'state' in step ? step.state : state);
    });
  };
  return search(0n, NEW_CASE);
}
