import type { Measurement } from '../domain/audio.js';
import { readMeasurement } from './core.js';

/** SHA-256 in lower-case hex, where the host did the hashing. */
export type HostDigests = Parameters<typeof readMeasurement>[2];

/** The finished context as a measurement, with the credential's data, which only the host has kept. */
export function readResult(
  memory: WebAssembly.Memory,
  context: number,
  slices: readonly Uint8Array[],
  digests?: HostDigests,
): Measurement {
  const { credential, ...measured } = readMeasurement(memory, context, digests);
  if (credential === undefined) return measured;
  const data = new Uint8Array(slices.reduce((sum, slice) => sum + slice.length, 0));
  let at = 0;
  for (const slice of slices) {
    data.set(slice, at);
    at += slice.length;
  }
  // Header and data. Anything else means that the host lost bytes the core has seen.
  if (data.length + 8 !== credential.length)
    throw new Error(`credential of ${credential.length} bytes, ${data.length} bytes of data kept`);
  return { ...measured, credential: { ...credential, data } };
}
