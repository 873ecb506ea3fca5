/** The header `traceparent` of W3C Trace Context: version, trace id, parent id, flags, and what later versions add. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[\x20-\x7e]*)?$/;
const MAX_LENGTH = 512;
const TRACE_ID_BYTES = 16;

/**
 * Returns the trace id of a call: that of the header, or a new one. The id comes from a caller who may be a stranger,
 * so it only joins log lines, and nothing is decided by it.
 * @param header the value of `traceparent`. Node joins repeated headers, and their value is not valid
 * @param random returns random bytes
 */
export function traceIdOf(header: string | undefined, random: (length: number) => Uint8Array): string {
  const [, version, traceId, parentId, rest] =
    header === undefined || header.length > MAX_LENGTH ? [] : (FORM.exec(header) ?? []);
  const isValid =
    traceId !== undefined &&
    version !== 'ff' &&
    !/^0+$/.test(traceId) &&
    !/^0+$/.test(parentId!) &&
    (version !== '00' || rest === undefined);
  return isValid ? traceId : Buffer.from(random(TRACE_ID_BYTES)).toString('hex');
}
