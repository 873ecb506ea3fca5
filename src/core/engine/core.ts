import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CORE_FINGERPRINT } from './core-fingerprint.js';
import * as layout from './core-layout.js';

export type { CoreMeasurement, ForkReport, HostDigests, SamplesReport } from './core-context.js';
export {
  completeMeasurement,
  credentialSpan,
  forkReport,
  isPaused,
  lendDecoder,
  needsDecoder,
  readMeasurement,
  samplesReport,
} from './core-context.js';

export const CONTEXT_BYTES = layout.CONTEXT_BYTES;
export const DECODER_BYTES = layout.DECODER_BYTES;
export const SCRATCH_BYTES = layout.SCRATCH_BYTES;

const PAGE_BYTES = 65_536;
/** The largest u32. */
const UNBOUNDED = 0xffff_ffff;

/** The number of streams that a kernel hashes side by side. */
export type Lanes = 4 | 8;

/** A run of bytes in the core's memory that continues the file of `context`. */
export interface Slice {
  /** The address of the upload's context, a multiple of 8. */
  readonly context: number;
  readonly address: number;
  readonly length: number;
}

/**
 * An instance of the WASM core. Everything known of an upload is in its context, so any instance on the same
 * memory, in any thread, may continue the upload. Two must not work on one context at the same time.
 */
export interface Core {
  /**
   * Makes a context ready for a new file. Its former content does not matter.
   * @param samples true if the samples are hashed too
   */
  init(context: number, samples?: boolean): void;
  /**
   * Parses and hashes in place one to eight slices of different uploads, of any lengths.
   * @param lanes the kernel for many streams: four lanes by default
   * @param decodes bytes of samples after which the decoder of a slice pauses, see `isPaused`: never by default
   * @throws Error when a context was initialised by another build or is finished; nothing is touched then.
   */
  update(slices: readonly Slice[], lanes?: Lanes, decodes?: number): void;
  /**
   * Parses without hashing, for an engine that hashes elsewhere. Do not mix with `update` on one context.
   * @throws Error as `update`.
   */
  parse(slice: Slice): void;
  /**
   * Replaces the samples of the slice that was parsed last by what the digest takes, in place, for an engine that
   * hashes elsewhere and has hashed the slice. Samples that have to be decoded are decoded and hashed.
   * @param decodes as in `update`
   * @throws Error as `update`.
   */
  samples(slice: Slice, decodes?: number): void;
  /**
   * Ends the file: digests and findings are final, and the context takes no more slices.
   * @throws Error as `update`.
   */
  finish(context: number): void;
}

interface CoreExports {
  init(context: number, tag: number, samples: boolean): void;
  parse(context: number, address: number, length: number, tag: number): number;
  samples(context: number, address: number, length: number, decodes: number, tag: number): number;
  update(scratch: number, count: number, eight: number, decodes: number, tag: number): number;
  finish(context: number, tag: number): number;
}

/**
 * Compiles dist/core.wasm.
 * @throws Error when the file is missing or is not the build whose fingerprint is checked in.
 */
export async function loadCore(): Promise<WebAssembly.Module> {
  const url = new URL('../../../core.wasm', import.meta.url);
  const bytes = await readFile(url);
  const fingerprint = createHash('sha256').update(bytes).digest('hex');
  if (fingerprint !== CORE_FINGERPRINT) {
    throw new Error(
      `core.wasm has the fingerprint ${fingerprint}, this build expects ${CORE_FINGERPRINT}: run \`npm run build:fingerprint\` after each change of the core`,
    );
  }
  return new WebAssembly.Module(bytes);
}

/** Creates the shared memory of all instances. It has at least `bytes` bytes, at most 4 GiB, and never grows. */
export function createCoreMemory(bytes: number): WebAssembly.Memory {
  const pages = Math.max(1, Math.ceil(bytes / PAGE_BYTES));
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
}

/**
 * @param scratch Address of SCRATCH_BYTES that belong to this instance alone, a multiple of 8.
 */
export function instantiateCore(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  scratch: number,
): Core {
  const core = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as CoreExports;
  // Never 0, which marks a finished context.
  const tag = Number.parseInt(CORE_FINGERPRINT.slice(0, 8), 16) | 1;
  const sliceList = new Uint32Array(
    memory.buffer,
    scratch + layout.SLICES,
    (layout.SLICE_LIMIT * layout.SLICE_BYTES) / 4,
  );

  function refuse(contexts: readonly number[]): never {
    throw new Error(`these contexts are finished, or were made by another build: ${contexts.join(', ')}`);
  }

  return {
    init(context, samples = false) {
      core.init(context, tag, samples);
    },
    update(slices, lanes = 4, decodes = UNBOUNDED) {
      if (slices.length < 1 || slices.length > layout.SLICE_LIMIT)
        throw new RangeError(
          `the number of slices must be from 1 to ${layout.SLICE_LIMIT}, but is ${slices.length}`,
        );
      let at = 0;
      for (const { context, address, length } of slices) {
        sliceList[at] = context;
        sliceList[at + 1] = address;
        sliceList[at + 2] = length;
        at += 3;
      }
      const refused = core.update(scratch, slices.length, lanes === 8 ? 1 : 0, decodes, tag);
      if (refused !== 0)
        refuse(slices.filter((_, i) => (refused & (1 << i)) !== 0).map((slice) => slice.context));
    },
    parse({ context, address, length }) {
      if (core.parse(context, address, length, tag) !== 0) refuse([context]);
    },
    samples({ context, address, length }, decodes = UNBOUNDED) {
      if (core.samples(context, address, length, decodes, tag) !== 0) refuse([context]);
    },
    finish(context) {
      if (core.finish(context, tag) !== 0) refuse([context]);
    },
  };
}
