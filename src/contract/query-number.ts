import { z } from 'zod';

/** A whole number in a query: plain decimal, so that one number has one spelling. */
export function queryInteger(min: number, max: number) {
  return z.preprocess(
    (text) => (typeof text === 'string' && /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : text),
    z.int().min(min).max(max),
  );
}
