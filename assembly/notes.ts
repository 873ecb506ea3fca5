import { BYTES, FINDING_OFFSETS, FINDINGS, SEEN } from '../src/engine/core-layout';
import { Finding } from './findings';

@inline
export function position(context: usize): u64 {
  return load<u64>(context, BYTES);
}

/** Sets a finding; the first occurrence keeps its offset. */
export function note(context: usize, finding: Finding, offset: u64): void {
  const bits = load<u64>(context, FINDINGS);
  const bit = (<u64>1) << (<u64>finding);
  if ((bits & bit) != 0) return;
  store<u64>(context, bits | bit, FINDINGS);
  store<u64>(context + ((<usize>finding) << 3), offset, FINDING_OFFSETS);
}

export function seen(context: usize, flag: u32): bool {
  return (load<u32>(context, SEEN) & flag) != 0;
}

/** Sets a flag and tells whether it was set before. */
export function see(context: usize, flag: u32): bool {
  const flags = load<u32>(context, SEEN);
  store<u32>(context, flags | flag, SEEN);
  return (flags & flag) != 0;
}
