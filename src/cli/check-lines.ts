import { printable, type Terminal } from './terminal.js';

const MARK_WIDTH = 'not checked'.length;

/** Prints a check of a doctor: its mark, name and finding, and below them what there is to say about it. */
export function printCheck(
  terminal: Terminal,
  mark: string,
  { name, found }: { readonly name: string; readonly found: string },
  more?: string,
): void {
  terminal.print(printable(`${mark.padEnd(MARK_WIDTH)}  ${name}: ${found}`));
  if (more !== undefined) terminal.print(printable(`${' '.repeat(MARK_WIDTH)}  ${more}`));
}
