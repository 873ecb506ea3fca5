/** Reports the differences between a trace and a session file: the last values of an interval, without an order. */
import type { EventWriter } from './event-writer.js';
import type { KnownClip, When } from './ledger.js';
import type { ClipState, PluginState, TrackState } from './session-file.js';
import { writeMarkers, writePoints } from './transactions.js';

/** Writes every difference. Afterwards the ledger agrees with the session file. */
export function writeDifferences(writer: EventWriter, when: When): void {
  writer.writeTempo(writer.session.tempo, when);
  writeMarkers(writer, new Map(writer.ledger.markers), writer.session.markers, when);
  writeRemovals(writer, when);
  writeTracks(writer, when);
  for (const id of writer.session.sources.keys()) writer.source(id, when);
  writeClips(writer, when);
  writePlugins(writer, when);
  writeAutomation(writer, when);
}

function writeRemovals(writer: EventWriter, when: When): void {
  const { ledger, session } = writer;
  const added = [...session.clips.values()].filter(({ id }) => !ledger.clips.has(id));
  for (const [id, { state }] of [...ledger.clips]) {
    if (session.clips.has(id)) continue;
    const successor = added.find((each) => !ledger.clips.has(each.id) && writer.comesFrom(each, state));
    if (successor === undefined) writer.remove(id, when);
    else writer.become(id, successor, when);
  }
  for (const [id, { plugin }] of [...ledger.plugins]) {
    if (session.plugins.has(id)) continue;
    ledger.plugins.delete(id);
    ledger.add({ kind: 'plugin.removed', plugin }, when);
  }
  for (const [id, { track }] of [...ledger.tracks]) {
    if (session.tracks.has(id)) continue;
    ledger.tracks.delete(id);
    ledger.add({ kind: 'track.removed', track }, when);
  }
  for (const [id, { source }] of [...ledger.sources]) {
    if (session.sources.has(id)) continue;
    ledger.sources.delete(id);
    ledger.add({ kind: 'source.removed', source }, when);
  }
}

function writeTracks(writer: EventWriter, when: When): void {
  const { ledger, session } = writer;
  for (const state of session.tracks.values()) {
    const known = ledger.tracks.get(state.id);
    if (known === undefined) {
      writer.track(state.id, when);
      continue;
    }
    const { track, state: former } = known;
    ledger.tracks.set(state.id, { track, state });
    for (const property of changedProperties(former, state))
      ledger.add({ kind: 'track.changed', track, property }, when);
    for (const control of changedControls(former, state))
      ledger.add({ kind: 'mixer.changed', track, control }, when);
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

/** Returns each control that changed. Gain and trim are two controls, though the trace has one word for both. */
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

function writeClips(writer: EventWriter, when: When): void {
  for (const state of writer.session.clips.values()) {
    const known = writer.ledger.clips.get(state.id);
    if (known === undefined) writer.place(state, when);
    else writeClip(writer, known, state, when);
  }
}

function writeClip(writer: EventWriter, known: KnownClip, state: ClipState, when: When): void {
  const { clip, state: former } = known;
  const { ledger } = writer;
  writer.reshape(state.id, state, when);
  ledger.clips.set(state.id, { clip, state });
  const changed = [
    ...(former.gain === state.gain ? [] : (['gain'] as const)),
    ...(former.muted === state.muted ? [] : (['mute'] as const)),
    ...(former.name === state.name ? [] : (['name'] as const)),
    ...(former.offset === state.offset || former.length !== state.length ? [] : (['other'] as const)),
  ];
  for (const property of changed) ledger.add({ kind: 'clip.changed', clip, property }, when);
  if (former.source === state.source) return;
  const source = writer.source(state.source, when);
  if (source !== undefined) ledger.add({ kind: 'clip.replaced', clip, source }, when);
}

function writePlugins(writer: EventWriter, when: When): void {
  const { ledger, session } = writer;
  for (const state of session.plugins.values()) {
    const known = ledger.plugins.get(state.id);
    const track = writer.track(state.track, when);
    if (known === undefined) {
      const plugin = ledger.next('plugin');
      ledger.plugins.set(state.id, { plugin, state });
      // The session file does not say which plug-ins are instruments.
      ledger.add(
        { kind: 'plugin.added', plugin, type: 'unknown', ...(track === undefined ? {} : { track }) },
        when,
      );
      continue;
    }
    ledger.plugins.set(state.id, { plugin: known.plugin, state });
    for (const property of changedBy(known.state, state))
      ledger.add({ kind: 'plugin.changed', plugin: known.plugin, property }, when);
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

function writeAutomation(writer: EventWriter, when: When): void {
  const { ledger, session } = writer;
  for (const state of session.automation.values()) {
    const former = ledger.automation.get(state.id);
    ledger.automation.set(state.id, state);
    writePoints(writer, state, former?.points ?? new Map(), state.points, when);
    if ((former?.mode ?? 'Off') === state.mode) continue;
    const track = writer.track(state.track, when);
    const mode = MODES[state.mode] ?? 'other';
    ledger.add({ kind: 'automation.mode', mode, ...(track === undefined ? {} : { track }) }, when);
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
