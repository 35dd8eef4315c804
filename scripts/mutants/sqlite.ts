/** Faults of the journal in a file: `src/journal/sqlite*`. */
import type { Mutant } from './mutant.ts';

export const SQLITE: readonly Mutant[] = [
  {
    name: 'append under an old fence to a file',
    file: 'journal/sqlite/runs.ts',
    find: 'fence = ?3 AND signals <= ?4',
    replace: '?3 = ?3 AND signals <= ?4',
  },
  {
    name: 'leave in the file what an append has taken',
    file: 'journal/sqlite/inbox.ts',
    find: 'this.#take().run(key, id);',
    replace: 'this.#take().run(id, key);',
  },
  {
    name: 'tell nobody through the file that a task has ended',
    file: 'journal/sqlite/runs.ts',
    find: 'for (const told of tells ?? []) this.#tell(told, now);',
    replace: 'if (tells === null) this.#tell(tells, now);',
  },
  {
    name: 'park in the file although a signal came',
    file: 'journal/sqlite/runs.ts',
    find: 'const news = row.signals > park.seenSignals;',
    replace: 'const news = row.signals < park.seenSignals - row.signals;',
  },
  {
    name: 'claim from the file what is leased',
    file: 'journal/sqlite/runs.ts',
    find: 'until <= now ||',
    replace: 'until > now ||',
  },
  {
    name: 'forget in the file who may be at it still',
    file: 'journal/sqlite/runs.ts',
    find: 'const workLeftAt = row.owner !== null && mayLive(row.owner, lease) ? Math.ceil(now) : row.work_left_at;',
    replace: 'const workLeftAt = row.owner !== null && !mayLive(row.owner, lease) ? null : row.work_left_at;',
  },
  {
    name: 'hear nothing of what other connections commit',
    file: 'journal/sqlite/journal.ts',
    find: 'if (version !== seen) this.#watchers.wakeAll();',
    replace: 'if (version === null) this.#watchers.wakeAll();',
  },
  {
    name: 'keep half of what the disk has refused',
    file: 'journal/sqlite/writer.ts',
    find: "if (this.#db.isTransaction) this.#db.exec('ROLLBACK');",
    replace: "if (this.#db.isTransaction) this.#db.exec('COMMIT');",
  },
];
