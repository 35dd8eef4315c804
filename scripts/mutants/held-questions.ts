/** Faults in questions of calls that stay open. */
import type { Mutant } from './mutant.ts';

export const HELD_QUESTIONS: readonly Mutant[] = [
  {
    name: 'open: lose the answer that comes while the call is under way',
    file: 'calls/held-questions.ts',
    find: 'if (known?.end !== undefined) for',
    replace: "if (known?.end !== undefined && known.end.ended !== 'answer') for",
  },
  {
    name: 'open: ask the next attempt for the answer again',
    file: 'calls/held-questions.ts',
    find: 'if (known?.end !== undefined && asked.again === undefined) return known.end;',
    replace: '',
  },
  {
    name: 'open: ask although somebody is asked since the life of another process',
    file: 'calls/held-questions.ts',
    find: 'if (open !== null && !this.#isAsked(at)) {',
    replace: 'if (open !== null) {',
  },
  {
    name: 'open: make a call again without doubt that was open when its process died',
    file: 'state/call-waits.ts',
    find: 'if (held !== true) parkCall(open, call, later === undefined);',
    replace: 'parkCall(open, call, later === undefined);',
  },
  {
    name: 'open: take an answer when the attempt that has asked is over',
    file: 'state/closed-with.ts',
    find: 'held.some(({ wait }) => wait === pause.wait)',
    replace: 'held.some(({ wait }) => -wait === pause.wait)',
  },
  {
    name: 'open: say that the run goes on while somebody is asked',
    file: 'calls/held-questions.ts',
    find: ", { status: 'paused' });",
    replace: ');',
  },
  {
    name: 'open: let the time of a call run while one of two questions is open',
    file: 'calls/attempt.ts',
    find: 'if (this.#untimed > 0 || !this.isOpen || this.#signal.aborted) return;',
    replace: 'if (!this.isOpen || this.#signal.aborted) return;',
  },
  {
    name: 'open: let the time of a call run while it asks',
    file: 'calls/attempt.ts',
    find: 'hearing?.stopLimit();',
    replace: '',
  },
  {
    name: 'open: give the answer to another question',
    file: 'calls/held-questions.ts',
    find: 'const known = isOpen ? waitingCall(open, at.call)?.waits.find(({ wait }) => wait === at.wait) : undefined;',
    replace:
      'const known = isOpen ? waitingCall(open, at.call)?.waits.find(({ end }) => end !== undefined) : undefined;',
  },
];
