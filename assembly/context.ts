import { BYTES, FINDING_OFFSETS, FINDINGS, FLAGS } from '../src/core/engine/core-layout';
import { Finding } from './findings';

@inline
export function position(context: usize): u64 {
  return load<u64>(context, BYTES);
}

/** Adds a finding; the first occurrence keeps its offset. */
export function addFinding(context: usize, finding: Finding, offset: u64): void {
  const bits = load<u64>(context, FINDINGS);
  const bit = (<u64>1) << (<u64>finding);
  if ((bits & bit) != 0) return;
  store<u64>(context, bits | bit, FINDINGS);
  store<u64>(context + ((<usize>finding) << 3), offset, FINDING_OFFSETS);
}

/** Returns true if a finding was added, and its first occurrence is at or after `offset`. */
export function foundFrom(context: usize, finding: Finding, offset: u64): bool {
  const found = (load<u64>(context, FINDINGS) & ((<u64>1) << (<u64>finding))) != 0;
  return found && load<u64>(context + ((<usize>finding) << 3), FINDING_OFFSETS) >= offset;
}

export function removeFinding(context: usize, finding: Finding): void {
  store<u64>(context, load<u64>(context, FINDINGS) & ~((<u64>1) << (<u64>finding)), FINDINGS);
  store<u64>(context + ((<usize>finding) << 3), 0, FINDING_OFFSETS);
}

export function hasFlag(context: usize, flag: u32): bool {
  return (load<u32>(context, FLAGS) & flag) != 0;
}

/** Sets a flag, and returns whether it was set before. */
export function setFlag(context: usize, flag: u32): bool {
  const flags = load<u32>(context, FLAGS);
  store<u32>(context, flags | flag, FLAGS);
  return (flags & flag) != 0;
}
