/**
 * Reports the origin of a source, from the claim of the session file and from what the agent saw of its file. A claim
 * alone is never reported as a recording or an import.
 */
import type { KnownSource, Ledger, When } from './ledger.js';
import type { RegionState, SessionState, SourceState } from './session-file.js';

/** The kind of a source according to the session file. Ardour has no single attribute for it. */
export type Claim =
  | { readonly kind: 'take' }
  | { readonly kind: 'import'; readonly manner: 'copied' | 'referenced' | 'midi' }
  | {
      readonly kind: 'derived';
      readonly manner: 'bounce' | 'combine' | 'stretch' | 'copy' | 'unknown';
      readonly from: readonly string[];
    }
  | { readonly kind: 'nothing' };

/**
 * Returns the claims of all sources of a session, by the ids of the sources.
 * @param forks sources of notes that replaced others, with these: a file of notes does not name what it was made of
 */
export function readClaims(
  session: SessionState,
  forks: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, Claim> {
  const shown = new Map<string, RegionState[]>();
  for (const region of session.regions.values())
    for (const id of region.sources) {
      const regions = shown.get(id);
      if (regions === undefined) shown.set(id, [region]);
      else regions.push(region);
    }
  return new Map(
    [...session.sources.values()].map((source) => [
      source.id,
      claimOf(source, shown.get(source.id) ?? [], session, forks.get(source.id)),
    ]),
  );
}

function claimOf(
  source: SourceState,
  regions: readonly RegionState[],
  session: SessionState,
  forkOf: string | undefined,
): Claim {
  if (source.parts !== undefined) return { kind: 'derived', manner: 'combine', from: source.parts };
  if (source.origin.startsWith('/')) return { kind: 'import', manner: 'referenced' };
  const masters = new Set(
    regions.flatMap((region) => region.masters[region.sources.indexOf(source.id)] ?? []),
  );
  masters.delete(source.id);
  if (masters.size > 0 || regions.some(({ stretched }) => stretched))
    return { kind: 'derived', manner: 'stretch', from: [...masters] };
  if (regions.some(({ external }) => external))
    return { kind: 'import', manner: source.type === 'midi' ? 'midi' : 'copied' };
  if (source.type === 'midi') {
    if (source.takeId !== '') return { kind: 'take' };
    if (forkOf !== undefined) return { kind: 'derived', manner: 'copy', from: [forkOf] };
    return source.capturedFor === '' ? { kind: 'nothing' } : { kind: 'derived', manner: 'unknown', from: [] };
  }
  if (source.takeId === '' || source.capturedFor === '') return { kind: 'nothing' };
  if (source.timestamp !== '' && (regions.length === 0 || regions.some(({ automatic }) => automatic)))
    return { kind: 'take' };
  return { kind: 'derived', manner: 'bounce', from: soleSource(source, session) };
}

/** Returns the source of a track that shows one alone: what is bounced there can come from nothing else. */
function soleSource({ capturedFor, id }: SourceState, { tracks, clips }: SessionState): readonly string[] {
  const named = [...tracks.values()].filter(
    ({ name, playlist }) => name === capturedFor && playlist !== undefined,
  );
  if (named.length !== 1) return [];
  const sources = new Set(
    [...clips.values()]
      .filter(({ track, source }) => track === named[0]?.id && source !== id)
      .map(({ source }) => source),
  );
  return sources.size === 1 ? [...sources] : [];
}

/** What the agent saw of a source's file, independently of the session file. */
export interface SourceWitness {
  /** True if the file came into the folder, or was first referenced, while the agent was looking. */
  readonly appeared: boolean;
  /** The id of the take, if its audio was seen to grow, or its notes appeared, while Ardour recorded. */
  readonly take?: number;
  readonly samplesSha256?: string;
  readonly originalSha256?: string;
  readonly frames?: number;
  readonly rate?: number;
  readonly channels?: number;
  /** The number of notes of a MIDI file. */
  readonly notes?: number;
}

/**
 * Reports a source that the trace does not contain yet.
 * @param placed true if a transaction put the source into the arrangement since the last save
 */
export function writeSource(
  ledger: Ledger,
  state: SourceState,
  claim: Claim,
  witness: SourceWitness,
  placed: boolean,
  when: When,
): KnownSource {
  const source = ledger.next('source');
  const remember = (origin: KnownSource['origin']): KnownSource => {
    const known: KnownSource = { source, origin };
    ledger.sources.set(state.id, known);
    return known;
  };
  const { appeared, samplesSha256, originalSha256, frames, rate, channels, notes } = witness;
  const take = witness.take === undefined || ledger.ended.has(witness.take) ? undefined : witness.take;
  const digest = samplesSha256 === undefined ? {} : { samplesSha256 };

  if (claim.kind === 'take' && take !== undefined) {
    if (state.type === 'midi') {
      ledger.add({ kind: 'midi.recorded', take, source, notes: notes ?? 0 }, when);
      return remember('recording');
    }
    if (frames !== undefined && rate !== undefined) {
      ledger.add({ kind: 'recording.finished', take, source, frames, rate, ...digest }, when);
      return remember('recording');
    }
  }
  if (take !== undefined && state.type !== 'midi') ledger.add({ kind: 'recording.discarded', take }, when);
  const isFound = when.since === when.at;
  if (claim.kind === 'import' && appeared && placed && !isFound) {
    ledger.add(
      {
        kind: 'import.added',
        source,
        manner: claim.manner,
        ...digest,
        ...(originalSha256 === undefined ? {} : { originalSha256 }),
        ...(frames === undefined ? {} : { frames }),
        ...(rate === undefined ? {} : { rate }),
        ...(channels === undefined ? {} : { channels }),
      },
      when,
    );
    return remember('import');
  }
  if (claim.kind === 'derived' && appeared) {
    const from = claim.from.flatMap((id) => ledger.sources.get(id)?.source ?? []);
    const one = { kind: 'source.derived', source, manner: claim.manner, ...digest } as const;
    if (from.length === 0) ledger.add(one, when);
    for (const each of from) ledger.add({ ...one, from: each }, when);
    return remember('derived');
  }
  const claims = claim.kind === 'take' ? 'recording' : claim.kind;
  ledger.add({ kind: 'source.appeared', source, claims, ...digest }, when);
  return remember('appeared');
}
