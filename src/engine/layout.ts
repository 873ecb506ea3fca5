/** The first page of a core's memory stays its own: its constants lie there. */
export const RESERVED_BYTES = 64 * 1024;

/** Rounded up so that two threads' areas never share a cache line. */
export function aligned(bytes: number): number {
  return Math.ceil(bytes / 128) * 128;
}
