import type { SigningIdentity } from '../../../core/ports/signing.js';

/**
 * A question to the reading process: a kind, the place of the chunk, and the bytes. The first payload has the trust
 * anchors instead.
 */
export type Question =
  | {
      readonly kind: 'embedded';
      readonly bytes: Uint8Array;
      readonly extent: { readonly offset: number; readonly length: number };
    }
  | { readonly kind: 'sidecar'; readonly bytes: Uint8Array };

const KINDS = { embedded: 1, sidecar: 2 } as const;
const HEAD_BYTES = 17;
/**
 * The audio core hands over a store of at most 1 MiB, and a request body holds a sidecar of at most 32 KiB.
 */
export const MAX_QUESTION_BYTES = HEAD_BYTES + 1_048_576;

/** Returns the head of a question. The bytes of the question follow it. */
export function questionHead(question: Question): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = KINDS[question.kind];
  if (question.kind === 'embedded') {
    head.writeDoubleLE(question.extent.offset, 1);
    head.writeDoubleLE(question.extent.length, 9);
  }
  return head;
}

export function questionIn(payload: Buffer): Question {
  const bytes = payload.subarray(HEAD_BYTES);
  if (payload[0] === KINDS.sidecar) return { kind: 'sidecar', bytes };
  return {
    kind: 'embedded',
    bytes,
    extent: { offset: payload.readDoubleLE(1), length: payload.readDoubleLE(9) },
  };
}

/** The public parts of the trust list, which are all that a reading needs to know of the service. */
export interface Anchors {
  readonly identities: readonly SigningIdentity[];
  /** The certificates of the authorities in PEM. */
  readonly authorities: readonly string[];
}

/** Returns the anchors as JSON, with the certificates of identities in base64. */
export function anchorsText({ identities, authorities }: Anchors): string {
  return JSON.stringify({
    identities: identities.map((identity) => ({
      ...identity,
      certificate: Buffer.from(identity.certificate).toString('base64'),
    })),
    authorities,
  });
}

export function anchorsIn(text: string): Anchors {
  const { identities, authorities } = JSON.parse(text) as {
    identities: (Omit<SigningIdentity, 'certificate'> & { certificate: string })[];
    authorities: string[];
  };
  return {
    identities: identities.map((identity) => ({
      ...identity,
      certificate: Buffer.from(identity.certificate, 'base64'),
    })),
    authorities,
  };
}
