/**
 * Names of services, devices and programs that are signed and shown: 1 to 64 visible characters with single meaning in every font
 * and terminal, so no control, format, private or separator characters but the inner space.
 */
export const DISPLAY_NAME_PATTERN = /^(?! )(?:[^\p{C}\p{Z}]| ){1,64}(?<! )$/u;

/** Text of strangers, made fit to be shown: control and format characters are replaced, the rest is cut at `limit`. */
export function shownText(text: string, limit = 256): string {
  return text.slice(0, limit).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd');
}
