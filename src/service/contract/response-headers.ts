/** Every response header except the transport's, as the contract's document describes it. */
export const RESPONSE_HEADERS = {
  'X-Request-Id': {
    description: 'Id of the call. Quote it in problem reports.',
    type: 'string',
    pattern: '^rq_[0-9A-HJKMNP-TV-Z]{26}$',
  },
  'X-Content-Type-Options': { description: 'Always `nosniff`.', type: 'string', pattern: '^nosniff$' },
  'Cache-Control': {
    description:
      '`no-store`: the response must not be stored. `no-cache`: it may be stored, but must be revalidated before each use. `private`: only the caller may store it. `immutable`: it never changes.',
    type: 'string',
    pattern: '^(no-store|(private, )?no-cache|public, max-age=31536000, immutable)$',
  },
  'X-RateLimit-Limit': {
    description: 'Monthly quota of the plan, in units.',
    type: 'integer',
    pattern: '^(0|[1-9]\\d*)$',
  },
  'X-RateLimit-Remaining': {
    description:
      'Units left in the month after this call. The number is exact. Absent if the counter cannot be read.',
    type: 'integer',
    pattern: '^(0|[1-9]\\d*)$',
  },
  'X-RateLimit-Reset': {
    description: 'When the quota resets, in unix seconds: the start of the next UTC calendar month.',
    type: 'integer',
    pattern: '^[1-9]\\d*$',
  },
  'RateLimit-Policy': {
    description:
      'The limits of the partner (draft-ietf-httpapi-ratelimit-headers-10), by name: `q` units in each window of `w` seconds. The window of `request_rate` is the time in which a burst is refilled, and the window of `monthly_quota` is the month.',
    type: 'string',
    pattern: '^"request_rate";q=\\d+;w=\\d+(, "monthly_quota";q=\\d+;w=\\d+)?$',
  },
  RateLimit: {
    description:
      'What is left of these limits: `r` units now, and the whole limit again after `t` seconds. `request_rate` is that of the process that responded.',
    type: 'string',
    pattern: '^"request_rate";r=\\d+;t=\\d+(, "monthly_quota";r=\\d+;t=\\d+)?$',
  },
  'Retry-After': {
    description: 'Seconds to wait before you repeat the call.',
    type: 'integer',
    pattern: '^[1-9]\\d*$',
  },
  'Idempotency-Replayed': {
    description: '`true` if this repeats an earlier response for the same Idempotency-Key.',
    type: 'string',
    pattern: '^true$',
  },
  Location: { description: 'URL of the redirect.', type: 'string', pattern: '^\\S+$' },
  ETag: {
    description: 'Strong validator: the SHA-256 of the whole file, or of the page in its content coding.',
    type: 'string',
    pattern: '^"[0-9a-f]{64}"$',
  },
  Vary: {
    description: 'Request headers that select the representation.',
    type: 'string',
    pattern: '^Accept-Encoding$',
  },
  'Content-Encoding': {
    description: 'Content coding of the page. Absent if it is not compressed.',
    type: 'string',
    pattern: '^(br|gzip)$',
  },
  'Accept-Ranges': { description: 'Always `bytes`.', type: 'string', pattern: '^bytes$' },
  'Content-Range': {
    description:
      'Which range of the whole file the body contains. It is `bytes */<length>` if the requested range is outside the file.',
    type: 'string',
    pattern: '^bytes (\\d+-\\d+|\\*)/\\d+$',
  },
  'Repr-Digest': {
    description: 'SHA-256 of the whole file (RFC 9530), even if the body is a range.',
    type: 'string',
    pattern: '^sha-256=:[A-Za-z0-9+/]{43}=:$',
  },
  'Content-Disposition': {
    description:
      'File name (RFC 6266) that is safe on every file system: `filename` in ASCII, `filename*` in UTF-8.',
    type: 'string',
    pattern: '^attachment; filename="[\\w.() -]+"; filename\\*=UTF-8\'\'\\S+$',
  },
  'Upload-Purpose': {
    description:
      '`verify_large` if the whole file exceeds 65 MiB: verifying it needs an upload slot of this purpose.',
    type: 'string',
    pattern: '^verify_large$',
  },
  'Content-Security-Policy': {
    description: 'Prevents the page from loading any other resource.',
    type: 'string',
    pattern: "^default-src 'none'",
  },
  Deprecation: {
    description: 'Time since which a feature that this call uses has been deprecated (RFC 9745).',
    type: 'string',
    pattern: '^@\\d+$',
  },
  Sunset: {
    description: 'When the deprecated feature may be removed (RFC 8594).',
    type: 'string',
    pattern: ' GMT$',
  },
  Link: {
    description: 'Links to the migration guides, with `rel="deprecation"`.',
    type: 'string',
    pattern: 'rel="deprecation"$',
  },
} as const;
export type HeaderName = keyof typeof RESPONSE_HEADERS;
