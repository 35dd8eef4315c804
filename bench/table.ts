/** Plain text tables: columns as wide as their widest cell. `align` has one letter a column: `l` or `r`. */
export function table(align: string, rows: readonly (readonly (string | undefined)[])[]): string {
  const widths = Array.from(align, (_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const pad = (cell: string, column: number): string =>
    align[column] === 'r' ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return rows
    .map((row) =>
      widths
        .map((_, column) => pad(row[column] ?? '', column))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
