/**
 * Meaning of the reasons of decisions and credential reports: the one registry, from which their types come, the page at
 * `/docs` and the OpenAPI document list them, and the command line takes its sentence (rules 8.8, 8.18 and 9.3).
 */
import { meaningsOf, type ReferenceEntry } from './entry.js';

/** Finding of the RIFF reader: what to do about a broken file does not depend on where it is broken. */
function brokenFile(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject, and ask for the file as it was issued: a copy or an edit damaged its structure.',
    artist: 'The file arrived damaged or was saved again: please send it as it was issued to you.',
  };
}

/** Fault in the inner form of an embedded credential. */
function brokenStore(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject, and ask for the file as it was issued.',
    artist:
      'The credential in the file is no longer as it was issued: please send the file as you received it.',
  };
}

/** Fault in the inner form of a sidecar. */
function brokenSidecar(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject, and ask for the sidecar as it was issued.',
    artist: 'The sidecar is no longer as it was issued: please send it as you received it.',
  };
}

/** Statement of a credential that its signer or the issuing of this service does not bear out. */
function brokenIdentity(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject; where the sender insists, ask the service with the X-Request-Id.',
    artist: 'The credential could not be matched with its signer: please send the file as you received it.',
  };
}

/** Credential that the registry does not stand behind. */
function notInRegistry(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject, and ask for a file that is issued today.',
    artist:
      'The service has no current record of this credential: please send the file that was issued last.',
  };
}

/** Faults of an embedded credential. */
export const STORE_FAULTS = {
  store_too_large: brokenStore('The manifest store is larger than 1 MiB.'),
  extent_mismatch: brokenStore('The manifest store does not have the length of the chunk that holds it.'),
  box_truncated: brokenStore('A box of the manifest store ends before its header is complete.'),
  box_size: brokenStore('A box of the manifest store has a size that crosses the end of what holds it.'),
  box_too_deep: brokenStore('Boxes of the manifest store are nested deeper than eight.'),
  too_many_boxes: brokenStore('The manifest store has more than 4,096 boxes.'),
  description_malformed: brokenStore('The description of a box in the manifest store cannot be read.'),
  store_label: brokenStore('The manifest store does not have the label of one.'),
  manifest_missing: brokenStore('The manifest store holds no manifest.'),
  assertion_store_malformed: brokenStore(
    'The manifest has no assertion store, or several, or one without its label.',
  ),
  claim_box_malformed: brokenStore(
    'The manifest has no claim, or several, or one that is not a single CBOR box.',
  ),
  signature_box_malformed: brokenStore(
    'The manifest has no signature, or several, or one that is not a single CBOR box.',
  ),
  assertion_malformed: brokenStore('An assertion of the manifest is no described box.'),
  assertion_duplicate: brokenStore('Two assertions of the manifest have one label.'),
  claim_malformed: brokenStore('The claim cannot be decoded, or a member that it needs is missing.'),
  cose_malformed: brokenStore('The signature of the claim is no COSE_Sign1 that can be decoded.'),
  cose_payload_present: brokenStore('The signature carries a payload of its own, which belongs elsewhere.'),
  cose_algorithm_missing: brokenStore('The signature does not state its algorithm.'),
  cose_certificate_missing: brokenStore('The signature carries no chain of certificates.'),
  cose_padding_not_zero: brokenStore('Padding beside the signature holds something else than zeros.'),
  certificate_malformed: brokenStore('The certificate of the signer cannot be read.'),
  signature_reference: brokenStore('The claim names another signature than the one beside it.'),
  assertion_missing: brokenStore('The claim lists an assertion that is not in the manifest.'),
  assertion_listed_twice: brokenStore('The claim lists an assertion twice.'),
  assertion_hash_mismatch: brokenStore('An assertion is not the one that was signed: its digest differs.'),
  assertion_not_listed: brokenStore('The manifest holds an assertion that the claim does not list.'),
  algorithm_not_of_key: brokenStore('The algorithm of the signature is none of the key that is certified.'),
  signature_mismatch: brokenStore(
    'The signature does not fit what it should have signed, or its certificate.',
  ),
  hash_data_malformed: brokenStore('The binding to the audio cannot be read.'),
  statement_malformed: brokenStore("The service's own statement in the manifest cannot be read."),
  not_writer_form: brokenStore(
    "The credential uses the service's statement and differs from what the service writes.",
  ),
  exclusion_not_chunk: brokenStore(
    'The binding leaves out another length than that of the credential itself.',
  ),
  kid_mismatch: brokenIdentity('The statement names another certificate than the one that signed.'),
  signature_not_low_s: brokenStore(
    'The signature has the second form of its value, which the service never writes.',
  ),
  class_confusion: brokenIdentity('A certificate of the service signed what only a device seals.'),
  issuer_mismatch: brokenIdentity('The statement names another issuer than the certificate that signed.'),
  outside_validity: brokenIdentity(
    'The statement has a time at which the certificate that signed was not valid.',
  ),
  signer_not_pinned: brokenIdentity(
    'The authority of the service certified the signer, which the service never signed with.',
  ),
} as const satisfies Readonly<Record<string, ReferenceEntry>>;

/** Faults in the form of a sidecar; those of its signer are told as of an embedded credential. */
const SIDECAR_FAULTS = {
  sidecar_version_unknown: {
    meaning: 'The sidecar has a version that this service does not read.',
    caller: 'Reject; the service writes version 1 alone.',
    artist: 'The sidecar is no longer as it was issued: please send it as you received it.',
  },
  sidecar_over_budget: brokenSidecar('The sidecar is larger than any that is issued (20 KiB).'),
  sidecar_malformed: brokenSidecar('The sidecar cannot be decoded: it is cut off or damaged.'),
  sidecar_not_canonical: brokenSidecar(
    'The sidecar decodes, and its bytes are not in the one form of its values.',
  ),
  sidecar_members: brokenSidecar('A member of the sidecar is missing, or is not what it should be.'),
  sidecar_not_writer_form: brokenSidecar(
    'The sidecar differs from what the service writes for the same content.',
  ),
} as const satisfies Readonly<Record<string, ReferenceEntry>>;

/** Every reason that a decision can have, by the verdict that it is given with. */
export const DECISION_REASONS = {
  valid: {
    credential_verified: {
      meaning: 'Signature, registry record and the exact audio bytes all match.',
      caller: 'Accept the credential; your own policy decides on the rest.',
      artist: 'The credential of this recording was verified.',
    },
    source_evidence_needs_review: {
      meaning:
        'The evidence report holds a conflict or a gap that a person has to decide on; never the first reason.',
      caller: 'Have a person read the report before you accept the file.',
      artist: 'The credential was verified, and a person will look at the production record.',
    },
  },
  audioChanged: {
    audio_digest_mismatch: {
      meaning: 'The sidecar is intact, but it was made for other audio bytes.',
      caller: 'Reject, and ask for the matching pair.',
      artist: 'The audio and its sidecar do not belong together: please send the two as they were issued.',
    },
  },
  tampered: {
    ...STORE_FAULTS,
    ...SIDECAR_FAULTS,
  },
  unregistered: {
    signer_unknown: {
      meaning: 'The credential is intact, and somebody signed it who is unknown to this service.',
      caller: 'Reject: production and beta know each other as little as two services do.',
      artist: 'This credential is from somewhere else: please send the file that the service issued to you.',
    },
    names_this_service: {
      meaning: 'The unknown signer calls itself, its issuer or its form ours; never the first reason.',
      caller: 'Reject, and tell the service where the file is from.',
      artist: 'This credential is from somewhere else: please send the file that the service issued to you.',
    },
    proof_not_registered: notInRegistry(
      'The service signed the credential, and its registry has no such proof: never completed, or erased.',
    ),
    credential_not_as_issued: notInRegistry('The registry keeps another credential for this proof.'),
    signer_revoked: notInRegistry(
      'The proof was registered at or after the time from which the certificate that signed it is revoked.',
    ),
  },
  unreadable: {
    container_unsupported: {
      meaning: 'A file of this format holds no credential itself: it needs its sidecar.',
      caller: 'Ask for the sidecar, and verify both together.',
      artist: 'A file of this format needs its sidecar: please send both together.',
    },
    credential_missing: {
      meaning: 'The file has no credential in it.',
      caller: 'Ask for the file as it was issued; if it has a sidecar, verify both together.',
      artist: 'There is no credential in this file: please send the issued file, or its sidecar with it.',
    },
    store_start_missing: {
      meaning: 'The chunk for the credential does not begin as a C2PA manifest store.',
      caller: 'Reject, and ask for the file as it was issued.',
      artist: 'No credential could be read from this file: please send it as it was issued to you.',
    },
    binding_mismatch: {
      meaning: 'The file is not, byte for byte, the one that its credential was put into.',
      caller: 'Reject, and ask for the file as it was issued.',
      artist: 'The file was changed after it was issued: please send it as you received it.',
    },
    sidecar_empty: {
      meaning: 'The sidecar has no bytes.',
      caller: 'Send the bytes of the sidecar, or leave the member out for a file that holds its credential.',
      artist: 'The sidecar is empty: please send it as you received it.',
    },
    sidecar_magic_missing: {
      meaning: 'The bytes that were sent as the sidecar do not begin as one.',
      caller: 'Check that the sidecar was sent and not another file, then ask for it as it was issued.',
      artist: 'The second file is no sidecar: please send the one that was issued with the audio.',
    },
    header_truncated: brokenFile('The file ends before its first 12 bytes are complete.'),
    form_not_wave: brokenFile('The file is a RIFF file of another form than WAVE.'),
    riff_size_streaming: brokenFile('The size of the file was never written: a stream that was not closed.'),
    riff_size_past_eof: brokenFile('The file is shorter than it says: it was cut off.'),
    bytes_after_riff_end: brokenFile('Bytes follow the end of the file that its header states.'),
    chunk_past_end: brokenFile('A chunk goes on behind the end of the file.'),
    chunk_header_truncated: brokenFile(
      'A few bytes are left at the end that cannot be the header of a chunk.',
    ),
    pad_missing: brokenFile('A chunk of odd size has no pad byte.'),
    pad_nonzero: brokenFile('The pad byte behind a chunk of odd size is not zero.'),
    chunk_id_invalid: brokenFile(
      'The id of a chunk is not printable ASCII, begins with a space, or has one inside.',
    ),
    too_many_chunks: brokenFile('The file has more than 4,096 chunks.'),
    duplicate_fmt: brokenFile('The file has several fmt chunks.'),
    duplicate_data: brokenFile('The file has several data chunks.'),
    duplicate_ds64: brokenFile('The file has several ds64 chunks.'),
    duplicate_bext: brokenFile('The file has several bext chunks.'),
    duplicate_fact: brokenFile('The file has several fact chunks.'),
    fmt_missing: brokenFile('The file has no fmt chunk: its format is unknown.'),
    fmt_malformed: brokenFile('The fmt chunk is too short, or its size and extension disagree.'),
    fmt_inconsistent: brokenFile(
      'Channels, rate or block size of the fmt chunk contradict each other or cannot be.',
    ),
    codec_unsupported: {
      meaning: 'The audio of the WAV file is neither PCM nor IEEE float.',
      caller: 'Ask for the file as it was issued, or for its sidecar with it.',
      artist: 'The audio in this file is compressed: please send the file that was issued to you.',
    },
    data_missing: brokenFile('The file has no data chunk: there is no audio.'),
    data_before_fmt: brokenFile('The data chunk comes before the fmt chunk.'),
    data_size_streaming: brokenFile('The size of the audio was never written: a stream that was not closed.'),
    data_empty: brokenFile('The data chunk is empty, and bytes follow it.'),
    data_not_aligned: brokenFile('The data chunk does not end with a whole block of samples.'),
    ds64_missing: brokenFile('An RF64 or BW64 file has no ds64 chunk.'),
    ds64_not_first: brokenFile('The ds64 chunk is not the first one.'),
    ds64_malformed: brokenFile('The ds64 chunk is too short, its table does not fit, or a size cannot be.'),
    ds64_mismatch: brokenFile('A size in the file contradicts its ds64 chunk.'),
    bext_malformed: brokenFile('The bext chunk is shorter than 602 bytes.'),
    bext_version_unknown: brokenFile('The bext chunk has another version than 0, 1 and 2.'),
    list_malformed: brokenFile('The members of a LIST chunk do not fill it exactly.'),
    list_too_deep: brokenFile('LIST chunks are nested deeper than eight.'),
    credential_duplicate: brokenFile('The file has several chunks for a credential, and only one may be.'),
    credential_id_variant: brokenFile("A chunk has the credential's id but for case or spaces."),
    credential_in_list: brokenFile('A chunk for a credential lies inside a LIST chunk.'),
    credential_not_last: brokenFile('Another chunk follows the credential: the file was saved again.'),
    credential_too_large: brokenFile('The chunk for the credential is larger than 1 MiB.'),
  },
  local_seal: {
    sealed_by_device: {
      meaning: "An intact seal of an artist's device, never registered with the service.",
      caller: 'Do not accept it as issued by the service.',
      artist: 'This file was sealed on your device and is not registered yet: please have it issued first.',
    },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, ReferenceEntry>>>>;

type Groups = typeof DECISION_REASONS;

/** Reason that a verdict is given with. */
export type ReasonOf<Verdict extends keyof Groups> = { [V in Verdict]: keyof Groups[V] }[Verdict];

/** Reason of a decision (rule 9.3). */
export type DecisionReason = ReasonOf<keyof Groups>;

/** Meaning of what this reader leaves alone in somebody else's credential, whose integrity is then `not_checked`. */
export const UNCHECKED_PARTS = {
  compressed_manifest: 'The manifest is compressed, and nothing in it is looked at.',
  hash_algorithm_unsupported: 'A digest is of another algorithm than SHA-256.',
  signature_algorithm_unsupported: 'The signature is of an algorithm that is not checked here.',
  manifest_type_old: 'The manifest has the type that writers of old gave to it.',
  update_manifest: 'The manifest is an update of another one.',
  other_manifests: 'The store holds further manifests, which are not looked at.',
  ingredients: 'The manifest names ingredients, which are not followed.',
  bytes_after_store: 'Bytes that are not zero follow the manifest store.',
  unprotected_header_unknown: 'The signature has unsigned headers that are unknown here.',
  certificate_chain_broken: 'A certificate of the chain was not issued by the next one.',
  hard_binding_missing: 'The manifest has no hard binding to the audio.',
  hard_binding_several: 'The manifest has several hard bindings.',
  hard_binding_unsupported: 'The hard binding is of a kind that is not checked here.',
  exclusion_not_chunk: 'The hard binding leaves out something else than exactly the credential.',
  time_stamp_not_checked:
    'The signature has a time-stamp, which is not checked; the integrity does not hang on it.',
} as const;

export type UncheckedPart = keyof typeof UNCHECKED_PARTS;

/** Meaning of every reason of a decision, in the order of the verdicts. */
export const DECISION_REASON_MEANINGS: Readonly<Record<DecisionReason, string>> = meaningsOf({
  ...DECISION_REASONS.valid,
  ...DECISION_REASONS.audioChanged,
  ...DECISION_REASONS.tampered,
  ...DECISION_REASONS.unregistered,
  ...DECISION_REASONS.unreadable,
  ...DECISION_REASONS.local_seal,
});

/** Fault of an embedded credential. */
export type StoreFault = keyof typeof STORE_FAULTS;

/** Reason in the report of an embedded credential (rule 8.18). */
export type ReportReason =
  | StoreFault
  | Extract<DecisionReason, 'binding_mismatch' | 'names_this_service'>
  | UncheckedPart;

/** Meaning of every reason of a credential report. */
export const REPORT_REASON_MEANINGS = {
  ...meaningsOf(STORE_FAULTS),
  binding_mismatch: DECISION_REASONS.unreadable.binding_mismatch.meaning,
  names_this_service: DECISION_REASONS.unregistered.names_this_service.meaning,
  ...UNCHECKED_PARTS,
} as const satisfies Readonly<Record<ReportReason, string>>;
