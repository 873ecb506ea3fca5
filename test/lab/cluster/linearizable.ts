/**
 * Tells whether what clients saw of one thing can have happened one after the other: every answered call at some
 * moment between its sending and its answer, every unanswered one at any moment after its sending, or never.
 */

export interface Operation<Call, Result> {
  readonly call: Call;
  /** Milliseconds of one clock. */
  readonly sentAt: number;
  /** Undefined where no answer came, or one that leaves the outcome open. */
  readonly answer?: { readonly at: number; readonly result: Result };
}

/** A thing as the contract describes it, one call at a time. */
export interface Model<State, Call, Result> {
  readonly initial: State;
  /**
   * State after a call, undefined where it cannot be answered like this. @param result undefined where nobody
   * heard the answer
   */
  next(state: State, call: Call, result: Result | undefined): State | undefined;
  /** Equal for equal states alone. */
  textOf(state: State): string;
  /** Equal for calls that may take each other's place: of several at once only the one answered first is tried. */
  likenessOf?(call: Call, result: Result | undefined): string | undefined;
}

/** Places of the search; a history that needs more has too many calls at once. */
const MOST_PLACES = 300_000;

/**
 * Tries every order that the times allow (Wing and Gong), and no set of done calls with the same state twice.
 *
 * @throws Error where the history is too tangled to be judged
 */
export function isLinearizable<State, Call, Result>(
  model: Model<State, Call, Result>,
  history: readonly Operation<Call, Result>[],
): boolean {
  // The earliest answer first: greed finds the order of a sound history. Without an answer last, if at all.
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
      // Nothing is won by waiting with a call that changes nothing, nor by one that nobody heard of.
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
