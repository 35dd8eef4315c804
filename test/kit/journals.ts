/** Journals that behave in another way than the one they are made of. */
import type { Journal } from '#journal';
import { seededRandom } from '#testing';
import { turn } from './waiting.ts';

/** A journal, or a part of one, of which some methods are replaced. */
export function changed<T extends object>(part: T, changes: Partial<T>): T {
  return new Proxy(part, {
    get(target, key) {
      const own: unknown = Reflect.get(changes, key) ?? Reflect.get(target, key);
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
}

export interface Cut {
  readonly journal: Journal;
  /** From now on the process that uses this journal is as good as dead: it writes and hears nothing more. */
  cut(): void;
}

/** What a process that dies, or is stopped, sees of a journal that others go on using. */
export function cutJournal(journal: Journal): Cut {
  let isCut = false;
  const never = new Promise<never>(() => {});
  return {
    cut: () => {
      isCut = true;
    },
    journal: new Proxy(journal, {
      get(target, key) {
        const own: unknown = Reflect.get(target, key);
        if (typeof own !== 'function') return own;
        return (...args: unknown[]) => (isCut && key !== 'watch' ? never : own.apply(target, args));
      },
    }),
  };
}

/** A journal each of whose answers comes after a number of turns that the seed says. */
export function shuffledJournal(journal: Journal, seed: number): Journal {
  const random = seededRandom(seed);
  return new Proxy(journal, {
    get(target, key) {
      const own: unknown = Reflect.get(target, key);
      if (typeof own !== 'function') return own;
      if (typeof key === 'string' && key.startsWith('watch')) return own.bind(target);
      return async (...args: unknown[]) => {
        for (let turns = Math.floor(random() * 3); turns > 0; turns -= 1) await turn();
        return own.apply(target, args);
      };
    },
  });
}
