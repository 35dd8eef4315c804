/** The schedules of the chaos, which each process puts when it starts, and what their runs do: one effect, which says for which fire time it is. */
import type { JsonObject, Tool } from '#pilotage';
import type { ScheduleOptions } from '#pilotage/schedules';
import type { Agent } from '#tools';
import type { World } from '../double-act/world.ts';

const TICK = 'tick';

export type ScheduleId = 'skip' | 'queue' | 'cron';

/** Of each `overlap`, and of each `catchUp`, one. */
export const SCHEDULES: readonly (ScheduleOptions & {
  readonly id: ScheduleId;
  readonly overlap: NonNullable<ScheduleOptions['overlap']>;
  readonly catchUp: NonNullable<ScheduleOptions['catchUp']>;
})[] = [
  { id: 'skip', everyMs: 1_000, overlap: 'skip', catchUp: 'none', agent: TICK, query: 'Tick.' },
  { id: 'queue', everyMs: 2_000, overlap: 'queue', catchUp: 'all', agent: TICK, query: 'Tick.' },
  { id: 'cron', cron: '* * * * * *', overlap: 'parallel', catchUp: 'last', agent: TICK, query: 'Tick.' },
];

/** Each process has another definition, and the same times. */
export function scheduleOf(given: (typeof SCHEDULES)[number], seed: string): ScheduleOptions {
  return { ...given, query: `Tick for ${seed}.` };
}

/** By hand: how far apart the fire times are, all of them whole multiples of it since the epoch. */
export const EVERY_MS: Readonly<Record<ScheduleId, number>> = { skip: 1_000, queue: 2_000, cron: 1_000 };

/** Ids of their runs begin so. */
export const SCHEDULED = 'schedule_';

export function tickAgent(world: World): Agent & { readonly name: typeof TICK } {
  const act: Tool = {
    name: TICK,
    description: 'Ticks.',
    inputSchema: { type: 'object' },
    effect: 'once',
    timeoutMs: world.timeoutMs,
    execute: (_, context) => {
      const { schedule, fire_time: at } = context.meta;
      return world.act(TICK, { subject: subjectOf(String(schedule), String(at)) } satisfies JsonObject, context);
    },
    reconcile: (_, context) => world.lookUp(context),
  };
  return {
    name: TICK,
    planner: {
      name: TICK,
      next: ({ trajectory: { steps } }) =>
        steps.at(-1)?.calls[0]?.outcome.kind === 'value'
          ? { kind: 'finish', reason: 'goal' }
          : { kind: 'call_tool', tool: TICK, args: {} },
    },
    tools: [act],
  };
}

function subjectOf(schedule: string, at: string): string {
  return `${schedule} ${at}`;
}

/** What the subject of an effect says. */
export function readSubject(subject: string): { readonly id: ScheduleId; readonly at: number } {
  const [id = '', at = ''] = subject.split(' ');
  return { id: id as ScheduleId, at: Date.parse(at) };
}
