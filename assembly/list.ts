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
  SEARCH_WINDOW,
  SEARCHED,
  STATE,
} from '../src/core/engine/core-layout';
import { Id, validId, variantOfCredential } from './chunk-id';
import { addFinding, position } from './context';
import { Finding } from './findings';
import { State } from './state';

// The content of a LIST is opaque. A LIST is walked only to see whether it hides a credential, or data that
// libsndfile would take for the audio. Members are chunks of their own. Where one makes no sense, readers
// disagree on what comes next, so the rest of that list is searched byte by byte. The stack of open lists has a
// fixed depth.

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
  if (end - position(context) < 4) malformed(context, 0);
  else store<u32>(context, State.ListType, STATE);
}

/** Skips the rest of the innermost list, and searches what it skips. `last` are the last four bytes before it. */
function malformed(context: usize, last: u32): void {
  addFinding(context, Finding.list_malformed, load<u64>(context, CHUNK_AT));
  store<u64>(context, endOfList(context, load<u32>(context, LIST_DEPTH)), MEMBER_END);
  store<u32>(context, 0, MEMBER_ODD);
  openSearch(context, last);
  store<u32>(context, State.ListBody, STATE);
}

function openSearch(context: usize, last: u32): void {
  store<u32>(context, 1, SEARCHED);
  store<u32>(context, last, SEARCH_WINDOW);
}

/** Adds a finding for an id inside a LIST that a reader may take for the credential or for the audio. */
function checkId(context: usize, id: u32, at: u64): void {
  if (id == <u32>Id.C2PA) addFinding(context, Finding.credential_in_list, at);
  if (variantOfCredential(id)) addFinding(context, Finding.credential_id_variant, at);
  if (id == <u32>Id.DATA) addFinding(context, Finding.data_in_list, at);
}

/** Searches the next `length` bytes of a member, if its list is searched. */
export function searchMember(context: usize, data: usize, length: u32): void {
  if (load<u32>(context, SEARCHED) == 0) return;
  const begin = position(context);
  let last = load<u32>(context, SEARCH_WINDOW);
  for (let i: u32 = 0; i < length; i += 1) {
    last = (last >> 8) | ((<u32>load<u8>(data + i)) << 24);
    checkId(context, last, begin + i - 3);
  }
  store<u32>(context, last, SEARCH_WINDOW);
}

/** Reads the type of a list, once its four bytes are collected. libsndfile takes it for the id of a member. */
export function readListType(context: usize): void {
  if (load<u32>(context, HEADER) == <u32>Id.DATA)
    addFinding(context, Finding.data_in_list, position(context) - 4);
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
  if (end - at < 8) malformed(context, 0);
  else store<u32>(context, State.MemberHeader, STATE);
  return false;
}

/**
 * Goes on where a member's data has ended: to its pad, when it has one. Some writers leave out the pad of the
 * last member.
 */
export function closeMember(context: usize): bool {
  store<u32>(context, 0, SEARCHED);
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
  checkId(context, id, at - 8);
  if (!validId(id) || end > endOfList(context, depth)) {
    for (let i: u32 = 1; i <= 4; i += 1) checkId(context, load<u32>(context + HEADER + i), at - 8 + i);
    malformed(context, size);
    return;
  }
  if (id == <u32>Id.LIST) {
    if (depth < <u32>LIST_DEPTH_LIMIT) {
      openList(context, end, (size & 1) != 0);
      return;
    }
    addFinding(context, Finding.list_too_deep, at - 8);
    openSearch(context, 0);
  }
  store<u64>(context, end, MEMBER_END);
  store<u32>(context, size & 1, MEMBER_ODD);
  store<u32>(context, State.ListBody, STATE);
}
