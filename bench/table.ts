/** Plain text tables. */

/** Columns as wide as their widest cell; the first is aligned left, the second right, the rest left. */
export function table(rows: readonly (readonly (string | undefined)[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell?.length ?? 0);
  }
  const line = (row: readonly (string | undefined)[]): string =>
    widths
      .map((width, index) => (index === 1 ? (row[index] ?? '').padStart(width) : (row[index] ?? '').padEnd(width)))
      .join('  ')
      .trimEnd();
  return rows.map(line).join('\n');
}
