/** The note to a model about live handles that were opened again: everything it did with the former values is gone. */
import type { Step } from '#core';

/** `undefined`: nothing that earlier steps used was lost. A call that was refused for it says so itself. */
export function lostHandlesText({ calls }: Step): string | undefined {
  if (calls.every(({ handles }) => handles === undefined)) return undefined;
  const reopened = calls.flatMap(({ handles = [] }) =>
    handles.filter(({ opening, lost }) => opening > 1 && lost !== true),
  );
  const names = [...new Set(reopened.map(({ name }) => name))];
  if (names.length === 0) return undefined;
  const [what, it] = names.length === 1 ? ['is a new one', 'it'] : ['are new ones', 'them'];
  return (
    `From these results on, ${names.join(' and ')} ${what}. The one before was closed or lost, and all that earlier steps had done in ` +
    `${it} is gone: where it stood, logins, what was not saved. Do again what the rest needs.`
  );
}
