/** Faults in waits of calls, in results that come later, and in signals. */
import type { Mutant } from './mutant.ts';

export const WAITS: readonly Mutant[] = [
  {
    name: 'give a wait what the one before it has ended with',
    file: 'calls/waits.ts',
    find: 'const known = this.#ports.known[wait - 1];',
    replace: 'const known = this.#ports.known[wait - 2] ?? this.#ports.known[wait - 1];',
  },
  {
    name: 'end the wait for a time before it has come',
    file: 'state/blocked-calls.ts',
    find: 'if (until <= now) over.push({ ...place,',
    replace: 'if (until <= now + 100) over.push({ ...place,',
  },
  {
    name: 'park a run without the times of its waits',
    file: 'state/blocked-calls.ts',
    find: 'times.push(...timedWaits(open).map(({ until }) => until));',
    replace: '',
  },
  {
    name: 'park a run a little longer than until the time of its wait',
    file: 'loop/let-go.ts',
    find: 'Math.max(0, wakeAt - held.deps.clock.now());',
    replace: 'Math.max(0, wakeAt + 50 - held.deps.clock.now());',
  },
  {
    name: 'end a pause before its time is over',
    file: 'loop/next.ts',
    find: 'pause.expiresAt <= now);',
    replace: 'pause.expiresAt <= now + 100);',
  },
  {
    name: 'give up a wait for whatever the run is told',
    file: 'state/blocked-calls.ts',
    find: 'const isWithdrawn = fresh.some((control) => withdrawsWaits(state, control));',
    replace: 'const isWithdrawn = fresh.some(() => withdrawsWaits !== undefined);',
  },
  {
    name: 'start a call that waits',
    file: 'state/blocked-calls.ts',
    find: 'if (one.isParked || (withHeld &&',
    replace: 'if ((withHeld &&',
  },
  {
    name: 'forget what has ended while the call was under way',
    file: 'state/call-waits.ts',
    find: '.filter(({ end }) => end !== undefined).length <= seen;',
    replace: '.filter(({ end }) => end !== undefined).length >= 0;',
  },
  {
    name: 'keep the waits of a call that has ended',
    file: 'state/waiting-calls.ts',
    find: 'if (before !== undefined) open.waiting =',
    replace: 'if (before === null) open.waiting =',
  },
  {
    name: 'say that a call that has done half of its work was cancelled',
    file: 'state/waiting-calls.ts',
    find: 'if (!isMade && kept.length === 0) return undefined;',
    replace: 'if ((!isMade && kept.length === 0) || call >= 0) return undefined;',
  },
  {
    name: 'go on before a part of the work is recorded',
    file: 'calls/kept-work.ts',
    find: 'await written;',
    replace: 'void written;',
  },
  {
    name: 'do a part of the work again that is recorded',
    file: 'calls/kept-work.ts',
    find: 'one.call === call && one.name === name)',
    replace: 'one.call === call && one.name === name + name)',
  },
  {
    name: 'let the value of a call come late before its time',
    file: 'calls/later-value.ts',
    find: 'if (later.expiresAt !== undefined && later.expiresAt <= now)',
    replace: 'if (later.expiresAt !== undefined && later.expiresAt <= now + 1_000)',
  },
  {
    name: 'store an answer that does not fit its schema',
    file: 'loop/answer-kinds.ts',
    find: 'return issues.length === 0 ? undefined : firstIssues(',
    replace: 'return issues.length >= 0 ? undefined : firstIssues(',
  },
  {
    name: 'hand on a payload that does not fit its schema',
    file: 'loop/controls.ts',
    find: "if (misfit === undefined) return { kind: 'wait_ended',",
    replace: "if (misfit === undefined || misfit !== undefined) return { kind: 'wait_ended',",
  },
  {
    name: 'put a signal in the place of the end that a wait has had',
    file: 'loop/controls.ts',
    find: 'one.wait === at.wait && one.end === undefined)',
    replace: 'one.wait === at.wait)',
  },
  {
    name: 'deliver every further signal to a wait that has got one',
    file: 'journal/memory-waits.ts',
    find: 'told.add(wait.run.identity.run);\n        this.#remove(wait);',
    replace: 'told.add(wait.run.identity.run);',
  },
  {
    name: 'give a signal to the first of those who wait',
    file: 'journal/memory-waits.ts',
    find: 'told.add(wait.run.identity.run);\n        this.#remove(wait);',
    replace: 'told.add(wait.run.identity.run);\n        this.#remove(wait);\n        break;',
  },
  {
    name: 'lose a signal that came too late for its wait',
    file: 'journal/memory-waits.ts',
    find: 'if (stored.given === 0) stored.payload = payload;',
    replace: '',
  },
  {
    name: 'take a signal again that is known',
    file: 'journal/memory-waits.ts',
    find: 'if (before !== undefined && before.until > now) {',
    replace: 'if (before !== undefined && before.until > now && before.number < 0) {',
  },
  {
    name: 'give a wait whose time is over a signal',
    file: 'journal/waiting.ts',
    find: 'return until <= now;',
    replace: 'return until < 0 * now;',
  },
  {
    name: 'leave a wait out of the index that goes on behind a signal',
    file: 'state/open-waits.ts',
    find: "error.code === 'payload_invalid').map(waitId));",
    replace: "error.code === 'wait_over').map(waitId));",
  },
];
