/**
 * Returns a port whose methods fail once a signal has aborted. A call that was given up then stops at its
 * next step, and the step that runs already ends by itself.
 * @param completing the methods that complete what an earlier step decided. They never fail for this reason
 */
export function stoppable<Port extends object>(
  port: Port,
  signal: AbortSignal,
  completing: readonly (keyof Port)[] = [],
): Port {
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      const mayStop = !completing.includes(name as keyof Port);
      // A rejection and not an exception, because callers handle the failures of a method's promise.
      return (...given: unknown[]): unknown =>
        mayStop && signal.aborted ? Promise.reject(signal.reason) : member.apply(target, given);
    },
  });
}
