/** State of the walk between two bytes. */
export const enum State {
  FileHeader,
  /** Inside an ID3v2 tag before the container. */
  Tag,
  /** In the zeros that some writers leave between a tag and the container. */
  TagPadding,
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
