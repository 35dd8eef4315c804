/** Stored values as rows that a model can name them by: never their bytes. */
import { type ArtifactRow, branchesOf, oneLine, type Step, shownName } from '#core';

const MAX_ROWS = 20;
const MAX_TEXT = 200;

/**
 * One line for each row, newest first, at most 20; then a line that tells how many more exist.
 * @param more how many exist beside `rows`.
 */
export function artifactLines(rows: readonly ArtifactRow[], more = 0): string[] {
  const newest = [...rows].sort((a, b) => b.createdAt - a.createdAt || (a.artifactRef < b.artifactRef ? -1 : 1));
  const rest = more + Math.max(0, newest.length - MAX_ROWS);
  const lines = newest.slice(0, MAX_ROWS).map(lineOf);
  return rest > 0 ? [...lines, `+${rest} more`] : lines;
}

/** The values that a step stored: artifacts of its tools, and results that were too large to be sent. */
export function artifactsOf({ decision, calls }: Step, options: { readonly results: boolean }): readonly ArtifactRow[] {
  const rows: ArtifactRow[] = [];
  for (const [index, { outcome, artifacts, endedAt }] of calls.entries()) {
    if (artifacts !== undefined) rows.push(...artifacts);
    if (!options.results || outcome.kind !== 'value' || outcome.artifact === undefined) continue;
    const tool = branchesOf(decision)[index]?.tool;
    const source = tool === undefined ? 'unknown' : `tool: ${shownName(tool)}`;
    rows.push({ ...outcome.artifact, source, createdAt: endedAt });
  }
  return rows;
}

function lineOf({ artifactRef, fileName, mime, sizeBytes, source }: ArtifactRow): string {
  const columns = [
    artifactRef,
    fileName?.trim() || 'no file name',
    mime.trim() || 'application/octet-stream',
    `${sizeBytes} bytes`,
    source.trim() || 'unknown',
  ];
  // No name can hold what stands between two columns.
  return `- ${columns.map((column) => oneLine(column, MAX_TEXT).replaceAll('|', '\\|')).join(' | ')}`;
}
