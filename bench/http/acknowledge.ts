/** A worker's task that hashes nothing. */
export function acknowledge(): undefined {
  return undefined;
}
