import type { DocumentElement } from './project-document.js';
import { DocumentError } from './project-document.js';

/** A clip of a track, in all of its channels. */
export interface ClipState {
  /** The ids of the sample blocks of each channel. The blocks' samples in this order are those of the clip. */
  readonly blocks: readonly (readonly number[])[];
  /** The number of sample frames in the blocks. */
  readonly frames: number;
  readonly rate: number;
  /** The place of the first visible sample on the timeline, the hidden parts and the visible part, in seconds. */
  readonly start: number;
  readonly trimLeft: number;
  readonly trimRight: number;
  readonly length: number;
  /** The points of the envelope, each as `seconds value`. */
  readonly envelope: readonly string[];
}

export interface TrackState {
  /** The name, which is compared and never reported. */
  readonly name: string;
  readonly channels: number;
  readonly controls: {
    readonly gain: number;
    readonly pan: number;
    readonly mute: number;
    readonly solo: number;
  };
  /** The number of effects that run while the track plays. */
  readonly effects: number;
  readonly clips: readonly ClipState[];
}

export interface ProjectState {
  readonly version: string;
  readonly rate: number;
  readonly tracks: readonly TrackState[];
  /** The labels, with the start in seconds. `text` is the end in seconds and the title, and is only compared. */
  readonly labels: readonly { readonly start: number; readonly text: string }[];
}

/** The most tracks, clips and blocks of a project that is followed. A trace has limits of its own. */
const MAX_TRACKS = 2048;
const MAX_CLIPS = 32_768;
const MAX_BLOCKS = 1_000_000;

/** @throws DocumentError if the document is not a project */
export function readProjectState(root: DocumentElement): ProjectState {
  if (root.name !== 'project') throw new DocumentError('the document is not a project');
  const waves = root.children.filter(({ name }) => name === 'wavetrack');
  if (waves.length > MAX_TRACKS) throw new DocumentError('too many tracks');
  const tracks: TrackState[] = [];
  let clips = 0;
  let blocks = 0;
  for (let index = 0; index < waves.length; index += 1) {
    const wave = waves[index] as DocumentElement;
    // A stereo track is two tracks. The first says that the next belongs to it.
    const second = number(wave, 'linked', 0) === 0 ? undefined : waves[index + 1];
    if (second !== undefined) index += 1;
    const track = readTrack(wave, second);
    clips += track.clips.length;
    blocks += track.clips.reduce(
      (sum, clip) => sum + clip.blocks.reduce((all, one) => all + one.length, 0),
      0,
    );
    if (clips > MAX_CLIPS || blocks > MAX_BLOCKS) throw new DocumentError('too many clips');
    tracks.push(track);
  }
  return {
    version: text(root, 'audacityversion'),
    rate: number(root, 'rate', 44_100),
    tracks,
    labels: root.children
      .filter(({ name }) => name === 'labeltrack')
      .flatMap(({ children }) => children.filter(({ name }) => name === 'label'))
      .map((label) => ({
        start: Math.max(0, number(label, 't', 0)),
        text: `${number(label, 't1', 0)} ${text(label, 'title')}`,
      })),
  };
}

function readTrack(wave: DocumentElement, second: DocumentElement | undefined): TrackState {
  const rate = number(wave, 'rate', 0);
  const channels = [wave, ...(second === undefined ? [] : [second])].map((one) =>
    one.children.filter(({ name }) => name === 'waveclip'),
  );
  const [first = [], other] = channels;
  if (rate <= 0 || (other !== undefined && other.length !== first.length))
    throw new DocumentError('the channels of a track do not match');
  return {
    name: text(wave, 'name'),
    channels: channels.length,
    controls: {
      gain: number(wave, 'gain', 1),
      pan: number(wave, 'pan', 0),
      mute: number(wave, 'mute', 0),
      solo: number(wave, 'solo', 0),
    },
    effects: child(wave, 'effects')?.children.filter(({ name }) => name === 'effect').length ?? 0,
    clips: first.map((clip, index) =>
      readClip(
        channels.map((all) => all[index] ?? clip),
        rate,
      ),
    ),
  };
}

function readClip(channels: readonly DocumentElement[], rate: number): ClipState {
  const clip = channels[0] as DocumentElement;
  const sequences = channels.map((one) => child(one, 'sequence'));
  const frames = number(sequences[0], 'numsamples', 0);
  const trimLeft = number(clip, 'trimLeft', 0);
  const trimRight = number(clip, 'trimRight', 0);
  return {
    blocks: sequences.map((sequence) =>
      (sequence?.children ?? [])
        .filter(({ name }) => name === 'waveblock')
        .map((block) => number(block, 'blockid', 0)),
    ),
    frames,
    rate,
    start: Math.max(0, number(clip, 'offset', 0) + trimLeft),
    trimLeft,
    trimRight,
    length: Math.max(0, frames / rate - trimLeft - trimRight),
    envelope: (child(clip, 'envelope')?.children ?? []).map(
      (point) => `${number(point, 't', 0)} ${number(point, 'val', 0)}`,
    ),
  };
}

function child(element: DocumentElement | undefined, name: string): DocumentElement | undefined {
  return element?.children.find((one) => one.name === name);
}

function number(element: DocumentElement | undefined, name: string, absent: number): number {
  const value = element?.attributes.get(name) ?? absent;
  if (typeof value !== 'number') throw new DocumentError('a number is written as text');
  return value;
}

function text(element: DocumentElement, name: string): string {
  return String(element.attributes.get(name) ?? '');
}
