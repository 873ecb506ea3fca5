import {
  CHUNK_AT,
  FILL,
  HEADER,
  LIST_DEPTH,
  LIST_DEPTH_LIMIT,
  LIST_ENDS,
  LIST_ODD,
  MEMBER_END,
  MEMBER_ODD,
  STATE,
} from '../src/engine/core-layout';
import { Id, validId, variantOfCredential } from './chunk-id';
import { addFinding, position } from './context';
import { Finding } from './findings';
import { State } from './state';

// A LIST is walked only to see whether it hides a credential, and whether its members fill it. Members are
// chunks of their own; where one makes no sense, the rest of that list is skipped. The stack of open lists
// has a fixed depth.

function endOfList(context: usize, depth: u32): u64 {
  return load<u64>(context + ((depth - 1) << 3), LIST_ENDS);
}

/** Opens a list whose four bytes of type come next. */
export function openList(context: usize, end: u64, odd: bool): void {
  const depth = load<u32>(context, LIST_DEPTH) + 1;
  const bit = (<u32>1) << depth;
  const odds = load<u32>(context, LIST_ODD);
  store<u32>(context, odd ? odds | bit : odds & ~bit, LIST_ODD);
  store<u32>(context, depth, LIST_DEPTH);
  store<u64>(context + ((depth - 1) << 3), end, LIST_ENDS);
  store<u32>(context, 0, FILL);
  if (end - position(context) < 4) malformed(context);
  else store<u32>(context, State.ListType, STATE);
}

/** Skips the rest of the innermost list. */
function malformed(context: usize): void {
  addFinding(context, Finding.list_malformed, load<u64>(context, CHUNK_AT));
  store<u64>(context, endOfList(context, load<u32>(context, LIST_DEPTH)), MEMBER_END);
  store<u32>(context, 0, MEMBER_ODD);
  store<u32>(context, State.ListBody, STATE);
}

/**
 * Goes on after a member and its pad. Returns true when the outermost list is done: the chunk ends here.
 */
export function nextMember(context: usize): bool {
  const at = position(context);
  const depth = load<u32>(context, LIST_DEPTH);
  const end = endOfList(context, depth);
  if (at >= end) {
    store<u32>(context, depth - 1, LIST_DEPTH);
    if (depth == 1) return true;
    // The list was itself a member.
    store<u64>(context, end, MEMBER_END);
    store<u32>(context, (load<u32>(context, LIST_ODD) >> depth) & 1, MEMBER_ODD);
    store<u32>(context, State.ListBody, STATE);
    return false;
  }
  store<u32>(context, 0, FILL);
  if (end - at < 8) malformed(context);
  else store<u32>(context, State.MemberHeader, STATE);
  return false;
}

/**
 * Goes on where a member's data has ended: to its pad, when it has one. Some writers leave out the pad of the
 * last member.
 */
export function closeMember(context: usize): bool {
  const depth = load<u32>(context, LIST_DEPTH);
  if (load<u32>(context, MEMBER_ODD) != 0 && position(context) < endOfList(context, depth)) {
    store<u32>(context, State.MemberPad, STATE);
    return false;
  }
  return nextMember(context);
}

/** Reads a member's header, once its eight bytes are collected. */
export function openMember(context: usize): void {
  const id = load<u32>(context, HEADER);
  const size = load<u32>(context, HEADER + 4);
  const at = position(context);
  const end = at + size;
  const depth = load<u32>(context, LIST_DEPTH);
  if (id == <u32>Id.C2PA) addFinding(context, Finding.credential_in_list, at - 8);
  if (variantOfCredential(id)) addFinding(context, Finding.credential_id_variant, at - 8);
  if (!validId(id) || end > endOfList(context, depth)) {
    malformed(context);
    return;
  }
  if (id == <u32>Id.LIST) {
    if (depth < <u32>LIST_DEPTH_LIMIT) {
      openList(context, end, (size & 1) != 0);
      return;
    }
    addFinding(context, Finding.list_too_deep, at - 8);
  }
  store<u64>(context, end, MEMBER_END);
  store<u32>(context, size & 1, MEMBER_ODD);
  store<u32>(context, State.ListBody, STATE);
}
