/** What does not fit a schema, in words for the model. */
import type { ParseIssue } from '#parse';

const MAX_SHOWN = 10;

/** `undefined` when everything fits. Each part names its place, as a JSON Pointer. */
export function misfitsIn(issues: readonly ParseIssue[]): string | undefined {
  const misfits = issues.filter(({ code }) => code === 'mismatch');
  if (misfits.length === 0) return undefined;
  return misfits
    .slice(0, MAX_SHOWN)
    .map(({ path = '', message }) => `${path || '/'}: ${message}`)
    .join('; ');
}
