import { printable, type Terminal } from './terminal.js';

const MARK_WIDTH = 'not checked'.length;

/** Prints one check of a doctor command: its mark, name and finding, and advice on a second line. */
export function printCheck(
  terminal: Terminal,
  mark: string,
  { name, found }: { readonly name: string; readonly found: string },
  more?: string,
): void {
  terminal.print(printable(`${mark.padEnd(MARK_WIDTH)}  ${name}: ${found}`));
  if (more !== undefined) terminal.print(printable(`${' '.repeat(MARK_WIDTH)}  ${more}`));
}
