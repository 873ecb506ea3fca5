/**
 * The outcome of decoding: a value, or a stable slug of what was wrong. Decoding never throws: bad bytes are a
 * finding.
 */
export type Decoded<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly fault: CodecFault };

export type CodecFault =
  /** The bytes are not well-formed, go on after the value, or have a type outside the data model or bad UTF-8. */
  | 'malformed'
  /** The bytes are well-formed, but not the one encoding that our encoder gives. */
  | 'not_canonical'
  /** The bytes exceed the budget of size, depth or count. */
  | 'over_budget';
