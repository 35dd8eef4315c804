/** Faults in schedules, and in the undoing of calls. */
import type { Mutant } from './mutant.ts';

export const SCHEDULES_AND_UNDO: readonly Mutant[] = [
  {
    name: 'start a run at a fire time without looking whether somebody was first',
    file: 'journal/memory-schedules.ts',
    find: 'if (!this.#isAsRead(move)) throw scheduleChanged(move);',
    replace: '',
  },
  {
    name: 'name the run of a fire time anew each time, and leave the schedule where it is',
    file: 'runtime/schedule-fire.ts',
    find: 'new Date(at).toISOString()',
    replace: 'crypto.randomUUID()',
  },
  {
    name: 'begin the newest missed fire time only, whatever catchUp says',
    file: 'runtime/schedule-times.ts',
    find: "    case 'all':\n      return newest(times, from, now, MOST_CAUGHT_UP);",
    replace: "    case 'all':\n      return newest(times, from, now, 1);",
  },
  {
    name: 'hold what is a second late to be missed',
    file: 'runtime/schedule-times.ts',
    find: 'if (now - from <= ON_TIME_MS)',
    replace: 'if (now - from <= 1_000)',
  },
  {
    name: 'read a cron in UTC',
    file: 'runtime/schedule-times.ts',
    find: 'read = new Cron(cron, { timezone, paused: true });',
    replace: "read = new Cron(cron, { timezone: 'UTC', paused: true });",
  },
  {
    name: 'start all the same while the last run is under way',
    file: 'runtime/schedule-ticker.ts',
    find: "overlap === 'parallel' ? []",
    replace: "overlap !== 'queue' ? []",
  },
  {
    name: 'let a deploy end the pause of a schedule',
    file: 'journal/memory-schedules.ts',
    find: 'return this.#set({ ...before, ...given, ...next,',
    replace: 'return this.#set({ ...before, ...given, isPaused: false, ...next,',
  },
  {
    name: 'let a deploy move a schedule to the next fire time from now on',
    file: 'journal/start-rules.ts',
    find: 'if (hasSameTimes) return { nextAt: before.nextAt };',
    replace: 'if (hasSameTimes) return { nextAt: given.nextAt };',
  },
  {
    name: 'begin the fire times of a pause when the schedule goes on',
    file: 'runtime/schedules.ts',
    find: 'return { isPaused: false, nextAt: (await',
    replace: 'return { isPaused: false, nextAt: nextAt ?? (await',
  },
  {
    name: 'move a schedule on when somebody triggers it',
    file: 'runtime/schedules.ts',
    find: 'origin, nextAt: schedule.nextAt }), host);',
    replace: 'origin, nextAt: (schedule.nextAt ?? 0) + 60_000 }), host);',
  },
  {
    name: 'undo the call that ended first at first',
    file: 'state/undo.ts',
    find: 'return left.sort((one, other) => other.record.seq - one.record.seq);',
    replace: 'return left.sort((one, other) => one.record.seq - other.record.seq);',
  },
  {
    name: 'leave the last call as it is',
    file: 'loop/undo.ts',
    find: 'this.#queue ??= this.#undoable().reverse();',
    replace: 'this.#queue ??= this.#undoable().slice(1).reverse();',
  },
  {
    name: 'undo a call again after a crash',
    file: 'state/undo.ts',
    find: 'undone.add(placeText(undoes));\n      return;',
    replace: 'return;',
  },
  {
    name: 'keep what was done when the run is cancelled',
    file: 'core/undo.ts',
    find: "new Set(['goal', 'continued', 'handed_over']);",
    replace: "new Set(['goal', 'continued', 'handed_over', 'cancelled']);",
  },
  {
    name: 'undo what a run that has reached its goal has done',
    file: 'core/undo.ts',
    find: "new Set(['goal', 'continued', 'handed_over']);",
    replace: "new Set(['continued', 'handed_over']);",
  },
  {
    name: 'undo what a fork has copied',
    file: 'state/undo.ts',
    find: 'if (record == null || !counts(record) || record.seq <= copied) continue;',
    replace: 'if (record == null || !counts(record) || record.seq < 0 * copied) continue;',
  },
  {
    name: 'leave what tasks have done',
    file: 'loop/undo.ts',
    find: "return tool !== undefined && (tool.undo !== undefined || 'agent' in tool);",
    replace: 'return tool !== undefined && tool.undo !== undefined;',
  },
  {
    name: 'say of a task that it cannot undo what it did',
    file: 'runtime/undo-task.ts',
    find: "return ending?.kind === 'finished' && ending.reason === 'goal' ? undefined : 'it has not reached its goal';",
    replace: "return ending?.kind === 'finished' ? 'it is well' : 'it has not reached its goal';",
  },
  {
    name: 'stop at its own time a run whose task undoes what it did',
    file: 'loop/next.ts',
    find: "return limits.onCeiling === 'pause' || isOfTask ? undefined : deadlineOf(state);",
    replace: "return limits.onCeiling === 'pause' || (isOfTask && open === null) ? undefined : deadlineOf(state);",
  },
];
