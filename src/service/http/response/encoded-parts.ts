import { randomUUID } from 'node:crypto';
import { type Decoded, EncodedJson } from '../../../core/domain/encoded-json.js';
import { type JsonResponse, json } from './response.js';

/** The depth in which encoded parts are found: a member of an entry of a list of the body. */
const DEPTH = 3;

/**
 * Returns a JSON response whose encoded parts are sent as they are. Encoding a large report again would hold
 * up other calls.
 */
export function jsonWithParts<const Status extends number, const Body>(
  status: Status,
  body: Body,
  headers?: Readonly<Record<string, string>>,
): JsonResponse<Status, Decoded<Body>> {
  const response = json(status, body as Decoded<Body>, headers);
  // Most bodies have no encoded part, and are not worth a copy.
  if (!hasPart(body, DEPTH)) return response;
  const parts: Uint8Array[] = [];
  // No caller can guess the mark, so no text of the body contains it.
  const mark = randomUUID();
  const marked = replaceParts(body, DEPTH, (part) => {
    parts.push(part.bytes);
    return mark;
  });
  const texts = JSON.stringify(marked).split(`"${mark}"`);
  const pieces = texts.flatMap((text, at) => [Buffer.from(text), ...parts.slice(at, at + 1)]);
  return { ...response, bytes: Buffer.concat(pieces) };
}

function hasPart(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof EncodedJson) return true;
  if (depth === 0) return false;
  for (const name in value)
    if (hasPart((value as Readonly<Record<string, unknown>>)[name], depth - 1)) return true;
  return false;
}

/** Returns a value with each encoded part replaced, in the order in which they are encoded. */
function replaceParts(
  value: unknown,
  depth: number,
  replace: (part: EncodedJson<unknown>) => string,
): unknown {
  if (value instanceof EncodedJson) return replace(value);
  if (depth === 0 || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => replaceParts(item, depth - 1, replace));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, replaceParts(member, depth - 1, replace)]),
  );
}
