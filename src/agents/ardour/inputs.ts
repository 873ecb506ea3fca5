/** Input that a track records from, by the connections and the audio device that the session file names. */
import type { SessionState, TrackState } from './session-file.js';

export type Input = 'hardware' | 'internal' | 'none' | 'unknown';

/** Backends whose capture ports are those of a sound card. JACK's are those that its graph connects. */
const CARDS: ReadonlySet<string> = new Set(['ALSA', 'CoreAudio', 'PortAudio', 'ASIO']);
/** Devices that play back what a computer makes. */
const VIRTUAL = /loopback|aloop|dummy|null|virtual|blackhole|soundflower|monitor/i;

/**
 * Returns the input of a track. A connection to another track makes it internal, even if others are connected too.
 * @param countsDummy takes Ardour's dummy device for hardware: a trial without a sound card, which the trace's header
 * calls simulated
 */
export function inputOf(track: TrackState, { device }: SessionState, countsDummy: boolean): Input {
  const inputs = track.inputs.map((port) => portOf(port, device, countsDummy));
  if (inputs.length === 0) return 'none';
  if (inputs.includes('internal')) return 'internal';
  return inputs.every((input) => input === 'hardware') ? 'hardware' : 'unknown';
}

function portOf(port: string, device: SessionState['device'], countsDummy: boolean): Input {
  // Ports of Ardour itself have no client before their name.
  if (!port.includes(':')) return 'internal';
  if (!/^system:(midi_)?capture_/.test(port)) return 'unknown';
  if (/dummy/i.test(device.backend))
    return countsDummy && !VIRTUAL.test(device.input) ? 'hardware' : 'internal';
  if (VIRTUAL.test(device.input)) return 'internal';
  return CARDS.has(device.backend) ? 'hardware' : 'unknown';
}
