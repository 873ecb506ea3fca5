import { Id } from './chunk-id';

/** Container formats, in the order of CONTAINERS in src/core/domain/audio.ts. */
export const enum Container {
  Unknown,
  Riff,
  Rf64,
  Bw64,
  Rifx,
  W64,
  Aiff,
  Aifc,
  Caf,
  Mp3,
  Mp4,
  Flac,
  Ogg,
  Aac,
  WavPack,
}

/** The length of the header of an ID3v2 tag, in bytes. */
export const TAG_HEADER_BYTES: u32 = 10;

/**
 * Returns the length in bytes of the ID3v2 tag with this header of ten bytes, header and footer included (ID3v2.4
 * structure, section 3.1). Returns 0 if the bytes are not such a header: text can start with "ID3" too.
 */
export function tagLength(header: usize): u64 {
  const version = load<u8>(header, 3);
  if ((load<u32>(header) & 0xff_ffff) != <u32>Id.ID3 || version < 2 || version > 4) return 0;
  const size = bswap<u32>(load<u32>(header, 6));
  // A size has seven bits in each byte, so that no byte of a tag looks like the start of an MP3 frame.
  if ((size & 0x8080_8080) != 0) return 0;
  const body =
    (size & 0x7f) | ((size >> 1) & 0x3f80) | ((size >> 2) & 0x1f_c000) | ((size >> 3) & 0xfe0_0000);
  // Only version 4 has a footer, which repeats the header.
  const footer: u64 = version == 4 && (load<u8>(header, 5) & 0x10) != 0 ? TAG_HEADER_BYTES : 0;
  return <u64>TAG_HEADER_BYTES + body + footer;
}

/** Names the container by its first twelve bytes. */
export function sniff(header: usize): Container {
  const first = load<u32>(header);
  if (first == <u32>Id.RIFF) return Container.Riff;
  if (first == <u32>Id.RF64) return Container.Rf64;
  if (first == <u32>Id.BW64) return Container.Bw64;
  if (first == <u32>Id.RIFX) return Container.Rifx;
  // Wave64 begins with the GUID 66666972-912E-11CF-A5D6-28DB04C10000.
  if (load<u64>(header) == 0x11cf_912e_6666_6972 && load<u32>(header, 8) == 0xdb28_d6a5) return Container.W64;
  const form = load<u32>(header, 8);
  if (first == <u32>Id.FORM)
    return form == <u32>Id.AIFF ? Container.Aiff : form == <u32>Id.AIFC ? Container.Aifc : Container.Unknown;
  if (first == <u32>Id.CAFF) return Container.Caf;
  if (load<u32>(header, 4) == <u32>Id.FTYP) return Container.Mp4;
  if (first == <u32>Id.FLAC) return Container.Flac;
  if (first == <u32>Id.OGGS) return Container.Ogg;
  if (first == <u32>Id.WVPK) return Container.WavPack;
  const frame = bswap<u64>(load<u64>(header));
  if (isMp3Frame(<u32>(frame >> 32))) return Container.Mp3;
  return isAacFrame(frame) ? Container.Aac : Container.Unknown;
}

/**
 * Returns true for the header of an MP3 frame (ISO/IEC 11172-3, 2.4.1.3): eleven bits set, a version other than 01,
 * layer III, and no reserved value of bit rate, sample rate and emphasis.
 */
function isMp3Frame(head: u32): bool {
  return (
    head >> 21 == 0x7ff &&
    ((head >> 19) & 3) != 1 &&
    ((head >> 17) & 3) == 1 &&
    ((head >> 12) & 15) != 15 &&
    ((head >> 10) & 3) != 3 &&
    (head & 3) != 2
  );
}

/**
 * Returns true for the header of an ADTS frame (ISO/IEC 13818-7, 6.2): twelve bits set, layer 0, a known sample rate,
 * and a frame that is not shorter than its header.
 */
function isAacFrame(head: u64): bool {
  return (
    head >> 52 == 0xfff && ((head >> 49) & 3) == 0 && ((head >> 42) & 15) < 13 && ((head >> 21) & 0x1fff) >= 7
  );
}
