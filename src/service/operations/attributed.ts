import type { AuditDraft } from '../domain/audit.js';

/** The signal of a call. It carries the id of the request, and the name of the operator's token that authorised it. */
export type CallSignal = AbortSignal & { readonly requestId?: string; readonly operator?: string };

const UNNAMED: AuditDraft['actor'] = 'operator';

/** Returns the actor of a call, or undefined if the token has no name. */
export function namedActor(signal: CallSignal | undefined): string | undefined {
  return signal?.operator === undefined ? undefined : `${UNNAMED}:${signal.operator}`;
}

/**
 * Returns stores that record the id of the request in the call's audit entries, and a named operator as their actor.
 * Here and not in each operation, so that no operation can forget it.
 */
export function attributed<Stores extends object>(stores: Stores, signal: CallSignal): Stores {
  const { requestId } = signal;
  const named = namedActor(signal);
  if (requestId === undefined && named === undefined) return stores;
  return new Proxy(stores, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]): unknown =>
        member.apply(
          target,
          given.map((value) => {
            if (!isDraft(value)) return value;
            const actor = value.actor === UNNAMED ? (named ?? UNNAMED) : value.actor;
            return { ...value, actor, requestId };
          }),
        );
    },
  });
}

function isDraft(value: unknown): value is AuditDraft {
  if (typeof value !== 'object' || value === null) return false;
  const { action, subjects, actor } = value as Partial<AuditDraft>;
  return action !== undefined && subjects !== undefined && actor !== undefined;
}
