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

/** Measurements of the uploaded file. Members of the format are absent where the file is no WAV or BWF. */
export interface AudioSummary {
  /** Container that the first bytes of the file announce. */
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
  >;
  /** Samples a second of each channel. */
  readonly sampleRate?: number;
  /** Channels. */
  readonly channels?: number;
  /** Bits of a sample. */
  readonly bitsPerSample?: number;
  /** Samples of one channel. */
  readonly frames?: number;
  /** Length of the audio. */
  readonly durationSeconds?: number;
  /** Length of the file. */
  readonly bytes: number;
  /** SHA-256 of the whole file. */
  readonly sha256: Sha256;
}

/** How far a channel of the session was watched. */
export interface ChannelCoverage {
  /**
   * Whether the adapter sees every act of the channel, some, none, or cannot tell. Only `supported`
   * without gaps is complete.
   */
  readonly support: Growing<'supported' | 'partial' | 'unsupported' | 'unknown'>;
  /** Acts that were witnessed when they happened; absent where nobody looks. */
  readonly exact?: number;
  /** Acts of which only the states before and after were seen: order and time are not known. */
  readonly interval?: number;
  /** The first times in which the channel was not watched. */
  readonly gaps: readonly {
    /** Start, in seconds of the session. */
    readonly fromSeconds: number;
    /** End, in seconds of the session. */
    readonly toSeconds: number;
    /** Why nobody looked. */
    readonly reason: string;
  }[];
  /** Count of all such times; absent where nobody looks. */
  readonly gapCount?: number;
}

export interface CloseEvidence {
  /** Final status of the request. */
  readonly status: 'accepted' | 'declined';
  /** A bounded opaque reference into the partner's own evidence system. */
  readonly responseReference?: string;
}

export interface CreateReview {
  /** Registered proof, of any partner. */
  readonly proofId: Identifier;
  /** Your own identifiers, all four. */
  readonly bindings: ReviewBindings;
}

export interface CreateUpload {
  /** Purpose of the upload; `verify` where it is absent. */
  readonly purpose?: UploadPurpose;
  /** Exact length of the file, in bytes; another length is refused. */
  readonly contentLength?: number;
}

/** Stable slug of what failed in a credential, or of what is not checked in it. */
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
  | 'time_stamp_not_checked'
>;

/** Opaque; bound to the partner, the list and its filter. */
export type Cursor = string;

/** Policy-neutral: it never labels a track human or AI. */
export interface DecisionEnvelope {
  /** `needs_review` is no failure of the credential: the evidence report asks for a human decision. */
  readonly status: Growing<'verified_binding' | 'needs_review' | 'invalid_proof'>;
  /** Grounds of the verdict; the first one decided. */
  readonly reasons: readonly DecisionReason[];
  /** Hint for automation. */
  readonly recommendedAction: Growing<
    'accept_credential' | 'review' | 'reject' | 'request_matching_pair' | 'confirm_file'
  >;
  /** What held the credential. */
  readonly credentialCarrier: Growing<'embedded' | 'sidecar' | 'none'>;
  /** How far source detail is delivered. */
  readonly sourceDetailCoverage: Growing<'full' | 'partial' | 'none'>;
  /** Counts of the evidence report; zeros without one. */
  readonly counts: {
    /** Answers that creators declared. */
    readonly declarations: number;
    /** Conflicts. */
    readonly conflicts: number;
    /** Gaps that nothing can verify. */
    readonly unverifiable: number;
  };
}

/** Stable slug. Treat one that you do not know as its verdict says. */
export type DecisionReason = Growing<
  | 'credential_verified'
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
  | 'sealed_by_device'
>;

export interface CreatorDeclaration {
  /** Edition of the survey that was asked. */
  readonly surveyVersion: Identifier;
  /** Submission that the answers belong to. */
  readonly submissionId: Identifier;
  /** Who or what the answers are about; opaque, never a name. */
  readonly subject: Identifier;
  /** Unix seconds, by the survey's clock. */
  readonly submittedAt: Timestamp;
  /** Answers, at least one. */
  readonly answers: {
    /** Where the material came from, as the creator says. */
    readonly declaredOrigin?: Growing<
      'from_scratch' | 'own_material' | 'third_party_material' | 'generated_material' | 'undisclosed'
    >;
    /** Share of generated material, as the creator says. */
    readonly aiShareBand?: Growing<
      | 'none'
      | 'under_quarter'
      | 'quarter_to_half'
      | 'half_to_three_quarters'
      | 'over_three_quarters'
      | 'undisclosed'
    >;
    /** Work by hand, as the creator says. */
    readonly manualWork?: Growing<'none' | 'some' | 'substantial' | 'entire' | 'undisclosed'>;
    /** The creator's own part of the work, as the creator says. */
    readonly contributionBand?: Growing<
      'all_self_made' | 'majority_self_made' | 'shared' | 'minority_self_made' | 'undisclosed'
    >;
    /** Whether the creator disputes an assessment of the track. */
    readonly disputedAssessment?: Growing<'not_disputed' | 'disputed'>;
    /** Roles in which generated material was used, as the creator says. */
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
  /** Unix seconds, by the service's clock. */
  readonly recordedAt: Timestamp;
  /** Recorded after issuance, not part of the original proof signature. */
  readonly bindingStatus: Growing<'authenticated_post_issuance_record'>;
}

/** Report of an embedded Content Credential: integrity and trust apart. */
export interface CredentialReport {
  /** Format of the credential. */
  readonly format: Growing<'c2pa'>;
  /** Organisation that the signing certificate names. */
  readonly issuer?: string;
  /** Name that the device of a local seal gives itself; nobody vouches for it. */
  readonly device?: string;
  /** Program that made the claim, as it calls itself. */
  readonly generator?: string;
  /** Algorithm of the signature. */
  readonly algorithm?: string;
  /** Version of the C2PA claim. */
  readonly claimVersion?: number;
  /** Label of the active manifest. */
  readonly manifestLabel?: string;
  /** Outcome of checking signature and hashes. */
  readonly integrity: Growing<'verified' | 'failed' | 'not_checked'>;
  /** Signer. */
  readonly trust: Growing<'service' | 'device' | 'unknown'>;
  /** Slugs of what was found; empty where nothing was. */
  readonly reasons: readonly CredentialReason[];
}

export interface ErasedProof {
  /** Id of the proof. */
  readonly proofId: Identifier;
  /** `already_erased`: by an earlier call. */
  readonly outcome: Growing<'erased' | 'already_erased'>;
  /** Time of the first erasure, in unix seconds. */
  readonly erasedAt: Timestamp;
}

/** An activity counter of the session. */
export interface EvidenceCounter {
  /**
   * `unsupported`: the adapter does not look; `unknown`: it cannot tell, or looked with gaps. Neither is
   * a zero.
   */
  readonly status: Growing<'observed' | 'not_observed' | 'unsupported' | 'unknown'>;
  /** How many; with `observed` and `not_observed` alone. Show its absence as the status, never as 0. */
  readonly value?: number;
}

export interface EvidenceFact {
  /**
   * Stable slug. One that you do not know is rendered as it is. `x-codes` has the meaning of those known
   * today.
   */
  readonly code: Growing<
    | 'session_evidence_replayed'
    | 'session_summary_reconciled'
    | 'imports_observed'
    | 'imported_material_derived'
    | 'takes_recorded_in_real_time'
    | 'takes_from_internal_input'
    | 'imported_audio_ai_likelihood'
    | 'AiLikelySource'
    | 'placements_without_recording_or_midi_entry'
    | 'imports_cover_most_of_export'
    | 'activity_after_export'
    | 'edits_only_of_imported_material'
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
    | 'trace_simulated'
    | 'export_rerender_differs'
    | 'recording_claim_not_witnessed'
    | 'sources_of_unknown_origin'
    | 'derived_material_of_unknown_origin'
    | 'takes_without_real_time_evidence'
    | 'channel_unsupported'
    | 'channel_unknown'
    | 'channel_partial'
    | 'channel_gaps'
    | 'detection_without_import'
  >;
  /** Kind of statement. */
  readonly contentClass: Growing<
    | 'direct_observation'
    | 'rule_inference'
    | 'creator_declaration'
    | 'explicit_conflict'
    | 'unverifiable_coverage_gap'
  >;
  /** How it is known. Whether the report asks for a person at all is in `decision.status`. */
  readonly status: Growing<
    'observed' | 'inferred' | 'reported' | 'declared' | 'none_recorded' | 'unverifiable' | 'needs_review'
  >;
  /** Question of the survey that a declaration answers. */
  readonly dimension?: Growing<
    'declaredOrigin' | 'aiShareBand' | 'manualWork' | 'contributionBand' | 'disputedAssessment' | 'aiRoles'
  >;
  /**
   * Declarations of the creator; favourable and adverse answers alike. Several words are joined by
   * commas.
   */
  readonly answer?: string;
  /** Submission that the answer belongs to. */
  readonly submissionId?: Identifier;
  /** Version of the rule that concluded the fact. */
  readonly ruleVersion?: number;
  /**
   * What the fact rests on, by name: counts, seconds, words; of a reconciliation both sides. A
   * probability is a ratio from 0 to 1 and never a share of the timeline.
   */
  readonly values?: Readonly<Record<string, number | string>>;
}

/**
 * Report-only. Absent on older proofs that were imported, which is to be read as unavailable source
 * evidence.
 */
export interface EvidenceReport {
  /** Version of the layout; it rises when a reader must know. */
  readonly version: number;
  /**
   * Observations, inferences and declarations: a `creator_declaration` for each answered dimension of
   * each submission, or one with the status `none_recorded`.
   */
  readonly facts: readonly EvidenceFact[];
  /** What was witnessed or declared and does not go together. */
  readonly conflicts: readonly EvidenceFact[];
  /** Coverage gaps: what nobody witnessed. */
  readonly unverifiable: readonly EvidenceFact[];
  /** Raw answers, oldest first. */
  readonly declarations: readonly CreatorDeclaration[];
  /** Versions of the engine behind the report; nothing is made anew in silence. */
  readonly engine?: {
    /** Engine that settled the facts of the trace at issuing. */
    readonly facts?: number;
    /** Engine that last concluded conflicts and inferences from declarations. */
    readonly overlay: number;
    /** Rises with each change after issuing. */
    readonly revision: number;
  };
  /** Of proofs that were issued with a capture trace. */
  readonly session?: {
    /** Result of replaying the trace. */
    readonly evidence: SessionEvidence;
  };
  /** Witnessed imports, in the order of import; long lists are cut. */
  readonly importedSources?: readonly ImportedSource[];
  /** Count of all witnessed imports, those included that the list leaves out. */
  readonly importedSourceCount?: number;
  /** Structure of the arrangement, under the creator's consent. */
  readonly sourceDetail?: SourceDetail;
}

export interface EvidenceRequest {
  /** Id of the evidence request. */
  readonly requestId: Identifier;
  /** Evidence that was asked for. */
  readonly kind: Growing<EvidenceKind>;
  /** Where the request stands. */
  readonly status: Growing<'requested' | 'supplied' | 'accepted' | 'declined'>;
  /** A bounded opaque reference into the partner's own evidence system. */
  readonly responseReference?: string;
  /** Time of its creation, in unix seconds. */
  readonly createdAt: Timestamp;
  /** Time of its last change, in unix seconds. */
  readonly updatedAt: Timestamp;
}

export interface EvidenceSummary {
  /** Outcome of the report. */
  readonly status: Growing<'needs_review' | 'recorded' | 'none_recorded'>;
  /** Counts of the evidence report; zeros without one. */
  readonly counts: {
    /** Answers that creators declared. */
    readonly declarations: number;
    /** Conflicts. */
    readonly conflicts: number;
    /** Gaps that nothing can verify. */
    readonly unverifiable: number;
  };
  /** Codes of the report, each once. */
  readonly codes: readonly string[];
}

export interface Fixtures {
  /** Every fixture. */
  readonly fixtures: readonly {
    /** Name of the fixture, of lower-case letters, digits and `_`. */
    readonly name: string;
    /**
     * Accept only when this is `valid` and `good` is true. A value you do not know is a failed
     * verification.
     */
    readonly verdict: Growing<KnownVerdict>;
    /** True for an accepted result alone. */
    readonly good: boolean;
    /** Members of the decision that verify gives, whenever it is asked. */
    readonly decision: {
      /** `needs_review` is no failure of the credential: the evidence report asks for a human decision. */
      readonly status: Growing<'verified_binding' | 'needs_review' | 'invalid_proof'>;
      /** Grounds of the verdict; the first one decided. */
      readonly reasons: readonly DecisionReason[];
      /** Hint for automation. */
      readonly recommendedAction: Growing<
        'accept_credential' | 'review' | 'reject' | 'request_matching_pair' | 'confirm_file'
      >;
      /** What held the credential. */
      readonly credentialCarrier: Growing<'embedded' | 'sidecar' | 'none'>;
    };
    /** The audio, and of a pair the sidecar. */
    readonly files: readonly {
      /** Part of the fixture. */
      readonly part: Growing<'audio' | 'sidecar'>;
      /** A safe name for the file. */
      readonly fileName: string;
      /** Media type of the file. */
      readonly mediaType: string;
      /** Length of the file. */
      readonly bytes: number;
      /** Digest of the file; its ETag too. */
      readonly sha256: Sha256;
      /** Path from which the file is downloaded, with a key. */
      readonly href: string;
    }[];
  }[];
}

export interface Health {
  /** True where the service is up. */
  readonly ok: boolean;
  /** Version of the service. */
  readonly version: string;
  /** Commit that it was built from. */
  readonly commit: string;
  /** Time of its deployment, in unix seconds. */
  readonly deployedAt: Timestamp;
  /** `production` or `beta`. */
  readonly environment: string;
  /** Version of this contract. */
  readonly contract: string;
}

export interface Identification {
  /** Matches, the surest first; empty where there is none. */
  readonly matches: readonly {
    /** Proof that the file belongs to. */
    readonly proofId: Identifier;
    /** Bytes that are the same. */
    readonly type: Growing<'exact_file' | 'bound_audio' | 'original_file'>;
    /** From 0 to 1; 1 for a match by digest. */
    readonly confidence: number;
  }[];
}

/** Opaque. Malformed ones are 400; every other one that is not there is 404. */
export type Identifier = string;

export interface Identify {
  /** Upload to identify, of the purpose `identify`. */
  readonly uploadId: Identifier;
}

/** A file whose import into the session was witnessed. */
export interface ImportedSource {
  /** Local to the report: `s1`, `s2`, ... */
  readonly sourceId: Identifier;
  /** How the file came into the session. */
  readonly manner: Growing<'copied' | 'referenced' | 'midi' | 'unknown'>;
  /** Digest of the samples as the session held them. */
  readonly samplesSha256?: Sha256;
  /** Digest of the whole file that they were found to come from. */
  readonly originalSha256?: Sha256;
  /** Length of the source. */
  readonly durationSeconds?: number;
  /**
   * Where it, or what was made of it, sits in the arrangement; says nothing on what the mix lets hear.
   * Absent where nobody looks.
   */
  readonly placements?: {
    /** Places of the arrangement in which it lay at the last observation. */
    readonly count: number;
    /** Their length together, without counting overlaps twice. */
    readonly approximateSeconds: number;
    /** The first of them, in seconds of the arrangement. */
    readonly spans: readonly {
      /** Start. */
      readonly startSeconds: number;
      /** End. */
      readonly endSeconds: number;
    }[];
  };
  /** Results that the issuing side supplied. */
  readonly detections?: readonly {
    /** Detector that the issuing side used. */
    readonly detector: string;
    /** Its version. */
    readonly detectorVersion: string;
    /** Probability that the file was generated. It is no share of the timeline. */
    readonly likelihood?: {
      /** From 0 to 1. */
      readonly value: number;
      /** Unit of the value. */
      readonly unit: Growing<'ratio'>;
    };
    /** Generator that the file is attributed to. */
    readonly generator?: string;
  }[];
}

export interface KeyEntry {
  /** Id of the key; no secret. */
  readonly keyId: Identifier;
  /** Name that it was given. */
  readonly name: string;
  /** State of the key. */
  readonly status: Growing<'active' | 'expiring' | 'expired' | 'revoked'>;
  /** Scopes of the key; an operation says in `x-scope` which one it needs. */
  readonly scopes: readonly Growing<'verify' | 'proofs' | 'erase' | 'reviews' | 'keys' | 'usage'>[];
  /** The partner's plan. */
  readonly plan: string;
  /** Time of its creation, in unix seconds. */
  readonly createdAt: Timestamp;
  /** End of a key that was rotated, in unix seconds. */
  readonly expiresAt?: Timestamp;
  /** Time of its last use, in unix seconds, exact to a minute. */
  readonly lastUsedAt?: Timestamp;
  /** True where calls with the key must be signed. */
  readonly signed?: boolean;
}

export interface KeyPage {
  /** Keys, oldest first. */
  readonly keys: readonly KeyEntry[];
  /** Cursor of the next page; absent on the last one. */
  readonly nextCursor?: Cursor;
}

export interface OpenEvidence {
  /** Evidence that is asked for, each kind once. */
  readonly kind: EvidenceKind;
}

export interface PartnerReviewCase {
  /** Id of the review. */
  readonly reviewId: Identifier;
  /** Proof that is reviewed. */
  readonly proofId: Identifier;
  /** Your own identifiers. */
  readonly bindings: {
    /** Your identifier of the creator. */
    readonly creatorId: Identifier;
    /** Your identifier of the account. */
    readonly accountId: Identifier;
    /** Your identifier of the submission. */
    readonly submissionId: Identifier;
    /** Your identifier of the track. */
    readonly trackId: Identifier;
  };
  /** Where the case stands. */
  readonly status: Growing<'open' | 'resolved'>;
  /** The partner's own; not a claim of authorship or rights. */
  readonly outcome?: Growing<ReviewOutcome>;
  /** Time of its creation, in unix seconds. */
  readonly createdAt: Timestamp;
  /** Time of its last change, in unix seconds. */
  readonly updatedAt: Timestamp;
  /** Time at which its outcome was recorded, in unix seconds. */
  readonly resolvedAt?: Timestamp;
  /** Creation and 180 days; it never moves, and from then on the case is not there. */
  readonly expiresAt: Timestamp;
  /** Evidence requests in the order of their creation. */
  readonly evidenceRequests: readonly EvidenceRequest[];
}

export interface ProcessNote {
  /** Fixed policy of presentation: one report and one policy give one note. */
  readonly policyVersion?: string;
  /** Report-only; what was not watched is named as that. */
  readonly lines?: readonly {
    /** Stable slug of what the line is about. */
    readonly code: string;
    /** A sentence. */
    readonly text: string;
  }[];
}

export interface ProofDetail {
  /** Id of the proof. */
  readonly proofId: Identifier;
  /** Time of issue, in unix seconds. */
  readonly issuedAt: Timestamp;
  /** The song, as the issuing side named it. */
  readonly song: {
    /** Title as it was issued. */
    readonly title: string;
  };
  /** Carrier of the credential. */
  readonly carrier: Growing<'embedded' | 'sidecar'>;
  /** Hard-binding digest of an embedded credential; digest of the whole file of a pair. */
  readonly boundAudioSha256: Sha256;
  /** The same as `issuedAt`. */
  readonly createdAt: Timestamp;
  /** SHA-256 of the file as it came to be issued. */
  readonly originalSha256: Sha256;
  /** Record of the production; it changes no verdict. */
  readonly evidenceReport?: EvidenceReport;
  /** Summary of the report in sentences. */
  readonly processNote?: ProcessNote;
  /** Compatibility data of an older proof, and no share of authorship or work. */
  readonly classification?: string;
  /** Compatibility data of an older proof, and no share of authorship or work. */
  readonly grade?: string;
  /** Compatibility data of an older proof, and no share of authorship or work. */
  readonly interpretation?: string;
}

export interface ProofEntry {
  /** Id of the proof. */
  readonly proofId: Identifier;
  /** Time of issue, in unix seconds. */
  readonly issuedAt: Timestamp;
  /** The song, as the issuing side named it. */
  readonly song: {
    /** Title as it was issued. */
    readonly title: string;
  };
  /** Carrier of the credential. */
  readonly carrier: Growing<'embedded' | 'sidecar'>;
  /** Hard-binding digest of an embedded credential; digest of the whole file of a pair. */
  readonly boundAudioSha256: Sha256;
  /** Short form of the report; absent where there is no report. */
  readonly evidenceSummary?: EvidenceSummary;
  /** Where the call asks for it with `include=evidenceReport`. */
  readonly evidenceReport?: EvidenceReport;
}

export interface ProofPage {
  /** Entries of the page, newest first. */
  readonly proofs: readonly ProofEntry[];
  /** Cursor of the next page; absent on the last one. */
  readonly nextCursor?: Cursor;
}

/** Registered record behind a proof. It does not say that any file matches. */
export interface ProofRecord {
  /** Id of the proof. */
  readonly proofId: Identifier;
  /** The song, as the issuing side named it. */
  readonly song: {
    /** Title as it was issued. */
    readonly title: string;
  };
  /** Time of issue, in unix seconds. */
  readonly issuedAt: Timestamp;
  /** Digest of the audio that the proof is bound to. */
  readonly boundAudioSha256: Sha256;
  /** Record of the production; it changes no verdict. */
  readonly evidenceReport?: EvidenceReport;
  /** Summary of the report in sentences. */
  readonly processNote?: ProcessNote;
  /** Delivery of the credentialed file. */
  readonly delivery: {
    /** Carrier of the credential. */
    readonly carrier: Growing<'embedded' | 'sidecar'>;
    /** Length of the delivered audio file. */
    readonly bytes: number;
    /** SHA-256 of the delivered audio file. */
    readonly sha256: Sha256;
    /** Its media type. */
    readonly mediaType: string;
    /** A safe name for it. */
    readonly fileName: string;
  };
}

export interface ResolveReview {
  /** Your own outcome. `held` may later become `accepted` or `rejected`, which are final. */
  readonly outcome: ReviewOutcome;
}

/** The partner's own opaque identifiers: never names or e-mail addresses. */
export interface ReviewBindings {
  /** Your identifier of the creator. */
  readonly creatorId: Identifier;
  /** Your identifier of the account. */
  readonly accountId: Identifier;
  /** Your identifier of the submission. */
  readonly submissionId: Identifier;
  /** Your identifier of the track. */
  readonly trackId: Identifier;
}

export interface ReviewPage {
  /** Cases of the page, newest first. */
  readonly reviews: readonly PartnerReviewCase[];
  /** Cursor of the next page; absent on the last one. A page may be empty and have one. */
  readonly nextCursor?: Cursor;
}

export interface RotatedKey {
  /** The new secret, visible only in this response and its idempotent replay. */
  readonly apiKey: string;
  /** Id of the new key. */
  readonly keyId: Identifier;
  /** Name, as of the calling key. */
  readonly name: string;
  /** When the calling key stops working: 72 hours after rotation. */
  readonly previousKeyExpiresAt: Timestamp;
}

/** What the replay of a signed capture trace tells. It never says who or what made the music. */
export interface SessionEvidence {
  /** Digest of the whole signed capture trace; the signed statement names it. */
  readonly traceSha256: Sha256;
  /** Bytes of the trace. */
  readonly traceBytes: number;
  /** Version of the trace's format. */
  readonly traceVersion: number;
  /** True for a generated trace, which witnesses nothing. */
  readonly simulated: boolean;
  /** Agent that witnessed the session. */
  readonly adapter: {
    /** Kind of the agent. */
    readonly name: string;
    /** Version of the agent. */
    readonly version: string;
    /** Version of the workstation, where it is known. */
    readonly dawVersion?: string;
  };
  /** Device that signed the trace. */
  readonly device: {
    /** SHA-256 of the device's public key. */
    readonly deviceId: string;
    /** Standing of the device with the operator at the time of issuing. */
    readonly standing: Growing<'enrolled' | 'unknown' | 'revoked'>;
  };
  /** Start of the session, unix seconds by the device's clock. */
  readonly startedAt: Timestamp;
  /** Length of the signed session. */
  readonly durationSeconds: number;
  /** True where the trace ends with the device's final signature. */
  readonly sealed: boolean;
  /** Events that a valid signature covers. */
  readonly events: number;
  /** What was done, by kind. Counters may be added. */
  readonly counters: {
    /** Saves. */
    readonly saves: EvidenceCounter;
    /** Undone steps. */
    readonly undoneSteps: EvidenceCounter;
    /** Playbacks. */
    readonly playbacks: EvidenceCounter;
    /** Tempo changes. */
    readonly tempoChanges: EvidenceCounter;
    /** Tracks added. */
    readonly tracksAdded: EvidenceCounter;
    /** Tracks removed. */
    readonly tracksRemoved: EvidenceCounter;
    /** Clips created. */
    readonly clipsCreated: EvidenceCounter;
    /** Clips moved. */
    readonly clipsMoved: EvidenceCounter;
    /** Clips trimmed. */
    readonly clipsTrimmed: EvidenceCounter;
    /** Clips split. */
    readonly clipsSplit: EvidenceCounter;
    /** Clips copied. */
    readonly clipsCopied: EvidenceCounter;
    /** Clips deleted. */
    readonly clipsDeleted: EvidenceCounter;
    /** Clips changed otherwise. */
    readonly clipsChanged: EvidenceCounter;
    /** MIDI notes entered by hand. */
    readonly midiNotesEntered: EvidenceCounter;
    /** MIDI notes played in. */
    readonly midiNotesRecorded: EvidenceCounter;
    /** MIDI notes edited. */
    readonly midiNotesEdited: EvidenceCounter;
    /** Takes recorded. */
    readonly takesRecorded: EvidenceCounter;
    /** Takes seen to grow in real time. */
    readonly takesRecordedInRealTime: EvidenceCounter;
    /** Automation edits. */
    readonly automationEdits: EvidenceCounter;
    /** Plug-ins added. */
    readonly pluginsAdded: EvidenceCounter;
    /** Plug-in changes. */
    readonly pluginChanges: EvidenceCounter;
    /** Mixer changes. */
    readonly mixerChanges: EvidenceCounter;
    /** Files imported. */
    readonly importsAdded: EvidenceCounter;
    /** Placements of imports. */
    readonly importPlacements: EvidenceCounter;
    /** Sources made of others. */
    readonly sourcesDerived: EvidenceCounter;
    /** Sources of unwitnessed origin. */
    readonly sourcesAppeared: EvidenceCounter;
    /** Exports. */
    readonly exportsFinished: EvidenceCounter;
  };
  /** By channel. Channels may be added. */
  readonly coverage: {
    /** Session. */
    readonly session: ChannelCoverage;
    /** Transport. */
    readonly transport: ChannelCoverage;
    /** Tempo and meter. */
    readonly tempo: ChannelCoverage;
    /** Tracks. */
    readonly tracks: ChannelCoverage;
    /** Clips. */
    readonly clips: ChannelCoverage;
    /** MIDI entry. */
    readonly midi: ChannelCoverage;
    /** Audio recording. */
    readonly recording: ChannelCoverage;
    /** Automation. */
    readonly automation: ChannelCoverage;
    /** Plug-ins. */
    readonly plugins: ChannelCoverage;
    /** Mixer. */
    readonly mixer: ChannelCoverage;
    /** Imports. */
    readonly imports: ChannelCoverage;
    /** Source map. */
    readonly sourceMap: ChannelCoverage;
    /** Export. */
    readonly export: ChannelCoverage;
  };
  /** Takes, longest first; long lists are cut, and `takesRecorded` counts all. */
  readonly recordings: readonly {
    /** Length of the take. */
    readonly durationSeconds: number;
    /**
     * `observed`: the take was seen to grow at its true rate, from an input that was seen to be hardware.
     * Else `unknown`, which is no accusation.
     */
    readonly realTime: Growing<'observed' | 'unknown'>;
    /** What the input was connected to while it ran, where seen. */
    readonly input: Growing<'hardware' | 'internal' | 'none' | 'unknown' | 'mixed'>;
    /** Steps of growth that were seen. */
    readonly growthSteps: number;
    /** Places of the arrangement in which the take lies; absent where nobody looks. */
    readonly placementCount?: number;
  }[];
  /** Acts over the time of the session. */
  readonly activity: {
    /** Length of a stretch. */
    readonly bucketSeconds: number;
    /** Stretches, in order. */
    readonly buckets: readonly {
      /** Start of the stretch, in seconds of the session. */
      readonly atSeconds: number;
      /** Edits that were seen in it; absent where none was seen and not all are looked at. */
      readonly edits?: number;
      /** Recordings; absent where nobody looks. */
      readonly recordings?: number;
      /** Imports; absent where nobody looks. */
      readonly imports?: number;
    }[];
  };
  /** Export of the session; absent where none was seen. */
  readonly export?: {
    /** Digest of the file that was exported last. */
    readonly fileSha256: Sha256;
    /** Whether it is the audio that was issued. */
    readonly issuedAudio: Growing<'matches' | 'differs'>;
    /** Length of the export. */
    readonly durationSeconds?: number;
    /** Outcome of rendering the session again, where the workstation was at hand. */
    readonly rerender: Growing<'matched' | 'differed' | 'not_tried'>;
  };
}

/** Lower-case hex. */
export type Sha256 = string;

/**
 * Structure of the arrangement, for approved partners and with the creator's consent. It claims
 * nothing on the final mix.
 */
export interface SourceDetail {
  /** Version of the layout. */
  readonly version: number;
  /** The creator's consent under which it is delivered; revoked, the detail is gone. */
  readonly consentVersion: Identifier;
  /** Seconds of the signed session at the latest completed observation of the source map. */
  readonly observedAtSeconds?: number;
  /** Tracks; long lists are cut. */
  readonly tracks: readonly {
    /** Local to the report. */
    readonly trackId: Identifier;
    /** Kind of the track. */
    readonly type: Growing<'audio' | 'midi' | 'bus' | 'other'>;
    /** Last observed state. */
    readonly state: Growing<'present' | 'removed'>;
  }[];
  /** Count of all tracks; absent where nobody looks at them. */
  readonly trackCount?: number;
  /** Placements; long lists are cut. */
  readonly placements: readonly {
    /** Local to the report. */
    readonly placementId: Identifier;
    /** Track on which it lies. */
    readonly trackId: Identifier;
    /** Imported source that it shows, if it shows one. */
    readonly sourceId?: Identifier;
    /** How the material came to be, as far as that was witnessed. */
    readonly origin: Growing<'recorded' | 'imported' | 'midi' | 'derived' | 'unknown'>;
    /** The workstation's beats; absent where its tempo is not known. */
    readonly beats?: {
      /** Start. */
      readonly start: number;
      /** End. */
      readonly end: number;
    };
    /** Estimated with the tempo as it was last observed; absent where it is not known. */
    readonly approximateSeconds?: {
      /** Start. */
      readonly start: number;
      /** End. */
      readonly end: number;
    };
    /** Last observed state. */
    readonly state: Growing<'present' | 'removed'>;
    /** Edits, 1000 at most. */
    readonly edits: number;
  }[];
  /** Count of all placements; absent where nobody looks at them. */
  readonly placementCount?: number;
}

export interface StoredUpload {
  /** Id of the slot. */
  readonly uploadId: Identifier;
  /** Length of the file that arrived. */
  readonly bytes: number;
  /** SHA-256 of the file that arrived. */
  readonly sha256: Sha256;
}

export interface Telemetry {
  /** Counts; all of a report are taken, or none. */
  readonly events: readonly {
    /** Name of what is counted, of a closed list. */
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
    /** Count of the event. */
    readonly count: number;
    /** Time, in unix seconds. */
    readonly at: Timestamp;
  }[];
}

export interface TelemetryAccepted {
  /** Entries that were taken. */
  readonly accepted: number;
}

/** Unix epoch seconds. */
export type Timestamp = number;

export type UploadPurpose = 'verify' | 'identify';

/** A short-lived place to post one audio file to. */
export interface UploadSlot {
  /** Id by which verify or identify finds the file. */
  readonly uploadId: Identifier;
  /** Presigned: it needs no key, and is a secret while it lives. */
  readonly url: string;
  /** Each entry is sent as a form field, before the file. */
  readonly fields: Readonly<Record<string, string>>;
  /** Largest file that it takes. */
  readonly maxBytes: number;
  /** End of the unused slot, in unix seconds. */
  readonly expiresAt: Timestamp;
}

export interface UsageReport {
  /** The partner's plan. */
  readonly plan: string;
  /** The UTC calendar month that the quota holds for. */
  readonly period: {
    /** First second, unix. */
    readonly start: Timestamp;
    /** First second of the next one, unix. */
    readonly end: Timestamp;
  };
  /** Units of the month. */
  readonly limit: number;
  /** Units that are spent. */
  readonly used: number;
  /** Units that are left. */
  readonly remaining: number;
  /** Days, today last; without use they are zeros. */
  readonly days: readonly {
    /** Day in UTC, as 2026-01-31. */
    readonly day: string;
    /** Units that counted against the quota. */
    readonly units: number;
    /** Calls by operation, free ones included. */
    readonly operations: Readonly<Record<string, number>>;
  }[];
}

export interface VerificationResponse {
  /**
   * Accept only when this is `valid` and `good` is true. A value you do not know is a failed
   * verification.
   */
  readonly verdict: Growing<KnownVerdict>;
  /** True for an accepted result alone. */
  readonly good: boolean;
  /** Grounds of the verdict, and what to do. */
  readonly decision: DecisionEnvelope;
  /** Present with `valid` alone. */
  readonly issuedAt?: Timestamp;
  /** Present whenever a signature of the service was verified. */
  readonly proofId?: Identifier;
  /** Time of the judgement, in unix seconds. */
  readonly verifiedAt: Timestamp;
  /** Measurements of the uploaded file. */
  readonly audio: AudioSummary;
  /** Record of the production; it changes no verdict. */
  readonly evidenceReport?: EvidenceReport;
  /** Compatibility data of an older proof, and no share of authorship or work. */
  readonly classification?: string;
  /** Compatibility data of an older proof, and no share of authorship or work. */
  readonly grade?: string;
  /** Compatibility data of an older proof, and no share of authorship or work. */
  readonly interpretation?: string;
  /** The Content Credential that was found in the file. */
  readonly embeddedCredential?: CredentialReport;
}

export interface Verify {
  /** Upload to verify, of the purpose `verify`. */
  readonly uploadId: Identifier;
  /** Legacy sidecar file in padded base64 (RFC 4648, section 4); omit for a one-file credentialed WAV. */
  readonly sidecar?: string;
}
