/** What people write for the place of a journal. */
import { PilotageError } from '#core';

/**
 * True for a URL of Postgres, false for a path.
 * @throws PilotageError `invalid_config` for what is meant as another URL: as a path it would be a new, empty file.
 */
export function isPostgresUrl(place: string): boolean {
  if (/^postgres(ql)?:\/\//i.test(place)) return true;
  if (!/^\s*([a-z][a-z0-9+.-]+:\/|postgres(ql)?[:/])/i.test(place)) return false;
  throw new PilotageError(
    'invalid_config',
    `${JSON.stringify(place)} cannot be the place of a journal. Give the path of a file, or a URL such as postgres://user@host:5432/name.`,
  );
}
