/** The differences between a trace and a session file: last values of an interval, without an order. */
import type { ToldClip, When } from './ledger.js';
import type { ClipState, PluginState, TrackState } from './session-file.js';
import type { Telling } from './telling.js';
import { tellMarkers, tellPoints } from './transactions.js';

/** Writes every difference. Afterwards the ledger agrees with the session file. */
export function tellDifferences(telling: Telling, when: When): void {
  telling.tellTempo(telling.session.tempo, when);
  tellMarkers(telling, new Map(telling.ledger.markers), telling.session.markers, when);
  tellRemovals(telling, when);
  tellTracks(telling, when);
  for (const id of telling.session.sources.keys()) telling.source(id, when);
  tellClips(telling, when);
  tellPlugins(telling, when);
  tellAutomation(telling, when);
}

function tellRemovals(telling: Telling, when: When): void {
  const { ledger, session } = telling;
  const added = [...session.clips.values()].filter(({ id }) => !ledger.clips.has(id));
  for (const [id, { state }] of [...ledger.clips]) {
    if (session.clips.has(id)) continue;
    const successor = added.find((each) => !ledger.clips.has(each.id) && telling.comesFrom(each, state));
    if (successor === undefined) telling.remove(id, when);
    else telling.become(id, successor, when);
  }
  for (const [id, { plugin }] of [...ledger.plugins]) {
    if (session.plugins.has(id)) continue;
    ledger.plugins.delete(id);
    ledger.tell({ kind: 'plugin.removed', plugin }, when);
  }
  for (const [id, { track }] of [...ledger.tracks]) {
    if (session.tracks.has(id)) continue;
    ledger.tracks.delete(id);
    ledger.tell({ kind: 'track.removed', track }, when);
  }
  for (const [id, { source }] of [...ledger.sources]) {
    if (session.sources.has(id)) continue;
    ledger.sources.delete(id);
    ledger.tell({ kind: 'source.removed', source }, when);
  }
}

function tellTracks(telling: Telling, when: When): void {
  const { ledger, session } = telling;
  for (const state of session.tracks.values()) {
    const told = ledger.tracks.get(state.id);
    if (told === undefined) {
      telling.track(state.id, when);
      continue;
    }
    const { track, state: former } = told;
    ledger.tracks.set(state.id, { track, state });
    for (const property of changedProperties(former, state))
      ledger.tell({ kind: 'track.changed', track, property }, when);
    for (const control of changedControls(former, state))
      ledger.tell({ kind: 'mixer.changed', track, control }, when);
  }
}

function changedProperties(former: TrackState, state: TrackState): readonly ('name' | 'input' | 'order')[] {
  return [
    ...(former.name === state.name ? [] : (['name'] as const)),
    ...(former.inputs.join('\n') === state.inputs.join('\n') ? [] : (['input'] as const)),
    ...(former.order === state.order ? [] : (['order'] as const)),
  ];
}

type Control = 'gain' | 'pan' | 'mute' | 'solo' | 'send' | 'arm' | 'other';

/** Each control that changed: gain and trim are two, though the trace has one word for both. */
function changedControls(former: TrackState, state: TrackState): readonly Control[] {
  const changed: Control[] = [];
  for (const [name, value] of state.controls)
    if (former.controls.has(name) && former.controls.get(name) !== value) changed.push(controlOf(name));
  return changed;
}

function controlOf(name: string): Control {
  if (name === 'amp' || name === 'trim') return 'gain';
  if (name.startsWith('pan-')) return 'pan';
  if (name.startsWith('send ')) return 'send';
  if (name === 'mute' || name === 'solo') return name;
  return name === 'rec-enable' ? 'arm' : 'other';
}

function tellClips(telling: Telling, when: When): void {
  for (const state of telling.session.clips.values()) {
    const told = telling.ledger.clips.get(state.id);
    if (told === undefined) telling.place(state, when);
    else tellClip(telling, told, state, when);
  }
}

function tellClip(telling: Telling, { clip, state: former }: ToldClip, state: ClipState, when: When): void {
  const { ledger } = telling;
  telling.reshape(state.id, state, when);
  ledger.clips.set(state.id, { clip, state });
  const changed = [
    ...(former.gain === state.gain ? [] : (['gain'] as const)),
    ...(former.muted === state.muted ? [] : (['mute'] as const)),
    ...(former.name === state.name ? [] : (['name'] as const)),
    ...(former.offset === state.offset || former.length !== state.length ? [] : (['other'] as const)),
  ];
  for (const property of changed) ledger.tell({ kind: 'clip.changed', clip, property }, when);
  if (former.source === state.source) return;
  const source = telling.source(state.source, when);
  if (source !== undefined) ledger.tell({ kind: 'clip.replaced', clip, source }, when);
}

function tellPlugins(telling: Telling, when: When): void {
  const { ledger, session } = telling;
  for (const state of session.plugins.values()) {
    const told = ledger.plugins.get(state.id);
    const track = telling.track(state.track, when);
    if (told === undefined) {
      const plugin = ledger.next('plugin');
      ledger.plugins.set(state.id, { plugin, state });
      // The session file does not say which plug-ins are instruments.
      ledger.tell(
        { kind: 'plugin.added', plugin, type: 'unknown', ...(track === undefined ? {} : { track }) },
        when,
      );
      continue;
    }
    ledger.plugins.set(state.id, { plugin: told.plugin, state });
    for (const property of changedBy(told.state, state))
      ledger.tell({ kind: 'plugin.changed', plugin: told.plugin, property }, when);
  }
}

function changedBy(former: PluginState, state: PluginState): readonly ('parameter' | 'bypass' | 'order')[] {
  const isChanged = [...state.parameters].some(([name, value]) => former.parameters.get(name) !== value);
  return [
    ...(isChanged ? (['parameter'] as const) : []),
    ...(former.active === state.active ? [] : (['bypass'] as const)),
    ...(former.track === state.track ? [] : (['order'] as const)),
  ];
}

function tellAutomation(telling: Telling, when: When): void {
  const { ledger, session } = telling;
  for (const state of session.automation.values()) {
    const former = ledger.automation.get(state.id);
    ledger.automation.set(state.id, state);
    tellPoints(telling, state, former?.points ?? new Map(), state.points, when);
    if ((former?.mode ?? 'Off') === state.mode) continue;
    const track = telling.track(state.track, when);
    const mode = MODES[state.mode] ?? 'other';
    ledger.tell({ kind: 'automation.mode', mode, ...(track === undefined ? {} : { track }) }, when);
  }
  for (const id of [...ledger.automation.keys()])
    if (!session.automation.has(id)) ledger.automation.delete(id);
}

const MODES: Readonly<Record<string, 'off' | 'play' | 'write' | 'touch' | 'latch'>> = {
  Off: 'off',
  Play: 'play',
  Write: 'write',
  Touch: 'touch',
  Latch: 'latch',
};
