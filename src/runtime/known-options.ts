/** An option that is spelt wrong is not passed over. */
import { PilotageError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';

/** @throws PilotageError `invalid_config` naming the first one that there is not. */
export function assertKnownOptions(options: object, known: Readonly<Record<string, true>>): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  const near = nearest(unknown, Object.keys(known));
  const remedy = near === undefined ? `There are ${Object.keys(known).join(', ')}.` : `Did you mean ${near}?`;
  throw new PilotageError('invalid_config', `A runtime has no option ${JSON.stringify(unknown)}. ${remedy}`);
}
