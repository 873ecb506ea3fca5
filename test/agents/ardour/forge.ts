/** Forges sources in a closed session: a file in its folder, and a line and a clip in the session's file. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chunk, fmtChunk, riff } from '../../fixtures/wav.js';
import { clocks } from './session-xml.js';

/** Returns a mono float WAVE file at 48 kHz. */
export function floatWave(samples: readonly number[]): Buffer {
  const data = Buffer.alloc(samples.length * 4);
  for (const [at, sample] of samples.entries()) data.writeFloatLE(sample, at * 4);
  return wave(data, 3, 32);
}

/** Returns the same as `floatWave` in whole numbers of 16 bits, which is what a session imports. */
export function shortWave(samples: readonly number[]): Buffer {
  const data = Buffer.alloc(samples.length * 2);
  for (const [at, sample] of samples.entries()) data.writeInt16LE(Math.round(sample * 32_768), at * 2);
  return wave(data, 1, 16);
}

function wave(data: Buffer, format: number, bits: number): Buffer {
  return riff([fmtChunk({ tag: format, sampleRate: 48_000, bits }), chunk({ id: 'data', data })]);
}

/** Returns a tone whose samples are exact in 16 bits. */
export const tone = (frames: number, period: number): readonly number[] =>
  Array.from({ length: frames }, (_, at) => {
    const step = Math.round(8192 * Math.sin((2 * Math.PI * at) / period));
    // Whole numbers have no negative zero.
    return step === 0 ? 0 : step / 32_768;
  });

export interface Forgery {
  readonly file: string;
  readonly samples: readonly number[];
  readonly track: string;
  /** The claim of the line of the source and of the region of the whole file. */
  readonly claim: 'import' | 'take';
  /** The start of the clip in seconds. */
  readonly start: number;
}

/** Writes a source and a clip of it into a closed session. */
export async function forge(directory: string, name: string, forgery: Forgery): Promise<void> {
  const { file, samples, track, claim, start } = forgery;
  await writeFile(join(directory, 'interchange', name, 'audiofiles', file), floatWave(samples));
  const path = join(directory, `${name}.ardour`);
  let xml = await readFile(path, 'utf8');
  const counter = Number(/id-counter="(\d+)"/.exec(xml)?.[1]);
  xml = xml.replace(`id-counter="${counter}"`, `id-counter="${counter + 3}"`);
  const isTake = claim === 'take';
  const region = (id: number, isWhole: boolean) =>
    `<Region name="${file}" muted="0" opaque="1" locked="0" video-locked="0" automatic="${isTake && isWhole ? 1 : 0}" whole-file="${isWhole ? 1 : 0}" import="0" external="${isTake ? 0 : 1}" sync-marked="0" left-of-split="0" right-of-split="0" hidden="0" position-locked="0" valid-transients="0" start="a0" length="${clocks(samples.length / 48_000)}@${clocks(isWhole ? 0 : start)}" sync-position="a0" ancestral-start="a0" ancestral-length="a0@a0" stretch="1" shift="1" layering-index="0" tags="" contents="0" envelope-active="0" default-fade-in="1" default-fade-out="1" fade-in-active="1" fade-out-active="1" scale-amplitude="1" id="${id}" type="audio" first-edit="nothing" source-0="${counter}" master-source-0="${counter}" channels="1"/>`;
  const claims = isTake
    ? `take-id="2026-01-01 12.00.00" timestamp="1767268800" captured-for="${track}"`
    : 'take-id=""';
  const source = `<Source name="${file}" ${claims} type="audio" flags="" id="${counter}" natural-position="a0" channel="0" origin="" gain="1"/>`;
  xml = into(xml, /<Sources\/>|<Sources>/, 'Sources', source);
  xml = into(xml, /<Regions\/>|<Regions>/, 'Regions', region(counter + 1, true));
  const playlist = new RegExp(`<Route [^>]*name="${track}"[^>]*audio-playlist="(\\d+)"`).exec(xml)?.[1];
  xml = into(xml, new RegExp(`<Playlist id="${playlist}"[^>]*>`), 'Playlist', region(counter + 2, false));
  await writeFile(path, xml);
}

function into(xml: string, open: RegExp, name: string, item: string): string {
  const tag = open.exec(xml)?.[0];
  if (tag === undefined) throw new Error(`no ${name} in the session`);
  const isEmpty = tag.endsWith('/>');
  const start = isEmpty ? `${tag.slice(0, -2)}>` : tag;
  return xml.replace(tag, () => `${start}\n${item}${isEmpty ? `\n</${name}>` : ''}`);
}
