import { defined } from '../../core/domain/defined.js';
import {
  MAX_OBSERVED_IMPORTS,
  NOTHING_OBSERVED,
  type ObservedProduction,
} from '../../core/domain/observed-production.js';
import type { EvidenceFacts } from './evidence.js';
import type { CounterName } from './session-evidence.js';

/** The counters that must be `not_observed` for a session to contain only takes. */
const BESIDE_TAKES: readonly CounterName[] = [
  'importsAdded',
  'importPlacements',
  'sourcesDerived',
  'sourcesAppeared',
  'midiNotesEntered',
  'midiNotesRecorded',
];
/**
 * The codes of facts about sound other than takes in real time. The counters are not enough: they count
 * actions, and not what existed when the agent started to watch.
 */
const OTHER_SOUND: readonly string[] = [
  // Sound recorded from inside the workstation is neither a counted take nor a capture.
  'takes_from_internal_input',
  'takes_without_real_time_evidence',
  'sources_of_unknown_origin',
  'derived_material_of_unknown_origin',
  'session_begun_before_agent',
  'takes_not_finished',
  'plugins_may_add_sound',
  'sources_rewritten_out_of_sight',
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
 * Returns the production that the facts prove for the issued audio. A trace of other audio, of a device that
 * is not enrolled, or from a generator proves nothing. If the export was not shown to follow from the witnessed
 * arrangement, only the imports are named: what was recorded, entered or edited need not be in the audio.
 */
export function observedProduction(facts: EvidenceFacts): ObservedProduction {
  const { session, importedSources = [], placedImportCount = 0, inputs } = facts;
  const { counters, device, export: exported } = session;
  if (exported?.issuedAudio !== 'matches' || device.standing !== 'enrolled' || session.simulated)
    return NOTHING_OBSERVED;
  const sum = (names: readonly CounterName[]): number | undefined =>
    positive(names.reduce((total, name) => total + (counters[name].value ?? 0), 0));
  // The list keeps placed imports before others, so the first placed imports are always in it.
  const placed = importedSources
    .filter(({ placements }) => (placements?.count ?? 0) > 0)
    .slice(0, MAX_OBSERVED_IMPORTS);
  const named: Pick<ObservedProduction, 'imports' | 'importCount'> = {
    imports: placed.map(({ originalSha256, samplesSha256 }) => {
      if (originalSha256 !== undefined) return { sha256: originalSha256, of: 'file' };
      return samplesSha256 === undefined ? {} : { sha256: samplesSha256, of: 'samples' };
    }),
    ...defined({ importCount: positive(placedImportCount) }),
  };
  if (facts.facts.some(({ code }) => code === 'export_not_tied_to_session'))
    return { complete: false, captured: false, ...named };
  const takes = sum(['takesRecordedInRealTime']);
  return {
    complete:
      session.sealed &&
      exported.rerender === 'matched' &&
      // Without later edits, the export contains the final arrangement.
      inputs.editsAfterExport === 0 &&
      placed.length === placedImportCount &&
      !facts.facts.some(({ code }) => code === 'session_begun_before_agent') &&
      Object.values(session.coverage).every(
        ({ support, gapCount }) => support === 'supported' && gapCount === 0,
      ),
    captured:
      takes !== undefined &&
      takes === counters.takesRecorded.value &&
      facts.importedSourceCount === 0 &&
      !facts.facts.some(({ code }) => OTHER_SOUND.includes(code)) &&
      BESIDE_TAKES.every((name) => counters[name].status === 'not_observed'),
    ...named,
    ...defined({
      takes,
      notes: sum(['midiNotesEntered', 'midiNotesRecorded']),
      edits: sum(EDITS),
    }),
  };
}

function positive(count: number): number | undefined {
  return Number.isSafeInteger(count) && count > 0 ? count : undefined;
}
