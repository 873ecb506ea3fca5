/** Ten seconds of an electric piano, made by code: the demo brings its own recording. */

const SAMPLE_RATE = 44_100;

export interface Recording {
  readonly sampleRate: number;
  readonly left: Float32Array;
  readonly right: Float32Array;
}

interface Note {
  readonly at: number;
  readonly seconds: number;
  /** The MIDI number. 69 is the A of 440 Hz. */
  readonly pitch: number;
  readonly loudness: number;
  /** The place from left (-1) to right (1). */
  readonly pan: number;
}

/** The chords ii - V - I - vi with sevenths and ninths, voiced so that the hands move little. */
const CHORDS: readonly { readonly bass: number; readonly voices: readonly number[] }[] = [
  { bass: 38, voices: [53, 57, 60, 64] },
  { bass: 43, voices: [53, 57, 59, 64] },
  { bass: 36, voices: [52, 55, 59, 62] },
  { bass: 45, voices: [52, 55, 59, 60] },
];
const MELODY: readonly (readonly [beat: number, pitch: number])[] = [
  [1.5, 72],
  [2, 76],
  [3, 74],
  [5.5, 71],
  [6, 74],
  [7, 69],
  [9.5, 67],
  [10, 71],
  [11, 76],
  [13.5, 72],
  [14, 71],
  [15, 67],
];
const BEAT = 0.58;

/** @returns samples between -1 and 1; the same ones each time */
export function renderRecording(seconds = 10): Recording {
  const left = new Float32Array(seconds * SAMPLE_RATE);
  const right = new Float32Array(left.length);
  for (const note of score()) play(note, left, right);
  echo(left, right);
  fadeOut(left, right);
  normalize(left, right);
  return { sampleRate: SAMPLE_RATE, left, right };
}

function score(): Note[] {
  const notes: Note[] = [];
  for (const [bar, { bass, voices }] of CHORDS.entries()) {
    const at = bar * 4 * BEAT;
    notes.push(
      { at, seconds: 3 * BEAT, pitch: bass, loudness: 0.5, pan: 0 },
      { at: at + 2.5 * BEAT, seconds: 1.5 * BEAT, pitch: bass + 12, loudness: 0.25, pan: 0 },
    );
    for (const [voice, pitch] of voices.entries()) {
      // A hand does not strike four keys at once.
      const strum = voice * 0.018;
      notes.push({ at: at + strum, seconds: 3.6 * BEAT, pitch, loudness: 0.2, pan: -0.45 + voice * 0.3 });
      notes.push({
        at: at + 2.5 * BEAT + strum,
        seconds: 1.4 * BEAT,
        pitch,
        loudness: 0.12,
        pan: -0.45 + voice * 0.3,
      });
    }
  }
  for (const [beat, pitch] of MELODY)
    notes.push({ at: beat * BEAT, seconds: 1.8 * BEAT, pitch, loudness: 0.2, pan: 0.2 });
  return notes;
}

/** Adds a note by frequency modulation. The modulator fades faster than the tone, as the strike of a tine does. */
function play({ at, seconds, pitch, loudness, pan }: Note, left: Float32Array, right: Float32Array): void {
  const step = (2 * Math.PI * 440 * 2 ** ((pitch - 69) / 12)) / SAMPLE_RATE;
  const start = Math.round(at * SAMPLE_RATE);
  const length = Math.min(Math.round((seconds + 0.25) * SAMPLE_RATE), left.length - start);
  const toLeft = loudness * Math.cos(((pan + 1) * Math.PI) / 4);
  const toRight = loudness * Math.sin(((pan + 1) * Math.PI) / 4);
  for (let i = 0; i < length; i += 1) {
    const time = i / SAMPLE_RATE;
    const release = time < seconds ? 1 : Math.max(0, 1 - (time - seconds) / 0.25);
    const envelope = Math.min(1, time / 0.006) * Math.exp(-time * 1.3) * release;
    const phase = step * i;
    const tone =
      Math.sin(phase + 1.4 * Math.exp(-time * 5) * Math.sin(phase)) +
      0.12 * Math.exp(-time * 18) * Math.sin(phase * 14);
    left[start + i] = (left[start + i] ?? 0) + tone * envelope * toLeft;
    right[start + i] = (right[start + i] ?? 0) + tone * envelope * toRight;
  }
}

/** Adds a quiet echo that crosses the sides. */
function echo(left: Float32Array, right: Float32Array): void {
  const delay = Math.round(BEAT * 0.75 * SAMPLE_RATE);
  for (let i = delay; i < left.length; i += 1) {
    const fromLeft = left[i - delay] ?? 0;
    const fromRight = right[i - delay] ?? 0;
    left[i] = (left[i] ?? 0) + 0.24 * fromRight;
    right[i] = (right[i] ?? 0) + 0.24 * fromLeft;
  }
}

function fadeOut(left: Float32Array, right: Float32Array): void {
  const length = Math.round(0.6 * SAMPLE_RATE);
  for (let i = 0; i < length; i += 1) {
    const gain = i / length;
    for (const side of [left, right]) side[side.length - 1 - i] = (side[side.length - 1 - i] ?? 0) * gain;
  }
}

function normalize(left: Float32Array, right: Float32Array): void {
  let peak = 1e-9;
  for (const side of [left, right]) for (const value of side) peak = Math.max(peak, Math.abs(value));
  for (const side of [left, right])
    for (let i = 0; i < side.length; i += 1) side[i] = ((side[i] ?? 0) * 0.85) / peak;
}
