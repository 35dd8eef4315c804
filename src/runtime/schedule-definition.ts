/** A schedule as programs give it, and as it is stored: checked before anything is written, so that a fire finds nothing wrong. */
import {
  asJson,
  assertIdentity,
  assertOptions,
  assertWords,
  capture,
  defined,
  encodedBytes,
  fireMeta,
  type Identity,
  type Json,
  type JsonObject,
  LARGE_VALUE_BYTES,
  type Labels,
  type Limits,
  type OptionShape,
  PilotageError,
} from '#core';
import type { StoredSchedule } from '#journal';
import { CATCH_UP_MODES, type CatchUp, readTimes, type ScheduleTimes } from './schedule-times.ts';
import type { StartOptions } from './start-options.ts';

/** What becomes of a fire time while the last run of the schedule is under way. */
export const OVERLAP_MODES = ['skip', 'queue', 'parallel'] as const;
export type OverlapMode = (typeof OVERLAP_MODES)[number];

export interface ScheduleOptions {
  /** Unique in its tenant: letters, digits, dots, hyphens and underscores, at most 100. */
  readonly id: string;
  /** Minute, hour, day, month and day of the week; with six fields, seconds come first. Either this or `everyMs`. */
  readonly cron?: string;
  /** The zone of `cron`, such as `Europe/Berlin`. Default `UTC`. */
  readonly timezone?: string;
  /** Fires at the multiples of this time since the epoch, so that 3,600,000 is every full hour. At least 1,000. */
  readonly everyMs?: number;
  /** What each run works for, or says to the session. */
  readonly query: string;
  /** Arguments of the planner, as `context.args` of a start. */
  readonly input?: Json;
  /** Each fire is a message to this session. Absent: it is a run of its own. */
  readonly session?: string;
  /** Default: the runtime's first agent. */
  readonly agent?: string;
  /** Whose runs they are. Default: tenant and user are named `local`. Leave the key out for it. */
  readonly identity?: Pick<Identity, 'tenant' | 'user'>;
  /**
   * While the last run is under way, also while it waits for somebody: `skip` leaves fire times out, `queue` lets them wait, as far as `catchUp`
   * makes up for them, `parallel` starts all the same. Default `skip`.
   */
  readonly overlap?: OverlapMode;
  /**
   * A fire time that nobody has dealt with for a minute was missed: `none` leaves it out, `last` starts one run for all of them, `all` starts
   * them one by one, the newest 1,000 of them. Default `last`.
   */
  readonly catchUp?: CatchUp;
  readonly labels?: Labels;
  readonly limits?: Limits;
  /** Scopes that the user of the runs holds. Default none. */
  readonly scopes?: readonly string[];
}

/** A schedule as it is now. */
export interface ScheduleRecord extends Omit<ScheduleOptions, 'identity' | 'agent' | 'overlap' | 'catchUp'> {
  readonly tenant: string;
  readonly user: string;
  readonly agent: string;
  readonly overlap: OverlapMode;
  readonly catchUp: CatchUp;
  /** Counts its definitions, from 1. */
  readonly revision: number;
  readonly status: 'active' | 'paused';
  /** The fire time that comes next, or waits. Milliseconds since the epoch; `null`: there is none any more. */
  readonly nextAt: number | null;
  /** The run that it has started last. */
  readonly lastRun?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What is stored of it. */
export interface Definition {
  readonly times: ScheduleTimes;
  readonly user: string;
  readonly query: string;
  readonly input?: Json;
  readonly session?: string;
  readonly overlap: OverlapMode;
  readonly catchUp: CatchUp;
  readonly labels?: Labels;
  readonly limits?: Limits;
  readonly scopes?: readonly string[];
}

const PUT: OptionShape<ScheduleOptions> = {
  ...({ id: 'text', cron: 'text?', timezone: 'text?', everyMs: 'any?', query: 'text', input: 'any?' } as const),
  ...({ session: 'text?', agent: 'text?', identity: 'object?', overlap: 'text?', catchUp: 'text?' } as const),
  ...({ labels: 'any?', limits: 'object?', scopes: 'list?' } as const),
};
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** @throws PilotageError `invalid_config`, `identity_required`, `unserializable`. */
export function readDefinition(options: ScheduleOptions): { readonly tenant: string; readonly definition: Definition } {
  assertOptions('schedules.put', options, PUT);
  assertScheduleId(options.id);
  const { tenant, user } = 'identity' in options && options.identity ? options.identity : LOCAL;
  const { query, input, session, overlap = 'skip', catchUp = 'last', labels, limits, scopes } = options;
  assertIdentity({ tenant, user, session: session ?? '-', run: '-' });
  assertWords('schedules.put', 'overlap', [overlap], OVERLAP_MODES);
  assertWords('schedules.put', 'catchUp', [catchUp], CATCH_UP_MODES);
  const times = readTimes(options);
  const given = { times, user, query, overlap, catchUp, ...defined({ input, session, labels, limits, scopes }) };
  const { json } = capture<Json>(given, 'schedule');
  if (encodedBytes(json) < LARGE_VALUE_BYTES) return { tenant, definition: json as unknown as Definition };
  throw new PilotageError(
    'invalid_config',
    `The schedule ${options.id} has more than ${LARGE_VALUE_BYTES} bytes. Let its runs read what is large when they begin.`,
  );
}

const LOCAL = { tenant: 'local', user: 'local' } as const;

/** @throws PilotageError `invalid_config`. */
export function assertScheduleId(id: unknown): asserts id is string {
  if (typeof id === 'string' && ID.test(id)) return;
  const shown = typeof id === 'string' ? JSON.stringify(id.slice(0, 64)) : `a value of the kind ${typeof id}`;
  throw new PilotageError(
    'invalid_config',
    `The id of a schedule is ${shown}; give a letter or digit, and then letters, digits, dots, hyphens and underscores, at most 100 together.`,
  );
}

export function definitionOf({ definition }: StoredSchedule): Definition {
  return definition as unknown as Definition;
}

export function storedDefinition(definition: Definition): JsonObject {
  return asJson(definition) as JsonObject;
}

export function scheduleRecord(stored: StoredSchedule): ScheduleRecord {
  const { tenant, id, agent, revision, isPaused, nextAt, lastRun, createdAt, updatedAt } = stored;
  const { times, ...definition } = definitionOf(stored);
  return Object.freeze({
    ...{ tenant, id, agent, revision, nextAt, createdAt, updatedAt },
    ...times,
    ...definition,
    status: isPaused ? 'paused' : 'active',
    ...defined({ lastRun }),
  });
}

/** What the runs of the schedule are started with. @param at the fire time, which tools can read. */
export function startOptionsOf(
  { id, agent, definition }: Pick<StoredSchedule, 'id' | 'agent' | 'definition'>,
  at: number,
): StartOptions {
  const { input, labels, limits, scopes } = definition as unknown as Definition;
  const meta = fireMeta({ id, at });
  return { agent, context: { meta, ...defined({ args: input }) }, ...defined({ labels, limits, scopes }) };
}
