/**
 * Logarithm and exponential from the four basic operations, which every machine rounds the same way.
 * `Math.log1p` and `Math.expm1` may differ in their last digit between two releases of Node, and so would
 * reports of the same trace.
 */

/** The number of series terms after which further terms do not change a double. */
const TERMS = { logarithm: 12, exponential: 18 } as const;
const STEP = 0x1_0000_0000;

/** Returns the natural logarithm of 1 + `value`. */
export function log1p(value: number): number {
  let reduced = 1 + value;
  if (!(reduced > 0) || reduced === Infinity) return reduced === 0 ? -Infinity : reduced > 0 ? reduced : NaN;
  // Near 1 the sum has lost digits of `value`.
  if (reduced >= Math.SQRT1_2 && reduced <= Math.SQRT2) return series(value / (2 + value));
  let halvings = 0;
  for (; reduced > STEP; halvings += 32) reduced /= STEP;
  for (; reduced < 1 / STEP; halvings -= 32) reduced *= STEP;
  for (; reduced > Math.SQRT2; halvings += 1) reduced /= 2;
  for (; reduced < Math.SQRT1_2; halvings -= 1) reduced *= 2;
  return halvings * Math.LN2 + series((reduced - 1) / (reduced + 1));
}

/** Returns 2 artanh(z) = 2 (z + z^3/3 + z^5/5 + ...), summed from the last term. */
function series(z: number): number {
  const square = z * z;
  let sum = 0;
  for (let term = TERMS.logarithm; term >= 0; term -= 1) sum = sum * square + 1 / (2 * term + 1);
  return 2 * z * sum;
}

/** Returns the exponential of `value`, minus 1. */
export function expm1(value: number): number {
  if (value > 709) return Infinity;
  if (!(value > -709)) return value <= -709 ? -1 : NaN;
  let doublings = Math.round(value / Math.LN2);
  const reduced = value - doublings * Math.LN2;
  // r (1 + r/2 (1 + r/3 (...)))
  let sum = 1;
  for (let term = TERMS.exponential; term > 1; term -= 1) sum = 1 + (reduced / term) * sum;
  sum *= reduced;
  if (doublings === 0) return sum;
  let power = 1 + sum;
  for (; doublings >= 32; doublings -= 32) power *= STEP;
  for (; doublings <= -32; doublings += 32) power /= STEP;
  for (; doublings > 0; doublings -= 1) power *= 2;
  for (; doublings < 0; doublings += 1) power /= 2;
  return power - 1;
}
