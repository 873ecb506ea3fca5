/** Writes session and history files in Ardour's layout, with as much in them as a test asks for. */

const CLOCK = 282_240_000;
/** Returns a time in seconds as Ardour writes it in superclocks. */
export const clocks = (seconds: number): string => `a${Math.round(seconds * CLOCK)}`;

export interface RegionSpec {
  readonly id: number;
  readonly source: number;
  readonly start: number;
  readonly length: number;
  readonly offset?: number;
  readonly name?: string;
  readonly gain?: number;
  readonly external?: boolean;
  readonly automatic?: boolean;
  readonly master?: number;
  /** True if the region has notes instead of audio. */
  readonly midi?: boolean;
  /** The length and the position as Ardour writes them, instead of `length` and `start`. */
  readonly extent?: string;
  /** The ids of the sources of a compound's parts. */
  readonly parts?: readonly number[];
}

export interface SessionSpec {
  readonly sources?: readonly { readonly id: number; readonly attributes: string }[];
  /** The regions outside of playlists. */
  readonly regions?: readonly RegionSpec[];
  /** The clips of the one audio track. */
  readonly clips?: readonly RegionSpec[];
  readonly gain?: number;
  readonly mute?: number;
  readonly bpm?: number;
  readonly idCounter?: number;
  readonly trackName?: string;
  readonly input?: string;
  readonly backend?: string;
  readonly processors?: string;
  readonly gainPoints?: readonly (readonly [seconds: number, value: number])[];
  readonly markers?: readonly (readonly [id: number, seconds: number])[];
  readonly extra?: string;
}

export function region(spec: RegionSpec): string {
  const { id, source, start, length, offset = 0, name = 'r', gain = 1, master = source, parts = [] } = spec;
  const { extent = `${clocks(length)}@${clocks(start)}` } = spec;
  const flag = (on: boolean | undefined) => (on === true ? 1 : 0);
  const inner = parts
    .map((part) => region({ id: id * 1000 + part, source: part, start: 0, length }))
    .join('');
  const own =
    parts.length === 0
      ? ''
      : `<NestedSource><Source name="c" type="audio" id="${source}" playlist="7" original="1"><Playlist id="${id * 1000}">${inner}</Playlist></Source></NestedSource>`;
  return `<Region name="${name}" muted="0" whole-file="0" external="${flag(spec.external)}" automatic="${flag(spec.automatic)}" start="${clocks(offset)}" length="${extent}" stretch="1" shift="1" scale-amplitude="${gain}" id="${id}" type="${spec.midi === true ? 'midi' : 'audio'}" source-0="${source}" master-source-0="${master}">${own}</Region>`;
}

export function sessionXml(spec: SessionSpec = {}): string {
  const { sources = [], regions = [], clips = [], gain = 1, mute = 0, bpm = 120, idCounter = 100 } = spec;
  const {
    trackName = 'Vox',
    input = 'system:capture_1',
    backend = 'ALSA',
    gainPoints = [],
    markers = [],
  } = spec;
  const events = gainPoints.map(([seconds, value]) => `${clocks(seconds)} ${value}`).join('\n');
  return `<?xml version="1.0" encoding="UTF-8"?>
<Session version="7002" name="t" sample-rate="48000" id-counter="${idCounter}">
  <ProgramVersion created-with="Ardour 7.3.0~ds0-1" modified-with="Ardour 7.3.0~ds0-1"/>
  <EngineHints backend="${backend}" input-device="card"/>
  <Config><Option name="raid-path" value=""/></Config>
  <Sources>${sources.map(({ id, attributes }) => `<Source id="${id}" ${attributes}/>`).join('')}</Sources>
  <Regions>${regions.map(region).join('')}</Regions>
  <Locations>${markers.map(([id, at]) => `<Location id="${id}" name="m" start="${clocks(at)}" end="${clocks(at)}" flags="IsMark"/>`).join('')}</Locations>
  <Routes>
    <Route id="5" name="Master" default-type="audio"><PresentationInfo order="0"/></Route>
    <Route id="6" name="${trackName}" default-type="audio" audio-playlist="7">
      <PresentationInfo order="1"/>
      <IO direction="Input"><Port><Connection other="${input}"/></Port></IO>
      <Controllable name="mute" value="${mute}"/>
      <Processor id="8" type="amp"><Controllable value="${gain}"/><Automation><AutomationList id="9" automation-id="gain" state="Off"><events>${events}</events></AutomationList></Automation></Processor>
      ${spec.processors ?? ''}
    </Route>
  </Routes>
  <Playlists><Playlist id="7">${clips.map(region).join('')}</Playlist></Playlists>
  ${tempoMap(bpm)}
  ${spec.extra ?? ''}
</Session>`;
}

const tempoMap = (bpm: number): string =>
  `<TempoMap><Tempos><Tempo npm="${bpm}" enpm="${bpm}" note-type="4" quarters="0:0"/></Tempos><Meters><Meter note-value="4" divisions-per-bar="4" quarters="0:0"/></Meters></TempoMap>`;

/** @param transactions seconds of the wall clock and the commands */
export function historyXml(transactions: readonly (readonly [seconds: number, commands: string])[]): string {
  const list = transactions.map(
    ([seconds, commands]) =>
      `<UndoTransaction tv-sec="${Math.floor(seconds)}" tv-usec="${Math.round((seconds % 1) * 1e6)}" name="x">${commands}</UndoTransaction>`,
  );
  return `<?xml version="1.0"?>\n<UndoHistory>${list.join('')}</UndoHistory>`;
}

export const playlistDiff = (added: readonly number[], removed: readonly number[] = []): string =>
  `<StatefulDiffCommand obj-id="7" type-name="ARDOUR::AudioPlaylist"><Changes><Regions>${added.map((id) => `<Add id="${id}"/>`).join('')}${removed.map((id) => `<Remove id="${id}"/>`).join('')}</Regions></Changes></StatefulDiffCommand>`;

export const tempoChange = (from: number, to: number): string =>
  `<TempoCommand name="tempo map change"><before>${tempoMap(from)}</before><after>${tempoMap(to)}</after></TempoCommand>`;

export const regionDiff = (id: number, changes: string): string =>
  `<StatefulDiffCommand obj-id="${id}" type-name="ARDOUR::AudioRegion"><Changes>${changes}</Changes></StatefulDiffCommand>`;

/** Returns a change of extent. Each extent is `[length, start]` in seconds. */
export const extentChange = (from: readonly [number, number], to: readonly [number, number]): string =>
  `<length from="${clocks(from[0])}@${clocks(from[1])}" to="${clocks(to[0])}@${clocks(to[1])}"/>`;
