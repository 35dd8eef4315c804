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
    find: "(entry.kind === 'moved' && entry.step === step)",
    replace: "(entry.kind === 'moved' && entry.step === step + 1)",
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
    find: 'const history = chat(memory.turns.slice(-shownTurns(memory, window)));',
    replace: 'const history = chat(memory.turns.slice(-window));',
  },
  {
    name: 'take words that reached no goal for an answer',
    file: 'loop/run-writer.ts',
    find: 'const answer = answered && (await answerOf(answered, identity, this.#deps.artifacts));',
    replace: "const answer = (answered && (await answerOf(answered, identity, this.#deps.artifacts))) ?? 'nothing';",
  },
  {
    name: 'tell turns in another order',
    file: 'journal/memory-stores.ts',
    find: 'turns: turns.slice(first),',
    replace: 'turns: turns.slice(first).reverse(),',
  },
  {
    name: 'cover turns that no summary has',
    file: 'runtime/session-memory.ts',
    find: 'await this.#extend(summary, turns.slice(0, until - covered), until);',
    replace: 'await this.#extend(summary, turns.slice(1, until - covered), until);',
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
