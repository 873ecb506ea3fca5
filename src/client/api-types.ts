/**
 * Shapes of requests and responses. Derived from deploy/openapi/takemark.json by
 * `npm run build:openapi`: not to be edited. Members this version does not know are tolerated and kept.
 */

/** A string of a known set that may grow: completion for the known ones, room for the rest. */
export type Growing<Known extends string> = Known | (string & Record<never, never>);

export type KnownVerdict =
  | 'valid'
  | 'audioChanged'
  | 'tampered'
  | 'unregistered'
  | 'unreadable'
  | 'local_seal';

export type EvidenceKind = 'source_evidence' | 'source_licence' | 'creator_clarification';

export type ReviewOutcome = 'accepted' | 'held' | 'rejected';

/**
 * Measurements of the uploaded file. Sample rate, channels, bits, frames and duration are absent if
 * the file is not WAV or BWF.
 */
export interface AudioSummary {
  /** Container format, detected from the first bytes of the file. */
  readonly container: Growing<
    | 'unknown'
    | 'riff'
    | 'rf64'
    | 'bw64'
    | 'rifx'
    | 'w64'
    | 'aiff'
    | 'aifc'
    | 'caf'
    | 'mp3'
    | 'mp4'
    | 'flac'
    | 'ogg'
    | 'aac'
    | 'wavpack'
  >;
  /** Sample rate, in Hz. */
  readonly sampleRate?: number;
  /** Number of channels. */
  readonly channels?: number;
  /** Number of bits per sample. */
  readonly bitsPerSample?: number;
  /** Number of samples per channel. */
  readonly frames?: number;
  /** Length of the audio, in seconds. */
  readonly durationSeconds?: number;
  /** Length of the file, in bytes. */
  readonly bytes: number;
  /** SHA-256 of the whole file. */
  readonly sha256: Sha256;
}

/** How completely one channel of the session was monitored. */
export interface ChannelCoverage {
  /**
   * Whether the agent sees all, some or no activity of the channel, or does not know. Only `supported`
   * without gaps is complete.
   */
  readonly support: Growing<'supported' | 'partial' | 'unsupported' | 'unknown'>;
  /**
   * Number of actions that the agent reported as they happened. Absent, instead of 0, if the channel was
   * not monitored.
   */
  readonly exact?: number;
  /**
   * Number of actions that the agent found by comparing two states of the session. Their order and exact
   * time are unknown. Absent, instead of 0, if the channel was not monitored.
   */
  readonly interval?: number;
  /** The first periods in which the channel was not monitored. */
  readonly gaps: readonly {
    /** Start, in seconds from the start of the session. */
    readonly fromSeconds: number;
    /** End, in seconds from the start of the session. */
    readonly toSeconds: number;
    /** Why the channel was not monitored. */
    readonly reason: string;
  }[];
  /**
   * Number of all periods in which the channel was not monitored. Absent, instead of 0, if the channel
   * was never monitored.
   */
  readonly gapCount?: number;
}

export interface CloseEvidence {
  /** Final status of the request. */
  readonly status: 'accepted' | 'declined';
  /** Opaque reference to a record in the partner's own evidence system, at most 256 characters. */
  readonly responseReference?: string;
}

export interface CreateReview {
  /** Id of a registered proof. It may belong to any partner. */
  readonly proofId: Identifier;
  /** Identifiers of the case in your own systems. All four are required. */
  readonly bindings: ReviewBindings;
}

export interface CreateUpload {
  /**
   * Purpose of the upload. The default is `verify`. `verify_large` and `identify_large` are for files
   * above 65 MiB.
   */
  readonly purpose?: UploadPurpose;
  /**
   * Exact length of the file, in bytes. The slot refuses a file of any other length. At most 68157440.
   * `verify_large` and `identify_large` need it, and allow 2 GiB unless the operator has set another
   * limit.
   */
  readonly contentLength?: number;
}

/** Stable slug that states what failed, or what was not checked, in a credential. */
export type CredentialReason = Growing<
  | 'store_too_large'
  | 'extent_mismatch'
  | 'box_truncated'
  | 'box_size'
  | 'box_too_deep'
  | 'too_many_boxes'
  | 'description_malformed'
  | 'store_label'
  | 'manifest_missing'
  | 'assertion_store_malformed'
  | 'claim_box_malformed'
  | 'signature_box_malformed'
  | 'assertion_malformed'
  | 'assertion_duplicate'
  | 'claim_malformed'
  | 'cose_malformed'
  | 'cose_payload_present'
  | 'cose_algorithm_missing'
  | 'cose_certificate_missing'
  | 'cose_padding_not_zero'
  | 'certificate_malformed'
  | 'signature_reference'
  | 'assertion_missing'
  | 'assertion_listed_twice'
  | 'assertion_hash_mismatch'
  | 'assertion_not_listed'
  | 'algorithm_not_of_key'
  | 'signature_mismatch'
  | 'hash_data_malformed'
  | 'statement_malformed'
  | 'not_writer_form'
  | 'exclusion_not_chunk'
  | 'kid_mismatch'
  | 'signature_not_low_s'
  | 'class_confusion'
  | 'issuer_mismatch'
  | 'outside_validity'
  | 'signer_not_pinned'
  | 'binding_mismatch'
  | 'names_this_service'
  | 'certificate_profile'
  | 'certificate_not_valid'
  | 'claim_members'
  | 'actions_malformed'
  | 'label_malformed'
  | 'compressed_manifest'
  | 'hash_algorithm_unsupported'
  | 'signature_algorithm_unsupported'
  | 'manifest_type_old'
  | 'update_manifest'
  | 'other_manifests'
  | 'ingredients'
  | 'bytes_after_store'
  | 'unprotected_header_unknown'
  | 'certificate_chain_broken'
  | 'hard_binding_missing'
  | 'hard_binding_several'
  | 'hard_binding_unsupported'
  | 'boxes_unknown'
  | 'assertions_not_checked'
  | 'actions_not_checked'
  | 'redactions'
  | 'certificate_not_signed'
  | 'certificate_purpose'
  | 'certificate_time'
  | 'time_stamp_not_checked'
>;

/** Opaque cursor. It is valid only for the same partner, list and filter. */
export type Cursor = string;

/** The decision. It is policy-neutral and never labels a track human or AI. */
export interface DecisionEnvelope {
  /**
   * Outcome of the decision. `needs_review` is not a failure of the credential: the evidence report
   * needs a human decision.
   */
  readonly status: Growing<'verified_binding' | 'needs_review' | 'invalid_proof'>;
  /** Reasons for the verdict. The first reason decided it. */
  readonly reasons: readonly DecisionReason[];
  /** What an automated caller should do. */
  readonly recommendedAction: Growing<
    'accept_credential' | 'review' | 'reject' | 'request_matching_pair' | 'confirm_file'
  >;
  /** Where the service found the credential. */
  readonly credentialCarrier: Growing<'embedded' | 'sidecar' | 'none'>;
  /** How much of the source detail the evidence report contains. */
  readonly sourceDetailCoverage: Growing<'full' | 'partial' | 'none'>;
  /** Counts of the evidence report. All are 0 without a report. */
  readonly counts: {
    /** Number of answers that creators declared. */
    readonly declarations: number;
    /** Number of conflicts. */
    readonly conflicts: number;
    /** Number of coverage gaps. */
    readonly unverifiable: number;
  };
}

/** Stable slug. If you do not know a reason, act on the verdict. */
export type DecisionReason = Growing<
  | 'credential_verified'
  | 'container_unknown'
  | 'source_evidence_needs_review'
  | 'audio_digest_mismatch'
  | 'store_too_large'
  | 'extent_mismatch'
  | 'box_truncated'
  | 'box_size'
  | 'box_too_deep'
  | 'too_many_boxes'
  | 'description_malformed'
  | 'store_label'
  | 'manifest_missing'
  | 'assertion_store_malformed'
  | 'claim_box_malformed'
  | 'signature_box_malformed'
  | 'assertion_malformed'
  | 'assertion_duplicate'
  | 'claim_malformed'
  | 'cose_malformed'
  | 'cose_payload_present'
  | 'cose_algorithm_missing'
  | 'cose_certificate_missing'
  | 'cose_padding_not_zero'
  | 'certificate_malformed'
  | 'signature_reference'
  | 'assertion_missing'
  | 'assertion_listed_twice'
  | 'assertion_hash_mismatch'
  | 'assertion_not_listed'
  | 'algorithm_not_of_key'
  | 'signature_mismatch'
  | 'hash_data_malformed'
  | 'statement_malformed'
  | 'not_writer_form'
  | 'exclusion_not_chunk'
  | 'kid_mismatch'
  | 'signature_not_low_s'
  | 'class_confusion'
  | 'issuer_mismatch'
  | 'outside_validity'
  | 'signer_not_pinned'
  | 'sidecar_version_unknown'
  | 'sidecar_over_budget'
  | 'sidecar_malformed'
  | 'sidecar_not_canonical'
  | 'sidecar_members'
  | 'sidecar_not_writer_form'
  | 'signer_unknown'
  | 'names_this_service'
  | 'proof_not_registered'
  | 'credential_not_as_issued'
  | 'signer_revoked'
  | 'container_unsupported'
  | 'credential_missing'
  | 'store_start_missing'
  | 'binding_mismatch'
  | 'sidecar_empty'
  | 'sidecar_magic_missing'
  | 'header_truncated'
  | 'form_not_wave'
  | 'riff_size_streaming'
  | 'riff_size_past_eof'
  | 'bytes_after_riff_end'
  | 'chunk_past_end'
  | 'chunk_header_truncated'
  | 'pad_missing'
  | 'pad_nonzero'
  | 'chunk_id_invalid'
  | 'too_many_chunks'
  | 'duplicate_fmt'
  | 'duplicate_data'
  | 'duplicate_ds64'
  | 'duplicate_bext'
  | 'duplicate_fact'
  | 'fmt_missing'
  | 'fmt_malformed'
  | 'fmt_inconsistent'
  | 'codec_unsupported'
  | 'data_missing'
  | 'data_before_fmt'
  | 'data_size_streaming'
  | 'data_empty'
  | 'data_not_aligned'
  | 'ds64_missing'
  | 'ds64_not_first'
  | 'ds64_malformed'
  | 'ds64_mismatch'
  | 'bext_malformed'
  | 'bext_version_unknown'
  | 'list_malformed'
  | 'list_too_deep'
  | 'credential_duplicate'
  | 'credential_id_variant'
  | 'credential_in_list'
  | 'credential_not_last'
  | 'credential_too_large'
  | 'tag_before_riff'
  | 'sealed_by_device'
>;

export interface CreatorDeclaration {
  /** Version of the survey that was answered. */
  readonly surveyVersion: Identifier;
  /** Id of the submission that the answers belong to. */
  readonly submissionId: Identifier;
  /** Opaque id of the person or thing that the answers are about. Never a name. */
  readonly subject: Identifier;
  /** When the survey was submitted, in unix seconds by the survey's clock. */
  readonly submittedAt: Timestamp;
  /** The answers. There is at least one. */
  readonly answers: {
    /** Origin of the material, as declared by the creator. */
    readonly declaredOrigin?: Growing<
      'from_scratch' | 'own_material' | 'third_party_material' | 'generated_material' | 'undisclosed'
    >;
    /** Share of generated material, as declared by the creator. */
    readonly aiShareBand?: Growing<
      | 'none'
      | 'under_quarter'
      | 'quarter_to_half'
      | 'half_to_three_quarters'
      | 'over_three_quarters'
      | 'undisclosed'
    >;
    /** Amount of manual work, as declared by the creator. */
    readonly manualWork?: Growing<'none' | 'some' | 'substantial' | 'entire' | 'undisclosed'>;
    /** Size of the creator's own contribution, as declared by the creator. */
    readonly contributionBand?: Growing<
      'all_self_made' | 'majority_self_made' | 'shared' | 'minority_self_made' | 'undisclosed'
    >;
    /** Whether the creator disputes an assessment of the track. */
    readonly disputedAssessment?: Growing<'not_disputed' | 'disputed'>;
    /** Roles in which generated material was used, as declared by the creator. */
    readonly aiRoles?: readonly Growing<
      | 'lyrics'
      | 'composition'
      | 'vocals'
      | 'instruments'
      | 'production'
      | 'artwork'
      | 'video'
      | 'none'
      | 'undisclosed'
    >[];
  };
  /** When the service recorded the declaration, in unix seconds by the service's clock. */
  readonly recordedAt: Timestamp;
  /**
   * States that the declaration was recorded after the proof was issued. The signature of the proof does
   * not cover the declaration.
   */
  readonly bindingStatus: Growing<'authenticated_post_issuance_record'>;
}

export interface DigestsIdentification {
  /** One result for each digest, in the order of the request. */
  readonly results: readonly {
    /** Digest that was looked for. */
    readonly sha256: Sha256;
    /** At most 100 matches, strongest first. Empty if there are none. */
    readonly matches: readonly {
      /** Id of the matching proof. */
      readonly proofId: Identifier;
      /** What matches. */
      readonly type: Growing<'exact_file' | 'bound_audio' | 'original_file' | 'same_samples'>;
      /** Confidence from 0 to 1. If the digests are equal, it is 1. */
      readonly confidence: number;
    }[];
  }[];
}

/**
 * Report on a Content Credential in the uploaded file. `integrity` and `trust` are independent
 * results.
 */
export interface CredentialReport {
  /** Format of the credential. */
  readonly format: Growing<'c2pa'>;
  /** Organisation named in the signing certificate. */
  readonly issuer?: string;
  /** Name that the device gave itself, if a device sealed the file. The name is not verified. */
  readonly device?: string;
  /** Name that the program which made the claim gave itself. */
  readonly generator?: string;
  /** Algorithm of the signature. */
  readonly algorithm?: string;
  /** Version of the C2PA claim. */
  readonly claimVersion?: number;
  /** Label of the active manifest. */
  readonly manifestLabel?: string;
  /** Result of checking the signature and the hashes. */
  readonly integrity: Growing<'verified' | 'failed' | 'not_checked'>;
  /** Who signed the credential. */
  readonly trust: Growing<'service' | 'device' | 'unknown'>;
  /** Reasons why a check failed, or was not made. Empty if every check passed. */
  readonly reasons: readonly CredentialReason[];
}

export interface ErasedProof {
  /** Id of the proof. */
  readonly proofId: Identifier;
  /** `erased`: this call erased the proof. `already_erased`: an earlier call did. */
  readonly outcome: Growing<'erased' | 'already_erased'>;
  /** Time of the first erasure, in unix seconds. */
  readonly erasedAt: Timestamp;
}

/** A count of one kind of activity in the session. */
export interface EvidenceCounter {
  /**
   * `observed`: there was at least one action. `not_observed`: the agent monitored this activity
   * throughout and there was none. `unsupported`: the agent does not monitor this activity. `unknown`:
   * the number cannot be determined, because of gaps or an incomplete trace, for example. `unsupported`
   * and `unknown` do not mean zero.
   */
  readonly status: Growing<'observed' | 'not_observed' | 'unsupported' | 'unknown'>;
  /**
   * Number of actions. Present only if the status is `observed` or `not_observed`. If the number is
   * absent, show the status, never 0.
   */
  readonly value?: number;
}

export interface EvidenceFact {
  /**
   * Stable slug of the fact. If you do not know a code, show the code itself. `x-codes` lists the
   * meaning of each known code.
   */
  readonly code: Growing<
    | 'session_evidence_replayed'
    | 'session_summary_reconciled'
    | 'imports_observed'
    | 'imported_material_derived'
    | 'takes_recorded_in_real_time'
    | 'takes_from_internal_input'
    | 'placements_without_recording_or_midi_entry'
    | 'imports_cover_most_of_export'
    | 'activity_after_export'
    | 'edits_only_of_imported_material'
    | 'imported_audio_ai_likelihood'
    | 'AiLikelySource'
    | 'creator_declaration'
    | 'observed_import_vs_creator_origin_declaration'
    | 'declared_manual_work_vs_witnessed_input'
    | 'attributed_import_vs_creator_ai_declaration'
    | 'contradictory_declarations'
    | 'session_evidence_unavailable'
    | 'rule_inference_unavailable'
    | 'creator_declaration_altered'
    | 'evidence_facts_altered'
    | 'trace_chain_broken'
    | 'trace_sequence_gap'
    | 'trace_time_backwards'
    | 'trace_signature_invalid'
    | 'trace_device_unknown'
    | 'trace_device_revoked'
    | 'trace_truncated'
    | 'trace_unsigned_tail'
    | 'trace_damaged'
    | 'trace_export_differs'
    | 'trace_export_missing'
    | 'trace_starts_in_future'
    | 'trace_longer_than_elapsed'
    | 'session_before_enrolment'
    | 'session_evidence_used_before'
    | 'trace_simulated'
    | 'export_rerender_differs'
    | 'export_not_tied_to_session'
    | 'recording_claim_not_witnessed'
    | 'sources_of_unknown_origin'
    | 'derived_material_of_unknown_origin'
    | 'sources_rewritten_out_of_sight'
    | 'takes_without_real_time_evidence'
    | 'takes_not_finished'
    | 'plugins_may_add_sound'
    | 'session_begun_before_agent'
    | 'channel_unsupported'
    | 'channel_unknown'
    | 'channel_partial'
    | 'channel_gaps'
    | 'detection_without_import'
  >;
  /** Whether the fact is an observation, an inference, a declaration, a conflict or a gap. */
  readonly contentClass: Growing<
    | 'direct_observation'
    | 'rule_inference'
    | 'creator_declaration'
    | 'explicit_conflict'
    | 'unverifiable_coverage_gap'
  >;
  /** How the fact is known. `decision.status` states whether the report needs a human decision. */
  readonly status: Growing<
    'observed' | 'inferred' | 'reported' | 'declared' | 'none_recorded' | 'unverifiable' | 'needs_review'
  >;
  /** Survey question that the declaration answers. */
  readonly dimension?: Growing<
    'declaredOrigin' | 'aiShareBand' | 'manualWork' | 'contributionBand' | 'disputedAssessment' | 'aiRoles'
  >;
  /** The creator's answer, favourable or adverse. Several words are joined by commas. */
  readonly answer?: string;
  /** Id of the submission that the answer belongs to. */
  readonly submissionId?: Identifier;
  /** Version of the rule that inferred the fact. */
  readonly ruleVersion?: number;
  /**
   * Named values that support the fact: numbers or words. The meaning of each code in `x-codes` lists
   * the names. A value `ratio` is a probability from 0 to 1, never a share of the timeline.
   */
  readonly values?: Readonly<Record<string, number | string>>;
}

/**
 * For information only: the report never changes the verdict. Proofs that were imported from an
 * earlier registry have no report. If the report is absent, source evidence is not available.
 */
export interface EvidenceReport {
  /** Version of the layout. It increases with each change that a reader must handle. */
  readonly version: number;
  /**
   * Observations, inferences and declarations. Each answered question of each submission is one fact
   * with the code `creator_declaration`. If no survey was answered, the report has one such fact with
   * the status `none_recorded`.
   */
  readonly facts: readonly EvidenceFact[];
  /** Observations and declarations that contradict each other. */
  readonly conflicts: readonly EvidenceFact[];
  /** Coverage gaps. Each states something that cannot be verified. */
  readonly unverifiable: readonly EvidenceFact[];
  /** Submitted surveys with their answers, oldest first. */
  readonly declarations: readonly CreatorDeclaration[];
  /**
   * Versions of the rule engine that produced the report. Two copies of the report that have the same
   * versions and the same `revision` have the same content, unless stored facts were damaged
   * (`evidence_facts_altered`).
   */
  readonly engine?: {
    /** Version of the engine that derived the facts of the trace at issuing. */
    readonly facts?: number;
    /** Version of the engine that last derived conflicts and inferences from declarations. */
    readonly overlay: number;
    /** Number of times that declarations or consents were changed after issuing. */
    readonly revision: number;
  };
  /** The production session. Present if the proof was issued with a capture trace. */
  readonly session?: {
    /** Result of replaying the trace. */
    readonly evidence: SessionEvidence;
  };
  /** Observed imports, in the order of import. A long list is shortened. */
  readonly importedSources?: readonly ImportedSource[];
  /** Number of all observed imports, including imports that the list omits. */
  readonly importedSourceCount?: number;
  /** Structure of the arrangement. Present only with the creator's consent. */
  readonly sourceDetail?: SourceDetail;
}

export interface EvidenceRequest {
  /** Id of the evidence request. */
  readonly requestId: Identifier;
  /** Kind of evidence requested. */
  readonly kind: Growing<EvidenceKind>;
  /** Status of the request. */
  readonly status: Growing<'requested' | 'supplied' | 'accepted' | 'declined'>;
  /** Opaque reference to a record in the partner's own evidence system, at most 256 characters. */
  readonly responseReference?: string;
  /** Creation time, in unix seconds. */
  readonly createdAt: Timestamp;
  /** Time of the last change, in unix seconds. */
  readonly updatedAt: Timestamp;
}

export interface EvidenceSummary {
  /** Whether the report needs a human decision. */
  readonly status: Growing<'needs_review' | 'recorded' | 'none_recorded'>;
  /** Counts of the evidence report. All are 0 without a report. */
  readonly counts: {
    /** Number of answers that creators declared. */
    readonly declarations: number;
    /** Number of conflicts. */
    readonly conflicts: number;
    /** Number of coverage gaps. */
    readonly unverifiable: number;
  };
  /** Codes of the facts in the report, without repetition. */
  readonly codes: readonly string[];
}

export interface Fixtures {
  /** All fixtures. */
  readonly fixtures: readonly {
    /** Name of the fixture: lower-case letters, digits and `_`. */
    readonly name: string;
    /**
     * Verdict on the file. Accept the file only if the verdict is `valid` and `good` is true. Treat a
     * verdict that you do not know as a failed verification.
     */
    readonly verdict: Growing<KnownVerdict>;
    /** True only if the verdict is `valid`. */
    readonly good: boolean;
    /** The members of the decision that are the same each time that this fixture is verified. */
    readonly decision: {
      /**
       * Outcome of the decision. `needs_review` is not a failure of the credential: the evidence report
       * needs a human decision.
       */
      readonly status: Growing<'verified_binding' | 'needs_review' | 'invalid_proof'>;
      /** Reasons for the verdict. The first reason decided it. */
      readonly reasons: readonly DecisionReason[];
      /** What an automated caller should do. */
      readonly recommendedAction: Growing<
        'accept_credential' | 'review' | 'reject' | 'request_matching_pair' | 'confirm_file'
      >;
      /** Where the service found the credential. */
      readonly credentialCarrier: Growing<'embedded' | 'sidecar' | 'none'>;
    };
    /** Strongest match of an identify of the audio. Absent if the fixture does not show one. */
    readonly match?: Growing<'exact_file' | 'bound_audio' | 'original_file' | 'same_samples'>;
    /** The audio file, and the sidecar if the fixture has one. */
    readonly files: readonly {
      /** Which file of the fixture this is. */
      readonly part: Growing<'audio' | 'sidecar'>;
      /** File name that is safe on every file system. */
      readonly fileName: string;
      /** Media type of the file. */
      readonly mediaType: string;
      /** Length of the file, in bytes. */
      readonly bytes: number;
      /** SHA-256 of the file. It is also the ETag. */
      readonly sha256: Sha256;
      /** Path to download the file from. The download needs a key. */
      readonly href: string;
    }[];
  }[];
}

export interface Health {
  /** True if the service is up. */
  readonly ok: boolean;
  /** Version of the service. */
  readonly version: string;
  /** Commit that the service was built from. */
  readonly commit: string;
  /** Deployment time, in unix seconds. */
  readonly deployedAt: Timestamp;
  /** `production` or `beta`. */
  readonly environment: string;
  /** Version of the API contract. */
  readonly contract: string;
}

export interface Identification {
  /** At most 100 matches, strongest first. Empty if there are none. */
  readonly matches: readonly {
    /** Id of the matching proof. */
    readonly proofId: Identifier;
    /** What matches. */
    readonly type: Growing<'exact_file' | 'bound_audio' | 'original_file' | 'same_samples'>;
    /** Confidence from 0 to 1. If the digests are equal, it is 1. */
    readonly confidence: number;
    /**
     * Reasons for which a verify of the upload is `unreadable`. Present only for the owner of a proof with
     * the match `same_samples`: something outside the samples changed.
     */
    readonly unreadableBecause?: readonly DecisionReason[];
  }[];
  /** Samples digest of the upload. It is null if the file has none. */
  readonly samples?: Sha256 | null;
  /** Why the file has no samples digest. Present only if `samples` is null. */
  readonly samplesReason?: Growing<
    | 'container_unsupported'
    | 'encoding_unsupported'
    | 'format_unsupported'
    | 'padding_not_zero'
    | 'samples_absent'
    | 'samples_ambiguous'
    | 'samples_unsized'
    | 'samples_incomplete'
    | 'frames_incomplete'
    | 'frames_disagree'
    | 'structure_malformed'
    | 'stream_changes'
    | 'checksum_mismatch'
    | 'samples_too_large'
    | 'decoder_busy'
  >;
}

/** Opaque identifier. The response to a malformed identifier is 400, and to an unknown identifier 404. */
export type Identifier = string;

export interface Identify {
  /** Upload to identify. Its purpose must be `identify` or `identify_large`. */
  readonly uploadId: Identifier;
}

export interface IdentifyDigests {
  /** Digests of files that you do not send. A digest may occur several times. */
  readonly digests: readonly {
    /** SHA-256 digest to look for, in lower-case hex. */
    readonly sha256: Sha256;
    /**
     * What the digest was computed of: the whole `file`, what a proof of it is `bound` to, or its
     * `samples`. Without it, the digest may be any of them.
     */
    readonly of?: 'file' | 'bound' | 'samples';
  }[];
}

/** A file whose import into the session was observed. */
export interface ImportedSource {
  /** Id within this report: `s1`, `s2` and so on. */
  readonly sourceId: Identifier;
  /** How the file was brought into the session. */
  readonly manner: Growing<'copied' | 'referenced' | 'midi' | 'unknown'>;
  /** SHA-256 of the samples as stored in the session. */
  readonly samplesSha256?: Sha256;
  /** SHA-256 of the whole original file, if it was found. */
  readonly originalSha256?: Sha256;
  /** Length of the source, in seconds. */
  readonly durationSeconds?: number;
  /**
   * Where the arrangement uses the source or material derived from it. This does not show what is
   * audible in the mix. Absent if clips were not monitored.
   */
  readonly placements?: {
    /** Number of clips that used the source at the last observation. */
    readonly count: number;
    /**
     * Time of the arrangement that these clips cover, in seconds. Time that several clips cover is added
     * only once.
     */
    readonly approximateSeconds: number;
    /** Time spans of the arrangement that these clips cover. A long list is shortened. */
    readonly spans: readonly {
      /** Start, in seconds from the start of the arrangement. */
      readonly startSeconds: number;
      /** End, in seconds from the start of the arrangement. */
      readonly endSeconds: number;
    }[];
  };
  /** Detector results that the issuing side supplied. */
  readonly detections?: readonly {
    /** Name of the detector that the issuing side used. */
    readonly detector: string;
    /** Version of the detector. */
    readonly detectorVersion: string;
    /** Probability that the file was generated. It is not a share of the timeline. */
    readonly likelihood?: {
      /** The probability, from 0 to 1. */
      readonly value: number;
      /** Unit of the value. */
      readonly unit: Growing<'ratio'>;
    };
    /** Name of the generator that the file is attributed to. */
    readonly generator?: string;
  }[];
}

export interface KeyEntry {
  /** Id of the key. It is not secret. */
  readonly keyId: Identifier;
  /** Name of the key. */
  readonly name: string;
  /** State of the key. */
  readonly status: Growing<'active' | 'expiring' | 'expired' | 'revoked'>;
  /**
   * Scopes of the key. In the OpenAPI document, `x-scope` of an operation is the scope that the
   * operation needs.
   */
  readonly scopes: readonly Growing<'verify' | 'proofs' | 'erase' | 'reviews' | 'keys' | 'usage'>[];
  /** The partner's plan. */
  readonly plan: string;
  /** Creation time, in unix seconds. */
  readonly createdAt: Timestamp;
  /** When the key stops working, in unix seconds. Absent if the key was not rotated. */
  readonly expiresAt?: Timestamp;
  /** Time of last use, in unix seconds, accurate to one minute. Absent if no use was recorded. */
  readonly lastUsedAt?: Timestamp;
  /** True if calls with the key must be signed. */
  readonly signed?: boolean;
  /**
   * Ids of the revoked successors, oldest first. Present only in the response to a revocation with
   * `successors=true`.
   */
  readonly revokedSuccessors?: readonly Identifier[];
}

export interface KeyPage {
  /** Keys, oldest first. */
  readonly keys: readonly KeyEntry[];
  /** Cursor of the next page. Absent on the last page. */
  readonly nextCursor?: Cursor;
}

export interface OpenEvidence {
  /** Kind of evidence to request. Each kind can be requested once per case. */
  readonly kind: EvidenceKind;
}

export interface PartnerReviewCase {
  /** Id of the review. */
  readonly reviewId: Identifier;
  /** Id of the proof under review. */
  readonly proofId: Identifier;
  /** Identifiers of the case in your own systems, as sent when the case was created. */
  readonly bindings: {
    /** Identifier of the creator in your own systems. */
    readonly creatorId: Identifier;
    /** Identifier of the account in your own systems. */
    readonly accountId: Identifier;
    /** Identifier of the submission in your own systems. */
    readonly submissionId: Identifier;
    /** Identifier of the track in your own systems. */
    readonly trackId: Identifier;
  };
  /** Status of the case. */
  readonly status: Growing<'open' | 'resolved'>;
  /**
   * Outcome that the partner recorded. Absent if there is none yet. It makes no claim about authorship
   * or rights.
   */
  readonly outcome?: Growing<ReviewOutcome>;
  /** Creation time, in unix seconds. */
  readonly createdAt: Timestamp;
  /** Time of the last change, in unix seconds. */
  readonly updatedAt: Timestamp;
  /** When the outcome was recorded, in unix seconds. Absent if there is none yet. */
  readonly resolvedAt?: Timestamp;
  /**
   * When the case ends, in unix seconds: 180 days after its creation. This time never changes. After
   * this time, every call for the case is 404.
   */
  readonly expiresAt: Timestamp;
  /** Evidence requests, oldest first. */
  readonly evidenceRequests: readonly EvidenceRequest[];
}

export interface ProcessNote {
  /** Version of the wording policy. The same report and policy always give the same note. */
  readonly policyVersion?: string;
  /** Lines of the note. The note is for information only. It also states what was not monitored. */
  readonly lines?: readonly {
    /** Stable slug for the topic of the line. */
    readonly code: string;
    /** Text of the line: one or more sentences. */
    readonly text: string;
  }[];
}

export interface ProofDetail {
  /** Id of the proof. */
  readonly proofId: Identifier;
  /** Time of issue, in unix seconds. */
  readonly issuedAt: Timestamp;
  /** The song, as named when the proof was issued. */
  readonly song: {
    /** Title of the song. */
    readonly title: string;
    /**
     * What the issuing side declared about the song. The service did not check it. Absent if nothing was
     * declared.
     */
    readonly declared?: {
      /** Artist of the song. */
      readonly artist?: string;
      /** Release that contains the song. */
      readonly release?: string;
      /** International Standard Recording Code, without hyphens. */
      readonly isrc?: string;
    };
  };
  /** Where the credential is stored. */
  readonly carrier: Growing<'embedded' | 'sidecar'>;
  /**
   * SHA-256 of the bound audio. For an embedded credential this is the digest in the hard binding. For a
   * credential in a sidecar this is the digest of the whole audio file.
   */
  readonly boundAudioSha256: Sha256;
  /**
   * True if the service does not know the container format of the audio, and otherwise absent. The
   * operator who issued the proof stated that the file is audio.
   */
  readonly unknownContainer?: boolean;
  /** Name of the service when it issued the proof. Absent for proofs of versions that stored no name. */
  readonly issuer?: string;
  /** The same as `issuedAt`. */
  readonly createdAt: Timestamp;
  /** SHA-256 of the file before its credential was added. */
  readonly originalSha256: Sha256;
  /** The delivered audio file, and where its credential is stored. */
  readonly delivery: {
    /** Where the credential is stored. */
    readonly carrier: Growing<'embedded' | 'sidecar'>;
    /** Length of the delivered audio file, in bytes. */
    readonly bytes: number;
    /** SHA-256 of the delivered audio file. */
    readonly sha256: Sha256;
    /** Media type of the delivered audio file. */
    readonly mediaType: string;
    /** File name that is safe on every file system. */
    readonly fileName: string;
    /**
     * `verify_large` if the file exceeds 65 MiB: verifying it needs an upload slot of this purpose.
     * Otherwise absent.
     */
    readonly uploadPurpose?: Growing<'verify_large'>;
  };
  /** Record of the production. It never changes the verdict. */
  readonly evidenceReport?: EvidenceReport;
  /** Summary of the report in sentences. */
  readonly processNote?: ProcessNote;
  /**
   * Value that an imported proof had in its earlier registry, kept for compatibility. It does not state
   * a share of authorship or work.
   */
  readonly classification?: string;
  /**
   * Value that an imported proof had in its earlier registry, kept for compatibility. It does not state
   * a share of authorship or work.
   */
  readonly grade?: string;
  /**
   * Value that an imported proof had in its earlier registry, kept for compatibility. It does not state
   * a share of authorship or work.
   */
  readonly interpretation?: string;
}

export interface ProofEntry {
  /** Id of the proof. */
  readonly proofId: Identifier;
  /** Time of issue, in unix seconds. */
  readonly issuedAt: Timestamp;
  /** The song, as named when the proof was issued. */
  readonly song: {
    /** Title of the song. */
    readonly title: string;
  };
  /** Where the credential is stored. */
  readonly carrier: Growing<'embedded' | 'sidecar'>;
  /**
   * SHA-256 of the bound audio. For an embedded credential this is the digest in the hard binding. For a
   * credential in a sidecar this is the digest of the whole audio file.
   */
  readonly boundAudioSha256: Sha256;
  /**
   * True if the service does not know the container format of the audio, and otherwise absent. The
   * operator who issued the proof stated that the file is audio.
   */
  readonly unknownContainer?: boolean;
  /** Short form of the report. Absent if the proof has no report. */
  readonly evidenceSummary?: EvidenceSummary;
  /** The whole report. Present only if the call has `include=evidenceReport`. */
  readonly evidenceReport?: EvidenceReport;
}

export interface ProofPage {
  /** Entries of the page, newest first. */
  readonly proofs: readonly ProofEntry[];
  /** Cursor of the next page. Absent on the last page. */
  readonly nextCursor?: Cursor;
}

/** The registered record of a proof. It does not state that any file matches. */
export interface ProofRecord {
  /** Id of the proof. */
  readonly proofId: Identifier;
  /** The song, as named when the proof was issued. */
  readonly song: {
    /** Title of the song. */
    readonly title: string;
    /**
     * What the issuing side declared about the song. The service did not check it. Absent if nothing was
     * declared.
     */
    readonly declared?: {
      /** Artist of the song. */
      readonly artist?: string;
      /** Release that contains the song. */
      readonly release?: string;
      /** International Standard Recording Code, without hyphens. */
      readonly isrc?: string;
    };
  };
  /** Name of the service when it issued the proof. Absent for proofs of versions that stored no name. */
  readonly issuer?: string;
  /** Time of issue, in unix seconds. */
  readonly issuedAt: Timestamp;
  /** SHA-256 of the audio that the proof is bound to. */
  readonly boundAudioSha256: Sha256;
  /**
   * True if the service does not know the container format of the audio, and otherwise absent. The
   * operator who issued the proof stated that the file is audio.
   */
  readonly unknownContainer?: boolean;
  /** Record of the production. It never changes the verdict. */
  readonly evidenceReport?: EvidenceReport;
  /** Summary of the report in sentences. */
  readonly processNote?: ProcessNote;
  /** The delivered audio file, and where its credential is stored. */
  readonly delivery: {
    /** Where the credential is stored. */
    readonly carrier: Growing<'embedded' | 'sidecar'>;
    /** Length of the delivered audio file, in bytes. */
    readonly bytes: number;
    /** SHA-256 of the delivered audio file. */
    readonly sha256: Sha256;
    /** Media type of the delivered audio file. */
    readonly mediaType: string;
    /** File name that is safe on every file system. */
    readonly fileName: string;
    /**
     * `verify_large` if the file exceeds 65 MiB: verifying it needs an upload slot of this purpose.
     * Otherwise absent.
     */
    readonly uploadPurpose?: Growing<'verify_large'>;
  };
}

export interface ResolveReview {
  /**
   * Outcome that you decided. `held` may later become `accepted` or `rejected`. `accepted` and
   * `rejected` are final.
   */
  readonly outcome: ReviewOutcome;
}

/** Opaque identifiers of the case in the partner's own systems. Never send names or e-mail addresses. */
export interface ReviewBindings {
  /** Identifier of the creator in your own systems. */
  readonly creatorId: Identifier;
  /** Identifier of the account in your own systems. */
  readonly accountId: Identifier;
  /** Identifier of the submission in your own systems. */
  readonly submissionId: Identifier;
  /** Identifier of the track in your own systems. */
  readonly trackId: Identifier;
}

export interface ReviewPage {
  /** Cases of the page, newest first. */
  readonly reviews: readonly PartnerReviewCase[];
  /** Cursor of the next page. Absent on the last page. Even an empty page may have a cursor. */
  readonly nextCursor?: Cursor;
}

export interface RotatedKey {
  /** The new secret. Only this response and its idempotent replay contain it. */
  readonly apiKey: string;
  /** Id of the new key. */
  readonly keyId: Identifier;
  /** Name of the new key. The calling key has the same name. */
  readonly name: string;
  /** When the calling key stops working, in unix seconds: 72 hours after the rotation. */
  readonly previousKeyExpiresAt: Timestamp;
}

/**
 * Result of replaying a signed capture trace. It never states whether people or machines made the
 * music.
 */
export interface SessionEvidence {
  /** SHA-256 of the whole capture trace. The signed statement of the proof contains the same digest. */
  readonly traceSha256: Sha256;
  /** Size of the trace, in bytes. */
  readonly traceBytes: number;
  /** Format version of the trace. */
  readonly traceVersion: number;
  /** True for a generated test trace. It is not evidence of a real session. */
  readonly simulated: boolean;
  /** Agent that recorded the session activity. */
  readonly adapter: {
    /** Name of the agent, such as `ardour`. */
    readonly name: string;
    /** Version of the agent. */
    readonly version: string;
    /** Version of the audio workstation, if known. */
    readonly dawVersion?: string;
  };
  /** Device that signed the trace. */
  readonly device: {
    /** SHA-256 of the device's public key. */
    readonly deviceId: string;
    /** Whether the operator had enrolled or revoked the device when the proof was issued. */
    readonly standing: Growing<'enrolled' | 'unknown' | 'revoked'>;
  };
  /** Start of the session, in unix seconds by the device's clock. */
  readonly startedAt: Timestamp;
  /** Length of the signed session, in seconds. */
  readonly durationSeconds: number;
  /** True if the trace ends with the device's final signature. */
  readonly sealed: boolean;
  /** Number of events that a valid signature covers. */
  readonly events: number;
  /** Activity counts by kind. Later versions may add counters. */
  readonly counters: {
    /** Counter: Saves. */
    readonly saves: EvidenceCounter;
    /** Counter: Undone steps. */
    readonly undoneSteps: EvidenceCounter;
    /** Counter: Playbacks. */
    readonly playbacks: EvidenceCounter;
    /** Counter: Tempo changes. */
    readonly tempoChanges: EvidenceCounter;
    /** Counter: Tracks added. */
    readonly tracksAdded: EvidenceCounter;
    /** Counter: Tracks removed. */
    readonly tracksRemoved: EvidenceCounter;
    /** Counter: Clips created. */
    readonly clipsCreated: EvidenceCounter;
    /** Counter: Clips moved. */
    readonly clipsMoved: EvidenceCounter;
    /** Counter: Clips trimmed. */
    readonly clipsTrimmed: EvidenceCounter;
    /** Counter: Clips split. */
    readonly clipsSplit: EvidenceCounter;
    /** Counter: Clips copied. */
    readonly clipsCopied: EvidenceCounter;
    /** Counter: Clips deleted. */
    readonly clipsDeleted: EvidenceCounter;
    /** Counter: Clips changed in other ways. */
    readonly clipsChanged: EvidenceCounter;
    /** Counter: MIDI notes entered by hand. */
    readonly midiNotesEntered: EvidenceCounter;
    /** Counter: MIDI notes played in. */
    readonly midiNotesRecorded: EvidenceCounter;
    /** Counter: MIDI notes edited. */
    readonly midiNotesEdited: EvidenceCounter;
    /** Counter: Takes recorded. */
    readonly takesRecorded: EvidenceCounter;
    /** Counter: Takes seen to grow in real time. */
    readonly takesRecordedInRealTime: EvidenceCounter;
    /** Counter: Automation edits. */
    readonly automationEdits: EvidenceCounter;
    /** Counter: Plug-ins added. */
    readonly pluginsAdded: EvidenceCounter;
    /** Counter: Plug-in changes. */
    readonly pluginChanges: EvidenceCounter;
    /** Counter: Mixer changes. */
    readonly mixerChanges: EvidenceCounter;
    /** Counter: Files imported. */
    readonly importsAdded: EvidenceCounter;
    /** Counter: Clips made from imports. */
    readonly importPlacements: EvidenceCounter;
    /** Counter: Sources derived from other sources. */
    readonly sourcesDerived: EvidenceCounter;
    /** Counter: Sources of unobserved origin. */
    readonly sourcesAppeared: EvidenceCounter;
    /** Counter: Exports. */
    readonly exportsFinished: EvidenceCounter;
  };
  /** Monitoring coverage by channel. Later versions may add channels. */
  readonly coverage: {
    /** Coverage of the channel: Session file. */
    readonly session: ChannelCoverage;
    /** Coverage of the channel: Transport. */
    readonly transport: ChannelCoverage;
    /** Coverage of the channel: Tempo and meter. */
    readonly tempo: ChannelCoverage;
    /** Coverage of the channel: Tracks. */
    readonly tracks: ChannelCoverage;
    /** Coverage of the channel: Clips. */
    readonly clips: ChannelCoverage;
    /** Coverage of the channel: MIDI entry. */
    readonly midi: ChannelCoverage;
    /** Coverage of the channel: Audio recording. */
    readonly recording: ChannelCoverage;
    /** Coverage of the channel: Automation. */
    readonly automation: ChannelCoverage;
    /** Coverage of the channel: Plug-ins. */
    readonly plugins: ChannelCoverage;
    /** Coverage of the channel: Mixer. */
    readonly mixer: ChannelCoverage;
    /** Coverage of the channel: Imports. */
    readonly imports: ChannelCoverage;
    /** Coverage of the channel: Origin of sources. */
    readonly sourceMap: ChannelCoverage;
    /** Coverage of the channel: Export. */
    readonly export: ChannelCoverage;
  };
  /**
   * Takes, longest first. A long list is shortened. The counter `takesRecorded` is the number of all
   * takes, except takes from an input inside the workstation.
   */
  readonly recordings: readonly {
    /** Length of the take, in seconds. */
    readonly durationSeconds: number;
    /**
     * `observed`: the agent saw the take grow in real time from a hardware input. Otherwise `unknown`,
     * which does not imply any wrongdoing.
     */
    readonly realTime: Growing<'observed' | 'unknown'>;
    /** Kind of input that the take was recorded from, as far as the agent observed it. */
    readonly input: Growing<'hardware' | 'internal' | 'none' | 'unknown' | 'mixed'>;
    /** How often the agent observed that the take had grown. */
    readonly growthSteps: number;
    /**
     * Number of clips in the arrangement that use the take. Absent, instead of 0, if clips were not
     * monitored.
     */
    readonly placementCount?: number;
  }[];
  /** Activity over time, in intervals of equal length. */
  readonly activity: {
    /** Length of each time interval, in seconds. */
    readonly bucketSeconds: number;
    /** Time intervals with observed activity, in order of time. */
    readonly buckets: readonly {
      /** Start of the interval, in seconds from the start of the session. */
      readonly atSeconds: number;
      /**
       * Number of edits observed in the interval. Absent, instead of 0, if a channel of edits was not
       * monitored.
       */
      readonly edits?: number;
      /**
       * Number of recordings observed in the interval. Absent, instead of 0, if audio or MIDI recording was
       * not monitored.
       */
      readonly recordings?: number;
      /** Number of imports observed in the interval. Absent, instead of 0, if imports were not monitored. */
      readonly imports?: number;
    }[];
  };
  /**
   * The export that is the issued audio, or else the last export of the session. Absent if no export was
   * observed.
   */
  readonly export?: {
    /** SHA-256 of the exported file. */
    readonly fileSha256: Sha256;
    /** Whether the exported file is the issued audio. */
    readonly issuedAudio: Growing<'matches' | 'differs'>;
    /** Length of the export, in seconds. */
    readonly durationSeconds?: number;
    /** Whether the session was rendered again, and whether the result matched the export. */
    readonly rerender: Growing<'matched' | 'differed' | 'not_tried'>;
  };
}

/** SHA-256 digest in lower-case hex. */
export type Sha256 = string;

/**
 * Structure of the arrangement. Only approved partners get it, and only with the creator's consent. It
 * says nothing about the final mix.
 */
export interface SourceDetail {
  /** Version of the layout. */
  readonly version: number;
  /**
   * Version of the consent text that the creator agreed to. If the consent is revoked, the report omits
   * the source detail.
   */
  readonly consentVersion: Identifier;
  /** When the agent last finished reading the source map, in seconds from the start of the session. */
  readonly observedAtSeconds?: number;
  /** Tracks that were observed, including removed tracks. A long list is shortened. */
  readonly tracks: readonly {
    /** Id of the track within this report. */
    readonly trackId: Identifier;
    /** Type of the track. */
    readonly type: Growing<'audio' | 'midi' | 'bus' | 'other'>;
    /** Last observed state: still present, or removed. */
    readonly state: Growing<'present' | 'removed'>;
  }[];
  /**
   * Number of all tracks that were observed, including removed tracks and tracks that the list omits.
   * Absent, instead of 0, if tracks were not monitored.
   */
  readonly trackCount?: number;
  /** Clips that were observed in the arrangement, including removed clips. A long list is shortened. */
  readonly placements: readonly {
    /** Id of the clip within this report. */
    readonly placementId: Identifier;
    /** Id of the track that holds the clip. */
    readonly trackId: Identifier;
    /** Id of the imported source that the clip plays. Absent if the clip plays none. */
    readonly sourceId?: Identifier;
    /** Origin of the material, as far as it was observed. */
    readonly origin: Growing<'recorded' | 'imported' | 'midi' | 'derived' | 'unknown'>;
    /** Range of the clip, in beats. Absent if only its range in seconds is known. */
    readonly beats?: {
      /** Start of the range. */
      readonly start: number;
      /** End of the range. */
      readonly end: number;
    };
    /**
     * Range of the clip, in seconds, possibly estimated with the last observed tempo. Absent if only its
     * range in beats is known.
     */
    readonly approximateSeconds?: {
      /** Start of the range. */
      readonly start: number;
      /** End of the range. */
      readonly end: number;
    };
    /** Last observed state: still present, or removed. */
    readonly state: Growing<'present' | 'removed'>;
    /** Number of edits of the clip. More than 1000 edits are reported as 1000. */
    readonly edits: number;
  }[];
  /**
   * Number of all clips that were observed, including removed clips and clips that the list omits.
   * Absent, instead of 0, if clips were not monitored.
   */
  readonly placementCount?: number;
}

export interface StoredUpload {
  /** Id of the slot. */
  readonly uploadId: Identifier;
  /** Length of the received file, in bytes. */
  readonly bytes: number;
  /** SHA-256 of the received file. */
  readonly sha256: Sha256;
}

export interface Telemetry {
  /** Event counts. The service accepts either all entries or none. */
  readonly events: readonly {
    /** Name of the event, from a closed list. */
    readonly name:
      | 'app_started'
      | 'download_started'
      | 'verify_started'
      | 'verify_completed'
      | 'verify_failed'
      | 'verify_retried'
      | 'upload_failed'
      | 'pair_verified'
      | 'report_opened'
      | 'review_opened'
      | 'key_rotated';
    /** How often the event happened. */
    readonly count: number;
    /** Time of the events, in unix seconds. */
    readonly at: Timestamp;
  }[];
}

export interface TelemetryAccepted {
  /** Number of accepted entries. */
  readonly accepted: number;
}

/** Time in unix seconds. */
export type Timestamp = number;

export type UploadPurpose = 'verify' | 'identify' | 'verify_large' | 'identify_large';

/** A short-lived address to post one audio file to. */
export interface UploadSlot {
  /** Id of the upload. Pass it to `verify` or `identify`. */
  readonly uploadId: Identifier;
  /** Presigned URL. Posting to it needs no key, so keep it secret until it expires. */
  readonly url: string;
  /** Signed form fields. Send each entry as a form field, before the file. */
  readonly fields: Readonly<Record<string, string>>;
  /** Largest accepted file, in bytes. */
  readonly maxBytes: number;
  /** Units of quota that the verify or the identify of the file will cost: one for each 65 MiB begun. */
  readonly units: number;
  /** When the slot expires if it is not used, in unix seconds. */
  readonly expiresAt: Timestamp;
}

export interface UsageReport {
  /** The partner's plan. */
  readonly plan: string;
  /** The UTC calendar month that the quota applies to. */
  readonly period: {
    /** Start of the month, in unix seconds. */
    readonly start: Timestamp;
    /** Start of the next month, in unix seconds. */
    readonly end: Timestamp;
  };
  /** Monthly quota, in units. */
  readonly limit: number;
  /** The other limits of the plan. */
  readonly limits: {
    /** Requests per second. */
    readonly requestsPerSecond: number;
    /** Requests that may follow at once after a pause. */
    readonly burst: number;
    /** Uploads that may run at the same time. */
    readonly concurrentUploads: number;
    /** Key rotations per day. */
    readonly rotationsPerDay: number;
  };
  /** Units used this month. */
  readonly used: number;
  /** Units left this month. */
  readonly remaining: number;
  /** One entry per UTC day, including days without calls. The last entry is today. */
  readonly days: readonly {
    /** UTC day, such as 2026-01-31. */
    readonly day: string;
    /** Units of the quota that were used on this day. */
    readonly units: number;
    /** Units per billed operation, and number of calls per free operation. */
    readonly operations: Readonly<Record<string, number>>;
  }[];
}

export interface VerificationResponse {
  /**
   * Verdict on the file. Accept the file only if the verdict is `valid` and `good` is true. Treat a
   * verdict that you do not know as a failed verification.
   */
  readonly verdict: Growing<KnownVerdict>;
  /** True only if the verdict is `valid`. */
  readonly good: boolean;
  /** Reasons for the verdict, and the action that is recommended to the caller. */
  readonly decision: DecisionEnvelope;
  /** When the proof was issued, in unix seconds. Present only if the verdict is `valid`. */
  readonly issuedAt?: Timestamp;
  /** Id of the proof. Present if the judged credential is intact and was made by this service. */
  readonly proofId?: Identifier;
  /** Time of the verification, in unix seconds. */
  readonly verifiedAt: Timestamp;
  /** Properties of the uploaded audio file. */
  readonly audio: AudioSummary;
  /** Record of the production. It never changes the verdict. */
  readonly evidenceReport?: EvidenceReport;
  /**
   * Value that an imported proof had in its earlier registry, kept for compatibility. It does not state
   * a share of authorship or work.
   */
  readonly classification?: string;
  /**
   * Value that an imported proof had in its earlier registry, kept for compatibility. It does not state
   * a share of authorship or work.
   */
  readonly grade?: string;
  /**
   * Value that an imported proof had in its earlier registry, kept for compatibility. It does not state
   * a share of authorship or work.
   */
  readonly interpretation?: string;
  /** Report on the Content Credential found in the file. */
  readonly embeddedCredential?: CredentialReport;
}

export interface Verify {
  /** Upload to verify. Its purpose must be `verify` or `verify_large`. */
  readonly uploadId: Identifier;
  /**
   * Legacy sidecar file in padded base64 (RFC 4648, section 4). Omit it for a WAV file that contains its
   * credential.
   */
  readonly sidecar?: string;
}
