/** From a seed to schedules, what people do with them, and nights around a change of the clocks on the wall. It goes by dice of its own. */
import { Dice } from './dice.ts';
import type { CronByHand } from './fire-times-by-hand.ts';
import type { Plan, Root, SimulationScript } from './script.ts';
import type {
  Calendar,
  Night,
  ScheduleAct,
  ScheduleVersion,
  SimulatedSchedule,
  TimesByHand,
} from './script-calendar.ts';

const SECOND = 1_000;
const MINUTE = 60_000;

/** When the clocks on the walls of a zone are changed. */
interface Change {
  readonly timezone: string;
  readonly at: number;
}

export const CHANGES: readonly [Change, ...Change[]] = [
  { timezone: 'Europe/Berlin', at: Date.UTC(2026, 2, 29, 1) },
  { timezone: 'Europe/Berlin', at: Date.UTC(2026, 9, 25, 1) },
  { timezone: 'America/New_York', at: Date.UTC(2026, 2, 8, 7) },
  { timezone: 'America/New_York', at: Date.UTC(2026, 10, 1, 6) },
  // By half an hour.
  { timezone: 'Australia/Lord_Howe', at: Date.UTC(2026, 9, 3, 15, 30) },
  { timezone: 'Australia/Lord_Howe', at: Date.UTC(2026, 3, 4, 15) },
  // At midnight: the day begins at one o'clock, or has its last hour twice.
  { timezone: 'America/Santiago', at: Date.UTC(2026, 8, 6, 4) },
  { timezone: 'America/Santiago', at: Date.UTC(2026, 3, 5, 3) },
  { timezone: 'UTC', at: Date.UTC(2026, 1, 28, 23) },
];

type Fields = Omit<CronByHand, 'timezone'>;

export const CRONS: readonly [Fields, ...Fields[]] = [
  { cron: '30 2 * * *', minutes: [30], hours: [2] },
  { cron: '15 1 * * *', minutes: [15], hours: [1] },
  { cron: '0 0 * * *', minutes: [0], hours: [0] },
  { cron: '30 0 * * *', minutes: [30], hours: [0] },
  { cron: '45 23 * * *', minutes: [45], hours: [23] },
  { cron: '10 2 * * 0,1', minutes: [10], hours: [2], weekdays: [0, 1] },
  { cron: '0 * * * *', minutes: [0] },
  { cron: '*/15 * * * *', minutes: [0, 15, 30, 45] },
  { cron: '*/30 1-2 * * *', minutes: [0, 30], hours: [1, 2] },
  { cron: '0 1-3 * * *', minutes: [0], hours: [1, 2, 3] },
  { cron: '20 0,1,2 * * 0', minutes: [20], hours: [0, 1, 2], weekdays: [0] },
];

const BY_SECONDS: readonly [Fields, ...Fields[]] = [
  { cron: '*/2 * * * * *', seconds: Array.from({ length: 30 }, (_, index) => 2 * index) },
  { cron: '*/5 * * * * *', seconds: Array.from({ length: 12 }, (_, index) => 5 * index) },
  { cron: '1,3,4 * * * * *', seconds: [1, 3, 4] },
];

export function withCalendar(script: SimulationScript): SimulationScript {
  const dice = new Dice(script.seed * 59 + 13);
  if (!dice.chance(0.12)) return script;
  const plans = { ...script.plans };
  const named = (plan: Plan): string => {
    const name = `p${Object.keys(plans).length}`;
    plans[name] = plan;
    return name;
  };
  const calendar = calendarIn(dice, script, named);
  return { ...script, plans, calendar, roots: script.roots.map((root) => movedTo(calendar, root)) };
}

/** The history begins at another time, and with it the times of its runs. */
export function movedTo({ startMs }: Calendar, root: Root): Root {
  const { deadlineAt } = root.limits;
  if (deadlineAt === undefined) return root;
  return { ...root, limits: { ...root.limits, deadlineAt: deadlineAt - USUAL_START_MS + startMs } };
}

const USUAL_START_MS = Date.UTC(2026, 0, 1);

/** Gives a plan a name. */
export type Named = (plan: Plan) => string;

/** Of seconds, or of days. */
export function calendarIn(dice: Dice, script: SimulationScript, named: Named): Calendar {
  return dice.chance(0.5) ? ofSeconds(dice, script, named) : ofDays(dice, script, named);
}

/** Fire times come every few seconds; nights are about as long as what is not yet late. */
function ofSeconds(dice: Dice, script: SimulationScript, named: Named): Calendar {
  const nights = dice.list(0, 2, (index): Night => {
    const ms = dice.pick([3_000, 20_000, 58_000, 59_000, 62_000, 90_000]);
    return { at: 1_500 + 100_000 * index, ms, isDeep: isDeep(dice, script) };
  });
  const times = (): TimesByHand =>
    dice.chance(0.5)
      ? { everyMs: dice.pick([1_000, 2_000, 2_500, 7_000]) }
      : { ...dice.pick(BY_SECONDS), timezone: dice.pick(CHANGES).timezone };
  return calendarOf(dice, script, named, { startMs: USUAL_START_MS, nights, times });
}

/** Fire times come once a day or several times in an hour, and the nights lead over a change of the clocks. */
function ofDays(dice: Dice, script: SimulationScript, named: Named): Calendar {
  const change = dice.pick(CHANGES);
  const startMs = change.at - MINUTE * dice.pick([1, 20, 100, 1_400]) - dice.between(0, 20) * SECOND;
  let now = 1_000;
  const nights = dice.list(1, 3, (): Night => {
    const at = now;
    const wantedMs = MINUTE * dice.pick([14, 30, 60, 90, 180, dice.between(10, 1_500)]);
    // It ends around a time at which a cron may fire.
    const end = Math.ceil((startMs + at + wantedMs) / (15 * MINUTE)) * 15 * MINUTE + SECOND * dice.between(-6, 70);
    now = end - startMs + dice.pick([2_500, 8_000]);
    return { at, ms: end - startMs - at, isDeep: isDeep(dice, script) };
  });
  const times = (): TimesByHand =>
    dice.chance(0.15)
      ? { everyMs: MINUTE * dice.pick([15, 60, 1_440]) }
      : { ...dice.pick(CRONS), timezone: dice.chance(0.85) ? change.timezone : dice.pick(CHANGES).timezone };
  return calendarOf(dice, script, named, { startMs, nights, times });
}

/** Nobody can notice that a clock was set while the other one stood still. */
function isDeep(dice: Dice, { faults, world }: SimulationScript): boolean {
  const isSet = faults.some(({ kind }) => kind === 'clock') || world.aheadMs.some((ms) => ms !== 0);
  return dice.chance(0.5) && !isSet;
}

interface Frame extends Pick<Calendar, 'startMs' | 'nights'> {
  readonly times: () => TimesByHand;
}

function calendarOf(
  dice: Dice,
  { workers, roots }: SimulationScript,
  named: Named,
  { startMs, nights, times }: Frame,
): Calendar {
  const plans = [named({ moves: [] }), ...dice.list(1, 2, () => named(planOf(dice)))] as [string];
  const version = (): ScheduleVersion => {
    const made = anyVersion();
    return made.overlap === 'parallel' ? made : { ...made, plan: dice.pick(plans) };
  };
  const anyVersion = (): ScheduleVersion => ({
    times: times(),
    // Of many at once none waits for somebody.
    plan: plans[0],
    overlap: dice.pick(['skip', 'queue', 'parallel']),
    catchUp: dice.pick(['none', 'last', 'all']),
  });
  const schedules = dice.list(1, 3, (index): SimulatedSchedule => {
    const first = version();
    const versions = dice.list(1, 3, (nth) =>
      nth === 0 ? first : { ...version(), ...(dice.chance(0.5) ? { times: first.times } : {}) },
    );
    return { id: `c${index}`, tenant: dice.pick(roots.map(({ tenant }) => tenant) as [string]), versions };
  });
  const lastsMs = Math.max(6_000, ...nights.map(({ at, ms }) => at + ms + 4_000));
  /** Somebody is awake, mostly. */
  const moments: readonly [number, number][] = [
    [0, 900],
    ...nights.map(({ at, ms }): [number, number] => [at + ms, at + ms + 3_000]),
  ];
  const when = (): number => dice.between(...dice.pick(moments as [[number, number]]));
  const act = (does: ScheduleAct['does'], schedule: number, at: number): ScheduleAct => ({
    at,
    worker: dice.between(0, workers - 1),
    schedule,
    does,
    version: dice.between(0, 2),
  });
  const acts = schedules.flatMap((_, schedule) => [
    ...Array.from({ length: dice.pick([1, 2, 3]) }, () => act('put', schedule, dice.between(0, 700))),
    ...dice.list(0, dice.pick([0, 2, 5]), () =>
      act(dice.pick(['put', 'put', 'pause', 'resume', 'resume', 'trigger', 'trigger', 'delete']), schedule, when()),
    ),
  ]);
  return { startMs, lastsMs, schedules, nights, acts: acts.sort((a, b) => a.at - b.at), putAtStart: dice.chance(0.5) };
}

/** Runs that take as long as some fire times are apart, or wait for somebody. */
function planOf(dice: Dice): Plan {
  const args = { id: 's0', ms: dice.pick([300, 1_500, 4_000, 9_000]) };
  const tool = dice.pick(['look', 'look', 'put', 'send', 'ask_send']);
  return { moves: [{ decision: { kind: 'call_tool', tool, args } }] };
}
