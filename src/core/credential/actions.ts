import { createHash } from 'node:crypto';
import { type CborValue, decodeCborStrict, encodeCbor } from '../codec/cbor.js';
import { defined } from '../domain/defined.js';
import {
  MAX_OBSERVED_IMPORTS,
  NOTHING_OBSERVED,
  type ObservedImport,
  type ObservedProduction,
} from '../domain/observed-production.js';
import { BOX_TYPES, writeContentBox, writeSuperbox } from './jumbf.js';
import { isSha256Hex } from './statement.js';

/**
 * The actions and ingredients of a store of this product (C2PA 2.4, chapters on actions and ingredients).
 * They state only what was observed of the production (docs/decisions/0034).
 */
export type History =
  /** The only action of every store written before `specVersion` was added. */
  { readonly form: 'composite' } | { readonly form: 'observed'; readonly observed: ObservedProduction };

export interface Assertion {
  readonly label: string;
  readonly box: Uint8Array;
}

export const ASSERTIONS_LABEL = 'c2pa.assertions';
export const ACTIONS_LABEL = 'c2pa.actions.v2';
const INGREDIENT_LABEL = 'c2pa.ingredient.v3';
/** The largest number of assertions for actions and ingredients: the actions, a parent and the imports. */
export const MAX_HISTORY_ASSERTIONS = 2 + MAX_OBSERVED_IMPORTS;

const SOURCE_TYPES = 'http://cv.iptc.org/newscodes/digitalsourcetype/';
const COMPOSITE = `${SOURCE_TYPES}composite`;
const CAPTURE = `${SOURCE_TYPES}digitalCapture`;

/** The name of a count in the parameters of an action. */
const COUNT = 'io.takemark.count';
/**
 * The actions after the first, each with its count. Faders and automation are `c2pa.edited`. `c2pa.mixed`
 * would claim that ingredients were mixed, which was not observed.
 */
const COUNTED = {
  takes: 'io.takemark.recorded',
  notes: 'io.takemark.notes-entered',
  edits: 'c2pa.edited',
} as const;
const COUNTS = Object.keys(COUNTED) as readonly (keyof typeof COUNTED)[];
const PLACED = 'c2pa.placed';

/** The prefix of a digest as a name (RFC 6920 section 7). */
const DIGEST_NAME = 'nih:sha-256;';
const DESCRIPTIONS = {
  file: 'Imported source, named by the SHA-256 of its file',
  samples: 'Imported source, named by the SHA-256 of its samples',
  nothing: 'Imported source',
} as const;

/** Returns the assertions of a history, the actions first (C2PA 2.2 section 18.14.2). */
export function historyAssertions(history: History): readonly Assertion[] {
  if (history.form === 'composite')
    return [
      assertion(
        ACTIONS_LABEL,
        members({ actions: [members({ action: 'c2pa.created', digitalSourceType: COMPOSITE })] }),
      ),
    ];
  const { observed } = history;
  const parent = observed.captured ? [] : [ingredient(0, { relationship: 'parentOf' })];
  const imports = observed.imports.map((source, at) =>
    ingredient(at + parent.length, { ...named(source), relationship: 'componentOf' }),
  );
  const first = observed.captured
    ? { action: 'c2pa.created', digitalSourceType: CAPTURE }
    : { action: 'c2pa.opened', parameters: members({ ingredients: parent.map(hashedUri) }) };
  const placed = {
    action: PLACED,
    parameters: members({ [COUNT]: observed.importCount, ingredients: imports.map(hashedUri) }),
  };
  const counted = COUNTS.filter((name) => observed[name] !== undefined).map((name) => ({
    action: COUNTED[name],
    parameters: members({ [COUNT]: observed[name] }),
  }));
  return [
    assertion(
      ACTIONS_LABEL,
      members({
        actions: [first, ...(imports.length === 0 ? [] : [placed]), ...counted].map(members),
        allActionsIncluded: observed.complete,
      }),
    ),
    ...parent,
    ...imports,
  ];
}

/**
 * Reads the history from assertions, with limits and checked values. The caller writes the history again and
 * compares, so that every other byte is checked too. Returns undefined when our writer did not write the
 * history.
 */
export function readHistory(
  assertions: readonly { readonly label: string; readonly cbor?: Uint8Array }[],
): History | undefined {
  const actions = strictMap(assertions.find(({ label }) => label === ACTIONS_LABEL)?.cbor);
  const list: unknown = actions?.get('actions');
  if (actions === undefined || !Array.isArray(list) || list.length > 2 + COUNTS.length) return undefined;
  const entries = list.map(fieldsOf);
  const first = entries[0];
  if (first === undefined) return undefined;
  if (first.get('digitalSourceType') === COMPOSITE) return { form: 'composite' };
  const captured = first.get('action') === 'c2pa.created';
  const ingredients = assertions.filter(({ label }) => label.startsWith(INGREDIENT_LABEL));
  const imports = ingredients.slice(captured ? 0 : 1).map(({ cbor }) => importIn(strictMap(cbor)));
  if (!imports.every((source) => source !== undefined)) return undefined;
  const countOf = (action: string): number | undefined => {
    const count = fieldsOf(entries.find((entry) => entry?.get('action') === action)?.get('parameters'))?.get(
      COUNT,
    );
    return typeof count === 'number' ? count : undefined;
  };
  const observed: ObservedProduction = {
    complete: actions.get('allActionsIncluded') === true,
    captured,
    imports,
    ...defined({
      importCount: countOf(PLACED),
      ...Object.fromEntries(COUNTS.map((name) => [name, countOf(COUNTED[name])])),
    }),
  };
  return isObserved(observed) ? { form: 'observed', observed } : undefined;
}

/**
 * Checks an observed production before it is written.
 * @throws RangeError for a production that no reader would accept, which is a fault of the writer
 */
export function assertObserved(observed: ObservedProduction = NOTHING_OBSERVED): ObservedProduction {
  if (!isObserved(observed))
    throw new RangeError('the observed production has values that no trace can have');
  return observed;
}

function isObserved({ captured, imports, importCount, takes, notes, edits }: ObservedProduction): boolean {
  return (
    imports.length <= MAX_OBSERVED_IMPORTS &&
    imports.every(({ sha256, of }) => (sha256 === undefined ? of === undefined : isSha256Hex(sha256))) &&
    (imports.length === 0) === (importCount === undefined) &&
    (importCount === undefined || importCount >= imports.length) &&
    [importCount, takes, notes, edits].every(
      (count) => count === undefined || (Number.isSafeInteger(count) && count > 0),
    ) &&
    (!captured || (takes !== undefined && imports.length === 0 && notes === undefined))
  );
}

function ingredient(at: number, content: object): Assertion {
  return assertion(at === 0 ? INGREDIENT_LABEL : `${INGREDIENT_LABEL}__${at}`, members(content));
}

function named({ sha256, of }: ObservedImport): object {
  return sha256 === undefined || of === undefined
    ? { description: DESCRIPTIONS.nothing }
    : { description: DESCRIPTIONS[of], instanceID: DIGEST_NAME + sha256 };
}

function importIn(fields: ReadonlyMap<CborValue, CborValue> | undefined): ObservedImport | undefined {
  if (fields === undefined) return undefined;
  const name = fields.get('instanceID');
  if (name === undefined) return {};
  if (typeof name !== 'string' || !name.startsWith(DIGEST_NAME)) return undefined;
  const of = fields.get('description') === DESCRIPTIONS.file ? 'file' : 'samples';
  return { sha256: name.slice(DIGEST_NAME.length), of };
}

export function assertion(label: string, content: CborValue): Assertion {
  return {
    label,
    box: writeSuperbox(BOX_TYPES.cborAssertion, label, [writeContentBox('cbor', encodeCbor(content))]),
  };
}

/**
 * Returns a reference to an assertion, with the digest of the superbox without its own header (C2PA 2.2
 * section 8.4.2.3).
 */
export function hashedUri({ label, box }: Assertion): CborValue {
  return members({
    url: `self#jumbf=${ASSERTIONS_LABEL}/${label}`,
    hash: createHash('sha256').update(box.subarray(8)).digest(),
  });
}

export function members(object: object): ReadonlyMap<CborValue, CborValue> {
  return new Map(Object.entries(object) as [string, CborValue][]);
}

function strictMap(cbor: Uint8Array | undefined): ReadonlyMap<CborValue, CborValue> | undefined {
  const decoded = cbor === undefined ? undefined : decodeCborStrict(cbor);
  return decoded?.ok === true ? fieldsOf(decoded.value) : undefined;
}

function fieldsOf(value: unknown): ReadonlyMap<CborValue, CborValue> | undefined {
  return value instanceof Map ? (value as ReadonlyMap<CborValue, CborValue>) : undefined;
}
