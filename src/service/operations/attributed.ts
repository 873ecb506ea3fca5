import type { AuditDraft } from '../domain/audit.js';

/** The signal of a call. It carries the name of the operator's token that authorised the call. */
export type CallSignal = AbortSignal & { readonly operator?: string };

const UNNAMED: AuditDraft['actor'] = 'operator';

/** Returns the actor of a call, or undefined if the token has no name. */
export function namedActor(signal: CallSignal | undefined): string | undefined {
  return signal?.operator === undefined ? undefined : `${UNNAMED}:${signal.operator}`;
}

/**
 * Returns stores that record the named operator as the actor of the call's audit entries. Here and not in each
 * operation, so that no operation can forget it.
 */
export function attributed<Stores extends object>(stores: Stores, signal: CallSignal): Stores {
  const actor = namedActor(signal);
  if (actor === undefined) return stores;
  return new Proxy(stores, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]): unknown =>
        member.apply(
          target,
          given.map((value) => (isOperatorsDraft(value) ? { ...value, actor } : value)),
        );
    },
  });
}

function isOperatorsDraft(value: unknown): value is AuditDraft {
  if (typeof value !== 'object' || value === null) return false;
  const { action, subjects, actor } = value as Partial<AuditDraft>;
  return action !== undefined && subjects !== undefined && actor === UNNAMED;
}
