/**
 * The answers of a later version of the service: each open place of the document has a value that is unknown
 * today.
 */
import { isDeepStrictEqual } from 'node:util';
import type { JsonSchema, OpenApiDocument } from '../../../src/service/contract/openapi.js';
import { KNOWN_VALUES } from '../../../src/service/contract/primitives.js';
import { SchemaValues } from '../../fixtures/schema-values.js';
import { seeded } from '../../fixtures/service.js';

/** The name of an additional member in every object of a later answer. */
const LATER_MEMBER = 'laterMember';
/** A number that exceeds 32 bits, used where a schema allows it. */
const LATER_NUMBER = 2 ** 33;

type Node = Readonly<Record<string, unknown>>;
type Members = Readonly<Record<string, JsonSchema>>;

export class OpenValues {
  /**
   * The places of the document that got an unknown value, such as `Decision.status`, `DecisionReason` or
   * `Key.scopes[]`.
   */
  readonly fed = new Set<string>();
  readonly #document: OpenApiDocument;
  readonly #values: SchemaValues;
  #given = 0;

  constructor(document: OpenApiDocument) {
    this.#document = document;
    this.#values = new SchemaValues(seeded(1), document.components.schemas);
  }

  /** Returns every place of a response whose values may grow. */
  places(): ReadonlySet<string> {
    const found = new Set<string>();
    const looked = new Set<string>();
    const look = (given: JsonSchema, at: string): void => {
      const { schema, where } = this.#resolve(given, at);
      if (where !== at) {
        if (looked.has(where)) return;
        looked.add(where);
      }
      if (schema[KNOWN_VALUES] !== undefined) found.add(where);
      for (const [name, member] of Object.entries(membersOf(schema))) look(member, `${where}.${name}`);
      for (const inner of [schema['items'], schema['additionalProperties']])
        if (typeof inner === 'object') look(inner as JsonSchema, `${where}[]`);
      for (const form of formsOf(schema)) look(form, where);
    };
    for (const { operationId, responses } of this.#operations())
      for (const [status, { content }] of Object.entries(responses)) {
        const schema = content?.['application/json']?.schema;
        if (schema !== undefined) look(schema, `${operationId} ${status}`);
      }
    return found;
  }

  /** Returns the answer of a later version, with every member that the document has. */
  later(operation: string, status: number, body: unknown): unknown {
    const found = this.#operations().find(({ operationId }) => operationId === operation);
    const schema = found?.responses[status]?.content?.['application/json']?.schema;
    if (schema === undefined) throw new Error(`${operation} has no answer ${status}`);
    return this.#grown(schema, body, `${operation} ${status}`);
  }

  #operations() {
    return Object.values(this.#document.paths).flatMap((methods) => Object.values(methods));
  }

  #resolve(schema: JsonSchema, where: string): { readonly schema: JsonSchema; readonly where: string } {
    const name = /^#\/components\/schemas\/(.*)$/.exec(String(schema['$ref']))?.[1];
    return name === undefined
      ? { schema, where }
      : this.#resolve(this.#document.components.schemas[name]!, name);
  }

  #grown(given: JsonSchema, value: unknown, at: string): unknown {
    const { schema, where } = this.#resolve(given, at);
    if (schema[KNOWN_VALUES] !== undefined) {
      this.fed.add(where);
      this.#given += 1;
      return `later_${this.#given}`;
    }
    const form = formsOf(schema).find((form) => this.#hasRequired(form, value));
    if (form !== undefined) return this.#grown(form, value, where);
    switch (schema['type']) {
      case 'object':
        return this.#grownObject(schema, (value ?? {}) as Readonly<Record<string, unknown>>, where);
      case 'array': {
        const items = (value as readonly unknown[] | undefined) ?? [];
        return (items.length === 0 ? [undefined] : items).map((item) =>
          this.#grown(schema['items'] as JsonSchema, item, `${where}[]`),
        );
      }
      case 'integer':
        return Math.min(LATER_NUMBER + this.#given, schema['maximum'] as number);
      case 'number':
        return 1 / 3;
      case 'boolean':
        return value ?? true;
      case 'string':
        return (
          value ?? (schema['examples'] as readonly string[] | undefined)?.[0] ?? this.#values.valid(schema)
        );
      default:
        return value ?? 'later';
    }
  }

  /** Returns whether an answer has every member that a form of it requires. */
  #hasRequired(form: JsonSchema, value: unknown): boolean {
    const { required } = this.#resolve(form, '').schema as { readonly required?: readonly string[] };
    return required?.every((name) => (value as Node | undefined)?.[name] !== undefined) ?? false;
  }

  #grownObject(schema: JsonSchema, value: Readonly<Record<string, unknown>>, where: string) {
    const members = membersOf(schema);
    const others = schema['additionalProperties'];
    const other = (name: string, given?: unknown): unknown =>
      typeof others === 'object' && Object.keys(others as object).length > 0
        ? this.#grown(others as JsonSchema, given, `${where}[]`)
        : (given ?? { [name]: ['later', 7, true, { [name]: 0.5 }] });
    const grown = Object.fromEntries(
      [...new Set([...Object.keys(members), ...Object.keys(value)])].map((name) => [
        name,
        members[name] === undefined
          ? other(name, value[name])
          : this.#grown(members[name], value[name], `${where}.${name}`),
      ]),
    );
    return others === false ? grown : { ...grown, [LATER_MEMBER]: other(LATER_MEMBER) };
  }
}

/** Places that partners read. Each must get an unknown value. */
const PROMISED = [
  'Verification.verdict',
  'Decision.status',
  'Decision.recommendedAction',
  'Decision.credentialCarrier',
  'Decision.sourceDetailCoverage',
  'DecisionReason',
  'EmbeddedCredential.integrity',
  'EmbeddedCredential.trust',
  'CredentialReason',
  'AudioSummary.container',
  'EvidenceFact.code',
  'EvidenceFact.status',
  'EvidenceCounter.status',
  'EvidenceSummary.status',
  'ChannelCoverage.support',
  'ProofDocument.carrier',
  'ProofEntry.carrier',
  'Erasure.outcome',
  'Key.status',
  'Key.scopes[]',
  'Identification.matches[].type',
  'DigestsIdentification.results[].matches[].type',
  'PartnerReviewCase.status',
  'PartnerReviewCase.outcome',
  'EvidenceRequest.status',
  'Error.code',
  'Error.reason',
];

/** The document itself has no value that may grow. */
const NOT_CALLED = ['readDocument'];

/** @returns the required places and operations that no client got */
export function notFed(
  document: OpenApiDocument,
  open: OpenValues,
  answers: { readonly has: (operation: string) => boolean },
): readonly string[] {
  const operations = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ responses }) =>
      Object.entries(responses).some(
        ([status, { content }]) => Number(status) < 300 && content?.['application/json'] !== undefined,
      ),
    )
    .map(({ operationId }) => operationId);
  return [
    ...operations
      .filter((operation) => !answers.has(operation) && !NOT_CALLED.includes(operation))
      .map((operation) => `no answer of ${operation}`),
    ...[...new Set([...PROMISED, ...open.places()])]
      .filter((place) => !open.fed.has(place))
      .map((place) => `no unknown value of ${place}`),
  ];
}

/** Returns the first difference between two values. */
export function firstDifference(read: unknown, served: unknown, where = ''): string | undefined {
  if (isDeepStrictEqual(read, served)) return undefined;
  if (typeof read !== 'object' || typeof served !== 'object' || read === null || served === null)
    return `${where || 'the answer'}: read ${JSON.stringify(read)}, served ${JSON.stringify(served)}`;
  const names = [...new Set([...Object.keys(served), ...Object.keys(read)])];
  return names
    .map((name) =>
      firstDifference((read as Node)[name], (served as Node)[name], where === '' ? name : `${where}.${name}`),
    )
    .find((difference) => difference !== undefined);
}

/** Returns the forms of an answer that has several. */
function formsOf(schema: JsonSchema): readonly JsonSchema[] {
  return (schema['anyOf'] ?? []) as readonly JsonSchema[];
}

function membersOf(schema: JsonSchema): Members {
  return (schema['properties'] ?? {}) as Members;
}
