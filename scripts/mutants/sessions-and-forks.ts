/** Faults in sessions and forks. */
import type { Mutant } from './mutant.ts';

export const SESSIONS_AND_FORKS: readonly Mutant[] = [
  {
    name: 'make calls with an effect in a fork that holds them',
    file: 'calls/call.ts',
    find: "if (call.held && tool.effect === 'once' && !isCarried) return",
    replace: "if (call.held && tool.effect === 'keyed' && !isCarried) return",
  },
  {
    name: 'forget the result that a fork is to have',
    file: 'runtime/fork.ts',
    find: 'const changed = result === undefined ? kept :',
    replace: 'const changed = result !== null ? kept :',
  },
  {
    name: 'begin a fork one step late',
    file: 'runtime/fork.ts',
    find: "findIndex((entry) => entry.kind === 'moved' && entry.step === step);",
    replace: "findIndex((entry) => entry.kind === 'moved' && entry.step === step + 1);",
  },
  {
    name: 'have a fork decide anew as its own run',
    file: 'runtime/fork.ts',
    find: 'return { ...started, identity, agent, pin, conversation: false };',
    replace: 'return { ...started, identity, agent, pin };',
  },
  {
    name: 'tell a run one turn too few',
    file: 'runtime/session-memory.ts',
    find: 'return { runs: path.slice(Math.max(0, from)), turns',
    replace: 'return { runs: path.slice(Math.max(0, from) + 1), turns',
  },
  {
    name: 'tell of no older run that has not ended',
    file: 'runtime/session-memory.ts',
    find: 'if (open.push(run) === OPEN_RUNS) break;',
    replace: 'if (open.length === 0) break;',
  },
  {
    name: 'tell turns in another order',
    file: 'runtime/session-memory.ts',
    find: 'return found.reverse();',
    replace: 'return found;',
  },
  {
    name: 'cover turns that no summary has',
    file: 'runtime/session-memory.ts',
    find: 'before.findIndex(({ run }) => run === earlier) + 1);',
    replace: 'before.findIndex(({ run }) => run === earlier) + 2);',
  },
  {
    name: 'tell nobody of a circle until one more',
    file: 'state/repetition.ts',
    find: 'if (times >= least && ',
    replace: 'if (times > least && ',
  },
  {
    name: 'go round once more than the guard lets a run',
    file: 'loop/progress-guard.ts',
    find: 'if (action === undefined || found.times < actAfter) return undefined;',
    replace: 'if (action === undefined || found.times <= actAfter) return undefined;',
  },
  {
    name: 'see a circle where values differ',
    file: 'state/repetition.ts',
    find: 'sameOutcomes(left.calls, right.calls) &&',
    replace: '',
  },
  {
    name: 'show no summary',
    file: 'state/run-view.ts',
    find: 'if (state.compaction !== null) this.compaction = state.compaction;',
    replace: '',
  },
  {
    name: 'hand over attachments without their bytes',
    file: 'loop/inputs.ts',
    find: 'return Object.freeze(found === undefined ? { ...input } : { ...input, bytes: found.bytes });',
    replace: 'return Object.freeze(found === undefined ? { ...input, bytes: new Uint8Array() } : { ...input });',
  },
];
