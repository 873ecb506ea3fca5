import { decodeDocument, encodeDocument } from '../../core/codec/document.js';
import type { EvidenceFacts, StoredSourceDetail } from '../domain/evidence.js';

/** The values of the parts of evidence that are stored as bodies. */
export interface EvidenceBodies {
  readonly facts: EvidenceFacts;
  readonly detail: StoredSourceDetail;
}

/** Encodes the body of a part for storage. The same value gives the same bytes on any machine. */
export function encodeEvidence<Part extends keyof EvidenceBodies>(
  _part: Part,
  value: EvidenceBodies[Part],
): Uint8Array {
  return encodeDocument(value);
}

/**
 * Decodes the body of a part.
 * @param body bytes whose digest was checked against the proof's record
 */
export function decodeEvidence<Part extends keyof EvidenceBodies>(
  _part: Part,
  body: Uint8Array,
): EvidenceBodies[Part] {
  return decodeDocument(body) as EvidenceBodies[Part];
}
