/**
 * Codes of facts in evidence reports: the one registry, of which the OpenAPI document, pages and command lines are made
 * (rule 9.31). A code keeps its meaning; readers show a code that is not here as it is (rule 9.8).
 */
import type { ContentClass } from './evidence-report.js';

export interface EvidenceCode {
  readonly code: string;
  readonly contentClass: ContentClass;
  /** Meaning, for whoever programs against the report. */
  readonly meaning: string;
  /** Sentence for a person who reads the report. It accuses nobody. */
  readonly sentence: string;
  /** Version of the contract in which the code appeared. */
  readonly since: string;
}

type Row = readonly [code: string, since: string, meaning: string, sentence: string];

const OBSERVATIONS: readonly Row[] = [
  [
    'session_evidence_replayed',
    '3.1.0',
    'A signed capture trace was replayed; `session.evidence` holds what it tells. Values: events, durationSeconds.',
    'A signed record of the production session was read and replayed.',
  ],
  [
    'session_summary_reconciled',
    '2.7.0',
    'A number of the summary that the client supplied differs from the replay, which counts. Values: counter, summary, replay (a number, or the status where the replay has none).',
    'The summary that came with the session and its replay give different numbers; the replay counts.',
  ],
  [
    'imports_observed',
    '3.1.0',
    'Files were imported while the session was watched. Values: imports, placements where they are known.',
    'Files were imported into the session while it was watched.',
  ],
  [
    'imported_material_derived',
    '3.1.0',
    'Sources were made inside the workstation of imported material (bounced, combined, stretched, recorded again); they count as imported material. Values: sources.',
    'New audio was made out of imported files inside the workstation; it is reported as imported material.',
  ],
  [
    'takes_recorded_in_real_time',
    '3.1.0',
    'Takes were seen to grow at their true rate from an input that was seen to be hardware. Values: takes, seconds.',
    'Recordings were seen to grow in real time from a hardware input.',
  ],
  [
    'takes_from_internal_input',
    '3.1.0',
    'Takes were recorded from an input inside the workstation, and are not counted as recordings. Values: takes, seconds.',
    'Audio that was already in the session was recorded again inside the workstation.',
  ],
  [
    'imported_audio_ai_likelihood',
    '3.0.0',
    "Probability, by the issuing side's detector, that an imported file was generated: a ratio, never a share of the timeline. Values: sourceId, ratio, detector, detectorVersion.",
    'A detector gave a likelihood that an imported file was generated.',
  ],
  [
    'AiLikelySource',
    '3.0.0',
    "Attribution of an imported file to a generator, by the issuing side's detector. Values: sourceId, generator, detector, detectorVersion.",
    'A detector attributed an imported file to a generator.',
  ],
];

const INFERENCES: readonly Row[] = [
  [
    'placements_without_recording_or_midi_entry',
    '3.1.0',
    'Clips lie in the arrangement, and neither a recording nor an entry of MIDI was witnessed, in a session that was watched for both or of which all that was exported shows imports alone. Values: placements.',
    'The arrangement holds material, and no recording and no entry of notes was witnessed.',
  ],
  [
    'imports_cover_most_of_export',
    '3.1.0',
    'Imported audio lies over more than half of the exported time. Values: importedSeconds, exportSeconds.',
    'Imported audio lies over most of the time that was exported.',
  ],
  [
    'activity_after_export',
    '3.1.0',
    'Edits were witnessed after the last export. Values: edits.',
    'The session was edited after the last export.',
  ],
  [
    'edits_only_of_imported_material',
    '3.1.0',
    'Every clip that was seen to be edited shows imported material, in a session that was watched for edits or of which all that was exported shows imports alone. Values: clipEdits.',
    'All edits of clips that were witnessed are edits of imported material.',
  ],
];

const DECLARATIONS: readonly Row[] = [
  [
    'creator_declaration',
    '2.6.0',
    'An answer of a creator to a question of the survey, favourable or adverse; `none_recorded` where no survey was answered.',
    'The creator answered a question about the production.',
  ],
];

const CONFLICTS: readonly Row[] = [
  [
    'observed_import_vs_creator_origin_declaration',
    '2.7.0',
    'An import was witnessed, and a creator declared that the work is from scratch or mostly self-made. Values: imports, dimension, answer, submissionId.',
    'An import was witnessed, and the creator declared the work to be from scratch or mostly self-made.',
  ],
  [
    'declared_manual_work_vs_witnessed_input',
    '3.1.0',
    'Substantial or entire work by hand was declared, and neither a recording nor an entry of MIDI was witnessed, in a session that was watched for both or of which all that was exported shows imports alone. Values: answer, submissionId.',
    'Work by hand was declared, and no recording or entry by hand was witnessed.',
  ],
  [
    'attributed_import_vs_creator_ai_declaration',
    '3.1.0',
    'A detector attributed an imported file that lies in the arrangement to a generator, and a creator declared no generated material. Values: sources, dimension, answer, submissionId.',
    'An imported file was attributed to a generator, and the creator declared that nothing is generated.',
  ],
  [
    'contradictory_declarations',
    '3.1.0',
    'Two answers of creators exclude each other; none is preferred. Values: dimension, answer, submissionId, otherDimension, otherAnswer, otherSubmissionId.',
    'Two answers that were declared exclude each other.',
  ],
];

const GAPS: readonly Row[] = [
  [
    'session_evidence_unavailable',
    '3.0.0',
    'The proof was issued without a capture trace: nothing was witnessed.',
    'No session was witnessed for this recording.',
  ],
  [
    'rule_inference_unavailable',
    '3.0.0',
    'Without a witnessed session no rule has anything to conclude from.',
    'Nothing could be concluded, because no session was witnessed.',
  ],
  [
    'creator_declaration_altered',
    '3.0.0',
    'A declaration is not what the service stored; it is left out.',
    'A stored declaration was altered and is left out.',
  ],
  [
    'evidence_facts_altered',
    '3.1.0',
    'The settled facts of the trace are not what the service stored, or are gone; they are left out.',
    'The stored facts of the session were altered or are missing, and are left out.',
  ],
  [
    'trace_chain_broken',
    '3.1.0',
    'The chain of the trace does not fit its signature; evidence ends at the last signature before. Values: segments.',
    'The record of the session does not fit its signature at some point; what follows is not used.',
  ],
  [
    'trace_sequence_gap',
    '3.1.0',
    'A segment of the trace is missing or out of order; evidence ends before. Values: expected, found.',
    'A part of the record of the session is missing or out of order; what follows is not used.',
  ],
  [
    'trace_time_backwards',
    '3.1.0',
    "Events lie before the time of an earlier one: the session's clock ran backwards. Values: count, event, microseconds.",
    'The clock of the session ran backwards at some point.',
  ],
  [
    'trace_signature_invalid',
    '3.1.0',
    "A signature of the trace is not the device's; evidence ends before. Values: segments.",
    'A signature in the record of the session is not valid; what follows is not used.',
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
    'The device that signed the trace was revoked, from a time before the issuing on. Values: revokedFrom, where it was revoked since.',
    'The device that signed the record of the session was revoked.',
  ],
  [
    'trace_truncated',
    '3.1.0',
    'The trace ends without the final signature of its device, as after a crash.',
    'The record of the session ends before the session was closed.',
  ],
  [
    'trace_unsigned_tail',
    '3.1.0',
    'Bytes follow the last valid signature; they are no evidence. Values: bytes.',
    'The end of the record of the session is not signed and is not used.',
  ],
  [
    'trace_damaged',
    '3.1.0',
    'Bytes of the trace cannot be decoded; evidence ends at the last signature before. Values: position.',
    'The record of the session is damaged at some point; what follows is not used.',
  ],
  [
    'trace_export_differs',
    '3.1.0',
    'The audio that was issued is not the file that the session exported last, so nothing ties the two together.',
    'The issued audio is not the file that the session exported last.',
  ],
  [
    'trace_export_missing',
    '3.1.0',
    'No export was witnessed, so nothing ties the session to the audio that was issued.',
    'No export was witnessed that ties the session to the issued audio.',
  ],
  [
    'trace_simulated',
    '3.1.0',
    'A generator made the trace: it witnesses nothing.',
    'The record of the session was generated for tests and witnesses nothing.',
  ],
  [
    'export_rerender_differs',
    '3.1.0',
    'Rendering the session again gave other samples than the export.',
    'The session was rendered again, and the result differs from the export.',
  ],
  [
    'recording_claim_not_witnessed',
    '3.1.0',
    'Sources appeared while the session was watched that claim to be recordings, and no recording of them was witnessed. Values: sources.',
    'Audio appeared that is marked as recorded, and its recording was not witnessed.',
  ],
  [
    'sources_of_unknown_origin',
    '3.1.0',
    'Sources were there, or appeared, without anybody having witnessed how they came to be. Values: sources, foundAtStart of these when the session was opened.',
    'The session holds audio of which nobody witnessed how it came to be.',
  ],
  [
    'derived_material_of_unknown_origin',
    '3.1.0',
    'Sources were made inside the workstation (bounced, combined, stretched, copied), and it was not witnessed of what, or how that came to be. Values: sources.',
    'New audio was made inside the workstation out of material of which nobody witnessed how it came to be.',
  ],
  [
    'takes_without_real_time_evidence',
    '3.1.0',
    'Takes whose growth or input was not witnessed well enough to say that they were recorded in real time. Values: takes.',
    'Some recordings were not witnessed closely enough to tell that they ran in real time.',
  ],
  [
    'channel_unsupported',
    '3.1.0',
    'The agent does not look at a channel: its counters have no number. Values: channel.',
    'A kind of activity is not witnessed by this agent.',
  ],
  [
    'channel_unknown',
    '3.1.0',
    'The agent cannot tell whether it sees a channel: its counters are no zero. Values: channel.',
    'It is unknown whether a kind of activity was witnessed.',
  ],
  [
    'channel_partial',
    '3.1.0',
    'The agent sees some acts of a channel, or their last value alone. Values: channel.',
    'A kind of activity was witnessed in part.',
  ],
  [
    'channel_gaps',
    '3.1.0',
    'A channel was not watched throughout. Values: channel, gaps, seconds.',
    'A kind of activity was not watched for part of the session.',
  ],
  [
    'detection_without_import',
    '3.1.0',
    'The issuing side supplied results of detection about files of which no import was witnessed. Values: detections.',
    'A detection was supplied about a file whose import was not witnessed.',
  ],
];

function rows(contentClass: ContentClass, list: readonly Row[]): readonly EvidenceCode[] {
  return list.map(([code, since, meaning, sentence]) => ({ code, contentClass, meaning, sentence, since }));
}

/** Every code, in the order of the classes of content. */
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

/** Entry of a code; undefined for one that this version does not know, which is shown as it is. */
export function findEvidenceCode(code: string): EvidenceCode | undefined {
  return BY_CODE.get(code);
}
