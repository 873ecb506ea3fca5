/** Faults of a document that generated clients do not tolerate. */
import type { OpenApiDocument } from '../../../src/service/contract/openapi.js';
import { KNOWN_VALUES } from '../../../src/service/contract/primitives.js';

type Node = Record<string, unknown>;

/** Each plant changes one schema in place, which it finds by name. */
export const PLANTS = {
  /** Closes lists: only today's words are valid. */
  words: (schema) => {
    if (schema[KNOWN_VALUES] !== undefined) schema['enum'] = schema[KNOWN_VALUES];
  },
  /** Closes the version: only today's is valid. */
  versions: (schema, name) => {
    if (name === 'version' && schema['type'] === 'integer') schema['const'] = schema['minimum'];
  },
  /** Closes objects: only today's members are valid. */
  members: (schema) => {
    if (schema['additionalProperties'] === true) schema['additionalProperties'] = false;
  },
  /** Removes the size of numbers. */
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
