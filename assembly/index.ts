import {
  BINDING,
  BYTES,
  CREDENTIALS,
  FORK_AT,
  FORKS,
  HEADER,
  HELD,
  KEPT,
  READER,
  READER_FLAC,
  READER_NONE,
  READER_PAUSED,
  READER_PCM,
  READER_WAITING,
  RESUME_AT,
  RUN_LENGTH,
  RUN_OFFSET,
  SAMPLE_IS_JOINED,
  SAMPLE_JOINED,
  SAMPLE_TAKEN,
  SAMPLES,
  SLICE_BYTES,
  SLICES,
  SPAN_OFFSET,
  TAG,
  WHOLE,
  ZEROED_BYTES,
} from '../src/core/engine/core-layout';
import { absorb, close, fork, plan, run, start } from './digest';
import { decode } from './flac';
import { finalize } from './outcome';
import { convert, isDirect } from './pcm';
import { closeSamples, countSamples, locate } from './samples';
import { walk } from './walk';

const NO_FORK: u32 = 0xffff_ffff;

/** Makes a context ready for a new file. `tag` is never 0. @param samples whether the samples are hashed too */
export function init(context: usize, tag: u32, samples: bool): void {
  memory.fill(context, 0, ZEROED_BYTES);
  store<u32>(context, samples ? READER_WAITING : READER_NONE, READER);
  start(context + WHOLE);
  store<u32>(context, tag, TAG);
}

/**
 * Reads structure only. Returns 0, or 1 (nothing touched) when the context is not of this build or finished.
 */
export function parse(context: usize, address: usize, length: u32, tag: u32): u32 {
  if (load<u32>(context, TAG) != tag) return 1;
  walk(context, address, length);
  locate(context, address, length);
  return 0;
}

/**
 * Replaces the samples of the slice that was parsed last by what the digest takes, in place. Samples that have to be
 * decoded are decoded and hashed, up to `decodes` bytes of samples. Status as `parse`.
 */
export function samples(context: usize, address: usize, length: u32, decodes: u32, tag: u32): u32 {
  if (load<u32>(context, TAG) != tag) return 1;
  const reader = load<u32>(context, READER);
  if (reader == READER_FLAC || reader == READER_PAUSED) decode(context, address, length, decodes);
  if (reader != READER_PCM) return 0;
  if (!isDirect(context)) convert(context, address);
  countSamples(context);
  return 0;
}

/**
 * Reads and hashes the `count` slices in the scratch, in eight lanes if `eight` is true. Decodes up to `decodes` bytes of
 * samples of each. Returns 0, or a mask of the slices whose context is finished or of another build. Then it has changed
 * nothing.
 *
 * The binding digest begins as a copy of the whole-file digest's state where the credential's header starts, and
 * continues after the chunk. A header may straddle slices, so its first bytes are not hashed until it is complete.
 */
export function update(scratch: usize, count: u32, eight: bool, decodes: u32, tag: u32): u32 {
  let refused: u32 = 0;
  for (let i: u32 = 0; i < count; i += 1) {
    if (load<u32>(load<u32>(scratch + SLICES + i * SLICE_BYTES, 0), TAG) != tag) refused |= 1 << i;
  }
  if (refused != 0) return refused;

  // First wave: every upload up to its fork or its end.
  let jobs: u32 = 0;
  for (let i: u32 = 0; i < count; i += 1) {
    const slice = scratch + SLICES + i * SLICE_BYTES;
    const context = <usize>load<u32>(slice, 0);
    const address = <usize>load<u32>(slice, 4);
    const length = load<u32>(slice, 8);
    const begin = load<u64>(context, BYTES);
    const kept = load<u32>(context, HELD);
    const forked = load<u64>(context, FORK_AT) != 0;
    store<u64>(scratch + KEPT + i * 8, load<u64>(context, HEADER));
    walk(context, address, length);
    locate(context, address, length);
    // Samples that are hashed as they are fill lanes that would be empty.
    if (load<u32>(context, READER) == READER_PCM && isDirect(context)) {
      countSamples(context);
      jobs = planRun(scratch, jobs, context, address);
    }

    let cut = NO_FORK;
    const forkAt = load<u64>(context, FORK_AT);
    if (!forked && forkAt != 0) {
      if (forkAt < begin) fork(context + WHOLE, context + BINDING);
      else cut = <u32>(forkAt - begin);
    }
    store<u32>(scratch + FORKS + i * 8, cut);
    const held = load<u32>(context, HELD);
    // The whole slice may belong to a header that is still incomplete.
    if (held > length || length == 0) continue;
    if (kept > 0) absorb(context + WHOLE, scratch + KEPT + i * 8, kept);
    jobs = plan(scratch, jobs, context + WHOLE, address, cut == NO_FORK ? length - held : cut);
  }
  run(scratch, jobs, eight);

  // Second wave: the bytes after a fork, and the binding digests that have resumed.
  jobs = 0;
  for (let i: u32 = 0; i < count; i += 1) {
    const slice = scratch + SLICES + i * SLICE_BYTES;
    const context = <usize>load<u32>(slice, 0);
    const address = <usize>load<u32>(slice, 4);
    const length = load<u32>(slice, 8);
    const cut = load<u32>(scratch + FORKS + i * 8);
    if (cut != NO_FORK) {
      fork(context + WHOLE, context + BINDING);
      jobs = plan(scratch, jobs, context + WHOLE, address + cut, length - cut);
    }
    // With a second credential there is no binding digest to report.
    if (load<u64>(context, FORK_AT) == 0 || load<u32>(context, CREDENTIALS) > 1) continue;
    const begin = load<u64>(context, BYTES) - length;
    const resumeAt = load<u64>(context, RESUME_AT);
    const skip = resumeAt > begin ? resumeAt - begin : 0;
    if (skip < length)
      jobs = plan(scratch, jobs, context + BINDING, address + <usize>skip, length - <u32>skip);
  }
  run(scratch, jobs, eight);

  // Third wave: samples that are decoded, or rewritten in place, which only a slice that is hashed may be.
  jobs = 0;
  for (let i: u32 = 0; i < count; i += 1) {
    const slice = scratch + SLICES + i * SLICE_BYTES;
    const context = <usize>load<u32>(slice, 0);
    const address = <usize>load<u32>(slice, 4);
    const reader = load<u32>(context, READER);
    if (reader == READER_FLAC || reader == READER_PAUSED)
      decode(context, address, load<u32>(slice, 8), decodes);
    if (reader != READER_PCM || isDirect(context)) continue;
    convert(context, address);
    countSamples(context);
    if (load<u32>(context, SAMPLE_IS_JOINED) != 0)
      absorb(context + SAMPLES, context + SAMPLE_JOINED, load<u32>(context, SAMPLE_TAKEN));
    jobs = planRun(scratch, jobs, context, address);
  }
  run(scratch, jobs, eight);
  return 0;
}

function planRun(scratch: usize, jobs: u32, context: usize, address: usize): u32 {
  const from = address + load<u32>(context, RUN_OFFSET);
  return plan(scratch, jobs, context + SAMPLES, from, load<u32>(context, RUN_LENGTH));
}

/**
 * Finalizes the digests and the findings that need the end of the file. Status as `parse`; the context takes
 * no more slices.
 */
export function finish(context: usize, tag: u32): u32 {
  if (load<u32>(context, TAG) != tag) return 1;
  const held = load<u32>(context, HELD);
  if (held > 0) absorb(context + WHOLE, context + HEADER, held);
  close(context + WHOLE);
  close(context + BINDING);
  finalize(context);
  closeSamples(context);
  store<u64>(context, 0, SPAN_OFFSET);
  store<u32>(context, 0, HELD);
  store<u32>(context, 0, TAG);
  return 0;
}
