/** State of the walk between two bytes. */
export const enum State {
  FileHeader,
  ChunkHeader,
  Body,
  Pad,
  ListType,
  MemberHeader,
  ListBody,
  MemberPad,
  /** Not a file we walk, or nothing more to learn: bytes are only counted. */
  Opaque,
}
