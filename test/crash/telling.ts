/** A journal that says what it has acknowledged. */

import type { Journal } from '#pilotage/journal';
import type { Entry } from '#pilotage/state';

export function telling(inner: Journal, say: (entry: Entry, run: string) => void): Journal {
  const append: Journal['append'] = async (request) => {
    await inner.append(request);
    for (const entry of request.entries) say(entry, request.run);
  };
  return new Proxy(inner, {
    get: (target, name) => {
      if (name === 'append') return append;
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
