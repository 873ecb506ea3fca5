/**
 * Models of the things that clients contend for. The models follow the contract and not the code under test.
 */
import { isLinearizable, type Model, type Operation } from './linearizable.js';

export type EvidenceState = 'requested' | 'supplied' | 'accepted' | 'declined';

/** The state of a review that clients can change. */
export interface ReviewState {
  readonly outcome: 'open' | 'accepted' | 'held' | 'rejected';
  readonly evidence: Readonly<Record<string, EvidenceState>>;
}

export type Refused = { readonly refused: string };

export type ReviewCall =
  | { readonly does: 'read' }
  | { readonly does: 'open'; readonly kind: string }
  | { readonly does: 'supply' | 'accept' | 'decline'; readonly kind: string }
  | { readonly does: 'resolve'; readonly outcome: 'accepted' | 'held' | 'rejected' }
  /** Erases the proof, which also ends the review (rule 12.17). */
  | { readonly does: 'erase' };

export type ReviewResult = { readonly state: ReviewState } | Refused | { readonly erased: true };
export type ReviewOperation = Operation<ReviewCall, ReviewResult>;

/** Applies a call to an existing review. */
function changed(state: ReviewState, call: ReviewCall): ReviewState | Refused {
  switch (call.does) {
    case 'read':
      return state;
    case 'open':
      if (isFinal(state.outcome)) return { refused: 'review_resolved' };
      if (state.evidence[call.kind] !== undefined) return { refused: 'evidence_kind_already_open' };
      return { ...state, evidence: { ...state.evidence, [call.kind]: 'requested' } };
    case 'resolve':
      if (isFinal(state.outcome))
        return state.outcome === call.outcome ? state : { refused: 'review_resolved' };
      if (state.outcome === call.outcome) return state;
      if (Object.values(state.evidence).some((status) => status === 'requested' || status === 'supplied'))
        return { refused: 'evidence_requests_open' };
      return { ...state, outcome: call.outcome };
    case 'erase':
      throw new Error('an erasure leaves no review');
    default: {
      const status = state.evidence[call.kind];
      if (status === undefined) return { refused: 'not_found' };
      if (status === 'accepted' || status === 'declined') return { refused: 'evidence_request_final' };
      const next = ({ supply: 'supplied', accept: 'accepted', decline: 'declined' } as const)[call.does];
      return { ...state, evidence: { ...state.evidence, [call.kind]: next } };
    }
  }
}

function isFinal(outcome: ReviewState['outcome']): boolean {
  return outcome === 'accepted' || outcome === 'rejected';
}

function textOfReview(state: ReviewState): string {
  return `${state.outcome} ${Object.entries(state.evidence).sort().join(' ')}`;
}

export const REVIEW: Model<ReviewState | 'gone', ReviewCall, ReviewResult> = {
  initial: { outcome: 'open', evidence: {} },
  next(state, call, result) {
    if (call.does === 'erase') return result === undefined || 'erased' in result ? 'gone' : undefined;
    const step = state === 'gone' ? { refused: 'not_found' } : changed(state, call);
    if ('refused' in step)
      return result === undefined || ('refused' in result && result.refused === step.refused)
        ? state
        : undefined;
    if (result === undefined) return step;
    return 'state' in result && textOfReview(result.state) === textOfReview(step) ? step : undefined;
  },
  textOf: (state) => (state === 'gone' ? state : textOfReview(state)),
};

/** A call on an issued proof. A look reads, finds or verifies the proof. */
export type ProofCall = { readonly does: 'look' | 'erase' };
export type ProofResult =
  | { readonly seen: boolean }
  | { readonly outcome: 'erased' | 'already_erased'; readonly erasedAt: number };
export type ProofOperation = Operation<ProofCall, ProofResult>;

interface ProofState {
  readonly erased: boolean;
  /** Undefined until an answer contains it. */
  readonly erasedAt?: number;
}

export const PROOF: Model<ProofState, ProofCall, ProofResult> = {
  initial: { erased: false },
  next(state, { does }, result) {
    if (does === 'look')
      return result === undefined || ('seen' in result && result.seen !== state.erased) ? state : undefined;
    if (result === undefined) return state.erased ? state : { erased: true };
    if (!('outcome' in result)) return undefined;
    const { outcome, erasedAt } = result;
    if ((outcome === 'already_erased') !== state.erased) return undefined;
    // Rule 11.9: each repeated erasure returns the time of the first.
    if (state.erasedAt !== undefined && state.erasedAt !== erasedAt) return undefined;
    return { erased: true, erasedAt };
  },
  textOf: ({ erased, erasedAt }) => `${erased} ${erasedAt ?? ''}`,
};

/** A call on a key: clients rotate it, call with it, and revoke it with another key of the partner. */
export type KeyCall =
  | { readonly does: 'rotate'; readonly idempotencyKey: string }
  | { readonly does: 'revoke' | 'use' | 'list' };
export type KeyResult =
  | { readonly successor: string }
  /** The status in the list of keys, and the keys that no answer had contained before. */
  | { readonly status: string; readonly successors: readonly string[] }
  | { readonly done: true }
  | Refused;
export type KeyOperation = Operation<KeyCall, KeyResult>;

interface KeyState {
  readonly revoked: boolean;
  readonly rotatedBy?: string;
  /** Undefined until an answer contains it. */
  readonly successor?: string;
}

export const KEY: Model<KeyState, KeyCall, KeyResult> = {
  initial: { revoked: false },
  next(state, call, result) {
    const refusedFor = (reason: string) =>
      result === undefined || ('refused' in result && result.refused === reason) ? state : undefined;
    switch (call.does) {
      case 'use':
        if (state.revoked) return refusedFor('forbidden');
        return result === undefined || 'done' in result ? state : undefined;
      case 'revoke':
        return result === undefined || 'done' in result ? { ...state, revoked: true } : undefined;
      case 'rotate': {
        if (state.revoked) return refusedFor('forbidden');
        const { idempotencyKey } = call;
        if (state.rotatedBy !== undefined && state.rotatedBy !== idempotencyKey)
          return refusedFor('already_rotated');
        if (result === undefined) return { ...state, rotatedBy: idempotencyKey };
        return 'successor' in result && (state.successor ?? result.successor) === result.successor
          ? { ...state, rotatedBy: idempotencyKey, successor: result.successor }
          : undefined;
      }
      default: {
        if (result === undefined) return state;
        if (!('successors' in result)) return undefined;
        const status = state.revoked ? 'revoked' : state.rotatedBy === undefined ? 'active' : 'expiring';
        if (result.status !== status) return undefined;
        const [successor, ...more] = result.successors;
        if (more.length > 0 || (successor === undefined) !== (state.rotatedBy === undefined))
          return undefined;
        if (successor === undefined) return state;
        return (state.successor ?? successor) === successor ? { ...state, successor } : undefined;
      }
    }
  },
  textOf: ({ revoked, rotatedBy, successor }) => `${revoked} ${rotatedBy ?? ''} ${successor ?? ''}`,
};

/**
 * A call in a month with few units left. It verifies an upload, which is billed once, or reads the counter.
 */
export type QuotaCall = { readonly does: 'verify'; readonly uploadId: string } | { readonly does: 'read' };
export type QuotaResult = { readonly done: true } | { readonly used: number } | Refused;
export type QuotaOperation = Operation<QuotaCall, QuotaResult>;

interface QuotaState {
  readonly used: number;
  readonly billed: ReadonlySet<string>;
}

export function quotaModel(
  { used, limit }: { readonly used: number; readonly limit: number },
  operations: readonly QuotaOperation[],
): Model<QuotaState, QuotaCall, QuotaResult> {
  const calls = new Map<string, number>();
  for (const { call } of operations)
    if (call.does === 'verify') calls.set(call.uploadId, (calls.get(call.uploadId) ?? 0) + 1);
  const isSingle = (uploadId: string) => calls.get(uploadId) === 1;
  /**
   * Uploads that were never billed, not even by a call without an answer. If an earlier call had billed the
   * upload, the refused call would have succeeded. After the refusal no unit is left.
   */
  const refused = new Set(
    operations.flatMap(({ call, answer }) =>
      call.does === 'verify' && answer !== undefined && 'refused' in answer.result ? call.uploadId : [],
    ),
  );
  return {
    initial: { used, billed: new Set() },
    next(state, call, result) {
      if (call.does === 'read')
        return result === undefined || ('used' in result && result.used === state.used) ? state : undefined;
      if (result === undefined && refused.has(call.uploadId)) return state;
      if (state.billed.has(call.uploadId))
        return result === undefined || 'done' in result ? state : undefined;
      if (state.used >= limit)
        return result === undefined || ('refused' in result && result.refused === 'quota_exceeded')
          ? state
          : undefined;
      if (result !== undefined && !('done' in result)) return undefined;
      return { used: state.used + 1, billed: new Set(state.billed).add(call.uploadId) };
    },
    // Uploads that are verified once are equivalent, because no later call depends on which of them were
    // billed.
    textOf: ({ used: units, billed }) =>
      `${units} ${[...billed]
        .filter((uploadId) => !isSingle(uploadId))
        .toSorted()
        .join(' ')}`,
    likenessOf: (call, result) =>
      call.does === 'verify' && isSingle(call.uploadId) ? (JSON.stringify(result) ?? 'unheard') : undefined,
  };
}

/** A call that issues a song. All songs share one Idempotency-Key. */
export type IssuingCall = { readonly song: string };
export type IssuingResult = { readonly proofId: string } | Refused;
export type IssuingOperation = Operation<IssuingCall, IssuingResult>;

interface IssuingState {
  readonly song?: string;
  /** Undefined until an answer contains it. */
  readonly proofId?: string;
}

export const ISSUING: Model<IssuingState, IssuingCall, IssuingResult> = {
  initial: {},
  next(state, { song }, result) {
    if (state.song !== undefined && state.song !== song)
      return result === undefined || ('refused' in result && result.refused === 'idempotency_key_reused')
        ? state
        : undefined;
    if (result === undefined) return { ...state, song };
    return 'proofId' in result && (state.proofId ?? result.proofId) === result.proofId
      ? { song, proofId: result.proofId }
      : undefined;
  },
  textOf: ({ song, proofId }) => `${song ?? ''} ${proofId ?? ''}`,
};

/**
 * A call on the reviews of one proof with equal bindings. At most one review is unresolved, and none exists
 * after the erasure.
 */
export type PlaceCall =
  | { readonly does: 'create' }
  | { readonly does: 'erase' }
  /** Every final outcome is recorded as `accepted`. */
  | { readonly does: 'resolve' | 'read'; readonly reviewId: string };
export type PlaceResult =
  | { readonly reviewId: string }
  | { readonly outcome: 'open' | 'accepted' }
  | { readonly erased: true }
  | Refused;
export type PlaceOperation = Operation<PlaceCall, PlaceResult>;

interface PlaceState {
  readonly erased: boolean;
  /** The unresolved review. Empty if no answer contained its id, in which case it cannot be resolved. */
  readonly open?: string;
  readonly resolved: ReadonlySet<string>;
}

export const PLACE: Model<PlaceState, PlaceCall, PlaceResult> = {
  initial: { erased: false, resolved: new Set() },
  next(state, call, result) {
    const refusedFor = (reason: string) =>
      result === undefined || ('refused' in result && result.refused === reason) ? state : undefined;
    if (call.does === 'erase')
      return result === undefined || 'erased' in result
        ? { erased: true, resolved: state.resolved }
        : undefined;
    if (state.erased) return refusedFor('not_found');
    if (call.does === 'create') {
      if (state.open !== undefined) return refusedFor('review_exists');
      if (result === undefined) return { ...state, open: '' };
      return 'reviewId' in result && !state.resolved.has(result.reviewId)
        ? { ...state, open: result.reviewId }
        : undefined;
    }
    const { reviewId } = call;
    const isOpen = state.open === reviewId;
    if (!isOpen && !state.resolved.has(reviewId)) return undefined;
    const outcome = isOpen && call.does === 'read' ? 'open' : 'accepted';
    if (result !== undefined && !('outcome' in result && result.outcome === outcome)) return undefined;
    return isOpen && call.does === 'resolve'
      ? { erased: false, resolved: new Set(state.resolved).add(reviewId) }
      : state;
  },
  textOf: ({ erased, open, resolved }) => `${erased} ${open ?? 'none'} ${[...resolved].toSorted().join(' ')}`,
};

export interface ReviewHistory {
  readonly reviewId: string;
  readonly proofId: string;
  readonly partnerId: string;
  readonly operations: readonly ReviewOperation[];
}

/** The history of one thing that clients contended for. */
export type History =
  | { readonly of: 'proof'; readonly name: string; readonly operations: readonly ProofOperation[] }
  | { readonly of: 'key'; readonly name: string; readonly operations: readonly KeyOperation[] }
  | {
      readonly of: 'quota';
      readonly name: string;
      readonly used: number;
      readonly limit: number;
      readonly operations: readonly QuotaOperation[];
    }
  | { readonly of: 'issuing'; readonly name: string; readonly operations: readonly IssuingOperation[] }
  | { readonly of: 'review'; readonly name: string; readonly operations: readonly ReviewOperation[] }
  | { readonly of: 'place'; readonly name: string; readonly operations: readonly PlaceOperation[] };

/** @returns the fault of a history, or undefined if one order explains it */
export function faultOfHistory(history: History): string | undefined {
  switch (history.of) {
    case 'proof':
      return faultOf(PROOF, history.operations);
    case 'key':
      return faultOf(KEY, history.operations);
    case 'quota':
      return faultOf(quotaModel(history, history.operations), history.operations);
    case 'issuing':
      return faultOf(ISSUING, history.operations);
    case 'review':
      return faultOf(REVIEW, history.operations);
    case 'place':
      return faultOf(PLACE, history.operations);
  }
}

/** @returns a message that lists the calls of the history in the order of sending */
export function faultOf<State, Call, Result>(
  model: Model<State, Call, Result>,
  operations: readonly Operation<Call, Result>[],
): string | undefined {
  let words = 'not linearizable';
  try {
    if (isLinearizable(model, operations)) return undefined;
  } catch (error) {
    words = error instanceof Error ? error.message : String(error);
  }
  return `${words}: ${JSON.stringify(operations.toSorted((a, b) => a.sentAt - b.sentAt))}`;
}
