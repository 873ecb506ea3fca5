import { CborTag, type CborValue } from '../codec/cbor.js';
import type { ProfileFault, UncheckedPart } from '../domain/reference/reasons.js';
import { type Claim, type Fields, fieldsIn } from './claim.js';
import type { Integrity } from './integrity.js';
import type { Assertion, Manifest } from './manifest.js';

/**
 * Checks a foreign manifest against the standard, beyond its bytes, references and signature. Only a manifest whose
 * every part is known to this reader is `verified`: the checks allow known forms, and note anything else.
 */
export interface Findings {
  readonly nonconforming: readonly ProfileFault[];
  readonly notChecked: readonly UncheckedPart[];
}

/** A label: `urn:c2pa` for claims of version 2, or [vendor:]`urn:uuid` for version 1 (C2PA 2.2 section 8.1). */
const MANIFEST_LABEL =
  /^(?:urn:c2pa:|(?:[A-Za-z0-9-]{1,64}:)?urn:uuid:)[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?::[\w.-]{0,32}(?::[\w.-]{0,32})?)?$/;
/** The characters that no label may have (C2PA 2.2 section 11.1.4.1.1). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: labels must not have them.
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f/;?#]/;
/** An assertion of a vendor: a reverse domain name, with an optional version and instance (section 6.2). */
const VENDOR_LABEL =
  /^(?!(?:c2pa|cawg|stds|adobe|exif|font|iptc|photoshop)\.)[a-z0-9][\w-]*(?:\.[a-z0-9][\w-]*)+$/i;
/** The end of a label with version 0 or 1. Some readers cut the version `.v1` off. */
const VERSION_1 = /\.v[01](?:__\d+)?$/;
const ACTIONS_LABEL = /^c2pa\.actions(?:\.v2)?(?:__\d+)?$/;
const HASH_LABEL = /^c2pa\.hash\./;
const HASH_DATA_LABEL = /^c2pa\.hash\.data(?:__\d+)?$/;
/** The only assertion of a standard, besides those of C2PA, that readers do not interpret. */
const CREATIVE_WORK = 'stds.schema-org.CreativeWork';

/** Checks boxes, labels, claim, actions and the binding to the audio. */
export function contentFindings(manifest: Manifest, claim: Claim | undefined): Findings {
  const nonconforming = new Set<ProfileFault>();
  const notChecked = new Set<UncheckedPart>();
  if (manifest.hasUnknownBoxes) notChecked.add('boxes_unknown');
  const labels = [manifest.label, ...manifest.assertions.map(({ label }) => label)];
  if (labels.some((label) => label === '' || FORBIDDEN.test(label))) nonconforming.add('label_malformed');
  if (!MANIFEST_LABEL.test(manifest.label)) nonconforming.add('label_malformed');
  if (claim === undefined) return result(nonconforming, notChecked);
  if (!(claim.version === 2 ? isClaim2(claim.fields) : isClaim1(claim.fields)))
    nonconforming.add('claim_members');
  const redacted: unknown = claim.fields.get('redacted_assertions') ?? [];
  if (!Array.isArray(redacted)) nonconforming.add('claim_members');
  else if (redacted.length > 0) notChecked.add('redactions');
  if (hasIcon(claim.fields.get('claim_generator_info'))) notChecked.add('assertions_not_checked');
  if (claim.algorithm === undefined) notChecked.add('hash_algorithm_unsupported');
  checkAssertions(manifest, notChecked);
  checkActions(manifest, claim, nonconforming, notChecked);
  checkHashData(manifest, claim, nonconforming, notChecked);
  return result(nonconforming, notChecked);
}

/** Checks the certificate of the signer at a time. @param now in unix seconds */
export function signerFindings({ certificate, sign1 }: Integrity, now: number): Findings {
  const nonconforming = new Set<ProfileFault>();
  const notChecked = new Set<UncheckedPart>();
  if (certificate !== undefined) {
    if (certificate.use === 'other') nonconforming.add('certificate_profile');
    if (certificate.use === 'documents') notChecked.add('certificate_purpose');
    if (!(now >= certificate.notBefore && now <= certificate.notAfter)) {
      // A time-stamp may show that the certificate was valid when it signed.
      if (sign1?.hasTimeStamp === true) notChecked.add('certificate_time');
      else nonconforming.add('certificate_not_valid');
    }
  }
  // An unsigned leaf is authentic if its issuer is there: `certificate_chain_broken` is noted otherwise.
  if (sign1?.chainIn === 'unprotected' || (sign1?.chainIn === 'unprotected-text' && sign1.chain.length < 2))
    notChecked.add('certificate_not_signed');
  return result(nonconforming, notChecked);
}

function result(nonconforming: ReadonlySet<ProfileFault>, notChecked: ReadonlySet<UncheckedPart>): Findings {
  return { nonconforming: [...nonconforming], notChecked: [...notChecked] };
}

/** Reports whether the members of a claim of version 2 are there, each with its type (C2PA 2.2 section 10.2.1). */
function isClaim2(fields: Fields): boolean {
  const info = fields.get('claim_generator_info');
  return (
    isName(fields.get('instanceID')) &&
    isGenerator(info) &&
    !fields.has('assertions') &&
    areTexts(fields, ['dc:title', 'dc:format', 'alg', 'alg_soft'])
  );
}

/** Returns true if the members of a claim of version 1 are there, each with its type (C2PA 1.4 section 10.2). */
function isClaim1(fields: Fields): boolean {
  const infos = fields.get('claim_generator_info');
  return (
    isName(fields.get('instanceID')) &&
    isName(fields.get('claim_generator')) &&
    isName(fields.get('dc:format')) &&
    (isAbsent(infos) || (Array.isArray(infos) && infos.every(isGenerator))) &&
    areTexts(fields, ['dc:title', 'alg', 'alg_soft'])
  );
}

function isGenerator(info: unknown): boolean {
  if (!(info instanceof Map)) return false;
  const fields = info as Fields;
  return isName(fields.get('name')) && areTexts(fields, ['version']);
}

/** Reports whether a generator refers to its icon in the manifest. */
function hasIcon(info: unknown): boolean {
  return Array.isArray(info) ? info.some(hasIcon) : info instanceof Map && info.has('icon');
}

/** Notes assertions whose form or content this reader does not check. */
function checkAssertions({ assertions }: Manifest, notChecked: Set<UncheckedPart>): void {
  for (const assertion of assertions) {
    const { label, isPlain } = assertion;
    if (ACTIONS_LABEL.test(label) || HASH_LABEL.test(label)) {
      if (!isPlain || assertion.cbor === undefined) notChecked.add('assertions_not_checked');
      continue;
    }
    // Ingredients have a note of their own.
    if (label.startsWith('c2pa.ingredient')) continue;
    const isVendor = (VENDOR_LABEL.test(label) && !VERSION_1.test(label)) || label === CREATIVE_WORK;
    if (!isVendor || !isPlain || !isDecodable(assertion)) notChecked.add('assertions_not_checked');
  }
}

/** Reports whether an assertion is a CBOR map or a JSON object. */
function isDecodable({ cbor, json }: Assertion): boolean {
  if (cbor !== undefined) return fieldsIn(cbor) !== undefined;
  try {
    const value: unknown =
      json === undefined ? undefined : JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json));
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

const OPENING: readonly unknown[] = ['c2pa.created', 'c2pa.opened'];
/** The edits of C2PA that refer to nothing else in the manifest. */
const PLAIN_EDITS: readonly string[] = [
  'c2pa.color_adjustments',
  'c2pa.converted',
  'c2pa.cropped',
  'c2pa.drawing',
  'c2pa.edited',
  'c2pa.filtered',
  'c2pa.orientation',
  'c2pa.published',
  'c2pa.resized',
];
/** The members of an action that this reader knows. */
const ACTION_MEMBERS: readonly unknown[] = [
  'action',
  'when',
  'softwareAgent',
  'digitalSourceType',
  'description',
  'reason',
  'parameters',
];
const ACTION_TEXTS = ['digitalSourceType', 'description', 'reason'] as const;

/** Checks the actions (C2PA 2.2 section 18.14). A claim of version 2 must begin with the origin of the file. */
function checkActions(
  { assertions }: Manifest,
  { version, references }: Claim,
  nonconforming: Set<ProfileFault>,
  notChecked: Set<UncheckedPart>,
): void {
  const byLabel = new Map(assertions.map((assertion) => [assertion.label, assertion]));
  const found = references.flatMap(({ label }) => {
    const cbor = label !== undefined && ACTIONS_LABEL.test(label) ? byLabel.get(label)?.cbor : undefined;
    return cbor === undefined ? [] : [fieldsIn(cbor)];
  });
  const lists = found.map((fields) => (fields === undefined ? undefined : actionsIn(fields)));
  const actions = lists.flatMap((list) => list ?? []);
  const origins = actions.filter((action) => OPENING.includes(action.get('action')));
  const [first] = lists[0] ?? [];
  const isWellFormed = lists.every((list) => list !== undefined) && actions.every(isAction);
  const hasOrigin = origins.length === 1 && origins[0] === first;
  if (!isWellFormed || (version === 2 && !hasOrigin) || origins.length > 1)
    nonconforming.add('actions_malformed');
  const created = origins.filter((one) => one.get('action') === 'c2pa.created');
  if (version === 2 && created.some((one) => !isName(one.get('digitalSourceType'))))
    nonconforming.add('actions_malformed');
  const members = found.flatMap((fields) => [...(fields?.keys() ?? [])]);
  if (lists.length > 1 || !members.every(isListMember) || !actions.every(isPlainAction))
    notChecked.add('actions_not_checked');
}

/** Reports whether the member of a list of actions is known, or of a vendor. */
function isListMember(key: CborValue): boolean {
  return (
    typeof key === 'string' && (['actions', 'allActionsIncluded'].includes(key) || VENDOR_LABEL.test(key))
  );
}

/** Returns the actions of an assertion. Undefined when it is malformed or has no actions. */
function actionsIn(fields: Fields): readonly Fields[] | undefined {
  const actions: unknown = fields.get('actions');
  if (!Array.isArray(actions) || actions.length === 0) return undefined;
  const all = fields.get('allActionsIncluded');
  if (!isAbsent(all) && typeof all !== 'boolean') return undefined;
  return actions.every((action) => action instanceof Map) ? (actions as Fields[]) : undefined;
}

function isAction(action: Fields): boolean {
  const agent = action.get('softwareAgent');
  const parameters = action.get('parameters');
  return (
    isName(action.get('action')) &&
    areTexts(action, ACTION_TEXTS) &&
    isTime(action.get('when')) &&
    (isAbsent(agent) || typeof agent === 'string' || isGenerator(agent)) &&
    (isAbsent(parameters) || parameters instanceof Map)
  );
}

/** Reports whether this reader knows every part of an action, and no part refers to another one of the manifest. */
function isPlainAction(action: Fields): boolean {
  const name: unknown = action.get('action');
  const parameters = action.get('parameters');
  const isKnown =
    name === 'c2pa.created' ||
    (typeof name === 'string' && (PLAIN_EDITS.includes(name) || VENDOR_LABEL.test(name)));
  return (
    isKnown &&
    [...action.keys()].every((key) => ACTION_MEMBERS.includes(key)) &&
    (!(parameters instanceof Map) || [...(parameters as Fields)].every(isPlainParameter))
  );
}

/** Reports whether a parameter is a description, or one of a vendor. */
function isPlainParameter([name, value]: readonly [CborValue, CborValue]): boolean {
  return name === 'description'
    ? typeof value === 'string'
    : typeof name === 'string' && VENDOR_LABEL.test(name);
}

const HASH_MEMBERS: readonly unknown[] = ['exclusions', 'name', 'alg', 'hash', 'pad', 'pad2'];

/** Checks the members of the data hash (C2PA 2.2 section 18.5). Its digest is checked with the audio. */
function checkHashData(
  { assertions }: Manifest,
  { version, references }: Claim,
  nonconforming: Set<ProfileFault>,
  notChecked: Set<UncheckedPart>,
): void {
  const hard = assertions.find(({ label }) => HASH_DATA_LABEL.test(label));
  const fields = hard?.cbor === undefined ? undefined : fieldsIn(hard.cbor);
  if (hard === undefined || fields === undefined) return;
  // Only the signer may bind the audio, not a party from which the signer gathered an assertion.
  if (version === 2 && references.some(({ label, isCreated }) => label === hard.label && !isCreated))
    notChecked.add('hard_binding_missing');
  const pad2 = fields.get('pad2');
  if (
    !(fields.get('pad') instanceof Uint8Array) ||
    !(isAbsent(pad2) || pad2 instanceof Uint8Array) ||
    !areTexts(fields, ['name', 'alg'])
  )
    nonconforming.add('hash_data_malformed');
  if ([...fields.keys()].some((key) => !HASH_MEMBERS.includes(key))) notChecked.add('assertions_not_checked');
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function areTexts(fields: Fields, names: readonly string[]): boolean {
  return names.every((name) => {
    const value = fields.get(name);
    return isAbsent(value) || typeof value === 'string';
  });
}

/** Reports whether a member is absent. Old writers wrote null for an absent member. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

/** Reports whether a value is absent, or a time as text, with or without the tag for times (RFC 8949 section 3.4.1). */
function isTime(value: CborValue | undefined): boolean {
  if (isAbsent(value)) return true;
  const text: unknown = value instanceof CborTag && value.tag === 0 ? value.value : value;
  return typeof text === 'string' && !Number.isNaN(Date.parse(text));
}
