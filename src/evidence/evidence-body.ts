import { decodeDocument, encodeDocument } from '../codec/document.js';
import type { EvidenceFacts, StoredSourceDetail } from '../domain/evidence.js';

/** Values of the parts of evidence that are bodies. */
export interface EvidenceBodies {
  readonly facts: EvidenceFacts;
  readonly detail: StoredSourceDetail;
}

/** Body of a part as it is stored; the same value gives the same bytes on any machine. */
export function encodeEvidence<Part extends keyof EvidenceBodies>(
  _part: Part,
  value: EvidenceBodies[Part],
): Uint8Array {
  return encodeDocument(value);
}

/** @param body bytes whose digest is the one in the proof's record */
export function decodeEvidence<Part extends keyof EvidenceBodies>(
  _part: Part,
  body: Uint8Array,
): EvidenceBodies[Part] {
  return decodeDocument(body) as EvidenceBodies[Part];
}
