/** Faults in `src/journal`. */
import type { Mutant } from './mutant.ts';

export const JOURNAL: readonly Mutant[] = [
  {
    name: 'skip the fencing check',
    file: 'journal/rules.ts',
    find: 'if (fence === current) return;',
    replace: 'if (fence >= 0) return;',
  },
  {
    name: 'ignore the expected head',
    file: 'journal/rules.ts',
    find: 'if (append.expected !== now.head) throw',
    replace: 'if (append.expected < 0) throw',
  },
  {
    name: 'end without a look at the inbox',
    file: 'journal/rules.ts',
    find: 'if (seenSignals === undefined || signals <= seenSignals) return;',
    replace: 'if (seenSignals === undefined || signals >= 0) return;',
  },
  {
    name: 'deliver a wake twice',
    file: 'journal/memory-runs.ts',
    find: 'run.inbox.set(message.id, { message, storedAt: now });',
    replace:
      "run.inbox.set(message.id, { message, storedAt: now }); if (message.type === 'TASK_ENDED') run.inbox.set('again', { message: { ...message, id: 'again' }, storedAt: now });",
  },
  {
    name: 'drop an inbox row',
    file: 'journal/memory-runs.ts',
    find: 'run.inbox.set(message.id, { message, storedAt: now });',
    replace: 'if (run.inbox.size === 0) run.inbox.set(message.id, { message, storedAt: now });',
  },
  {
    name: 'lose what an append takes out of the inbox',
    file: 'journal/memory.ts',
    find: 'for (const id of append.takes) run.inbox.delete(id);',
    replace: 'run.updatedAt = now;',
  },
  {
    name: 'tell nobody that a task has ended',
    file: 'journal/memory.ts',
    find: 'for (const told of append.tells) this.#tell(told, now);',
    replace: 'run.updatedAt = now;',
  },
  {
    name: 'store no task',
    file: 'journal/memory.ts',
    find: 'for (const [start, first] of starts) this.#create(start, first, now);',
    replace: 'run.updatedAt = now;',
  },
  {
    name: 'park although a signal came',
    file: 'journal/memory-runs.ts',
    find: 'const news = run.signals > park.seenSignals;',
    replace: 'const news = run.signals < 0;',
  },
  {
    name: 'claim a run whose lease is not over',
    file: 'journal/memory.ts',
    find: 'owner === undefined || until <= now ||',
    replace: 'fence >= 0 ||',
  },
  {
    name: 'forget that a run was taken from a process that may live',
    file: 'journal/memory-runs.ts',
    find: 'mayLive(run.owner, lease)) run.workLeftAt = now;',
    replace: 'mayLive(run.owner, lease)) run.updatedAt = now;',
  },
];
