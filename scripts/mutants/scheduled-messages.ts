/** Faults in schedules that send into sessions, and in the turns that come of it. */
import type { Mutant } from './mutant.ts';

export const SCHEDULED_MESSAGES: readonly Mutant[] = [
  {
    name: 'tell a scheduled message to the turn that is under way',
    file: 'runtime/schedule-fire.ts',
    find: "busy: 'queue',",
    replace: "busy: 'steer',",
  },
  {
    name: 'interrupt the turn under way with a scheduled message',
    file: 'runtime/schedule-fire.ts',
    find: "    busy: 'queue',\n    options",
    replace: "    busy: 'interrupt',\n    options",
  },
  {
    name: 'let a scheduled message answer what a turn asks its user',
    file: 'runtime/session-send.ts',
    find: "live.status === 'paused' && scheduled === undefined && (await",
    replace: "live.status === 'paused' && (await",
  },
  {
    name: 'send a scheduled message, and leave the schedule where it is',
    file: 'runtime/session-send.ts',
    find: '{ fires: { ...outgoing.scheduled.move, run: known.run } }',
    replace: '{}',
  },
  {
    name: 'give a scheduled message another name each time that it is sent',
    file: 'runtime/schedule-fire.ts',
    find: '    id: of.name,\n    payload',
    replace: '    id: `$' + '{of.name}_$' + '{crypto.randomUUID()}`,\n    payload',
  },
  {
    name: 'start a run of its own where a schedule is to send a message',
    file: 'runtime/schedule-fire.ts',
    find: 'return session === undefined ? startRun',
    replace: 'return session !== null ? startRun',
  },
  {
    name: 'forget which schedule has sent a message',
    file: 'runtime/session-send.ts',
    find: '...defined({ schedule: scheduled?.origin }),',
    replace: '',
  },
  {
    name: 'send a scheduled message as whoever the session belongs to first',
    file: 'runtime/schedule-fire.ts',
    find: 'const scope = { tenant, user, session };',
    replace: "const scope = { tenant, user: 'bob', session };",
  },
  {
    name: 'leave it out that a message has dealt with a fire time, when it was known already',
    file: 'runtime/schedule-fire.ts',
    find: "if (as === 'known' && !(await",
    replace: "if (as === 'known' && scope.user === '' && !(await",
  },
  {
    name: 'take a scheduled message of somebody who was not the first',
    file: 'journal/memory.ts',
    find: '    if (fires !== undefined) this.schedules.assertAsRead(fires);\n    const now',
    replace: '    const now',
  },
  {
    name: 'move a schedule on, and lose its message when somebody is at work',
    file: 'journal/memory.ts',
    find: 'const claim = starts && first && this.#create(starts, first, now);',
    replace:
      'const claim = starts && first && (fires === undefined || this.#turns.record(scope)?.live === undefined ? this.#create(starts, first, now) : undefined);',
  },
  {
    name: 'do not move a schedule on with its message',
    file: 'journal/memory.ts',
    find: '    if (fires !== undefined) this.schedules.apply(fires);\n    return { claim };',
    replace: '    return { claim };',
  },
  {
    name: 'take a message from somebody who has not seen which turn is under way',
    file: 'journal/rules.ts',
    find: '  if (isSameTurn && heardAll',
    replace: '  if ((isSameTurn || live != null) && heardAll',
  },
  {
    name: 'put a message that is queued before all that wait',
    file: 'journal/memory-turns.ts',
    find: "  if (waits === 'last') return waiting.length;",
    replace: "  if (waits === 'last') return 0;",
  },
  {
    name: 'begin the next turn while another one is under way',
    file: 'journal/memory-turns.ts',
    find: 'const next = inTurn.size > 0 ? undefined : waiting.shift();',
    replace: 'const next = waiting.shift();',
  },
  {
    name: 'let a turn that is queued begin at once',
    file: 'journal/memory-turns.ts',
    find: 'run.waits = waits === undefined ? undefined : inTurn.size > 0;',
    replace: 'run.waits = waits === undefined ? undefined : inTurn.size > 1;',
  },
  {
    name: 'lose what was said to a turn that ends before it hears of it',
    file: 'loop/next-turn.ts',
    find: 'if (!isControl(message) || message.turnMessage === undefined) return [];',
    replace: 'if (!isControl(message) || message.turnMessage !== null) return [];',
  },
  {
    name: 'keep a branch that somebody has switched to when a message has gone on from it',
    file: 'journal/memory.ts',
    find: '    if (starts !== undefined) this.#turns.set(scope, { branch: null });\n',
    replace: '',
  },
  {
    name: 'go on from the last turn, whichever branch was chosen',
    file: 'runtime/session-send.ts',
    find: 'replaces === undefined ? defined({ after: branch }) : { replaces };',
    replace: 'replaces === undefined ? {} : { replaces };',
  },
  {
    name: 'tell an edited message of the turn in whose place it stands',
    file: 'runtime/session-path.ts',
    find: "return replaces === undefined ? 'any' : { before: replaces };",
    replace: "return replaces === undefined ? 'any' : { run: replaces };",
  },
  {
    name: 'accept a steered message again',
    file: 'journal/memory.ts',
    find: 'if (there === undefined) return this.#messages.get(messageKey(sending.scope, control));',
    replace: "if (there === undefined) return control === '' ? run : undefined;",
  },
  {
    name: 'refuse a message as busy because of its own turn',
    file: 'runtime/session-send.ts',
    find: "return { as: 'started', seen: null, busyWith: run };",
    replace: 'throw sessionBusy(record, run);',
  },
  {
    name: 'report turns that are gone with their session',
    file: 'runtime/waking.ts',
    find: 'if (!this.isGone(run, error)) this.#deps.onFault(error);',
    replace: 'this.#deps.onFault(error);',
  },
  {
    name: 'skip a fire time while any turn of the session is under way',
    file: 'runtime/schedule-ticker.ts',
    find: "overlap === 'parallel' ? [] : this.goesOn(before);",
    replace: "overlap === 'parallel' && definitionOf(before).session === undefined ? [] : this.goesOn(before);",
  },
  {
    name: 'leave a turn that waits and was cancelled until its turn has come',
    file: 'runtime/pick-up.ts',
    find: 'if (claim.waits === true && !(await this.isCancelled(claim)))',
    replace: 'if (claim.waits === true)',
  },
];
