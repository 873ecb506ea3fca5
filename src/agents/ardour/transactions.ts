/** Reports the transactions of the undo history as events, each at the time that Ardour gave it. */
import { type EventWriter, showsTheSame } from './event-writer.js';
import type { Change, Transaction } from './history-file.js';
import type { When } from './ledger.js';
import type {
  AutomationState,
  ClipState,
  Extent,
  MarkerState,
  RegionState,
  SessionState,
} from './session-file.js';
import { readTime } from './session-file.js';

/** A change, with the clips that it put into the arrangement as they were then. */
interface Step {
  readonly change: Change;
  readonly added: readonly ClipState[];
}

/**
 * Returns the steps of each transaction. The session file has every region as it is now. So later changes are taken
 * back, from the last transaction to the first, to find what a region was when it was added.
 */
export function traceBack(
  transactions: readonly Transaction[],
  session: SessionState,
): readonly (readonly Step[])[] {
  const earlier = new Map<string, RegionState>();
  const current = (id: string) => earlier.get(id) ?? session.clips.get(id) ?? session.regions.get(id);
  const tracks = new Map([...session.tracks.values()].map(({ id, playlist }) => [playlist, id]));
  const steps: (readonly Step[])[] = [];
  for (const { changes } of transactions.toReversed()) {
    const back: Step[] = [];
    for (const change of changes.toReversed()) {
      back.push({ change, added: change.kind === 'playlist' ? placedBy(change, current, tracks) : [] });
      if (change.kind !== 'extent' && change.kind !== 'property') continue;
      const state = current(change.region);
      if (state !== undefined) earlier.set(change.region, { ...state, ...undo(change) });
    }
    steps.push(back.reverse());
  }
  return steps.reverse();
}

function placedBy(
  { playlist, added }: Extract<Change, { kind: 'playlist' }>,
  current: (id: string) => RegionState | undefined,
  tracks: ReadonlyMap<string | undefined, string>,
): readonly ClipState[] {
  const track = tracks.get(playlist);
  if (track === undefined) return [];
  return added.flatMap((id) => {
    const state = current(id);
    return state === undefined ? [] : [{ ...state, track }];
  });
}

function undo(change: Extract<Change, { kind: 'extent' | 'property' }>): Partial<RegionState> {
  if (change.kind === 'extent') return change.from;
  return settle(change.property, change.from);
}

/** Returns the member of a region's state that a property sets, or an empty object if there is none. */
function settle(property: string, value: string): Partial<RegionState> {
  if (property === 'muted') return { muted: value };
  if (property === 'name') return { name: value };
  if (property === 'scale-amplitude') return { gain: value };
  const offset = property === 'start' ? readTime(value)?.value : undefined;
  return offset === undefined ? {} : { offset };
}

/** Reports one transaction. */
export function writeTransaction(writer: EventWriter, steps: readonly Step[], exactly: When): void {
  writePlacements(writer, steps, exactly);
  const resized = new Set(steps.flatMap(({ change }) => (change.kind === 'extent' ? change.region : [])));
  const written = new Set<string>();
  for (const { change } of steps)
    switch (change.kind) {
      case 'extent':
        writeExtent(writer, change.region, change.to, exactly);
        break;
      case 'property':
        writeProperty(writer, change, { resized: resized.has(change.region), written }, exactly);
        break;
      case 'notes':
        writeNotes(writer, change, exactly);
        break;
      case 'automation':
        writeAutomation(writer, change, exactly);
        break;
      case 'markers':
        writeMarkers(writer, change.before, change.after, exactly);
        break;
      case 'tempo':
        writer.writeTempo(change.after, exactly);
        break;
      default:
    }
}

/** Reports the clips that one transaction added and removed. Together they show a split, a move or a replacement. */
function writePlacements(writer: EventWriter, steps: readonly Step[], when: When): void {
  const { ledger } = writer;
  const added = new Map(steps.flatMap((step) => step.added.map((clip) => [clip.id, clip])));
  const removed = new Set(
    steps.flatMap(({ change }) =>
      change.kind === 'playlist' ? change.removed.filter((id) => ledger.clips.has(id)) : [],
    ),
  );
  for (const id of removed) if (added.has(id)) writer.reshape(id, added.get(id), when);
  for (const id of [...removed].filter((each) => added.has(each))) {
    removed.delete(id);
    added.delete(id);
  }
  for (const id of removed) {
    const halves = splitOf(ledger.clips.get(id)?.state, added);
    if (halves === undefined) continue;
    writer.split(id, halves, when);
    removed.delete(id);
    for (const { id: half } of halves) added.delete(half);
  }
  for (const id of removed) {
    const state = ledger.clips.get(id)?.state;
    const same = [...added.values()].find((clip) => state !== undefined && showsTheSame(clip, state));
    const other = same ?? [...added.values()].find((clip) => writer.comesFrom(clip, state));
    if (other === undefined) continue;
    writer.become(id, other, when);
    removed.delete(id);
    added.delete(other.id);
  }
  for (const clip of added.values()) writer.place(clip, when);
  for (const id of removed) writer.remove(id, when);
}

const NEAR = 1e-6;

/** Returns the two parts of a split: side by side where the clip was, on its track and from its source. */
function splitOf(
  clip: ClipState | undefined,
  added: ReadonlyMap<string, ClipState>,
): readonly [left: ClipState, right: ClipState] | undefined {
  if (clip === undefined) return undefined;
  const alike = [...added.values()].filter(
    ({ source, track }) => source === clip.source && track === clip.track,
  );
  for (const left of alike) {
    if (Math.abs(left.start - clip.start) > NEAR) continue;
    const right = alike.find(
      (each) =>
        each !== left &&
        Math.abs(each.start - (left.start + left.length)) < NEAR &&
        Math.abs(each.start + each.length - (clip.start + clip.length)) < NEAR,
    );
    if (right !== undefined) return [left, right];
  }
  return undefined;
}

function writeExtent(writer: EventWriter, region: string, to: Extent, when: When): void {
  const known = writer.ledger.clips.get(region);
  if (known !== undefined && known.state.base === to.base)
    writer.reshape(region, { ...known.state, ...to }, when);
}

type ClipProperty = 'gain' | 'mute' | 'fade' | 'name' | 'stretch' | 'pitch' | 'layer' | 'other';

const PROPERTIES: Readonly<Record<string, ClipProperty>> = {
  'scale-amplitude': 'gain',
  Envelope: 'gain',
  'envelope-active': 'gain',
  muted: 'mute',
  FadeIn: 'fade',
  FadeOut: 'fade',
  InverseFadeIn: 'fade',
  InverseFadeOut: 'fade',
  'fade-in-active': 'fade',
  'fade-out-active': 'fade',
  name: 'name',
  stretch: 'stretch',
  shift: 'pitch',
  'layering-index': 'layer',
  opaque: 'other',
  locked: 'other',
  start: 'other',
};

const TRIMMED: readonly string[] = ['start', 'Envelope', 'FadeIn', 'FadeOut'];

function writeProperty(
  { ledger }: EventWriter,
  change: Extract<Change, { kind: 'property' }>,
  { resized, written }: { readonly resized: boolean; readonly written: Set<string> },
  when: When,
): void {
  const clip = ledger.clips.get(change.region);
  if (clip === undefined) return;
  ledger.clips.set(change.region, {
    ...clip,
    state: { ...clip.state, ...settle(change.property, change.to) },
  });
  // The offset of a trimmed clip is a part of the trimming, and so are the ends of its envelope and fades.
  const property = resized && TRIMMED.includes(change.property) ? undefined : PROPERTIES[change.property];
  if (property === undefined || written.has(`${change.region} ${property}`)) return;
  written.add(`${change.region} ${property}`);
  ledger.add({ kind: 'clip.changed', clip: clip.clip, property }, when);
}

function writeNotes(
  writer: EventWriter,
  { source, added, removed, changed }: Extract<Change, { kind: 'notes' }>,
  when: When,
): void {
  if (added + removed + changed === 0) return;
  const id = writer.source(source, when);
  writer.ledger.add(
    { kind: 'midi.edited', added, removed, changed, ...(id === undefined ? {} : { source: id }) },
    when,
  );
}

function writeAutomation(
  writer: EventWriter,
  { list, before, after }: Extract<Change, { kind: 'automation' }>,
  when: When,
): void {
  const { ledger, session } = writer;
  const state = ledger.automation.get(list) ?? session.automation.get(list);
  if (state !== undefined) ledger.automation.set(list, { ...state, points: after });
  writePoints(writer, state, before, after, when);
}

/** Reports how many points were added, removed and changed between two states of an automation list. */
export function writePoints(
  writer: EventWriter,
  state: AutomationState | undefined,
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
  when: When,
): void {
  let [added, changed, kept] = [0, 0, 0];
  for (const [time, value] of after) {
    const former = before.get(time);
    if (former === undefined) added += 1;
    else kept += 1;
    if (former !== undefined && former !== value) changed += 1;
  }
  const removed = before.size - kept;
  if (added + removed + changed === 0) return;
  const track = state === undefined ? undefined : writer.track(state.track, when);
  writer.ledger.add(
    { kind: 'automation.edited', added, removed, changed, ...(track === undefined ? {} : { track }) },
    when,
  );
}

/** Reports the markers that were added, changed or removed between two states, and updates the ledger. */
export function writeMarkers(
  { ledger }: EventWriter,
  before: ReadonlyMap<string, MarkerState>,
  after: ReadonlyMap<string, MarkerState>,
  when: When,
): void {
  const add = (act: 'added' | 'changed' | 'removed', { seconds }: MarkerState): void =>
    ledger.add({ kind: 'marker.changed', act, ...(seconds === undefined ? {} : { start: seconds }) }, when);
  for (const [id, marker] of after) {
    const former = before.get(id);
    if (former === undefined) add('added', marker);
    else if (former.all !== marker.all) add('changed', marker);
    ledger.markers.set(id, marker);
  }
  for (const [id, marker] of before) {
    if (after.has(id)) continue;
    add('removed', marker);
    ledger.markers.delete(id);
  }
}
