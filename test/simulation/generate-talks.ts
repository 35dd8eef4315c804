/**
 * From a seed to sessions into which schedules send, to what people say and do in them meanwhile, and to what befalls both. It goes by dice of its own,
 * and leaves the calendar alone that a script has.
 */
import { BUSY_MODES } from '#runtime';
import { Dice } from './dice.ts';
import { faultBeside, MorePlans, type Perils, withMore } from './generate-beside.ts';
import { calendarIn, movedTo } from './generate-calendar.ts';
import type { Plan, PlannedMove, SimulationScript } from './script.ts';
import type { Calendar, ScheduleVersion, SimulatedSchedule } from './script-calendar.ts';
import type { TalkAct, TalkPlay } from './script-talks.ts';

const USER = 'ann';

export function withTalks(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 73 + 29);
  if (!dice.chance(0.14) || script.calendar !== undefined) return script;
  const more = new MorePlans(script);
  const named = (plan: Plan): string => more.add(plan);
  const made = calendarIn(dice, script, named);
  const spoken = dice.list(1, 3, () => named(planOf(dice))) as [string, ...string[]];
  const short = named({ moves: dice.chance(0.5) ? [] : [callOf('put', 300)] });
  const tenant = dice.pick(made.schedules.map((schedule) => schedule.tenant) as [string]);
  const sessions = dice.list(1, 2, (index) => ({ tenant, user: USER, session: `talk${index}` }));
  const schedules = made.schedules.map(
    (schedule): SimulatedSchedule => ({
      ...schedule,
      tenant,
      versions: schedule.versions.map((version) => inSession(dice, version, sessions, [short, ...spoken])),
    }),
  );
  const calendar = { ...made, schedules };
  const { workers } = script;
  const faults = dice.list(0, 5, () => faultBeside(dice, perils(dice, calendar, workers)));
  const acts = dice.list(0, dice.pick([3, 6, 10]), (index) => act(dice, calendar, sessions, workers, spoken, index));
  const talks: TalkPlay = { sessions, acts: acts.sort((one, other) => one.at - other.at) };
  const roots = script.roots.map((root) => movedTo(calendar, root));
  return { ...withMore({ ...script, roots }, { plans: more.plans, faults }), calendar, talks };
}

/** Most versions send into one of the sessions. Where many wait for each other, none takes long. */
function inSession(
  dice: Dice,
  version: ScheduleVersion,
  sessions: TalkPlay['sessions'],
  plans: readonly [string, ...string[]],
): ScheduleVersion {
  const isMany = version.overlap === 'parallel' || version.catchUp === 'all';
  const often = 'everyMs' in version.times ? version.times.everyMs < 7_000 : version.times.seconds !== undefined;
  const times = isMany && often ? { everyMs: 7_000 } : version.times;
  const [short] = plans;
  const plan = isMany ? short : dice.pick(plans);
  if (dice.chance(0.1)) return { ...version, times };
  const { session } = dice.pick(sessions as [TalkPlay['sessions'][number]]);
  return { ...version, times, plan, session };
}

function callOf(tool: string, ms: number, id = 's0'): PlannedMove {
  return { decision: { kind: 'call_tool', tool, args: { id, ms } } };
}

function planOf(dice: Dice): Plan {
  const ms = dice.pick([20, 300, 1_500, 4_000]);
  const think = dice.maybe(0.3, () => ({ thinkMs: dice.pick([50, 600]) }));
  const moves = dice.list(1, 3, (index): PlannedMove => {
    const tool = dice.pick(['look', 'put', 'put', 'send', 'ask_send', 'hold_put', 'hold_send'] as const);
    return { ...callOf(tool, ms, `s${index}`), ...think };
  });
  if (dice.chance(0.3)) {
    const asks: PlannedMove = { decision: { kind: 'request_pause', reason: 'await_input', payload: { q: 'Which?' } } };
    moves.splice(dice.between(0, moves.length), 0, asks);
  }
  // What has been done is undone when nobody finds a way. What is said while it is decided that nothing is left to do comes too late.
  if (dice.chance(0.5))
    moves.push({ decision: { kind: 'finish', reason: dice.pick(['goal', 'no_path']) }, thinkMs: dice.pick([20, 900]) });
  return { moves };
}

function act(
  dice: Dice,
  { nights, lastsMs }: Calendar,
  sessions: TalkPlay['sessions'],
  workers: number,
  plans: readonly [string, ...string[]],
  index: number,
): TalkAct {
  const ends = nights.map(({ at, ms }) => at + ms);
  const from = dice.pick([0, 0, 0, ...ends]);
  const at = Math.min(lastsMs, from + dice.between(100, dice.pick([1_500, 5_000])));
  const where = { at, worker: dice.between(0, workers - 1), talk: dice.between(0, sessions.length - 1) };
  const turn = dice.between(0, 5);
  const busy = dice.pick(BUSY_MODES);
  const id = `m${index}`;
  const does = dice.pick(SAID);
  switch (does) {
    case 'say':
      return {
        ...where,
        ...{ does, id, busy, plan: dice.pick(plans) },
        ...dice.maybe(0.25, () => ({ twin: { worker: dice.between(0, workers - 1), afterMs: dice.between(0, 900) } })),
        ...dice.maybe(0.3, () => ({ undoes: true as const })),
      };
    case 'edit':
      return { ...where, does, turn, id, busy: notSteered(busy), plan: dice.pick(plans) };
    case 'regenerate':
      return { ...where, does, turn, id, busy: notSteered(busy) };
    case 'fork':
      return { ...where, does, turn, run: `talk-fork${index}` };
    case 'cancel':
      return { ...where, does, waiting: dice.chance(0.4) };
    case 'delete':
      return { ...where, does };
    default:
      return { ...where, does, turn };
  }
}

const SAID = [
  ...(['say', 'say', 'say', 'say', 'say', 'say', 'say', 'edit', 'edit', 'regenerate', 'switch', 'switch'] as const),
  ...(['drop', 'answer', 'write', 'fork', 'cancel', 'delete', 'delete'] as const),
] as const;

function notSteered(busy: (typeof BUSY_MODES)[number]): Exclude<(typeof BUSY_MODES)[number], 'steer'> {
  return busy === 'steer' ? 'queue' : busy;
}

function perils(dice: Dice, { nights }: Calendar, workers: number): Perils {
  const ends = nights.map(({ at, ms }) => at + ms);
  return {
    workers,
    at: dice.pick([0, ...ends]),
    withinMs: 4_000,
    operations: dice.pick([30, 120]),
    kinds: ['kill', 'crash', 'crash', 'crash', 'refuse', 'refuse', 'unheard', 'cut', 'stall', 'deploy'],
    refused,
  };
}

/** Fires and messages are created; those before may have landed. */
function refused(dice: Dice): ReturnType<Perils['refused']> {
  return {
    on: dice.pick(['create', 'create', 'append', 'get']),
    nth: dice.between(0, 15),
    times: dice.pick([1, 1, 2, 7]),
  };
}
