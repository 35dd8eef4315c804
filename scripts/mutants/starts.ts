/** Faults in starts under keys, and at a time. */
import type { Mutant } from './mutant.ts';

export const STARTS: readonly Mutant[] = [
  {
    name: 'start a singleton beside the one that waits',
    file: 'journal/memory.ts',
    find: 'isUnderWay: (run) => has(run, ({ status }) => !hasEnded(status)),',
    replace:
      "isUnderWay: (run) => has(run, ({ status }) => !hasEnded(status) && status !== 'waiting' && status !== 'paused'),",
  },
  {
    name: 'give a singleton that has ended',
    file: 'journal/memory.ts',
    find: 'isUnderWay: (run) => has(run, ({ status }) => !hasEnded(status)),',
    replace: "isUnderWay: (run) => has(run, ({ status }) => !hasEnded(status) || status === 'cancelled'),",
  },
  {
    name: 'let the first start of a burst say what is done',
    file: 'journal/start-rules.ts',
    find: "if (isOpen) return { do: 'replace', run: newest.run, startsAt };",
    replace: "if (isOpen) return { do: 'join', run: newest.run };",
  },
  {
    name: 'let a burst go on for ever',
    file: 'journal/start-rules.ts',
    find: 'const since = isOpen ? newest.at : now;',
    replace: 'const since = now;',
  },
  {
    name: 'begin a burst where it began, whatever came later',
    file: 'journal/start-rules.ts',
    find: 'const startsAt = Math.max(now, Math.min(now + waitMs, since + maxWaitMs));',
    replace: 'const startsAt = Math.max(now, Math.min(since + waitMs, since + maxWaitMs));',
  },
  {
    name: 'replace a run that is under way',
    file: 'journal/start-rules.ts',
    find: 'return fence === 0 && signals === 0 && wakeAt !== null && wakeAt > now;',
    replace: 'return fence <= 1 && signals === 0 && wakeAt !== null;',
  },
  {
    name: 'replace the run of another user',
    file: 'journal/start-rules.ts',
    find: 'if (ownedBy(identity) !== ownedBy(run.identity)) {',
    replace: "if (ownedBy(identity) === '') {",
  },
  {
    name: 'throttle one too many',
    file: 'journal/start-rules.ts',
    find: 'const free = (rows[key.limit - 1]?.at ?? Number.NEGATIVE_INFINITY) + key.perMs;',
    replace: 'const free = (rows[key.limit]?.at ?? Number.NEGATIVE_INFINITY) + key.perMs;',
  },
  {
    name: 'throttle for longer than is said',
    file: 'journal/start-rules.ts',
    find: 'const free = (rows[key.limit - 1]?.at ?? Number.NEGATIVE_INFINITY) + key.perMs;',
    replace: 'const free = (rows[0]?.at ?? Number.NEGATIVE_INFINITY) + key.perMs;',
  },
  {
    name: 'let one too many through',
    file: 'journal/start-rules.ts',
    find: 'const allowedAt = last === undefined ? now : Math.min(last.at, now) + key.perMs;',
    replace: 'const allowedAt = last === undefined ? now : Math.min(last.at, now) + key.perMs / 2;',
  },
  {
    name: 'start again what is there already',
    file: 'journal/memory.ts',
    find: 'if (this.#runs.has(id)) return { run: id };\n    const decision',
    replace: 'const decision',
  },
  {
    name: 'begin at once what has a time',
    file: 'journal/start-rules.ts',
    find: 'return startsAt > now ? Math.ceil(startsAt) : 0;',
    replace: 'return startsAt > now ? now : 0;',
  },
  {
    name: 'say that the run was started that was asked for, whatever there is',
    file: 'runtime/start-by-key.ts',
    find: 'id = started.run;',
    replace: 'void id;',
  },
  {
    name: 'forget that something was started under the key',
    file: 'journal/memory.ts',
    find: 'this.#keys.add(tenant, key, id, decision);',
    replace: "if (key.kind !== 'rate' || now % 3 !== 0) this.#keys.add(tenant, key, id, decision);",
  },
  {
    name: 'claim by its name what a start under its key may still replace',
    file: 'journal/memory.ts',
    find: 'if (run === undefined || isYetToBegin(run, now)) return undefined;',
    replace: 'if (run === undefined) return undefined;',
  },
];
