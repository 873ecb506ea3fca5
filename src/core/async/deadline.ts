/**
 * Returns the outcome of `work`, or the outcome of `giveUp` when the work takes longer. Abandoned work
 * continues, and its outcome is ignored, even a failure. `giveUp` may still watch the work.
 * @param limitMs the time limit in milliseconds. A negative value counts as 0.
 * @param giveUp called when the time is over. Throws, or returns the substitute for the outcome.
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
