/** The number of right bytes among the reader's five. */
export type Depth = 0 | 1 | 2 | 3 | 4 | 5;

/** Counts the right bytes before the first wrong one. The last branch needs five, each in its own branch. */
export function readNested(input: Uint8Array): Depth {
  if (input[3] === 0xc2) {
    if (input[4] === 0x50) {
      if (input[5] === 0x41) {
        if (input[6] === 0x9d) {
          if (input[7] === 0x17) return 5;
          return 4;
        }
        return 3;
      }
      return 2;
    }
    return 1;
  }
  return 0;
}
