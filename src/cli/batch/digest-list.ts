import { createReadStream } from 'node:fs';
import { UsageError } from '../command.js';

/** A digest of a list. */
export interface ListedDigest {
  /** The name in the list, or the digest if the list has no name. */
  readonly name: string;
  readonly sha256: string;
  readonly of?: 'file' | 'bound' | 'samples';
}

/** The largest list in bytes, some 200,000 lines. */
const MAX_BYTES = 16_777_216;
const DIGEST = /^[0-9A-Fa-f]{64}$/;
/** A line of `sha256sum`: a backslash if the name has escapes, the digest, a space, the mode, and the name. */
const SUM_LINE = /^(\\?)([0-9A-Fa-f]{64}) [ *](.+)$/;
const NAME_COLUMNS = ['name', 'file', 'path'];
const KINDS = ['file', 'bound', 'samples'] as const;

/**
 * Reads a list of digests: the output of `sha256sum`, or CSV. The first line of CSV may name the columns `sha256`, `of`
 * and `name`. Without such a line, the first column is the digest and the second is the name.
 * @throws UsageError with the number of the first line that is not one of a list
 */
export async function readDigestList(path: string): Promise<readonly ListedDigest[]> {
  const lines = (await textOf(path)).split(/\r?\n/);
  const first = lines.find((line) => line !== '');
  if (first === undefined) throw new UsageError(`${path} contains no digest`);
  const columns = columnsOf(first);
  const listed: ListedDigest[] = [];
  let isHeader = columns !== undefined;
  for (const [i, line] of lines.entries()) {
    if (line === '') continue;
    if (isHeader) {
      isHeader = false;
      continue;
    }
    const entry = columns === undefined ? plainLine(line) : row(fieldsOf(line), columns);
    if (entry === undefined)
      throw new UsageError(`${path}: line ${i + 1} has no SHA-256 digest in the format of sha256sum or CSV`);
    listed.push(entry);
  }
  if (listed.length === 0) throw new UsageError(`${path} contains no digest`);
  return listed;
}

async function textOf(path: string): Promise<string> {
  // `end` is inclusive, so one byte more than the limit is read at most.
  const chunks = await createReadStream(path, { end: MAX_BYTES }).toArray();
  const bytes = Buffer.concat(chunks as readonly Buffer[]);
  if (bytes.length > MAX_BYTES)
    throw new UsageError(`${path} has more than ${MAX_BYTES} bytes: divide the list into several files`);
  return bytes.toString('utf8').replace(/^\ufeff/, '');
}

/** Returns the columns that a line names, or undefined for a line that names none. */
function columnsOf(line: string): readonly string[] | undefined {
  const fields = fieldsOf(line)?.map((field) => field.trim().toLowerCase());
  return fields?.includes('sha256') ? fields : undefined;
}

/** Reads a line of `sha256sum`, or a line of CSV without a header. */
function plainLine(line: string): ListedDigest | undefined {
  const [, escaped, digest, name] = SUM_LINE.exec(line) ?? [];
  if (digest !== undefined)
    return {
      name: escaped === '' ? name! : name!.replaceAll(/\\([\\nr])/g, (_, letter) => ESCAPES[letter]!),
      sha256: digest.toLowerCase(),
    };
  return row(fieldsOf(line), ['sha256', 'name']);
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\', n: '\n', r: '\r' };

function row(fields: readonly string[] | undefined, columns: readonly string[]): ListedDigest | undefined {
  const value = (...names: readonly string[]): string =>
    fields?.[columns.findIndex((column) => names.includes(column))]?.trim() ?? '';
  const sha256 = value('sha256').toLowerCase();
  const of = value('of');
  const kind = KINDS.find((each) => each === of);
  if (!DIGEST.test(sha256) || (of !== '' && kind === undefined)) return undefined;
  const name = value(...NAME_COLUMNS);
  return { name: name === '' ? sha256 : name, sha256, ...(kind !== undefined && { of: kind }) };
}

/** Returns the fields of a line of CSV (RFC 4180), or undefined if its quotes do not fit. */
function fieldsOf(line: string): readonly string[] | undefined {
  const fields: string[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (;;) {
    const match = field.exec(line);
    if (match === null) return undefined;
    const [, quoted, plain, end] = match;
    fields.push(quoted === undefined ? plain! : quoted.replaceAll('""', '"'));
    if (end === '') return fields;
  }
}
