"""Shapes of requests and responses.

Derived from deploy/openapi/takemark.json by `npm run build:openapi`. Do not edit. A response can have
members and values that this version does not know. Unknown members are kept.
"""

from typing import Literal, NotRequired, TypedDict


AudioSummaryContainer = Literal[
    "unknown",
    "riff",
    "rf64",
    "bw64",
    "rifx",
    "w64",
    "aiff",
    "aifc",
    "caf",
    "mp3",
    "mp4",
    "flac",
    "ogg",
    "aac",
    "wavpack",
] | str
"""Container format, detected from the first bytes of the file."""


class AudioSummary(TypedDict):
    """Measurements of the uploaded file. Sample rate, channels, bits, frames and duration are
    absent if the file is not WAV or BWF.
    """

    container: AudioSummaryContainer
    """Container format, detected from the first bytes of the file."""
    sampleRate: NotRequired[int]
    """Sample rate, in Hz."""
    channels: NotRequired[int]
    """Number of channels."""
    bitsPerSample: NotRequired[int]
    """Number of bits per sample."""
    frames: NotRequired[int]
    """Number of samples per channel."""
    durationSeconds: NotRequired[float]
    """Length of the audio, in seconds."""
    bytes: int
    """Length of the file, in bytes."""
    sha256: str
    """SHA-256 of the whole file."""


ChannelCoverageSupport = Literal[
    "supported",
    "partial",
    "unsupported",
    "unknown",
] | str
"""Whether the agent sees all, some or no activity of the channel, or does not know. Only
`supported` without gaps is complete.
"""


class ChannelCoverageGapsItem(TypedDict):
    fromSeconds: float
    """Start, in seconds from the start of the session."""
    toSeconds: float
    """End, in seconds from the start of the session."""
    reason: str
    """Why the channel was not monitored."""


class ChannelCoverage(TypedDict):
    """How completely one channel of the session was monitored."""

    support: ChannelCoverageSupport
    """Whether the agent sees all, some or no activity of the channel, or does not know. Only
    `supported` without gaps is complete.
    """
    exact: NotRequired[int]
    """Number of actions that the agent reported as they happened. Absent, instead of 0, if the
    channel was not monitored.
    """
    interval: NotRequired[int]
    """Number of actions that the agent found by comparing two states of the session. Their order
    and exact time are unknown. Absent, instead of 0, if the channel was not monitored.
    """
    gaps: list[ChannelCoverageGapsItem]
    """The first periods in which the channel was not monitored."""
    gapCount: NotRequired[int]
    """Number of all periods in which the channel was not monitored. Absent, instead of 0, if the
    channel was never monitored.
    """


CloseEvidenceStatus = Literal[
    "accepted",
    "declined",
]
"""Final status of the request."""


class CloseEvidence(TypedDict):
    status: CloseEvidenceStatus
    """Final status of the request."""
    responseReference: NotRequired[str]
    """Opaque reference to a record in the partner's own evidence system, at most 256 characters."""


class ReviewBindings(TypedDict):
    """Opaque identifiers of the case in the partner's own systems. Never send names or e-mail
    addresses.
    """

    creatorId: str
    """Identifier of the creator in your own systems."""
    accountId: str
    """Identifier of the account in your own systems."""
    submissionId: str
    """Identifier of the submission in your own systems."""
    trackId: str
    """Identifier of the track in your own systems."""


class CreateReview(TypedDict):
    proofId: str
    """Id of a registered proof. It may belong to any partner."""
    bindings: ReviewBindings
    """Identifiers of the case in your own systems. All four are required."""


UploadPurpose = Literal[
    "verify",
    "identify",
    "verify_large",
    "identify_large",
]


class CreateUpload(TypedDict):
    purpose: NotRequired[UploadPurpose]
    """Purpose of the upload. The default is `verify`. `verify_large` and `identify_large` are for
    files above 65 MiB.
    """
    contentLength: NotRequired[int]
    """Exact length of the file, in bytes. The slot refuses a file of any other length. At most
    68157440. `verify_large` and `identify_large` need it, and allow 2 GiB unless the operator has
    set another limit.
    """


CredentialReason = Literal[
    "store_too_large",
    "extent_mismatch",
    "box_truncated",
    "box_size",
    "box_too_deep",
    "too_many_boxes",
    "description_malformed",
    "store_label",
    "manifest_missing",
    "assertion_store_malformed",
    "claim_box_malformed",
    "signature_box_malformed",
    "assertion_malformed",
    "assertion_duplicate",
    "claim_malformed",
    "cose_malformed",
    "cose_payload_present",
    "cose_algorithm_missing",
    "cose_certificate_missing",
    "cose_padding_not_zero",
    "certificate_malformed",
    "signature_reference",
    "assertion_missing",
    "assertion_listed_twice",
    "assertion_hash_mismatch",
    "assertion_not_listed",
    "algorithm_not_of_key",
    "signature_mismatch",
    "hash_data_malformed",
    "statement_malformed",
    "not_writer_form",
    "exclusion_not_chunk",
    "kid_mismatch",
    "signature_not_low_s",
    "class_confusion",
    "issuer_mismatch",
    "outside_validity",
    "signer_not_pinned",
    "binding_mismatch",
    "names_this_service",
    "certificate_profile",
    "certificate_not_valid",
    "claim_members",
    "actions_malformed",
    "label_malformed",
    "compressed_manifest",
    "hash_algorithm_unsupported",
    "signature_algorithm_unsupported",
    "manifest_type_old",
    "update_manifest",
    "other_manifests",
    "ingredients",
    "bytes_after_store",
    "unprotected_header_unknown",
    "certificate_chain_broken",
    "hard_binding_missing",
    "hard_binding_several",
    "hard_binding_unsupported",
    "boxes_unknown",
    "assertions_not_checked",
    "actions_not_checked",
    "redactions",
    "certificate_not_signed",
    "certificate_purpose",
    "certificate_time",
    "time_stamp_not_checked",
] | str
"""Stable slug that states what failed, or what was not checked, in a credential."""


DecisionStatus = Literal[
    "verified_binding",
    "needs_review",
    "invalid_proof",
] | str
"""Outcome of the decision. `needs_review` is not a failure of the credential: the evidence report
needs a human decision.
"""


DecisionReason = Literal[
    "credential_verified",
    "container_unknown",
    "source_evidence_needs_review",
    "audio_digest_mismatch",
    "store_too_large",
    "extent_mismatch",
    "box_truncated",
    "box_size",
    "box_too_deep",
    "too_many_boxes",
    "description_malformed",
    "store_label",
    "manifest_missing",
    "assertion_store_malformed",
    "claim_box_malformed",
    "signature_box_malformed",
    "assertion_malformed",
    "assertion_duplicate",
    "claim_malformed",
    "cose_malformed",
    "cose_payload_present",
    "cose_algorithm_missing",
    "cose_certificate_missing",
    "cose_padding_not_zero",
    "certificate_malformed",
    "signature_reference",
    "assertion_missing",
    "assertion_listed_twice",
    "assertion_hash_mismatch",
    "assertion_not_listed",
    "algorithm_not_of_key",
    "signature_mismatch",
    "hash_data_malformed",
    "statement_malformed",
    "not_writer_form",
    "exclusion_not_chunk",
    "kid_mismatch",
    "signature_not_low_s",
    "class_confusion",
    "issuer_mismatch",
    "outside_validity",
    "signer_not_pinned",
    "sidecar_version_unknown",
    "sidecar_over_budget",
    "sidecar_malformed",
    "sidecar_not_canonical",
    "sidecar_members",
    "sidecar_not_writer_form",
    "signer_unknown",
    "names_this_service",
    "proof_not_registered",
    "credential_not_as_issued",
    "signer_revoked",
    "container_unsupported",
    "credential_missing",
    "store_start_missing",
    "binding_mismatch",
    "sidecar_empty",
    "sidecar_magic_missing",
    "header_truncated",
    "form_not_wave",
    "riff_size_streaming",
    "riff_size_past_eof",
    "bytes_after_riff_end",
    "chunk_past_end",
    "chunk_header_truncated",
    "pad_missing",
    "pad_nonzero",
    "chunk_id_invalid",
    "too_many_chunks",
    "duplicate_fmt",
    "duplicate_data",
    "duplicate_ds64",
    "duplicate_bext",
    "duplicate_fact",
    "fmt_missing",
    "fmt_malformed",
    "fmt_inconsistent",
    "codec_unsupported",
    "data_missing",
    "data_before_fmt",
    "data_size_streaming",
    "data_empty",
    "data_not_aligned",
    "ds64_missing",
    "ds64_not_first",
    "ds64_malformed",
    "ds64_mismatch",
    "bext_malformed",
    "bext_version_unknown",
    "list_malformed",
    "list_too_deep",
    "credential_duplicate",
    "credential_id_variant",
    "credential_in_list",
    "credential_not_last",
    "credential_too_large",
    "tag_before_riff",
    "sealed_by_device",
] | str
"""Stable slug. If you do not know a reason, act on the verdict."""


DecisionRecommendedAction = Literal[
    "accept_credential",
    "review",
    "reject",
    "request_matching_pair",
    "confirm_file",
] | str
"""What an automated caller should do."""


DecisionCredentialCarrier = Literal[
    "embedded",
    "sidecar",
    "none",
] | str
"""Where the service found the credential."""


DecisionSourceDetailCoverage = Literal[
    "full",
    "partial",
    "none",
] | str
"""How much of the source detail the evidence report contains."""


class DecisionCounts(TypedDict):
    """Counts of the evidence report. All are 0 without a report."""

    declarations: int
    """Number of answers that creators declared."""
    conflicts: int
    """Number of conflicts."""
    unverifiable: int
    """Number of coverage gaps."""


class Decision(TypedDict):
    """The decision. It is policy-neutral and never labels a track human or AI."""

    status: DecisionStatus
    """Outcome of the decision. `needs_review` is not a failure of the credential: the evidence
    report needs a human decision.
    """
    reasons: list[DecisionReason]
    """Reasons for the verdict. The first reason decided it."""
    recommendedAction: DecisionRecommendedAction
    """What an automated caller should do."""
    credentialCarrier: DecisionCredentialCarrier
    """Where the service found the credential."""
    sourceDetailCoverage: DecisionSourceDetailCoverage
    """How much of the source detail the evidence report contains."""
    counts: DecisionCounts
    """Counts of the evidence report. All are 0 without a report."""


DeclarationAnswersDeclaredOrigin = Literal[
    "from_scratch",
    "own_material",
    "third_party_material",
    "generated_material",
    "undisclosed",
] | str
"""Origin of the material, as declared by the creator."""


DeclarationAnswersAiShareBand = Literal[
    "none",
    "under_quarter",
    "quarter_to_half",
    "half_to_three_quarters",
    "over_three_quarters",
    "undisclosed",
] | str
"""Share of generated material, as declared by the creator."""


DeclarationAnswersManualWork = Literal[
    "none",
    "some",
    "substantial",
    "entire",
    "undisclosed",
] | str
"""Amount of manual work, as declared by the creator."""


DeclarationAnswersContributionBand = Literal[
    "all_self_made",
    "majority_self_made",
    "shared",
    "minority_self_made",
    "undisclosed",
] | str
"""Size of the creator's own contribution, as declared by the creator."""


DeclarationAnswersDisputedAssessment = Literal[
    "not_disputed",
    "disputed",
] | str
"""Whether the creator disputes an assessment of the track."""


DeclarationAnswersAiRolesItem = Literal[
    "lyrics",
    "composition",
    "vocals",
    "instruments",
    "production",
    "artwork",
    "video",
    "none",
    "undisclosed",
] | str


class DeclarationAnswers(TypedDict):
    """The answers. There is at least one."""

    declaredOrigin: NotRequired[DeclarationAnswersDeclaredOrigin]
    """Origin of the material, as declared by the creator."""
    aiShareBand: NotRequired[DeclarationAnswersAiShareBand]
    """Share of generated material, as declared by the creator."""
    manualWork: NotRequired[DeclarationAnswersManualWork]
    """Amount of manual work, as declared by the creator."""
    contributionBand: NotRequired[DeclarationAnswersContributionBand]
    """Size of the creator's own contribution, as declared by the creator."""
    disputedAssessment: NotRequired[DeclarationAnswersDisputedAssessment]
    """Whether the creator disputes an assessment of the track."""
    aiRoles: NotRequired[list[DeclarationAnswersAiRolesItem]]
    """Roles in which generated material was used, as declared by the creator."""


DeclarationBindingStatus = Literal[
    "authenticated_post_issuance_record",
] | str
"""States that the declaration was recorded after the proof was issued. The signature of the proof
does not cover the declaration.
"""


class Declaration(TypedDict):
    surveyVersion: str
    """Version of the survey that was answered."""
    submissionId: str
    """Id of the submission that the answers belong to."""
    subject: str
    """Opaque id of the person or thing that the answers are about. Never a name."""
    submittedAt: int
    """When the survey was submitted, in unix seconds by the survey's clock."""
    answers: DeclarationAnswers
    """The answers. There is at least one."""
    recordedAt: int
    """When the service recorded the declaration, in unix seconds by the service's clock."""
    bindingStatus: DeclarationBindingStatus
    """States that the declaration was recorded after the proof was issued. The signature of the
    proof does not cover the declaration.
    """


DigestsIdentificationResultsItemMatchesItemType = Literal[
    "exact_file",
    "bound_audio",
    "original_file",
    "same_samples",
] | str
"""What matches."""


class DigestsIdentificationResultsItemMatchesItem(TypedDict):
    proofId: str
    """Id of the matching proof."""
    type: DigestsIdentificationResultsItemMatchesItemType
    """What matches."""
    confidence: float
    """Confidence from 0 to 1. If the digests are equal, it is 1."""


class DigestsIdentificationResultsItem(TypedDict):
    sha256: str
    """Digest that was looked for."""
    matches: list[DigestsIdentificationResultsItemMatchesItem]
    """At most 100 matches, strongest first. Empty if there are none."""


class DigestsIdentification(TypedDict):
    results: list[DigestsIdentificationResultsItem]
    """One result for each digest, in the order of the request."""


EmbeddedCredentialFormat = Literal[
    "c2pa",
] | str
"""Format of the credential."""


EmbeddedCredentialIntegrity = Literal[
    "verified",
    "failed",
    "not_checked",
] | str
"""Result of checking the signature and the hashes."""


EmbeddedCredentialTrust = Literal[
    "service",
    "device",
    "unknown",
] | str
"""Who signed the credential."""


class EmbeddedCredential(TypedDict):
    """Report on a Content Credential in the uploaded file. `integrity` and `trust` are independent
    results.
    """

    format: EmbeddedCredentialFormat
    """Format of the credential."""
    issuer: NotRequired[str]
    """Organisation named in the signing certificate."""
    device: NotRequired[str]
    """Name that the device gave itself, if a device sealed the file. The name is not verified."""
    generator: NotRequired[str]
    """Name that the program which made the claim gave itself."""
    algorithm: NotRequired[str]
    """Algorithm of the signature."""
    claimVersion: NotRequired[int]
    """Version of the C2PA claim."""
    manifestLabel: NotRequired[str]
    """Label of the active manifest."""
    integrity: EmbeddedCredentialIntegrity
    """Result of checking the signature and the hashes."""
    trust: EmbeddedCredentialTrust
    """Who signed the credential."""
    reasons: list[CredentialReason]
    """Reasons why a check failed, or was not made. Empty if every check passed."""


ErasureOutcome = Literal[
    "erased",
    "already_erased",
] | str
"""`erased`: this call erased the proof. `already_erased`: an earlier call did."""


class Erasure(TypedDict):
    proofId: str
    """Id of the proof."""
    outcome: ErasureOutcome
    """`erased`: this call erased the proof. `already_erased`: an earlier call did."""
    erasedAt: int
    """Time of the first erasure, in unix seconds."""


EvidenceCounterStatus = Literal[
    "observed",
    "not_observed",
    "unsupported",
    "unknown",
] | str
"""`observed`: there was at least one action. `not_observed`: the agent monitored this activity
throughout and there was none. `unsupported`: the agent does not monitor this activity. `unknown`:
the number cannot be determined, because of gaps or an incomplete trace, for example. `unsupported`
and `unknown` do not mean zero.
"""


class EvidenceCounter(TypedDict):
    """A count of one kind of activity in the session."""

    status: EvidenceCounterStatus
    """`observed`: there was at least one action. `not_observed`: the agent monitored this activity
    throughout and there was none. `unsupported`: the agent does not monitor this activity.
    `unknown`: the number cannot be determined, because of gaps or an incomplete trace, for example.
    `unsupported` and `unknown` do not mean zero.
    """
    value: NotRequired[int]
    """Number of actions. Present only if the status is `observed` or `not_observed`. If the number
    is absent, show the status, never 0.
    """


EvidenceFactCode = Literal[
    "session_evidence_replayed",
    "session_summary_reconciled",
    "imports_observed",
    "imported_material_derived",
    "takes_recorded_in_real_time",
    "takes_from_internal_input",
    "placements_without_recording_or_midi_entry",
    "imports_cover_most_of_export",
    "activity_after_export",
    "edits_only_of_imported_material",
    "imported_audio_ai_likelihood",
    "AiLikelySource",
    "creator_declaration",
    "observed_import_vs_creator_origin_declaration",
    "declared_manual_work_vs_witnessed_input",
    "attributed_import_vs_creator_ai_declaration",
    "contradictory_declarations",
    "session_evidence_unavailable",
    "rule_inference_unavailable",
    "creator_declaration_altered",
    "evidence_facts_altered",
    "trace_chain_broken",
    "trace_sequence_gap",
    "trace_time_backwards",
    "trace_signature_invalid",
    "trace_device_unknown",
    "trace_device_revoked",
    "trace_truncated",
    "trace_unsigned_tail",
    "trace_damaged",
    "trace_export_differs",
    "trace_export_missing",
    "trace_starts_in_future",
    "trace_longer_than_elapsed",
    "session_before_enrolment",
    "session_evidence_used_before",
    "trace_simulated",
    "export_rerender_differs",
    "export_not_tied_to_session",
    "recording_claim_not_witnessed",
    "sources_of_unknown_origin",
    "derived_material_of_unknown_origin",
    "sources_rewritten_out_of_sight",
    "takes_without_real_time_evidence",
    "takes_not_finished",
    "plugins_may_add_sound",
    "session_begun_before_agent",
    "channel_unsupported",
    "channel_unknown",
    "channel_partial",
    "channel_gaps",
    "detection_without_import",
] | str
"""Stable slug of the fact. If you do not know a code, show the code itself. `x-codes` lists the
meaning of each known code.
"""


EvidenceFactContentClass = Literal[
    "direct_observation",
    "rule_inference",
    "creator_declaration",
    "explicit_conflict",
    "unverifiable_coverage_gap",
] | str
"""Whether the fact is an observation, an inference, a declaration, a conflict or a gap."""


EvidenceFactStatus = Literal[
    "observed",
    "inferred",
    "reported",
    "declared",
    "none_recorded",
    "unverifiable",
    "needs_review",
] | str
"""How the fact is known. `decision.status` states whether the report needs a human decision."""


EvidenceFactDimension = Literal[
    "declaredOrigin",
    "aiShareBand",
    "manualWork",
    "contributionBand",
    "disputedAssessment",
    "aiRoles",
] | str
"""Survey question that the declaration answers."""


class EvidenceFact(TypedDict):
    code: EvidenceFactCode
    """Stable slug of the fact. If you do not know a code, show the code itself. `x-codes` lists the
    meaning of each known code.
    """
    contentClass: EvidenceFactContentClass
    """Whether the fact is an observation, an inference, a declaration, a conflict or a gap."""
    status: EvidenceFactStatus
    """How the fact is known. `decision.status` states whether the report needs a human decision."""
    dimension: NotRequired[EvidenceFactDimension]
    """Survey question that the declaration answers."""
    answer: NotRequired[str]
    """The creator's answer, favourable or adverse. Several words are joined by commas."""
    submissionId: NotRequired[str]
    """Id of the submission that the answer belongs to."""
    ruleVersion: NotRequired[int]
    """Version of the rule that inferred the fact."""
    values: NotRequired[dict[str, float | str]]
    """Named values that support the fact: numbers or words. The meaning of each code in `x-codes`
    lists the names. A value `ratio` is a probability from 0 to 1, never a share of the timeline.
    """


class EvidenceReportEngine(TypedDict):
    """Versions of the rule engine that produced the report. Two copies of the report that have the
    same versions and the same `revision` have the same content, unless stored facts were damaged
    (`evidence_facts_altered`).
    """

    facts: NotRequired[int]
    """Version of the engine that derived the facts of the trace at issuing."""
    overlay: int
    """Version of the engine that last derived conflicts and inferences from declarations."""
    revision: int
    """Number of times that declarations or consents were changed after issuing."""


class SessionEvidenceAdapter(TypedDict):
    """Agent that recorded the session activity."""

    name: str
    """Name of the agent, such as `ardour`."""
    version: str
    """Version of the agent."""
    dawVersion: NotRequired[str]
    """Version of the audio workstation, if known."""


SessionEvidenceDeviceStanding = Literal[
    "enrolled",
    "unknown",
    "revoked",
] | str
"""Whether the operator had enrolled or revoked the device when the proof was issued."""


class SessionEvidenceDevice(TypedDict):
    """Device that signed the trace."""

    deviceId: str
    """SHA-256 of the device's public key."""
    standing: SessionEvidenceDeviceStanding
    """Whether the operator had enrolled or revoked the device when the proof was issued."""


class SessionEvidenceCounters(TypedDict):
    """Activity counts by kind. Later versions may add counters."""

    saves: EvidenceCounter
    """Counter: Saves."""
    undoneSteps: EvidenceCounter
    """Counter: Undone steps."""
    playbacks: EvidenceCounter
    """Counter: Playbacks."""
    tempoChanges: EvidenceCounter
    """Counter: Tempo changes."""
    tracksAdded: EvidenceCounter
    """Counter: Tracks added."""
    tracksRemoved: EvidenceCounter
    """Counter: Tracks removed."""
    clipsCreated: EvidenceCounter
    """Counter: Clips created."""
    clipsMoved: EvidenceCounter
    """Counter: Clips moved."""
    clipsTrimmed: EvidenceCounter
    """Counter: Clips trimmed."""
    clipsSplit: EvidenceCounter
    """Counter: Clips split."""
    clipsCopied: EvidenceCounter
    """Counter: Clips copied."""
    clipsDeleted: EvidenceCounter
    """Counter: Clips deleted."""
    clipsChanged: EvidenceCounter
    """Counter: Clips changed in other ways."""
    midiNotesEntered: EvidenceCounter
    """Counter: MIDI notes entered by hand."""
    midiNotesRecorded: EvidenceCounter
    """Counter: MIDI notes played in."""
    midiNotesEdited: EvidenceCounter
    """Counter: MIDI notes edited."""
    takesRecorded: EvidenceCounter
    """Counter: Takes recorded."""
    takesRecordedInRealTime: EvidenceCounter
    """Counter: Takes seen to grow in real time."""
    automationEdits: EvidenceCounter
    """Counter: Automation edits."""
    pluginsAdded: EvidenceCounter
    """Counter: Plug-ins added."""
    pluginChanges: EvidenceCounter
    """Counter: Plug-in changes."""
    mixerChanges: EvidenceCounter
    """Counter: Mixer changes."""
    importsAdded: EvidenceCounter
    """Counter: Files imported."""
    importPlacements: EvidenceCounter
    """Counter: Clips made from imports."""
    sourcesDerived: EvidenceCounter
    """Counter: Sources derived from other sources."""
    sourcesAppeared: EvidenceCounter
    """Counter: Sources of unobserved origin."""
    exportsFinished: EvidenceCounter
    """Counter: Exports."""


class SessionEvidenceCoverage(TypedDict):
    """Monitoring coverage by channel. Later versions may add channels."""

    session: ChannelCoverage
    """Coverage of the channel: Session file."""
    transport: ChannelCoverage
    """Coverage of the channel: Transport."""
    tempo: ChannelCoverage
    """Coverage of the channel: Tempo and meter."""
    tracks: ChannelCoverage
    """Coverage of the channel: Tracks."""
    clips: ChannelCoverage
    """Coverage of the channel: Clips."""
    midi: ChannelCoverage
    """Coverage of the channel: MIDI entry."""
    recording: ChannelCoverage
    """Coverage of the channel: Audio recording."""
    automation: ChannelCoverage
    """Coverage of the channel: Automation."""
    plugins: ChannelCoverage
    """Coverage of the channel: Plug-ins."""
    mixer: ChannelCoverage
    """Coverage of the channel: Mixer."""
    imports: ChannelCoverage
    """Coverage of the channel: Imports."""
    sourceMap: ChannelCoverage
    """Coverage of the channel: Origin of sources."""
    export: ChannelCoverage
    """Coverage of the channel: Export."""


SessionEvidenceRecordingsItemRealTime = Literal[
    "observed",
    "unknown",
] | str
"""`observed`: the agent saw the take grow in real time from a hardware input. Otherwise `unknown`,
which does not imply any wrongdoing.
"""


SessionEvidenceRecordingsItemInput = Literal[
    "hardware",
    "internal",
    "none",
    "unknown",
    "mixed",
] | str
"""Kind of input that the take was recorded from, as far as the agent observed it."""


class SessionEvidenceRecordingsItem(TypedDict):
    durationSeconds: float
    """Length of the take, in seconds."""
    realTime: SessionEvidenceRecordingsItemRealTime
    """`observed`: the agent saw the take grow in real time from a hardware input. Otherwise
    `unknown`, which does not imply any wrongdoing.
    """
    input: SessionEvidenceRecordingsItemInput
    """Kind of input that the take was recorded from, as far as the agent observed it."""
    growthSteps: int
    """How often the agent observed that the take had grown."""
    placementCount: NotRequired[int]
    """Number of clips in the arrangement that use the take. Absent, instead of 0, if clips were not
    monitored.
    """


class SessionEvidenceActivityBucketsItem(TypedDict):
    atSeconds: float
    """Start of the interval, in seconds from the start of the session."""
    edits: NotRequired[int]
    """Number of edits observed in the interval. Absent, instead of 0, if a channel of edits was not
    monitored.
    """
    recordings: NotRequired[int]
    """Number of recordings observed in the interval. Absent, instead of 0, if audio or MIDI
    recording was not monitored.
    """
    imports: NotRequired[int]
    """Number of imports observed in the interval. Absent, instead of 0, if imports were not
    monitored.
    """


class SessionEvidenceActivity(TypedDict):
    """Activity over time, in intervals of equal length."""

    bucketSeconds: float
    """Length of each time interval, in seconds."""
    buckets: list[SessionEvidenceActivityBucketsItem]
    """Time intervals with observed activity, in order of time."""


SessionEvidenceExportIssuedAudio = Literal[
    "matches",
    "differs",
] | str
"""Whether the exported file is the issued audio."""


SessionEvidenceExportRerender = Literal[
    "matched",
    "differed",
    "not_tried",
] | str
"""Whether the session was rendered again, and whether the result matched the export."""


class SessionEvidenceExport(TypedDict):
    """The export that is the issued audio, or else the last export of the session. Absent if no
    export was observed.
    """

    fileSha256: str
    """SHA-256 of the exported file."""
    issuedAudio: SessionEvidenceExportIssuedAudio
    """Whether the exported file is the issued audio."""
    durationSeconds: NotRequired[float]
    """Length of the export, in seconds."""
    rerender: SessionEvidenceExportRerender
    """Whether the session was rendered again, and whether the result matched the export."""


class SessionEvidence(TypedDict):
    """Result of replaying a signed capture trace. It never states whether people or machines made
    the music.
    """

    traceSha256: str
    """SHA-256 of the whole capture trace. The signed statement of the proof contains the same
    digest.
    """
    traceBytes: int
    """Size of the trace, in bytes."""
    traceVersion: int
    """Format version of the trace."""
    simulated: bool
    """True for a generated test trace. It is not evidence of a real session."""
    adapter: SessionEvidenceAdapter
    """Agent that recorded the session activity."""
    device: SessionEvidenceDevice
    """Device that signed the trace."""
    startedAt: int
    """Start of the session, in unix seconds by the device's clock."""
    durationSeconds: float
    """Length of the signed session, in seconds."""
    sealed: bool
    """True if the trace ends with the device's final signature."""
    events: int
    """Number of events that a valid signature covers."""
    counters: SessionEvidenceCounters
    """Activity counts by kind. Later versions may add counters."""
    coverage: SessionEvidenceCoverage
    """Monitoring coverage by channel. Later versions may add channels."""
    recordings: list[SessionEvidenceRecordingsItem]
    """Takes, longest first. A long list is shortened. The counter `takesRecorded` is the number of
    all takes, except takes from an input inside the workstation.
    """
    activity: SessionEvidenceActivity
    """Activity over time, in intervals of equal length."""
    export: NotRequired[SessionEvidenceExport]
    """The export that is the issued audio, or else the last export of the session. Absent if no
    export was observed.
    """


class EvidenceReportSession(TypedDict):
    """The production session. Present if the proof was issued with a capture trace."""

    evidence: SessionEvidence
    """Result of replaying the trace."""


ImportedSourceManner = Literal[
    "copied",
    "referenced",
    "midi",
    "unknown",
] | str
"""How the file was brought into the session."""


class ImportedSourcePlacementsSpansItem(TypedDict):
    startSeconds: float
    """Start, in seconds from the start of the arrangement."""
    endSeconds: float
    """End, in seconds from the start of the arrangement."""


class ImportedSourcePlacements(TypedDict):
    """Where the arrangement uses the source or material derived from it. This does not show what is
    audible in the mix. Absent if clips were not monitored.
    """

    count: int
    """Number of clips that used the source at the last observation."""
    approximateSeconds: float
    """Time of the arrangement that these clips cover, in seconds. Time that several clips cover is
    added only once.
    """
    spans: list[ImportedSourcePlacementsSpansItem]
    """Time spans of the arrangement that these clips cover. A long list is shortened."""


ImportedSourceDetectionsItemLikelihoodUnit = Literal[
    "ratio",
] | str
"""Unit of the value."""


class ImportedSourceDetectionsItemLikelihood(TypedDict):
    """Probability that the file was generated. It is not a share of the timeline."""

    value: float
    """The probability, from 0 to 1."""
    unit: ImportedSourceDetectionsItemLikelihoodUnit
    """Unit of the value."""


class ImportedSourceDetectionsItem(TypedDict):
    detector: str
    """Name of the detector that the issuing side used."""
    detectorVersion: str
    """Version of the detector."""
    likelihood: NotRequired[ImportedSourceDetectionsItemLikelihood]
    """Probability that the file was generated. It is not a share of the timeline."""
    generator: NotRequired[str]
    """Name of the generator that the file is attributed to."""


class ImportedSource(TypedDict):
    """A file whose import into the session was observed."""

    sourceId: str
    """Id within this report: `s1`, `s2` and so on."""
    manner: ImportedSourceManner
    """How the file was brought into the session."""
    samplesSha256: NotRequired[str]
    """SHA-256 of the samples as stored in the session."""
    originalSha256: NotRequired[str]
    """SHA-256 of the whole original file, if it was found."""
    durationSeconds: NotRequired[float]
    """Length of the source, in seconds."""
    placements: NotRequired[ImportedSourcePlacements]
    """Where the arrangement uses the source or material derived from it. This does not show what is
    audible in the mix. Absent if clips were not monitored.
    """
    detections: NotRequired[list[ImportedSourceDetectionsItem]]
    """Detector results that the issuing side supplied."""


SourceDetailTracksItemType = Literal[
    "audio",
    "midi",
    "bus",
    "other",
] | str
"""Type of the track."""


SourceDetailTracksItemState = Literal[
    "present",
    "removed",
] | str
"""Last observed state: still present, or removed."""


class SourceDetailTracksItem(TypedDict):
    trackId: str
    """Id of the track within this report."""
    type: SourceDetailTracksItemType
    """Type of the track."""
    state: SourceDetailTracksItemState
    """Last observed state: still present, or removed."""


SourceDetailPlacementsItemOrigin = Literal[
    "recorded",
    "imported",
    "midi",
    "derived",
    "unknown",
] | str
"""Origin of the material, as far as it was observed."""


class SourceDetailPlacementsItemBeats(TypedDict):
    """Range of the clip, in beats. Absent if only its range in seconds is known."""

    start: float
    """Start of the range."""
    end: float
    """End of the range."""


class SourceDetailPlacementsItemApproximateSeconds(TypedDict):
    """Range of the clip, in seconds, possibly estimated with the last observed tempo. Absent if
    only its range in beats is known.
    """

    start: float
    """Start of the range."""
    end: float
    """End of the range."""


SourceDetailPlacementsItemState = Literal[
    "present",
    "removed",
] | str
"""Last observed state: still present, or removed."""


class SourceDetailPlacementsItem(TypedDict):
    placementId: str
    """Id of the clip within this report."""
    trackId: str
    """Id of the track that holds the clip."""
    sourceId: NotRequired[str]
    """Id of the imported source that the clip plays. Absent if the clip plays none."""
    origin: SourceDetailPlacementsItemOrigin
    """Origin of the material, as far as it was observed."""
    beats: NotRequired[SourceDetailPlacementsItemBeats]
    """Range of the clip, in beats. Absent if only its range in seconds is known."""
    approximateSeconds: NotRequired[SourceDetailPlacementsItemApproximateSeconds]
    """Range of the clip, in seconds, possibly estimated with the last observed tempo. Absent if
    only its range in beats is known.
    """
    state: SourceDetailPlacementsItemState
    """Last observed state: still present, or removed."""
    edits: int
    """Number of edits of the clip. More than 1000 edits are reported as 1000."""


class SourceDetail(TypedDict):
    """Structure of the arrangement. Only approved partners get it, and only with the creator's
    consent. It says nothing about the final mix.
    """

    version: int
    """Version of the layout."""
    consentVersion: str
    """Version of the consent text that the creator agreed to. If the consent is revoked, the report
    omits the source detail.
    """
    observedAtSeconds: NotRequired[float]
    """When the agent last finished reading the source map, in seconds from the start of the
    session.
    """
    tracks: list[SourceDetailTracksItem]
    """Tracks that were observed, including removed tracks. A long list is shortened."""
    trackCount: NotRequired[int]
    """Number of all tracks that were observed, including removed tracks and tracks that the list
    omits. Absent, instead of 0, if tracks were not monitored.
    """
    placements: list[SourceDetailPlacementsItem]
    """Clips that were observed in the arrangement, including removed clips. A long list is
    shortened.
    """
    placementCount: NotRequired[int]
    """Number of all clips that were observed, including removed clips and clips that the list
    omits. Absent, instead of 0, if clips were not monitored.
    """


class EvidenceReport(TypedDict):
    """For information only: the report never changes the verdict. Proofs that were imported from an
    earlier registry have no report. If the report is absent, source evidence is not available.
    """

    version: int
    """Version of the layout. It increases with each change that a reader must handle."""
    facts: list[EvidenceFact]
    """Observations, inferences and declarations. Each answered question of each submission is one
    fact with the code `creator_declaration`. If no survey was answered, the report has one such
    fact with the status `none_recorded`.
    """
    conflicts: list[EvidenceFact]
    """Observations and declarations that contradict each other."""
    unverifiable: list[EvidenceFact]
    """Coverage gaps. Each states something that cannot be verified."""
    declarations: list[Declaration]
    """Submitted surveys with their answers, oldest first."""
    engine: NotRequired[EvidenceReportEngine]
    """Versions of the rule engine that produced the report. Two copies of the report that have the
    same versions and the same `revision` have the same content, unless stored facts were damaged
    (`evidence_facts_altered`).
    """
    session: NotRequired[EvidenceReportSession]
    """The production session. Present if the proof was issued with a capture trace."""
    importedSources: NotRequired[list[ImportedSource]]
    """Observed imports, in the order of import. A long list is shortened."""
    importedSourceCount: NotRequired[int]
    """Number of all observed imports, including imports that the list omits."""
    sourceDetail: NotRequired[SourceDetail]
    """Structure of the arrangement. Present only with the creator's consent."""


EvidenceRequestKind = Literal[
    "source_evidence",
    "source_licence",
    "creator_clarification",
] | str
"""Kind of evidence requested."""


EvidenceRequestStatus = Literal[
    "requested",
    "supplied",
    "accepted",
    "declined",
] | str
"""Status of the request."""


class EvidenceRequest(TypedDict):
    requestId: str
    """Id of the evidence request."""
    kind: EvidenceRequestKind
    """Kind of evidence requested."""
    status: EvidenceRequestStatus
    """Status of the request."""
    responseReference: NotRequired[str]
    """Opaque reference to a record in the partner's own evidence system, at most 256 characters."""
    createdAt: int
    """Creation time, in unix seconds."""
    updatedAt: int
    """Time of the last change, in unix seconds."""


EvidenceSummaryStatus = Literal[
    "needs_review",
    "recorded",
    "none_recorded",
] | str
"""Whether the report needs a human decision."""


class EvidenceSummaryCounts(TypedDict):
    """Counts of the evidence report. All are 0 without a report."""

    declarations: int
    """Number of answers that creators declared."""
    conflicts: int
    """Number of conflicts."""
    unverifiable: int
    """Number of coverage gaps."""


class EvidenceSummary(TypedDict):
    status: EvidenceSummaryStatus
    """Whether the report needs a human decision."""
    counts: EvidenceSummaryCounts
    """Counts of the evidence report. All are 0 without a report."""
    codes: list[str]
    """Codes of the facts in the report, without repetition."""


FixturesFixturesItemVerdict = Literal[
    "valid",
    "audioChanged",
    "tampered",
    "unregistered",
    "unreadable",
    "local_seal",
] | str
"""Verdict on the file. Accept the file only if the verdict is `valid` and `good` is true. Treat a
verdict that you do not know as a failed verification.
"""


FixturesFixturesItemDecisionStatus = Literal[
    "verified_binding",
    "needs_review",
    "invalid_proof",
] | str
"""Outcome of the decision. `needs_review` is not a failure of the credential: the evidence report
needs a human decision.
"""


FixturesFixturesItemDecisionRecommendedAction = Literal[
    "accept_credential",
    "review",
    "reject",
    "request_matching_pair",
    "confirm_file",
] | str
"""What an automated caller should do."""


FixturesFixturesItemDecisionCredentialCarrier = Literal[
    "embedded",
    "sidecar",
    "none",
] | str
"""Where the service found the credential."""


class FixturesFixturesItemDecision(TypedDict):
    """The members of the decision that are the same each time that this fixture is verified."""

    status: FixturesFixturesItemDecisionStatus
    """Outcome of the decision. `needs_review` is not a failure of the credential: the evidence
    report needs a human decision.
    """
    reasons: list[DecisionReason]
    """Reasons for the verdict. The first reason decided it."""
    recommendedAction: FixturesFixturesItemDecisionRecommendedAction
    """What an automated caller should do."""
    credentialCarrier: FixturesFixturesItemDecisionCredentialCarrier
    """Where the service found the credential."""


FixturesFixturesItemMatch = Literal[
    "exact_file",
    "bound_audio",
    "original_file",
    "same_samples",
] | str
"""Strongest match of an identify of the audio. Absent if the fixture does not show one."""


FixturesFixturesItemFilesItemPart = Literal[
    "audio",
    "sidecar",
] | str
"""Which file of the fixture this is."""


class FixturesFixturesItemFilesItem(TypedDict):
    part: FixturesFixturesItemFilesItemPart
    """Which file of the fixture this is."""
    fileName: str
    """File name that is safe on every file system."""
    mediaType: str
    """Media type of the file."""
    bytes: int
    """Length of the file, in bytes."""
    sha256: str
    """SHA-256 of the file. It is also the ETag."""
    href: str
    """Path to download the file from. The download needs a key."""


class FixturesFixturesItem(TypedDict):
    name: str
    """Name of the fixture: lower-case letters, digits and `_`."""
    verdict: FixturesFixturesItemVerdict
    """Verdict on the file. Accept the file only if the verdict is `valid` and `good` is true. Treat
    a verdict that you do not know as a failed verification.
    """
    good: bool
    """True only if the verdict is `valid`."""
    decision: FixturesFixturesItemDecision
    """The members of the decision that are the same each time that this fixture is verified."""
    match: NotRequired[FixturesFixturesItemMatch]
    """Strongest match of an identify of the audio. Absent if the fixture does not show one."""
    files: list[FixturesFixturesItemFilesItem]
    """The audio file, and the sidecar if the fixture has one."""


class Fixtures(TypedDict):
    fixtures: list[FixturesFixturesItem]
    """All fixtures."""


class Health(TypedDict):
    ok: bool
    """True if the service is up."""
    version: str
    """Version of the service."""
    commit: str
    """Commit that the service was built from."""
    deployedAt: int
    """Deployment time, in unix seconds."""
    environment: str
    """`production` or `beta`."""
    contract: str
    """Version of the API contract."""


IdentificationMatchesItemType = Literal[
    "exact_file",
    "bound_audio",
    "original_file",
    "same_samples",
] | str
"""What matches."""


class IdentificationMatchesItem(TypedDict):
    proofId: str
    """Id of the matching proof."""
    type: IdentificationMatchesItemType
    """What matches."""
    confidence: float
    """Confidence from 0 to 1. If the digests are equal, it is 1."""
    unreadableBecause: NotRequired[list[DecisionReason]]
    """Reasons for which a verify of the upload is `unreadable`. Present only for the owner of a
    proof with the match `same_samples`: something outside the samples changed.
    """


IdentificationSamplesReason = Literal[
    "container_unsupported",
    "encoding_unsupported",
    "format_unsupported",
    "padding_not_zero",
    "samples_absent",
    "samples_ambiguous",
    "samples_unsized",
    "samples_incomplete",
    "frames_incomplete",
    "frames_disagree",
    "structure_malformed",
    "stream_changes",
    "checksum_mismatch",
    "samples_too_large",
    "decoder_busy",
] | str
"""Why the file has no samples digest. Present only if `samples` is null."""


class Identification(TypedDict):
    matches: list[IdentificationMatchesItem]
    """At most 100 matches, strongest first. Empty if there are none."""
    samples: NotRequired[str | None]
    """Samples digest of the upload. It is null if the file has none."""
    samplesReason: NotRequired[IdentificationSamplesReason]
    """Why the file has no samples digest. Present only if `samples` is null."""


class Identify(TypedDict):
    uploadId: str
    """Upload to identify. Its purpose must be `identify` or `identify_large`."""


IdentifyDigestsDigestsItemOf = Literal[
    "file",
    "bound",
    "samples",
]
"""What the digest was computed of: the whole `file`, what a proof of it is `bound` to, or its
`samples`. Without it, the digest may be any of them.
"""


class IdentifyDigestsDigestsItem(TypedDict):
    sha256: str
    """SHA-256 digest to look for, in lower-case hex."""
    of: NotRequired[IdentifyDigestsDigestsItemOf]
    """What the digest was computed of: the whole `file`, what a proof of it is `bound` to, or its
    `samples`. Without it, the digest may be any of them.
    """


class IdentifyDigests(TypedDict):
    digests: list[IdentifyDigestsDigestsItem]
    """Digests of files that you do not send. A digest may occur several times."""


KeyStatus = Literal[
    "active",
    "expiring",
    "expired",
    "revoked",
] | str
"""State of the key."""


KeyScopesItem = Literal[
    "verify",
    "proofs",
    "erase",
    "reviews",
    "keys",
    "usage",
] | str


class Key(TypedDict):
    keyId: str
    """Id of the key. It is not secret."""
    name: str
    """Name of the key."""
    status: KeyStatus
    """State of the key."""
    scopes: list[KeyScopesItem]
    """Scopes of the key. In the OpenAPI document, `x-scope` of an operation is the scope that the
    operation needs.
    """
    plan: str
    """The partner's plan."""
    createdAt: int
    """Creation time, in unix seconds."""
    expiresAt: NotRequired[int]
    """When the key stops working, in unix seconds. Absent if the key was not rotated."""
    lastUsedAt: NotRequired[int]
    """Time of last use, in unix seconds, accurate to one minute. Absent if no use was recorded."""
    signed: NotRequired[bool]
    """True if calls with the key must be signed."""
    revokedSuccessors: NotRequired[list[str]]
    """Ids of the revoked successors, oldest first. Present only in the response to a revocation
    with `successors=true`.
    """


class KeyPage(TypedDict):
    keys: list[Key]
    """Keys, oldest first."""
    nextCursor: NotRequired[str]
    """Cursor of the next page. Absent on the last page."""


OpenEvidenceKind = Literal[
    "source_evidence",
    "source_licence",
    "creator_clarification",
]
"""Kind of evidence to request. Each kind can be requested once per case."""


class OpenEvidence(TypedDict):
    kind: OpenEvidenceKind
    """Kind of evidence to request. Each kind can be requested once per case."""


class PartnerReviewCaseBindings(TypedDict):
    """Identifiers of the case in your own systems, as sent when the case was created."""

    creatorId: str
    """Identifier of the creator in your own systems."""
    accountId: str
    """Identifier of the account in your own systems."""
    submissionId: str
    """Identifier of the submission in your own systems."""
    trackId: str
    """Identifier of the track in your own systems."""


PartnerReviewCaseStatus = Literal[
    "open",
    "resolved",
] | str
"""Status of the case."""


PartnerReviewCaseOutcome = Literal[
    "accepted",
    "held",
    "rejected",
] | str
"""Outcome that the partner recorded. Absent if there is none yet. It makes no claim about
authorship or rights.
"""


class PartnerReviewCase(TypedDict):
    reviewId: str
    """Id of the review."""
    proofId: str
    """Id of the proof under review."""
    bindings: PartnerReviewCaseBindings
    """Identifiers of the case in your own systems, as sent when the case was created."""
    status: PartnerReviewCaseStatus
    """Status of the case."""
    outcome: NotRequired[PartnerReviewCaseOutcome]
    """Outcome that the partner recorded. Absent if there is none yet. It makes no claim about
    authorship or rights.
    """
    createdAt: int
    """Creation time, in unix seconds."""
    updatedAt: int
    """Time of the last change, in unix seconds."""
    resolvedAt: NotRequired[int]
    """When the outcome was recorded, in unix seconds. Absent if there is none yet."""
    expiresAt: int
    """When the case ends, in unix seconds: 180 days after its creation. This time never changes.
    After this time, every call for the case is 404.
    """
    evidenceRequests: list[EvidenceRequest]
    """Evidence requests, oldest first."""


class ProcessNoteLinesItem(TypedDict):
    code: str
    """Stable slug for the topic of the line."""
    text: str
    """Text of the line: one or more sentences."""


class ProcessNote(TypedDict):
    policyVersion: NotRequired[str]
    """Version of the wording policy. The same report and policy always give the same note."""
    lines: NotRequired[list[ProcessNoteLinesItem]]
    """Lines of the note. The note is for information only. It also states what was not
    monitored.
    """


class ProofDocumentSongDeclared(TypedDict):
    """What the issuing side declared about the song. The service did not check it. Absent if
    nothing was declared.
    """

    artist: NotRequired[str]
    """Artist of the song."""
    release: NotRequired[str]
    """Release that contains the song."""
    isrc: NotRequired[str]
    """International Standard Recording Code, without hyphens."""


class ProofDocumentSong(TypedDict):
    """The song, as named when the proof was issued."""

    title: str
    """Title of the song."""
    declared: NotRequired[ProofDocumentSongDeclared]
    """What the issuing side declared about the song. The service did not check it. Absent if
    nothing was declared.
    """


ProofDocumentCarrier = Literal[
    "embedded",
    "sidecar",
] | str
"""Where the credential is stored."""


ProofDocumentDeliveryCarrier = Literal[
    "embedded",
    "sidecar",
] | str
"""Where the credential is stored."""


ProofDocumentDeliveryUploadPurpose = Literal[
    "verify_large",
] | str
"""`verify_large` if the file exceeds 65 MiB: verifying it needs an upload slot of this purpose.
Otherwise absent.
"""


class ProofDocumentDelivery(TypedDict):
    """The delivered audio file, and where its credential is stored."""

    carrier: ProofDocumentDeliveryCarrier
    """Where the credential is stored."""
    bytes: int
    """Length of the delivered audio file, in bytes."""
    sha256: str
    """SHA-256 of the delivered audio file."""
    mediaType: str
    """Media type of the delivered audio file."""
    fileName: str
    """File name that is safe on every file system."""
    uploadPurpose: NotRequired[ProofDocumentDeliveryUploadPurpose]
    """`verify_large` if the file exceeds 65 MiB: verifying it needs an upload slot of this purpose.
    Otherwise absent.
    """


class ProofDocument(TypedDict):
    proofId: str
    """Id of the proof."""
    issuedAt: int
    """Time of issue, in unix seconds."""
    song: ProofDocumentSong
    """The song, as named when the proof was issued."""
    carrier: ProofDocumentCarrier
    """Where the credential is stored."""
    boundAudioSha256: str
    """SHA-256 of the bound audio. For an embedded credential this is the digest in the hard
    binding. For a credential in a sidecar this is the digest of the whole audio file.
    """
    unknownContainer: NotRequired[bool]
    """True if the service does not know the container format of the audio, and otherwise absent.
    The operator who issued the proof stated that the file is audio.
    """
    issuer: NotRequired[str]
    """Name of the service when it issued the proof. Absent for proofs of versions that stored no
    name.
    """
    createdAt: int
    """The same as `issuedAt`."""
    originalSha256: str
    """SHA-256 of the file before its credential was added."""
    delivery: ProofDocumentDelivery
    """The delivered audio file, and where its credential is stored."""
    evidenceReport: NotRequired[EvidenceReport]
    """Record of the production. It never changes the verdict."""
    processNote: NotRequired[ProcessNote]
    """Summary of the report in sentences."""
    classification: NotRequired[str]
    """Value that an imported proof had in its earlier registry, kept for compatibility. It does not
    state a share of authorship or work.
    """
    grade: NotRequired[str]
    """Value that an imported proof had in its earlier registry, kept for compatibility. It does not
    state a share of authorship or work.
    """
    interpretation: NotRequired[str]
    """Value that an imported proof had in its earlier registry, kept for compatibility. It does not
    state a share of authorship or work.
    """


class ProofEntrySong(TypedDict):
    """The song, as named when the proof was issued."""

    title: str
    """Title of the song."""


ProofEntryCarrier = Literal[
    "embedded",
    "sidecar",
] | str
"""Where the credential is stored."""


class ProofEntry(TypedDict):
    proofId: str
    """Id of the proof."""
    issuedAt: int
    """Time of issue, in unix seconds."""
    song: ProofEntrySong
    """The song, as named when the proof was issued."""
    carrier: ProofEntryCarrier
    """Where the credential is stored."""
    boundAudioSha256: str
    """SHA-256 of the bound audio. For an embedded credential this is the digest in the hard
    binding. For a credential in a sidecar this is the digest of the whole audio file.
    """
    unknownContainer: NotRequired[bool]
    """True if the service does not know the container format of the audio, and otherwise absent.
    The operator who issued the proof stated that the file is audio.
    """
    evidenceSummary: NotRequired[EvidenceSummary]
    """Short form of the report. Absent if the proof has no report."""
    evidenceReport: NotRequired[EvidenceReport]
    """The whole report. Present only if the call has `include=evidenceReport`."""


class ProofPage(TypedDict):
    proofs: list[ProofEntry]
    """Entries of the page, newest first."""
    nextCursor: NotRequired[str]
    """Cursor of the next page. Absent on the last page."""


class ProofRecordSongDeclared(TypedDict):
    """What the issuing side declared about the song. The service did not check it. Absent if
    nothing was declared.
    """

    artist: NotRequired[str]
    """Artist of the song."""
    release: NotRequired[str]
    """Release that contains the song."""
    isrc: NotRequired[str]
    """International Standard Recording Code, without hyphens."""


class ProofRecordSong(TypedDict):
    """The song, as named when the proof was issued."""

    title: str
    """Title of the song."""
    declared: NotRequired[ProofRecordSongDeclared]
    """What the issuing side declared about the song. The service did not check it. Absent if
    nothing was declared.
    """


ProofRecordDeliveryCarrier = Literal[
    "embedded",
    "sidecar",
] | str
"""Where the credential is stored."""


ProofRecordDeliveryUploadPurpose = Literal[
    "verify_large",
] | str
"""`verify_large` if the file exceeds 65 MiB: verifying it needs an upload slot of this purpose.
Otherwise absent.
"""


class ProofRecordDelivery(TypedDict):
    """The delivered audio file, and where its credential is stored."""

    carrier: ProofRecordDeliveryCarrier
    """Where the credential is stored."""
    bytes: int
    """Length of the delivered audio file, in bytes."""
    sha256: str
    """SHA-256 of the delivered audio file."""
    mediaType: str
    """Media type of the delivered audio file."""
    fileName: str
    """File name that is safe on every file system."""
    uploadPurpose: NotRequired[ProofRecordDeliveryUploadPurpose]
    """`verify_large` if the file exceeds 65 MiB: verifying it needs an upload slot of this purpose.
    Otherwise absent.
    """


class ProofRecord(TypedDict):
    """The registered record of a proof. It does not state that any file matches."""

    proofId: str
    """Id of the proof."""
    song: ProofRecordSong
    """The song, as named when the proof was issued."""
    issuer: NotRequired[str]
    """Name of the service when it issued the proof. Absent for proofs of versions that stored no
    name.
    """
    issuedAt: int
    """Time of issue, in unix seconds."""
    boundAudioSha256: str
    """SHA-256 of the audio that the proof is bound to."""
    unknownContainer: NotRequired[bool]
    """True if the service does not know the container format of the audio, and otherwise absent.
    The operator who issued the proof stated that the file is audio.
    """
    evidenceReport: NotRequired[EvidenceReport]
    """Record of the production. It never changes the verdict."""
    processNote: NotRequired[ProcessNote]
    """Summary of the report in sentences."""
    delivery: ProofRecordDelivery
    """The delivered audio file, and where its credential is stored."""


ResolveReviewOutcome = Literal[
    "accepted",
    "held",
    "rejected",
]
"""Outcome that you decided. `held` may later become `accepted` or `rejected`. `accepted` and
`rejected` are final.
"""


class ResolveReview(TypedDict):
    outcome: ResolveReviewOutcome
    """Outcome that you decided. `held` may later become `accepted` or `rejected`. `accepted` and
    `rejected` are final.
    """


class ReviewPage(TypedDict):
    reviews: list[PartnerReviewCase]
    """Cases of the page, newest first."""
    nextCursor: NotRequired[str]
    """Cursor of the next page. Absent on the last page. Even an empty page may have a cursor."""


class RotatedKey(TypedDict):
    apiKey: str
    """The new secret. Only this response and its idempotent replay contain it."""
    keyId: str
    """Id of the new key."""
    name: str
    """Name of the new key. The calling key has the same name."""
    previousKeyExpiresAt: int
    """When the calling key stops working, in unix seconds: 72 hours after the rotation."""


class StoredUpload(TypedDict):
    uploadId: str
    """Id of the slot."""
    bytes: int
    """Length of the received file, in bytes."""
    sha256: str
    """SHA-256 of the received file."""


TelemetryEventsItemName = Literal[
    "app_started",
    "download_started",
    "verify_started",
    "verify_completed",
    "verify_failed",
    "verify_retried",
    "upload_failed",
    "pair_verified",
    "report_opened",
    "review_opened",
    "key_rotated",
]
"""Name of the event, from a closed list."""


class TelemetryEventsItem(TypedDict):
    name: TelemetryEventsItemName
    """Name of the event, from a closed list."""
    count: int
    """How often the event happened."""
    at: int
    """Time of the events, in unix seconds."""


class Telemetry(TypedDict):
    events: list[TelemetryEventsItem]
    """Event counts. The service accepts either all entries or none."""


class TelemetryAccepted(TypedDict):
    accepted: int
    """Number of accepted entries."""


class UploadSlot(TypedDict):
    """A short-lived address to post one audio file to."""

    uploadId: str
    """Id of the upload. Pass it to `verify` or `identify`."""
    url: str
    """Presigned URL. Posting to it needs no key, so keep it secret until it expires."""
    fields: dict[str, str]
    """Signed form fields. Send each entry as a form field, before the file."""
    maxBytes: int
    """Largest accepted file, in bytes."""
    units: int
    """Units of quota that the verify or the identify of the file will cost: one for each 65 MiB
    begun.
    """
    expiresAt: int
    """When the slot expires if it is not used, in unix seconds."""


class UsagePeriod(TypedDict):
    """The UTC calendar month that the quota applies to."""

    start: int
    """Start of the month, in unix seconds."""
    end: int
    """Start of the next month, in unix seconds."""


class UsageLimits(TypedDict):
    """The other limits of the plan."""

    requestsPerSecond: int
    """Requests per second."""
    burst: int
    """Requests that may follow at once after a pause."""
    concurrentUploads: int
    """Uploads that may run at the same time."""
    rotationsPerDay: int
    """Key rotations per day."""


class UsageDaysItem(TypedDict):
    day: str
    """UTC day, such as 2026-01-31."""
    units: int
    """Units of the quota that were used on this day."""
    operations: dict[str, int]
    """Units per billed operation, and number of calls per free operation."""


class Usage(TypedDict):
    plan: str
    """The partner's plan."""
    period: UsagePeriod
    """The UTC calendar month that the quota applies to."""
    limit: int
    """Monthly quota, in units."""
    limits: UsageLimits
    """The other limits of the plan."""
    used: int
    """Units used this month."""
    remaining: int
    """Units left this month."""
    days: list[UsageDaysItem]
    """One entry per UTC day, including days without calls. The last entry is today."""


VerificationVerdict = Literal[
    "valid",
    "audioChanged",
    "tampered",
    "unregistered",
    "unreadable",
    "local_seal",
] | str
"""Verdict on the file. Accept the file only if the verdict is `valid` and `good` is true. Treat a
verdict that you do not know as a failed verification.
"""


class Verification(TypedDict):
    verdict: VerificationVerdict
    """Verdict on the file. Accept the file only if the verdict is `valid` and `good` is true. Treat
    a verdict that you do not know as a failed verification.
    """
    good: bool
    """True only if the verdict is `valid`."""
    decision: Decision
    """Reasons for the verdict, and the action that is recommended to the caller."""
    issuedAt: NotRequired[int]
    """When the proof was issued, in unix seconds. Present only if the verdict is `valid`."""
    proofId: NotRequired[str]
    """Id of the proof. Present if the judged credential is intact and was made by this service."""
    verifiedAt: int
    """Time of the verification, in unix seconds."""
    audio: AudioSummary
    """Properties of the uploaded audio file."""
    evidenceReport: NotRequired[EvidenceReport]
    """Record of the production. It never changes the verdict."""
    classification: NotRequired[str]
    """Value that an imported proof had in its earlier registry, kept for compatibility. It does not
    state a share of authorship or work.
    """
    grade: NotRequired[str]
    """Value that an imported proof had in its earlier registry, kept for compatibility. It does not
    state a share of authorship or work.
    """
    interpretation: NotRequired[str]
    """Value that an imported proof had in its earlier registry, kept for compatibility. It does not
    state a share of authorship or work.
    """
    embeddedCredential: NotRequired[EmbeddedCredential]
    """Report on the Content Credential found in the file."""
    accepted: bool
    """True only if `good` is true and the verdict is `valid`. The client computes it, so an unknown
    verdict is not accepted.
    """


class Verify(TypedDict):
    uploadId: str
    """Upload to verify. Its purpose must be `verify` or `verify_large`."""
    sidecar: NotRequired[str]
    """Legacy sidecar file in padded base64 (RFC 4648, section 4). Omit it for a WAV file that
    contains its credential.
    """
