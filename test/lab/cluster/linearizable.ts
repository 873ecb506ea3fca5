/**
 * A checker of linearizability. A history is linearizable if one order explains it. An answered call takes
 * effect between its sending and its answer. An unanswered call takes effect at any time after its sending,
 * or never.
 */

export interface Operation<Call, Result> {
  readonly call: Call;
  /** Milliseconds of one clock. */
  readonly sentAt: number;
  /** Undefined if no answer came, or if the answer leaves the outcome open. */
  readonly answer?: { readonly at: number; readonly result: Result };
}

/** A sequential specification of a thing. */
export interface Model<State, Call, Result> {
  readonly initial: State;
  /**
   * Returns the state after a call, or undefined if the result is impossible.
   * @param result undefined if the call was not answered
   */
  next(state: State, call: Call, result: Result | undefined): State | undefined;
  /** Returns a text that is equal only for equal states. */
  textOf(state: State): string;
  /**
   * Returns a text that is equal for interchangeable calls. Of several such calls only the first is tried.
   */
  likenessOf?(call: Call, result: Result | undefined): string | undefined;
}

/** The most states of the search. A history that needs more has too many concurrent calls. */
const MOST_PLACES = 300_000;

/**
 * Tries every order that the times allow (Wing and Gong). It visits each pair of completed calls and state
 * once.
 * @throws Error if the history needs too many states
 */
export function isLinearizable<State, Call, Result>(
  model: Model<State, Call, Result>,
  history: readonly Operation<Call, Result>[],
): boolean {
  // Calls with the earliest answer come first, because the search then finds the order of a sound history
  // fast. Unanswered calls come last.
  const operations = history.toSorted((a, b) => (a.answer?.at ?? Infinity) - (b.answer?.at ?? Infinity));
  const answered = operations.filter(({ answer }) => answer !== undefined).length;
  const tried = new Set<string>();
  const done = new Uint8Array(operations.length);
  const search = (count: number, state: State): boolean => {
    if (count === answered) return true;
    const place = `${done.join('')} ${model.textOf(state)}`;
    if (tried.has(place)) return false;
    if (tried.size === MOST_PLACES) throw new Error(`too tangled to be judged: ${history.length} calls`);
    tried.add(place);
    const first = operations.findIndex((_, index) => done[index] === 0);
    const deadline = operations[first]!.answer?.at ?? Infinity;
    const steps: { readonly index: number; readonly state: State }[] = [];
    const alike = new Set<string>();
    for (const [index, { call, sentAt, answer }] of operations.entries()) {
      if (done[index] === 1 || sentAt > deadline) continue;
      const next = model.next(state, call, answer?.result);
      if (next === undefined) continue;
      const unchanged = model.textOf(next) === model.textOf(state);
      // An answered call that does not change the state is applied at once, because a delay gains nothing. An
      // unanswered call that does not change the state is skipped.
      if (answer !== undefined && unchanged) {
        steps.splice(0, Infinity, { index, state: next });
        break;
      }
      if (unchanged) continue;
      const likeness = model.likenessOf?.(call, answer?.result);
      if (likeness !== undefined && alike.has(likeness)) continue;
      if (likeness !== undefined) alike.add(likeness);
      steps.push({ index, state: next });
    }
    return steps.some((step) => {
      done[step.index] = 1;
      const found = search(count + (operations[step.index]!.answer === undefined ? 0 : 1), step.state);
      done[step.index] = 0;
      return found;
    });
  };
  return search(0, model.initial);
}
