/** Faults that the document had, or might get: generated clients do not bear them. */
import type { OpenApiDocument } from '../../../src/service/contract/openapi.js';
import { KNOWN_VALUES } from '../../../src/service/contract/primitives.js';

type Node = Record<string, unknown>;

/** Each changes a schema in place, which is found under a name. */
export const PLANTS = {
  /** The words that are known today are all that there are. */
  words: (schema) => {
    if (schema[KNOWN_VALUES] !== undefined) schema['enum'] = schema[KNOWN_VALUES];
  },
  /** The version of today is the only one. */
  versions: (schema, name) => {
    if (name === 'version' && schema['type'] === 'integer') schema['const'] = schema['minimum'];
  },
  /** The members that are known today are all that there are. */
  members: (schema) => {
    if (schema['additionalProperties'] === true) schema['additionalProperties'] = false;
  },
  /** Nothing is said on how large a number may be. */
  numbers: (schema) => {
    if (schema['format'] === 'int64' || schema['format'] === 'double') delete schema['format'];
  },
} as const satisfies Record<string, (schema: Node, name: string) => void>;

export type Plant = keyof typeof PLANTS;

export function isPlant(name: string): name is Plant {
  return Object.hasOwn(PLANTS, name);
}

export function planted(document: OpenApiDocument, plant: Plant): OpenApiDocument {
  const changed = structuredClone(document);
  const plantIn: (schema: Node, name: string) => void = PLANTS[plant];
  const change = (node: unknown, name: string): void => {
    if (typeof node !== 'object' || node === null) return;
    plantIn(node as Node, name);
    for (const [member, inner] of Object.entries(node)) change(inner, member);
  };
  change(changed, '');
  return changed;
}
