import {
  EIGHT_LANE_BYTES,
  EIGHT_LANES,
  HASH_BUFFER,
  HASH_BYTES,
  HASH_LENGTH,
  JOB_BYTES,
  JOBS,
  SPARE,
} from '../src/core/engine/core-layout';
import { compressEight } from './sha256-eight';
import { compressLanes } from './sha256-lanes';
import { compress } from './sha256-single';

/** Writes the initial hash value (FIPS 180-4, 5.3.3). */
export function start(hash: usize): void {
  store<u32>(hash, 0x6a09e667, 0);
  store<u32>(hash, 0xbb67ae85, 4);
  store<u32>(hash, 0x3c6ef372, 8);
  store<u32>(hash, 0xa54ff53a, 12);
  store<u32>(hash, 0x510e527f, 16);
  store<u32>(hash, 0x9b05688c, 20);
  store<u32>(hash, 0x1f83d9ab, 24);
  store<u32>(hash, 0x5be0cd19, 28);
  store<u64>(hash, 0, HASH_LENGTH);
}

export function fork(from: usize, to: usize): void {
  memory.copy(to, from, HASH_BYTES);
}

/**
 * Counts `length` bytes and completes the partial block with as many of them as it wants. Returns the number
 * of bytes taken.
 */
function topUp(hash: usize, data: usize, length: u32): u32 {
  const total = load<u64>(hash, HASH_LENGTH);
  store<u64>(hash, total + length, HASH_LENGTH);
  const fill = <u32>total & 63;
  if (fill == 0) return 0;
  const taken = min<u32>(64 - fill, length);
  memory.copy(hash + HASH_BUFFER + fill, data, taken);
  if (fill + taken == 64) compress(hash, hash + HASH_BUFFER, 1);
  return taken;
}

/** Compresses whole blocks and keeps the rest. The partial block is empty. */
function rest(hash: usize, data: usize, length: u32): void {
  const blocks = length >> 6;
  if (blocks > 0) compress(hash, data, blocks);
  memory.copy(hash + HASH_BUFFER, data + (blocks << 6), length & 63);
}

/** Hashes any bytes into one stream. */
export function absorb(hash: usize, data: usize, length: u32): void {
  const taken = topUp(hash, data, length);
  if (taken < length) rest(hash, data + taken, length - taken);
}

/**
 * Replaces the state by the digest (FIPS 180-4, 5.1.1: 0x80, zeros, the bit length as 64 bits big-endian).
 */
export function close(hash: usize): void {
  const total = load<u64>(hash, HASH_LENGTH);
  const buffer = hash + HASH_BUFFER;
  let fill = <u32>total & 63;
  store<u8>(buffer + fill, 0x80);
  fill += 1;
  if (fill > 56) {
    memory.fill(buffer + fill, 0, 64 - fill);
    compress(hash, buffer, 1);
    fill = 0;
  }
  memory.fill(buffer + fill, 0, 56 - fill);
  store<u64>(buffer, bswap<u64>(total << 3), 56);
  compress(hash, buffer, 1);
  for (let i: usize = 0; i < 32; i += 4) store<u32>(hash + i, bswap<u32>(load<u32>(hash + i)));
}

/** Appends a job to the scratch's list. A stream may be in the list once. Returns the new count. */
export function plan(scratch: usize, count: u32, hash: usize, data: usize, length: u32): u32 {
  if (length == 0) return count;
  const job = scratch + JOBS + count * JOB_BYTES;
  store<u32>(job, <u32>hash, 0);
  store<u32>(job, <u32>data, 4);
  store<u32>(job, length, 8);
  return count + 1;
}

/** Returns the index of the next job from `from` on that has a whole block left, or `count`. */
function nextLive(jobs: usize, from: u32, count: u32): u32 {
  while (from < count && load<u32>(jobs + from * JOB_BYTES, 8) < 64) from += 1;
  return from;
}

function move(job: usize, by: u32): void {
  store<u32>(job, load<u32>(job, 4) + by, 4);
  store<u32>(job, load<u32>(job, 8) - by, 8);
}

/**
 * Runs the blocks that the first streams of the list have in common, at most eight, in eight lanes. Returns false,
 * with nothing done, when fewer than five streams have a whole block left: four lanes are then as fast.
 */
function runEight(scratch: usize, count: u32): bool {
  const jobs = scratch + JOBS;
  const lanes = scratch + EIGHT_LANES;
  let busy: u32 = 0;
  let blocks = u32.MAX_VALUE;
  for (let i = nextLive(jobs, 0, count); i < count && busy < 8; i = nextLive(jobs, i + 1, count)) {
    const job = jobs + i * JOB_BYTES;
    const lane = lanes + busy * EIGHT_LANE_BYTES;
    store<u32>(lane, load<u32>(job, 0), 0);
    store<u32>(lane, load<u32>(job, 4), 4);
    store<u32>(lane, <u32>job, 8);
    blocks = min(blocks, load<u32>(job, 8) >> 6);
    busy += 1;
  }
  if (busy < 5) return false;
  for (let i = busy; i < 8; i += 1) {
    const lane = lanes + i * EIGHT_LANE_BYTES;
    store<u32>(lane, <u32>scratch + SPARE, 0);
    store<u32>(lane, load<u32>(lanes, 4), 4);
  }
  compressEight(scratch, blocks);
  for (let i: u32 = 0; i < busy; i += 1) move(load<u32>(lanes + i * EIGHT_LANE_BYTES, 8), blocks << 6);
  return true;
}

/**
 * Hashes `count` jobs. With `eight`, eight lanes run together while five or more streams have blocks in common. Four
 * lanes run together while three or four do. With two, the single kernel twice is faster than half-empty lanes.
 */
export function run(scratch: usize, count: u32, eight: bool): void {
  const jobs = scratch + JOBS;
  for (let i: u32 = 0; i < count; i += 1) {
    const job = jobs + i * JOB_BYTES;
    move(job, topUp(load<u32>(job, 0), load<u32>(job, 4), load<u32>(job, 8)));
  }
  while (eight && runEight(scratch, count)) {}
  while (true) {
    const i0 = nextLive(jobs, 0, count);
    const i1 = nextLive(jobs, i0 + 1, count);
    const i2 = nextLive(jobs, i1 + 1, count);
    const i3 = nextLive(jobs, i2 + 1, count);
    if (i2 >= count) break;
    const j0 = jobs + i0 * JOB_BYTES;
    const j1 = jobs + i1 * JOB_BYTES;
    const j2 = jobs + i2 * JOB_BYTES;
    const full = i3 < count;
    // The fourth lane without a stream repeats the first one's data into a state that is never read.
    const j3 = full ? jobs + i3 * JOB_BYTES : j0;
    const s3 = full ? <usize>load<u32>(j3, 0) : scratch + SPARE;
    const blocks = min(min(load<u32>(j0, 8), load<u32>(j1, 8)), min(load<u32>(j2, 8), load<u32>(j3, 8))) >> 6;
    compressLanes(
      load<u32>(j0, 0),
      load<u32>(j1, 0),
      load<u32>(j2, 0),
      s3,
      load<u32>(j0, 4),
      load<u32>(j1, 4),
      load<u32>(j2, 4),
      load<u32>(j3, 4),
      blocks,
    );
    move(j0, blocks << 6);
    move(j1, blocks << 6);
    move(j2, blocks << 6);
    if (full) move(j3, blocks << 6);
  }
  for (let i: u32 = 0; i < count; i += 1) {
    const job = jobs + i * JOB_BYTES;
    const left = load<u32>(job, 8);
    if (left > 0) rest(load<u32>(job, 0), load<u32>(job, 4), left);
  }
}
