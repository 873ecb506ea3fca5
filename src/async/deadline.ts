/**
 * The outcome of `work`, or that of `giveUp` where the work takes longer. Work that is given up goes on, and
 * its outcome, a failure too, is then nobody's: `giveUp` may still watch it.
 * @param limitMs milliseconds; none left where it is negative
 * @param giveUp called when the time is up; throws, or returns what stands in for the outcome
 */
export async function withDeadline<Value>(
  work: Promise<Value>,
  limitMs: number,
  giveUp: () => Value,
): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const timeIsUp = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, limitMs));
  });
  try {
    return await Promise.race([work, timeIsUp.then(giveUp)]);
  } finally {
    clearTimeout(timer);
  }
}
