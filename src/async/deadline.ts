/**
 * The outcome of `work`, or that of `giveUp` where the work takes longer. Work that is given up goes on, and
 * its outcome, a failure too, is then nobody's: `giveUp` may still watch it.
 * @param limitMs milliseconds; none left where it is negative
 * @param giveUp called when the time is up; throws, or returns what stands in for the outcome
 */
export function withDeadline<Value>(
  work: Promise<Value>,
  limitMs: number,
  giveUp: () => Value,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => {
        try {
          resolve(giveUp());
        } catch (error) {
          reject(error);
        }
      },
      Math.max(0, limitMs),
    );
    work.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
