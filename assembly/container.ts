import { Id } from './chunk-id';

/** Container formats, in the order of CONTAINERS in src/domain/audio.ts. */
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
}

/** Names the container by the file's first twelve bytes. */
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
  if ((first & 0xff_ffff) == 0x33_4449) return Container.Mp3; // "ID3"
  // A frame's sync word: eleven bits set, then a version other than the reserved 01, then layer III.
  const frame = bswap<u32>(first);
  if (frame >> 21 == 0x7ff && ((frame >> 19) & 3) != 1 && ((frame >> 17) & 3) == 1) return Container.Mp3;
  return Container.Unknown;
}
