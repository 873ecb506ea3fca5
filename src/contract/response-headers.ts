/** Every header of a response beyond those of the transport, as the contract's document describes it. */
export const RESPONSE_HEADERS = {
  'X-Request-Id': {
    description: 'A stable id for the call, to be quoted in problem reports.',
    type: 'string',
    pattern: '^rq_[0-9A-HJKMNP-TV-Z]{26}$',
  },
  'X-Content-Type-Options': { description: 'Always `nosniff`.', type: 'string', pattern: '^nosniff$' },
  'Cache-Control': {
    description:
      '`no-store`: the answer must not be kept. `no-cache`: it may be, and is asked after each time; `private`: by the caller alone.',
    type: 'string',
    pattern: '^(no-store|(private, )?no-cache)$',
  },
  'X-RateLimit-Limit': {
    description: "The plan's monthly quota, in units.",
    type: 'integer',
    pattern: '^(0|[1-9]\\d*)$',
  },
  'X-RateLimit-Remaining': {
    description: 'Units left in the month, this call included. Authoritative: the quota is exact.',
    type: 'integer',
    pattern: '^(0|[1-9]\\d*)$',
  },
  'X-RateLimit-Reset': {
    description: 'Unix seconds at which the quota window resets: the start of the next UTC calendar month.',
    type: 'integer',
    pattern: '^[1-9]\\d*$',
  },
  'Retry-After': {
    description: 'Whole seconds after which the call may succeed.',
    type: 'integer',
    pattern: '^[1-9]\\d*$',
  },
  'Idempotency-Replayed': {
    description: '`true` where an earlier answer under the same Idempotency-Key is given again.',
    type: 'string',
    pattern: '^true$',
  },
  Location: { description: 'Where to go instead.', type: 'string', pattern: '^\\S+$' },
  ETag: {
    description: 'Strong validator: the SHA-256 of the whole file, or of the page in its coding.',
    type: 'string',
    pattern: '^"[0-9a-f]{64}"$',
  },
  Vary: {
    description: 'Request headers that select the form of the answer.',
    type: 'string',
    pattern: '^Accept-Encoding$',
  },
  'Content-Encoding': {
    description: 'Coding of the page; absent where it is not compressed.',
    type: 'string',
    pattern: '^(br|gzip)$',
  },
  'Accept-Ranges': { description: 'Always `bytes`.', type: 'string', pattern: '^bytes$' },
  'Content-Range': {
    description:
      'Which bytes of the whole file these are; `bytes */<length>` where the range lies outside it.',
    type: 'string',
    pattern: '^bytes (\\d+-\\d+|\\*)/\\d+$',
  },
  'Repr-Digest': {
    description: 'SHA-256 of the whole file (RFC 9530), of a range too.',
    type: 'string',
    pattern: '^sha-256=:[A-Za-z0-9+/]{43}=:$',
  },
  'Content-Disposition': {
    description: 'A file name that is safe on every file system (RFC 6266).',
    type: 'string',
    pattern: '^attachment; filename="[\\w.() -]+"; filename\\*=UTF-8\'\'\\S+$',
  },
  'Content-Security-Policy': {
    description: 'The page may load nothing.',
    type: 'string',
    pattern: "^default-src 'none'",
  },
  Deprecation: {
    description: 'Something that this call uses is deprecated since then (RFC 9745).',
    type: 'string',
    pattern: '^@\\d+$',
  },
  Sunset: { description: 'When it may be gone (RFC 8594).', type: 'string', pattern: ' GMT$' },
  Link: {
    description: 'The migration guides, with `rel="deprecation"`.',
    type: 'string',
    pattern: 'rel="deprecation"$',
  },
} as const;
export type HeaderName = keyof typeof RESPONSE_HEADERS;
