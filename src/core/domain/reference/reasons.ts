/**
 * The meanings of the reasons of decisions and credential reports. Their types come from this registry. The
 * page at `/docs`, the OpenAPI document and the command line show its texts (rules 8.8, 8.18 and 9.3).
 */
import type { SamplesReason } from '../audio.js';
import { meaningsOf, type ReferenceEntry } from './entry.js';

/** Returns the texts for a finding of the RIFF reader. The advice is the same wherever the file is broken. */
function brokenFile(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject, and ask for the file as it was issued: copying or editing damaged this file.',
    artist: 'The file arrived damaged or was saved again: please send it as it was issued to you.',
  };
}

/** Returns the texts for a finding that decided a verdict in earlier versions. */
function harmlessNow(meaning: string): ReferenceEntry {
  return {
    meaning: `${meaning} Only earlier versions give this reason.`,
    caller: 'Upload the file again, and verify it again.',
    artist: 'Please send the file again.',
  };
}

/** Returns the texts for a fault in the structure of an embedded credential. */
function brokenStore(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject, and ask for the file as it was issued.',
    artist:
      'The credential in the file is no longer as it was issued: please send the file as you received it.',
  };
}

/** Returns the texts for a fault in the structure of a sidecar. */
function brokenSidecar(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject, and ask for the sidecar as it was issued.',
    artist: 'The sidecar is no longer as it was issued: please send it as you received it.',
  };
}

/**
 * Returns the texts for a credential whose signer does not match its content or the issuing of this service.
 */
function brokenIdentity(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject. If the sender disagrees, contact the operator of the service with the X-Request-Id.',
    artist: 'The credential does not match its signer: please send the file as you received it.',
  };
}

/** Returns the texts for a credential that the registry does not confirm. */
function notInRegistry(meaning: string): ReferenceEntry {
  return {
    meaning,
    caller: 'Reject, and ask for a file whose proof is currently registered.',
    artist:
      'The service has no current record of this credential: please send the most recently issued file.',
  };
}

/** The faults of an embedded credential. */
export const STORE_FAULTS = {
  store_too_large: brokenStore('The manifest store is larger than 1 MiB.'),
  extent_mismatch: brokenStore('The length of the manifest store differs from the length of its chunk.'),
  box_truncated: brokenStore('A box of the manifest store ends before its header is complete.'),
  box_size: brokenStore('A box of the manifest store extends beyond the end of its parent.'),
  box_too_deep: brokenStore('Boxes of the manifest store are nested more than eight levels deep.'),
  too_many_boxes: brokenStore('The manifest store has more than 4,096 boxes.'),
  description_malformed: brokenStore('The description of a box in the manifest store cannot be read.'),
  store_label: brokenStore('The manifest store does not have the required label.'),
  manifest_missing: brokenStore('The manifest store holds no manifest.'),
  assertion_store_malformed: brokenStore(
    'The manifest has no assertion store, several assertion stores, or an assertion store with a wrong label.',
  ),
  claim_box_malformed: brokenStore(
    'The manifest has no claim, several claims, or a claim that is not a single CBOR box.',
  ),
  signature_box_malformed: brokenStore(
    'The manifest has no signature, several signatures, or a signature that is not a single CBOR box.',
  ),
  assertion_malformed: brokenStore('An assertion of the manifest is not a box with a description.'),
  assertion_duplicate: brokenStore('Two assertions of the manifest have the same label.'),
  claim_malformed: brokenStore('The claim cannot be decoded, or a required member is missing.'),
  cose_malformed: brokenStore('The signature of the claim cannot be decoded as COSE_Sign1.'),
  cose_payload_present: brokenStore('The signature contains a payload, but it must be detached.'),
  cose_algorithm_missing: brokenStore('The signature does not state its algorithm.'),
  cose_certificate_missing: brokenStore('The signature contains no certificate chain.'),
  cose_padding_not_zero: brokenStore('The padding of the signature contains bytes other than zero.'),
  certificate_malformed: brokenStore('The certificate of the signer cannot be read.'),
  signature_reference: brokenStore(
    'The claim refers to a different signature than the signature in its manifest.',
  ),
  assertion_missing: brokenStore('The claim lists an assertion that is not in the manifest.'),
  assertion_listed_twice: brokenStore('The claim lists an assertion twice.'),
  assertion_hash_mismatch: brokenStore('An assertion was changed after signing: its digest differs.'),
  assertion_not_listed: brokenStore('The manifest holds an assertion that the claim does not list.'),
  algorithm_not_of_key: brokenStore('The algorithm of the signature does not match the certified key.'),
  signature_mismatch: brokenStore('The signature does not match the signed content or the certificate.'),
  hash_data_malformed: brokenStore('The binding to the audio cannot be read.'),
  statement_malformed: brokenStore("The service's statement in the manifest cannot be read."),
  not_writer_form: brokenStore(
    'The credential contains a statement of the service, but differs from what the service would write.',
  ),
  exclusion_not_chunk: brokenStore(
    'The range that the binding excludes does not have the length of the credential.',
  ),
  kid_mismatch: brokenIdentity(
    'The statement names a different certificate than the certificate that signed it.',
  ),
  signature_not_low_s: brokenStore(
    'The signature value is in the high-S form, which the service never writes.',
  ),
  class_confusion: brokenIdentity('A certificate of the service signed a seal that only a device can make.'),
  issuer_mismatch: brokenIdentity('The statement names a different issuer than the signing certificate.'),
  outside_validity: brokenIdentity('The signing certificate was not valid at the time in the statement.'),
  signer_not_pinned: brokenIdentity(
    'The authority of the service certified the signer, but the service never signed with this certificate.',
  ),
} as const satisfies Readonly<Record<string, ReferenceEntry>>;

/**
 * The faults in the structure of a sidecar. Faults of its signer have the slugs of an embedded credential.
 */
const SIDECAR_FAULTS = {
  sidecar_version_unknown: {
    meaning: 'The sidecar has a version that this service does not read.',
    caller: 'Reject. The service writes only version 1.',
    artist: 'The sidecar is no longer as it was issued: please send it as you received it.',
  },
  sidecar_over_budget: brokenSidecar(
    'The sidecar is larger than 20 KiB, the largest size that the service issues.',
  ),
  sidecar_malformed: brokenSidecar('The sidecar cannot be decoded: it is truncated or damaged.'),
  sidecar_not_canonical: brokenSidecar(
    'The sidecar can be decoded, but its bytes are not in canonical form.',
  ),
  sidecar_members: brokenSidecar('A member of the sidecar is missing or invalid.'),
  sidecar_not_writer_form: brokenSidecar(
    'The sidecar differs from what the service would write for the same content.',
  ),
} as const satisfies Readonly<Record<string, ReferenceEntry>>;

/** Every reason of a decision, by verdict. */
export const DECISION_REASONS = {
  valid: {
    credential_verified: {
      meaning: 'The signature, the registry record and the exact audio bytes all match.',
      caller: 'Accept the credential. Your own policy decides everything else.',
      artist: 'The credential of this recording was verified.',
    },
    container_unknown: {
      meaning:
        'The service does not know the container format of the file and cannot say whether it is audio. This is never the first reason.',
      caller: 'Accept the credential only if you can play the file.',
      artist: 'The credential was verified, and the format of the file is unknown to the service.',
    },
    source_evidence_needs_review: {
      meaning:
        'The evidence report has a conflict or gap that needs a human decision. This is never the first reason.',
      caller: 'Have a person read the report before you accept the file.',
      artist: 'The credential was verified, and a person will look at the production record.',
    },
  },
  audioChanged: {
    audio_digest_mismatch: {
      meaning: 'The sidecar is intact, but it was made for other audio bytes.',
      caller: 'Reject, and ask for the matching pair.',
      artist: 'The audio and its sidecar do not belong together: please send both as they were issued.',
    },
  },
  tampered: {
    ...STORE_FAULTS,
    ...SIDECAR_FAULTS,
  },
  unregistered: {
    signer_unknown: {
      meaning: 'The credential is intact, but this service does not know the signer.',
      caller: 'Reject: credentials issued in beta are not valid in production, and the reverse.',
      artist: 'This credential is from somewhere else: please send the file that the service issued to you.',
    },
    names_this_service: {
      meaning:
        'The unknown signer uses the name or the credential format of this service. This is never the first reason.',
      caller: 'Reject. Report the origin of the file to the operator of the service.',
      artist: 'This credential is from somewhere else: please send the file that the service issued to you.',
    },
    proof_not_registered: notInRegistry(
      'The service signed the credential, but its registry has no such proof. It was never completed, or it was erased.',
    ),
    credential_not_as_issued: notInRegistry('The registry has a different credential for this proof.'),
    signer_revoked: notInRegistry(
      'The certificate that signed the proof was revoked from a time at or before the registration of the proof.',
    ),
  },
  unreadable: {
    container_unsupported: {
      meaning: 'A file of this format cannot contain its credential. It needs its sidecar.',
      caller: 'Ask for the sidecar, and verify both together.',
      artist: 'A file of this format needs its sidecar: please send both together.',
    },
    credential_missing: {
      meaning: 'The file has no credential in it.',
      caller: 'Ask for the file as it was issued. If it has a sidecar, verify both together.',
      artist: 'This file has no credential: please send the issued file, and its sidecar if it has one.',
    },
    store_start_missing: {
      meaning: 'The credential chunk does not start like a C2PA manifest store.',
      caller: 'Reject, and ask for the file as it was issued.',
      artist: 'No credential could be read from this file: please send it as it was issued to you.',
    },
    binding_mismatch: {
      meaning: 'The file differs from the file that the credential was issued for.',
      caller: 'Reject, and ask for the file as it was issued.',
      artist: 'The file was changed after it was issued: please send it as you received it.',
    },
    sidecar_empty: {
      meaning: 'The sidecar has no bytes.',
      caller: 'Send the bytes of the sidecar, or omit the member if the file contains its credential.',
      artist: 'The sidecar is empty: please send it as you received it.',
    },
    sidecar_magic_missing: {
      meaning: 'The bytes sent as the sidecar do not start like a sidecar.',
      caller:
        'Check that you sent the sidecar and not another file, then ask for the sidecar as it was issued.',
      artist: 'The second file is not a sidecar: please send the sidecar that was issued with the audio.',
    },
    header_truncated: brokenFile('The file ends before its first 12 bytes are complete.'),
    form_not_wave: brokenFile('The file is a RIFF file, but not a WAVE file.'),
    riff_size_streaming: brokenFile(
      'The file size was never written: the recording was not closed properly.',
    ),
    riff_size_past_eof: brokenFile('The file is shorter than its header states: it was truncated.'),
    bytes_after_riff_end: brokenFile('Bytes follow after the end that the file header states.'),
    chunk_past_end: brokenFile('A chunk extends beyond the end of the file.'),
    chunk_header_truncated: brokenFile(
      'The file ends with a few bytes that are too short for a chunk header.',
    ),
    pad_missing: brokenFile('A chunk with an odd size has no pad byte.'),
    pad_nonzero: brokenFile('The pad byte after a chunk with an odd size is not zero.'),
    chunk_id_invalid: brokenFile('A chunk id is not printable ASCII, or has a space at its start or inside.'),
    too_many_chunks: brokenFile('The file has more than 4,096 chunks.'),
    duplicate_fmt: brokenFile('The file has several fmt chunks.'),
    duplicate_data: brokenFile('The file has several data chunks.'),
    duplicate_ds64: brokenFile('The file has several ds64 chunks.'),
    duplicate_bext: harmlessNow('The file has several bext chunks.'),
    duplicate_fact: harmlessNow('The file has several fact chunks.'),
    fmt_missing: brokenFile('The file has no fmt chunk, so its format is unknown.'),
    fmt_malformed: brokenFile('The size of the fmt chunk is impossible, or its extension is missing.'),
    fmt_inconsistent: brokenFile(
      'Channels, rate or block size of the fmt chunk are impossible or contradict each other.',
    ),
    codec_unsupported: harmlessNow('The audio of the WAV file is neither PCM nor IEEE float.'),
    data_missing: brokenFile('The file has no data chunk, so it has no audio.'),
    data_before_fmt: brokenFile('The data chunk is before the fmt chunk.'),
    data_size_streaming: brokenFile(
      'The audio size was never written: the recording was not closed properly.',
    ),
    data_empty: brokenFile('The data chunk is empty, and other chunks follow it.'),
    data_not_aligned: brokenFile('The size of the data chunk is not a whole number of sample blocks.'),
    ds64_missing: brokenFile('The file is RF64 or BW64 but has no ds64 chunk.'),
    ds64_not_first: brokenFile('The ds64 chunk is not the first chunk.'),
    ds64_malformed: brokenFile(
      'The ds64 chunk is too short, its table does not fit, or a size is impossible.',
    ),
    ds64_mismatch: brokenFile('A size in the file contradicts its ds64 chunk.'),
    bext_malformed: harmlessNow('The bext chunk is shorter than 602 bytes.'),
    bext_version_unknown: harmlessNow('The version of the bext chunk is not 0, 1 or 2.'),
    list_malformed: harmlessNow('The members of a LIST chunk do not fill it exactly.'),
    list_too_deep: harmlessNow('LIST chunks are nested more than eight levels deep.'),
    credential_duplicate: brokenFile('The file has several credential chunks, but only one is allowed.'),
    credential_id_variant: brokenFile(
      'A chunk id differs from the id of the credential chunk only in case or spaces.',
    ),
    credential_in_list: brokenFile('A credential chunk is inside a LIST chunk.'),
    credential_not_last: brokenFile('Another chunk follows the credential chunk: the file was saved again.'),
    credential_too_large: brokenFile('The credential chunk is larger than 1 MiB.'),
    tag_before_riff: brokenFile('An ID3v2 tag precedes the RIFF header.'),
  },
  local_seal: {
    sealed_by_device: {
      meaning: "The credential is an intact seal by an artist's device. The service did not issue it.",
      caller: 'Do not accept the file as issued by the service.',
      artist: 'This file was sealed on your device and is not registered yet: please have it issued first.',
    },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, ReferenceEntry>>>>;

type Groups = typeof DECISION_REASONS;

/** A reason of the given verdict. */
export type ReasonOf<Verdict extends keyof Groups> = { [V in Verdict]: keyof Groups[V] }[Verdict];

/** A reason of a decision (rule 9.3). */
export type DecisionReason = ReasonOf<keyof Groups>;

/**
 * The meanings of what this reader does not check in a foreign credential. Its integrity is then
 * `not_checked`.
 */
export const UNCHECKED_PARTS = {
  compressed_manifest: 'The manifest is compressed, and its content is not checked.',
  hash_algorithm_unsupported: 'A digest does not use SHA-256.',
  signature_algorithm_unsupported: 'The signature uses an algorithm that this service does not check.',
  manifest_type_old: 'The manifest has an obsolete type, written by old programs.',
  update_manifest: 'The manifest is an update of another manifest.',
  other_manifests: 'The store contains further manifests, which are not checked.',
  ingredients: 'The manifest refers to ingredients, which are not checked.',
  bytes_after_store: 'Bytes that are not zero follow the manifest store.',
  unprotected_header_unknown: 'The signature has unknown unsigned headers.',
  certificate_chain_broken: 'A certificate of the chain was not issued by the next certificate.',
  hard_binding_missing: 'The manifest has no hard binding to the audio.',
  hard_binding_several: 'The manifest has several hard bindings.',
  hard_binding_unsupported: 'The hard binding has a type that this service does not check.',
  exclusion_not_chunk: 'The hard binding excludes a range that is not exactly the credential.',
  boxes_unknown: 'The manifest store has unsigned boxes or fields, which are not checked.',
  assertions_not_checked: 'The manifest has assertions in a form or of a kind that is not checked.',
  actions_not_checked: 'The manifest has actions whose parameters are not checked.',
  redactions: 'The claim removes assertions of other manifests, which is not checked.',
  certificate_not_signed: 'The signature does not cover the certificates.',
  certificate_purpose: 'The certificate has a purpose that only some readers accept for signing.',
  certificate_time:
    'The certificate is not valid today. Whether it was valid at the time of the time-stamp is not checked.',
  time_stamp_not_checked:
    'The signature has a time-stamp, which is not checked. The integrity result does not depend on it.',
} as const;

export type UncheckedPart = keyof typeof UNCHECKED_PARTS;

/**
 * The meanings of what contradicts the standard in a foreign credential whose bytes, references and signature agree.
 * Its integrity is then `failed`, and the verdict is `unregistered`.
 */
export const PROFILE_FAULTS = {
  certificate_profile:
    'The certificate of the signer does not have the key usage, the purpose or the extensions that C2PA requires.',
  certificate_not_valid: 'The certificate of the signer has expired, or is not valid yet.',
  claim_members: 'A mandatory member of the claim is missing, or a member has a wrong type.',
  actions_malformed:
    'The list of actions is missing or malformed, or does not begin with the creation or the opening of the file.',
  hash_data_malformed: 'The binding to the audio cannot be read, or one of its mandatory members is missing.',
  label_malformed: 'A label of the manifest is empty or has characters that are not allowed.',
} as const;

export type ProfileFault = keyof typeof PROFILE_FAULTS;

/** The meaning of every reason of a decision, in the order of the verdicts. */
export const DECISION_REASON_MEANINGS: Readonly<Record<DecisionReason, string>> = meaningsOf({
  ...DECISION_REASONS.valid,
  ...DECISION_REASONS.audioChanged,
  ...DECISION_REASONS.tampered,
  ...DECISION_REASONS.unregistered,
  ...DECISION_REASONS.unreadable,
  ...DECISION_REASONS.local_seal,
});

/** A fault of an embedded credential. */
export type StoreFault = keyof typeof STORE_FAULTS;

/** A reason in the report of an embedded credential (rule 8.18). */
export type ReportReason =
  | StoreFault
  | Extract<DecisionReason, 'binding_mismatch' | 'names_this_service'>
  | ProfileFault
  | UncheckedPart;

/** The meaning of every reason of a credential report. */
export const REPORT_REASON_MEANINGS = {
  ...meaningsOf(STORE_FAULTS),
  binding_mismatch: DECISION_REASONS.unreadable.binding_mismatch.meaning,
  names_this_service: DECISION_REASONS.unregistered.names_this_service.meaning,
  ...PROFILE_FAULTS,
  ...UNCHECKED_PARTS,
} as const satisfies Readonly<Record<ReportReason, string>>;

/** The meaning of every reason why a file has no samples digest. */
export const SAMPLES_REASON_MEANINGS = {
  container_unsupported: 'The container has no samples that the service reads.',
  encoding_unsupported: 'The audio is compressed, or has an encoding that the service does not read.',
  format_unsupported: 'The fields of the audio format contradict each other, or are out of range.',
  padding_not_zero: 'A sample has bits below its valid bits that are not zero.',
  samples_absent: 'The file has no samples.',
  samples_ambiguous: 'The file has several sets of samples or formats, or states two sizes of its samples.',
  samples_unsized: 'The size of the samples is a placeholder that was never replaced.',
  samples_incomplete: 'The file ends before its samples do.',
  frames_incomplete: 'The samples do not end with a whole frame.',
  frames_disagree: 'The number of frames differs from the number that the file states.',
  structure_malformed: 'The structure of the file contradicts its format.',
  stream_changes: 'A frame has another rate, channel count or sample size than the file states.',
  checksum_mismatch: 'A checksum in the file does not match its data.',
  samples_too_large: 'The decoded samples would be too large for the size of the file.',
  decoder_busy: 'All memory for decoding was in use. The same file can have a digest at another time.',
} as const satisfies Readonly<Record<SamplesReason, string>>;
