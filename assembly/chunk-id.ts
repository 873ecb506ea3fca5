/** Four-character codes as little-endian u32. */
export const enum Id {
  RIFF = 0x46464952,
  RIFX = 0x58464952,
  RF64 = 0x34364652,
  BW64 = 0x34365742,
  WAVE = 0x45564157,
  FORM = 0x4d524f46,
  AIFF = 0x46464941,
  AIFC = 0x43464941,
  CAFF = 0x66666163,
  FTYP = 0x70797466,
  FLAC = 0x43614c66,
  OGGS = 0x5367674f,
  WVPK = 0x6b707677,
  /** Three bytes. */
  ID3 = 0x334449,
  FMT = 0x20746d66,
  DATA = 0x61746164,
  DS64 = 0x34367364,
  BEXT = 0x74786562,
  FACT = 0x74636166,
  LIST = 0x5453494c,
  C2PA = 0x41503243,
  DESC = 0x63736564,
  LPCM = 0x6d63706c,
  COMM = 0x4d4d4f43,
  SSND = 0x444e5353,
  NONE = 0x454e4f4e,
  TWOS = 0x736f7774,
  SOWT = 0x74776f73,
  IN24 = 0x34326e69,
  IN32 = 0x32336e69,
  RAW = 0x20776172,
  FL32 = 0x32336c66,
  FL32_CAPITAL = 0x32334c46,
  FL64 = 0x34366c66,
  FL64_CAPITAL = 0x34364c46,
}

/** Returns true if an id consists of printable ASCII, has spaces only at the end, and is not all spaces. */
export function validId(id: u32): bool {
  let space = false;
  for (let i: u32 = 0; i < 32; i += 8) {
    const c = (id >> i) & 0xff;
    if (c < 0x20 || c > 0x7e) return false;
    if (c == 0x20) space = true;
    else if (space) return false;
  }
  return id != 0x20202020;
}

/** Returns true if a reader careless about case takes an id for the credential's, although the case differs. */
export function variantOfCredential(id: u32): bool {
  // Bit 5 is the case of a letter; the 2 keeps its own value.
  return id != <u32>Id.C2PA && (id & 0xdfdfffdf) == <u32>Id.C2PA;
}
