/** Converts big-endian words of a block to native ones. A swizzle with a constant compiles to one byte shuffle. */
@inline
export function turn(x: v128): v128 {
  return i8x16.swizzle(x, i8x16(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
}

/** Rotates four words to the right by 1 to 31 bits. */
@inline
export function rotate(x: v128, n: i32): v128 {
  return v128.or(i32x4.shr_u(x, n), i32x4.shl(x, 32 - n));
}
