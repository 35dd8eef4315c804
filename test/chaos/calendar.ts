/** The schedules of the chaos, which each process puts when it starts, and what their runs do: one effect, which says for which fire time it is. */
import type { JsonObject, Tool } from '#pilotage';
import type { ScheduleOptions } from '#pilotage/schedules';
import type { Agent } from '#tools';
import type { LedgerLine } from '../double-act/ledger.ts';
import type { World } from '../double-act/world.ts';

export const TICK = 'tick';

export type ScheduleId = 'skip' | 'queue' | 'cron' | 'talk';

/** The session into which a schedule sends, and people too. */
export const TALK = 'talk';
/** In place of the name of a schedule: people have said it. */
export const SAID = 'said';

/** Of each `overlap`, and of each `catchUp`, one. */
export const SCHEDULES: readonly (ScheduleOptions & {
  readonly id: ScheduleId;
  readonly overlap: NonNullable<ScheduleOptions['overlap']>;
  readonly catchUp: NonNullable<ScheduleOptions['catchUp']>;
})[] = [
  { id: 'skip', everyMs: 1_000, overlap: 'skip', catchUp: 'none', agent: TICK, query: 'Tick.' },
  { id: 'queue', everyMs: 2_000, overlap: 'queue', catchUp: 'all', agent: TICK, query: 'Tick.' },
  { id: 'cron', cron: '* * * * * *', overlap: 'parallel', catchUp: 'last', agent: TICK, query: 'Tick.' },
  { id: 'talk', everyMs: 2_000, overlap: 'parallel', catchUp: 'last', session: TALK, agent: TICK, query: 'Tick.' },
];

/** Each process has another definition, and the same times. */
export function scheduleOf(given: (typeof SCHEDULES)[number], seed: string): ScheduleOptions {
  return { ...given, query: `Tick for ${seed}.` };
}

/** By hand: how far apart the fire times are, all of them whole multiples of it since the epoch. */
export const EVERY_MS: Readonly<Record<ScheduleId, number>> = {
  skip: 1_000,
  queue: 2_000,
  cron: 1_000,
  talk: 2_000,
};

/** Whether the effect is that of a fire, or of what somebody has said in the session. */
export function isTick({ tool }: Pick<LedgerLine, 'tool'>): boolean {
  return tool === TICK;
}

/** Whether it is that of a turn of the session. */
export function isOfTalk({ subject }: Pick<LedgerLine, 'subject'>): boolean {
  return subject.startsWith(`${TALK} `) || subject.startsWith(`${SAID} `);
}

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
