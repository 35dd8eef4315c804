/** Faults in what processes know of each other, of their clocks, and of what is whose. */
import type { Mutant } from './mutant.ts';

export const PROCESSES: readonly Mutant[] = [
  {
    name: 'take the number of a process in another container for the same',
    file: 'runtime/leases.ts',
    find: ' || pidNamespace !== here.pidNamespace) return false;',
    replace: ') return false;',
  },
  {
    name: 'take a machine of the same name for the same',
    file: 'runtime/leases.ts',
    find: 'boot !== here.boot || ',
    replace: '',
  },
  {
    name: 'hold everybody on the machine to be dead',
    file: 'runtime/leases.ts',
    find: 'return now !== undefined && now !== start;',
    replace: 'return now !== undefined && start !== undefined;',
  },
  {
    name: 'trust a clock that stands still while the machine sleeps',
    file: 'loop/held-lease.ts',
    find: 'return Math.max(clock.now() - wallMs, steadyMs(clock) - steady);',
    replace: 'return Math.max(wallMs - clock.now(), steadyMs(clock) - steady);',
  },
  {
    name: 'count a lease from when its renewal was heard of',
    file: 'runtime/leases.ts',
    find: 'driver.lease.renewed(askedAt);',
    replace: 'driver.lease.renewed(momentOf(clock));',
  },
  {
    name: "take somebody's run for a task",
    file: 'journal/rules.ts',
    find: 'if (there === undefined) continue;',
    replace: 'if (there !== null) continue;',
  },
  {
    name: "hand out somebody's run",
    file: 'runtime/runtime.ts',
    find: 'if (ownedBy(stored.identity) !== ownedBy(identity)) {',
    replace: 'if (ownedBy(stored.identity) === identity.run) {',
  },
  {
    name: 'take any request under a key for the same',
    file: 'runtime/start-once.ts',
    find: 'if (stored === undefined || digestsOf(request).includes(stored.digest)) return;',
    replace: 'if (stored === undefined || digestsOf(request).length > 0) return;',
  },
  {
    name: 'tell everybody that they have started the task',
    file: 'runtime/start-once.ts',
    find: 'return { run, reused: stored?.by !== asked.by };',
    replace: 'return { run, reused: stored === undefined };',
  },
  {
    name: 'never believe that an append had landed',
    file: 'journal/patience.ts',
    find: 'return there.length === entries.length &&',
    replace: 'return there.length > entries.length &&',
  },
  {
    name: 'hear nothing of a run that lives elsewhere',
    file: 'runtime/follow.ts',
    find: 'if (this.#options.isDriven()) return;',
    replace: 'if (!this.#options.isDriven()) return;',
  },
];
