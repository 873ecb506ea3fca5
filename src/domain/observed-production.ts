import { defined } from './defined.js';
import type { EvidenceFacts } from './evidence.js';
import type { CounterName } from './session-evidence.js';

/**
 * Production as far as a trace proves it, in the few words that a carrier may hold (rule 10.12): counts, and digests
 * of imports. What is signed cannot be revoked, so nothing of source detail is here. A count that is absent is not
 * known or none; a count is never zero.
 */
export interface ObservedProduction {
  /**
   * True where every channel was watched from beginning to end, the export was rendered again the same, no edit came
   * after it, and every placed import is listed.
   */
  readonly complete: boolean;
  /** True where takes that were recorded in real time are all that the session was seen to hold. */
  readonly captured: boolean;
  /** Placed imports, in the order of import, at most `MAX_OBSERVED_IMPORTS`. */
  readonly imports: readonly ObservedImport[];
  /** Count of all placed imports, listed or not. */
  readonly importCount?: number;
  /** Takes that were seen to be recorded in real time. */
  readonly takes?: number;
  /** Notes that were entered or played in. */
  readonly notes?: number;
  /** Acts on clips, notes that were there, automation, plug-ins and mixer. */
  readonly edits?: number;
}

/** Imported source by its digest; one whose digest nobody has is without. */
export interface ObservedImport {
  readonly sha256?: string;
  /** Extent of the digest: the whole original file, or the samples as the session held them. */
  readonly of?: 'file' | 'samples';
}

export const MAX_OBSERVED_IMPORTS = 32;

/** Production of which nothing was observed: the audio came from elsewhere. */
export const NOTHING_OBSERVED: ObservedProduction = { complete: false, captured: false, imports: [] };

/** Counters that must have watched and seen nothing for a session to be takes alone. */
const BESIDE_TAKES: readonly CounterName[] = [
  'importsAdded',
  'importPlacements',
  'sourcesDerived',
  'sourcesAppeared',
  'midiNotesEntered',
  'midiNotesRecorded',
];
/**
 * Codes of facts that tell of other sound than takes in real time. Counters count acts: what was found when the agent began
 * to look is in none of them.
 */
const OTHER_SOUND: readonly string[] = [
  // Sound recorded from inside the workstation is no take, and no capture either.
  'takes_from_internal_input',
  'takes_without_real_time_evidence',
  'sources_of_unknown_origin',
  'derived_material_of_unknown_origin',
];
const EDITS: readonly CounterName[] = [
  'clipsCreated',
  'clipsMoved',
  'clipsTrimmed',
  'clipsSplit',
  'clipsCopied',
  'clipsDeleted',
  'clipsChanged',
  'midiNotesEdited',
  'automationEdits',
  'pluginsAdded',
  'pluginChanges',
  'mixerChanges',
];

/**
 * Production that facts prove of the audio that is issued. A trace of other audio, of a device that is not enrolled,
 * or of a generator proves nothing of it.
 */
export function observedProduction(facts: EvidenceFacts): ObservedProduction {
  const { session, importedSources = [], placedImportCount = 0, inputs } = facts;
  const { counters, device, export: exported } = session;
  if (exported?.issuedAudio !== 'matches' || device.standing !== 'enrolled' || session.simulated)
    return NOTHING_OBSERVED;
  const sum = (names: readonly CounterName[]): number | undefined =>
    positive(names.reduce((total, name) => total + (counters[name].value ?? 0), 0));
  // Placed imports are listed before others, so that the first of them are there.
  const placed = importedSources
    .filter(({ placements }) => (placements?.count ?? 0) > 0)
    .slice(0, MAX_OBSERVED_IMPORTS);
  const takes = sum(['takesRecordedInRealTime']);
  return {
    complete:
      session.sealed &&
      exported.rerender === 'matched' &&
      // The export holds the arrangement of the end.
      inputs.editsAfterExport === 0 &&
      placed.length === placedImportCount &&
      Object.values(session.coverage).every(
        ({ support, gapCount }) => support === 'supported' && gapCount === 0,
      ),
    captured:
      takes !== undefined &&
      takes === counters.takesRecorded.value &&
      exported.rerender !== 'differed' &&
      facts.importedSourceCount === 0 &&
      !facts.facts.some(({ code }) => OTHER_SOUND.includes(code)) &&
      BESIDE_TAKES.every((name) => counters[name].status === 'not_observed'),
    imports: placed.map(({ originalSha256, samplesSha256 }) => {
      if (originalSha256 !== undefined) return { sha256: originalSha256, of: 'file' };
      return samplesSha256 === undefined ? {} : { sha256: samplesSha256, of: 'samples' };
    }),
    ...defined({
      importCount: positive(placedImportCount),
      takes,
      notes: sum(['midiNotesEntered', 'midiNotesRecorded']),
      edits: sum(EDITS),
    }),
  };
}

function positive(count: number): number | undefined {
  return Number.isSafeInteger(count) && count > 0 ? count : undefined;
}
