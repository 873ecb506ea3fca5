/**
 * Returns a line for each row, in which every cell is as wide as the widest of its column.
 * @param words columns from the left that hold words, and begin with them; numbers end with their column
 */
export function tableLines(rows: readonly (readonly string[])[], words: number): readonly string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, at) => (at < words ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
      .join('  ')
      .trimEnd(),
  );
}
