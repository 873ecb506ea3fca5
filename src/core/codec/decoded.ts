/**
 * Outcome of decoding: a value, or a stable slug of what was wrong. Decoding never throws: bad bytes are a
 * finding.
 */
export type Decoded<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly fault: CodecFault };

export type CodecFault =
  /** Not well-formed, bytes left over, a type outside the data model, or text that is not UTF-8. */
  | 'malformed'
  /** Well-formed, but not the one encoding our encoder gives. */
  | 'not_canonical'
  /** Over the size, depth or count budget. */
  | 'over_budget';
