/** Faults in `src/runtime`. */
import type { Mutant } from './mutant.ts';

export const RUNTIME: readonly Mutant[] = [
  {
    name: 'start a branch although what it needs has failed',
    file: 'core/branch-graph.ts',
    find: "if (outcome.kind !== 'value') {",
    replace: "if (outcome.kind !== 'value' && outcome.kind !== 'error') {",
  },
  {
    name: 'never close a plan that nobody goes on with',
    file: 'loop/moves.ts',
    find: 'if (growth === undefined) return [cutOff(step)];',
    replace: 'if (growth === undefined) return [];',
  },
  {
    name: 'judge an answer by the clock of who reads it',
    file: 'loop/controls.ts',
    find: '{ ...ports, storedAt, isTakenOut }',
    replace: '{ ...ports, storedAt: ports.now, isTakenOut }',
  },
  {
    name: 'record an expiry without a look at what came',
    file: 'loop/inbox.ts',
    find: '{ seenSignals: this.#signalsSeen }',
    replace: '{}',
  },
  {
    name: 'answer a pause twice',
    file: 'loop/controls.ts',
    find: "if (effect.kind === 'resumed') open = open.filter((pause) => pause.token !== effect.token);",
    replace: "if (effect.kind === 'resumed') open = [...open];",
  },
  {
    name: 'let people approve what they asked for',
    file: 'loop/controls.ts',
    find: 'if (from.user === identity.user && from.tenant === identity.tenant) {',
    replace: "if (from.user === '' && from.tenant === identity.tenant) {",
  },
  {
    name: 'run a once call again after a crash',
    file: 'calls/call.ts',
    find: 'if (isOnce && (call.interrupted || ports.atWork.has(call.idempotencyKey))) {',
    replace: 'if (isOnce && ports.atWork.has(call.idempotencyKey)) {',
  },
  {
    name: 'end a call in doubt with the others that a join needs no more',
    file: 'calls/schedule.ts',
    find: 'return this.#begun.has(call) || this.#spared.has(call);',
    replace: 'return this.#spared.has(call);',
  },
  {
    name: 'end a run over a call in doubt when its time is over',
    file: 'loop/next.ts',
    find: 'if (carried.length > 0 || holdsDoubt(state)) return awaitSettlement(state, deps);',
    replace: 'if (carried.length > 0) return awaitSettlement(state, deps);',
  },
  {
    name: 'begin a once call without writing it down',
    file: 'calls/call.ts',
    find: '(cost !== undefined || isOnce || isToBeKnown',
    replace: '(cost !== undefined || isToBeKnown',
  },
  {
    name: 'give up a keyed call that may have happened, and forget its key',
    file: 'calls/call.ts',
    find: "return tool.effect === 'keyed' && mayGiveUp(open.move.decision);",
    replace: "return mayGiveUp(open.move.decision) && tool.effect === 'once';",
  },
  {
    name: 'enter an effect after a long standstill without asking whose the run is',
    file: 'calls/call.ts',
    find: '!ports.lease.isCertain &&',
    replace: 'ports.lease.isCertain === undefined &&',
  },
  {
    name: 'believe at once that a call did not happen',
    file: 'calls/look-up.ts',
    find: "if (looked.found !== 'not_done' || graceLeftMs === 0) return looked;",
    replace: "if (looked.found !== 'not_done' || graceLeftMs >= 0) return looked;",
  },
  {
    name: 'take an append that lost its lease for landed',
    file: 'journal/patience.ts',
    find: "if (!PilotageError.is(error, 'journal_conflict') ||",
    replace:
      "if (PilotageError.is(error, 'lease_lost')) return;\n      if (!PilotageError.is(error, 'journal_conflict') ||",
  },
  {
    name: 'make a gated call without asking',
    file: 'calls/call.ts',
    find: 'if (tool.gate !== undefined && call.approval === undefined && !call.interrupted) {',
    replace: 'if (tool.gate === undefined && call.approval === undefined && !call.interrupted) {',
  },
  {
    name: 'forget the arguments that an approver gave',
    file: 'calls/arguments.ts',
    find: 'if (approved !== undefined) return approved;',
    replace: 'if (approved === null) return approved;',
  },
  {
    name: 'give back what the tasks of a task may still use',
    file: 'tasks/ending.ts',
    find: "steps: usage.steps + setAsideFor(open, 'steps'),",
    replace: 'steps: usage.steps,',
  },
  {
    name: 'forget a task whose end comes with the ending',
    file: 'tasks/ending.ts',
    find: 'usage.steps += body.usage.steps;',
    replace: 'usage.steps += 0;',
  },
  {
    name: 'give money twice to calls that start together',
    file: 'calls/in-flight-budget.ts',
    find: 'if (!known.some((promise) => promise.call === call)) sum += money;',
    replace: 'if (!known.some((promise) => promise.call === call)) sum += money * 0;',
  },
  {
    name: 'let go of a run that was claimed again meanwhile',
    file: 'runtime/fleet.ts',
    find: 'if (this.#live.get(run) === live) this.#live.delete(run);',
    replace: 'this.#live.delete(run);',
  },
  {
    name: 'cascade no cancel',
    file: 'tasks/cancel.ts',
    find: "onCancel === 'cascade').map(",
    replace: "onCancel !== 'cascade' && onCancel !== 'isolate').map(",
  },
  {
    name: 'end although a cancel was stored',
    file: 'loop/run-writer.ts',
    find: "if (this.#state.cancel !== null || !late.some(({ message }) => message.type === 'CANCEL')) continue;",
    replace: 'if (late.length >= 0) continue;',
  },
  {
    name: 'go on with a group when a member has failed',
    file: 'tasks/ending.ts',
    find: 'if (failFast && failed !== undefined) {',
    replace: 'if (failFast && failed === null) {',
  },
  {
    name: 'end no group',
    file: 'tasks/ending.ts',
    find: 'const isOver = sealed && members.every(({ end }) => end !== undefined);',
    replace: 'const isOver = sealed && members.length === 0;',
  },
  {
    name: 'give a call another value than the run that carried it out',
    file: 'calls/outcome.ts',
    find: 'const value = stored === undefined ? result :',
    replace: 'const value = stored === undefined ? [result] :',
  },
  {
    name: 'have a call carried out again when its run has ended',
    file: 'calls/executor.ts',
    find: 'if (carried !== undefined) return this.#endAgentCall(open, branch, carried);',
    replace: 'if (carried === null) return this.#endAgentCall(open, branch, carried);',
  },
  {
    name: 'let the run go on of a call that is given up',
    file: 'loop/driver.ts',
    find: `await stopTasks(this.#deps, tasks, {
      by,
      reason: 'The call that started the task is not needed any more.',
      dismisses: true,
    });`,
    replace: 'void by;',
  },
  {
    name: 'await the run of somebody else',
    file: 'tasks/await.ts',
    find: 'return identity.tenant === tenant && identity.user === user && identity.session === session ? found : undefined;',
    replace: 'return identity.tenant !== null || tenant === user || session === user ? found : undefined;',
  },
];
