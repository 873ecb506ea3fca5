/**
 * The codes of facts in evidence reports. The OpenAPI document, the pages and the command line use this
 * registry (rule 9.31). A code keeps its meaning. Readers show an unknown code unchanged (rule 9.8).
 */
import type { ContentClass } from './evidence-report.js';

export interface EvidenceCode {
  readonly code: string;
  readonly contentClass: ContentClass;
  /** The meaning, for a developer who handles the report. */
  readonly meaning: string;
  /** The sentence for a person who reads the report. It accuses no person. */
  readonly sentence: string;
  /** The version of the contract that introduced the code. */
  readonly since: string;
}

type Row = readonly [code: string, since: string, meaning: string, sentence: string];

const OBSERVATIONS: readonly Row[] = [
  [
    'session_evidence_replayed',
    '3.1.0',
    'A signed capture trace was replayed. `session.evidence` contains the result. Values: events, durationSeconds.',
    'A signed record of the production session was read and replayed.',
  ],
  [
    'session_summary_reconciled',
    '2.7.0',
    "A number in the client's summary differs from the replay. The report uses the replay. Values: counter, summary, replay (a number, or the status if the replay has no number).",
    'The summary supplied with the session and the replay of the session give different numbers. This report uses the replay.',
  ],
  [
    'imports_observed',
    '3.1.0',
    'Files were imported while the session was monitored. Values: imports, and placements if known.',
    'Files were imported into the session while it was monitored.',
  ],
  [
    'imported_material_derived',
    '3.1.0',
    'Sources were derived from imported material inside the workstation (bounced, combined, stretched, recorded again). They count as imported material. Values: sources.',
    'New audio was made from imported files inside the workstation. It counts as imported material.',
  ],
  [
    'takes_recorded_in_real_time',
    '3.1.0',
    'Takes were observed to grow in real time from a hardware input. Values: takes, seconds.',
    'Recordings were observed to grow in real time from a hardware input.',
  ],
  [
    'takes_from_internal_input',
    '3.1.0',
    'Takes were recorded from an input inside the workstation. They do not count as recordings. Values: takes, seconds.',
    'Audio that was already in the session was recorded again inside the workstation.',
  ],
];

const INFERENCES: readonly Row[] = [
  [
    'placements_without_recording_or_midi_entry',
    '3.1.0',
    'The arrangement has clips, but neither audio recording nor MIDI entry was observed. Reported only if both were fully monitored, or if everything exported is from imports. Values: placements.',
    'The arrangement contains material, but no recording and no note entry was observed.',
  ],
  [
    'imports_cover_most_of_export',
    '3.1.0',
    'Imported audio is present in more than half of the exported time. Values: importedSeconds, exportSeconds.',
    'Imported audio is present in most of the exported time.',
  ],
  [
    'activity_after_export',
    '3.1.0',
    'Edits were observed after the export that the report names. Values: edits.',
    'The session was edited after the export.',
  ],
  [
    'edits_only_of_imported_material',
    '3.1.0',
    'Every observed clip edit changed imported material. Reported only if clips were fully monitored, or if everything exported is from imports. Values: clipEdits.',
    'All observed clip edits changed imported material.',
  ],
  [
    'imported_audio_ai_likelihood',
    '3.0.0',
    "The issuing side's detector gave a probability that an imported file was generated. It is a ratio, never a share of the timeline. Values: sourceId, ratio, detector, detectorVersion.",
    'A detector gave a probability that an imported file was generated.',
  ],
  [
    'AiLikelySource',
    '3.0.0',
    "The issuing side's detector attributed an imported file to a generator. Values: sourceId, generator, detector, detectorVersion.",
    'A detector attributed an imported file to a generator.',
  ],
];

const DECLARATIONS: readonly Row[] = [
  [
    'creator_declaration',
    '2.6.0',
    "A creator's answer to a survey question, favourable or adverse. The status is `none_recorded` if no survey was answered.",
    'The creator answered a question about the production.',
  ],
];

const CONFLICTS: readonly Row[] = [
  [
    'observed_import_vs_creator_origin_declaration',
    '2.7.0',
    'An import was observed, but a creator declared that the work is from scratch or mostly self-made. Values: imports, dimension, answer, submissionId.',
    'An import was observed, and the creator declared the work to be from scratch or mostly self-made.',
  ],
  [
    'declared_manual_work_vs_witnessed_input',
    '3.1.0',
    'Substantial or entire manual work was declared, but neither audio recording nor MIDI entry was observed. Reported only if both were fully monitored, or if everything exported is from imports. Values: answer, submissionId.',
    'Manual work was declared, but no recording and no manual note entry was observed.',
  ],
  [
    'attributed_import_vs_creator_ai_declaration',
    '3.1.0',
    'A detector attributed an imported file in the arrangement to a generator, but a creator declared no generated material. Values: sources, dimension, answer, submissionId.',
    'An imported file was attributed to a generator, and the creator declared that nothing is generated.',
  ],
  [
    'contradictory_declarations',
    '3.1.0',
    'Two declared answers contradict each other. Neither is preferred. Values: dimension, answer, submissionId, otherDimension, otherAnswer, otherSubmissionId.',
    'Two declared answers contradict each other.',
  ],
];

const GAPS: readonly Row[] = [
  [
    'session_evidence_unavailable',
    '3.0.0',
    'The proof was issued without a capture trace, so no session was observed.',
    'No production session was observed for this recording.',
  ],
  [
    'rule_inference_unavailable',
    '3.0.0',
    'No session was observed, so no rule can infer anything.',
    'Nothing could be inferred, because no session was observed.',
  ],
  [
    'creator_declaration_altered',
    '3.0.0',
    'A declaration differs from what the service stored, so it is omitted.',
    'A stored declaration was altered and is omitted.',
  ],
  [
    'evidence_facts_altered',
    '3.1.0',
    'The facts of the trace differ from what the service stored, or are missing, so they are omitted.',
    'The stored facts of the session were altered or are missing, and are omitted.',
  ],
  [
    'trace_chain_broken',
    '3.1.0',
    'The chain of the trace does not match its signature. Only evidence up to the previous valid signature is used. Values: segments.',
    'At some point, the record of the session does not match its signature. Everything after that point is ignored.',
  ],
  [
    'trace_sequence_gap',
    '3.1.0',
    'A segment of the trace is missing or out of order. Only evidence before it is used. Values: expected, found.',
    'A part of the record of the session is missing or out of order. Everything after that point is ignored.',
  ],
  [
    'trace_time_backwards',
    '3.1.0',
    "Some events have an earlier time than an event before them: the session's clock ran backwards. Values: count, event, microseconds.",
    'The clock of the session ran backwards at some point.',
  ],
  [
    'trace_signature_invalid',
    '3.1.0',
    'A signature in the trace is not from the device. Only evidence before it is used. Values: segments.',
    'A signature in the record of the session is not valid. Everything after that point is ignored.',
  ],
  [
    'trace_device_unknown',
    '3.1.0',
    'The device that signed the trace was not enrolled when the proof was issued.',
    'The device that signed the record of the session was not enrolled.',
  ],
  [
    'trace_device_revoked',
    '3.1.0',
    'The device that signed the trace was revoked, with effect from a time before the proof was issued. Values: revokedFrom, if the operator recorded the revocation after the proof was issued.',
    'The device that signed the record of the session was revoked.',
  ],
  [
    'trace_truncated',
    '3.1.0',
    'The trace ends without the final signature of its device, for example after a crash.',
    'The record of the session ends before the session was closed.',
  ],
  [
    'trace_unsigned_tail',
    '3.1.0',
    'Bytes follow the last valid signature. They are not used as evidence. Values: bytes.',
    'The end of the record of the session is not signed and is ignored.',
  ],
  [
    'trace_damaged',
    '3.1.0',
    'Bytes of the trace cannot be decoded. Only evidence up to the previous valid signature is used. Values: position.',
    'The record of the session is damaged at some point. Everything after that point is ignored.',
  ],
  [
    'trace_export_differs',
    '3.1.0',
    'The issued audio is none of the files that the session exported, so nothing links the session to the audio. Engines before version 3 compared the last export alone.',
    'The issued audio is not a file that the session was seen to export.',
  ],
  [
    'trace_export_missing',
    '3.1.0',
    'No export was observed, so nothing links the session to the issued audio.',
    'No export was observed that links the session to the issued audio.',
  ],
  [
    'trace_starts_in_future',
    '3.1.0',
    "The trace starts later than the proof was issued, by the device's clock. Values: seconds.",
    'By the clock of the device, the session starts after this proof was issued.',
  ],
  [
    'trace_longer_than_elapsed',
    '3.1.0',
    "The trace is longer than the time between its start, by the device's clock, and the issuing of the proof. Values: seconds, the excess.",
    'By the clock of the device, the session is longer than the time since its start.',
  ],
  [
    'session_before_enrolment',
    '3.1.0',
    'The trace starts before its device was enrolled. This is normal for the first sessions of a device. Values: seconds.',
    'The session started before its device was enrolled.',
  ],
  [
    'session_evidence_used_before',
    '3.1.0',
    'The service has issued another proof with the same trace. This is normal for several exports of one session.',
    'Another proof was issued with the same record of the session.',
  ],
  [
    'trace_simulated',
    '3.1.0',
    'The trace was made for tests: by a generator, or by an agent that ran on trial. It is not evidence of a real session.',
    'The record of the session was made for tests. It is not evidence of a real session.',
  ],
  [
    'export_rerender_differs',
    '3.1.0',
    'Rendering the session again produced samples that differ from the export. Plug-ins and the state of the workstation can cause this, so the status is `needs_review` only without plug-ins, and if not most of the export is equal. Values, if the agent compared stretches of the file: compared, equal.',
    'The session was rendered again, and the result differs from the export.',
  ],
  [
    'export_not_tied_to_session',
    '3.1.0',
    'Nothing showed that the export was made from the arrangement that was monitored: the agent does not see every change of it, and the session was not rendered again with the same samples. No rule concludes anything about the content of the export.',
    'It was not shown that the export was made from the session as it was monitored. Other audio could have been exported.',
  ],
  [
    'recording_claim_not_witnessed',
    '3.1.0',
    'While the session was monitored, sources appeared that claim to be recordings, but their recording was not observed. Values: sources.',
    'Audio appeared that is marked as recorded, but its recording was not observed.',
  ],
  [
    'sources_of_unknown_origin',
    '3.1.0',
    'The origin of some sources was not observed. Values: sources, and foundAtStart: how many of them existed when the session was opened.',
    'The session contains audio whose origin was not observed.',
  ],
  [
    'derived_material_of_unknown_origin',
    '3.1.0',
    'Sources were made inside the workstation (bounced, combined, stretched, copied), but the origin of their material was not observed. Values: sources.',
    'New audio was made inside the workstation from material whose origin was not observed.',
  ],
  [
    'sources_rewritten_out_of_sight',
    '3.1.0',
    'Files of sources were seen to hold other audio or notes than when they were first observed. How they were written was not observed, and no later export is tied to the session. Values: sources.',
    'Audio files of the session were changed from outside, and the change itself was not observed.',
  ],
  [
    'takes_without_real_time_evidence',
    '3.1.0',
    'The growth or the input of some takes was not observed well enough to show that they were recorded in real time. Values: takes.',
    'Some recordings were not observed closely enough to show that they were made in real time.',
  ],
  [
    'takes_not_finished',
    '3.1.0',
    'Some takes were still running when the record ended, for example after a crash. They were neither finished nor discarded. Values: takes.',
    'Some recordings were still running when the record of the session ended.',
  ],
  [
    'plugins_may_add_sound',
    '3.1.0',
    'Plug-ins were in the session that may make or play sound of their own. The agent sees that they exist, but not what they play. Values: plugins.',
    'Plug-ins in the session may have added sound, and what they played was not observed.',
  ],
  [
    'session_begun_before_agent',
    '3.1.0',
    'The session had begun before the agent started, so earlier actions are unknown and no counter is zero. Values: tracks, clips and sources that the agent found.',
    'The session had begun before it was monitored. What was done before is not known.',
  ],
  [
    'channel_unsupported',
    '3.1.0',
    'The agent does not monitor a channel, so its counters have no number. Values: channel.',
    'This agent does not monitor one kind of activity.',
  ],
  [
    'channel_unknown',
    '3.1.0',
    'The agent does not know whether it sees a channel. An absent number does not mean zero. Values: channel.',
    'It is unknown whether one kind of activity was monitored.',
  ],
  [
    'channel_partial',
    '3.1.0',
    'The agent sees only some actions of a channel, or only the value after the last action. Values: channel.',
    'One kind of activity was monitored only in part.',
  ],
  [
    'channel_gaps',
    '3.1.0',
    'A channel was not monitored throughout the session. Values: channel, gaps, seconds.',
    'One kind of activity was not monitored for part of the session.',
  ],
  [
    'detection_without_import',
    '3.1.0',
    'The issuing side supplied detector results for files whose import was not observed. Values: detections.',
    'A detector result was supplied for a file whose import was not observed.',
  ],
];

function rows(contentClass: ContentClass, list: readonly Row[]): readonly EvidenceCode[] {
  return list.map(([code, since, meaning, sentence]) => ({ code, contentClass, meaning, sentence, since }));
}

/** Every code, in the order of the content classes. */
export const EVIDENCE_CODES: readonly EvidenceCode[] = [
  ...rows('direct_observation', OBSERVATIONS),
  ...rows('rule_inference', INFERENCES),
  ...rows('creator_declaration', DECLARATIONS),
  ...rows('explicit_conflict', CONFLICTS),
  ...rows('unverifiable_coverage_gap', GAPS),
];

const BY_CODE: ReadonlyMap<string, EvidenceCode> = new Map(
  EVIDENCE_CODES.map((entry) => [entry.code, entry]),
);

/** Returns the entry of a code. Returns undefined for an unknown code, which readers show unchanged. */
export function findEvidenceCode(code: string): EvidenceCode | undefined {
  return BY_CODE.get(code);
}
