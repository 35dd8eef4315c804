/** What a run may be started with beside its work: labels to find it by, a time, a schedule, a key. Checked here, before anything is stored. */
import { PilotageError } from './errors.ts';
import type { JsonObject } from './json.ts';
import { assertOptions, isOptionsRecord, type OptionShape } from './options.ts';

/** Names and values by which a program finds runs again. */
export type Labels = Readonly<Record<string, string>>;

/** The schedule that started a run. */
export interface ScheduleOrigin {
  readonly id: string;
  /** The fire time; of a run that somebody triggered, when. Milliseconds since the epoch. */
  readonly at: number;
  /** True: somebody triggered it, beside the fire times. */
  readonly triggered?: true;
  /** Where somebody triggered the run: the runs of the schedule that were under way then, and are hidden by it. Absent: there were none. */
  readonly beside?: readonly string[];
}

/** What the tools of a fire are told of it in `context.meta`. */
export function fireMeta({ id, at }: Pick<ScheduleOrigin, 'id' | 'at'>): JsonObject {
  return { schedule: id, fire_time: new Date(at).toISOString() };
}

/** The metadata of a run that a schedule has begun, for one that goes on in its conversation: nothing has fired that. */
export function withoutFireMeta(meta: JsonObject): JsonObject {
  const { schedule, fire_time, ...others } = meta;
  return schedule === undefined || fire_time === undefined ? meta : others;
}

export const START_KINDS = ['singleton', 'debounce', 'throttle', 'rate'] as const;
export type StartKind = (typeof START_KINDS)[number];

/** Under which key a run starts, and what that means. Keys of a tenant are apart from those of others, and so are those of each kind. */
export type StartKey =
  | { readonly kind: 'singleton'; readonly key: string }
  | { readonly kind: 'debounce'; readonly key: string; readonly waitMs: number; readonly maxWaitMs?: number }
  | { readonly kind: 'throttle' | 'rate'; readonly key: string; readonly limit: number; readonly perMs: number };

const MAX_LABELS = 32;
const MAX_LABEL_NAME = 64;
const MAX_LABEL_VALUE = 256;
const MAX_KEY = 256;
/** A start under such a key reads and keeps as many rows. */
const MAX_STARTS_PER_KEY = 1_000;
const MAX_PERIOD_MS = 366 * 86_400_000;
/** What stands in a text of its own in a database, and in a line of a terminal. */
const UNFIT = /[\p{Cc}\p{Cs}]/u;

/** @throws PilotageError `invalid_config`. */
export function assertLabels(of: string, labels: unknown): asserts labels is Labels {
  if (!isOptionsRecord(labels)) {
    throw refusal(`The option labels of ${of} must be an object of texts, such as { order: '17' }.`);
  }
  const given = Object.entries(labels);
  if (given.length > MAX_LABELS) {
    throw refusal(`The option labels of ${of} has ${given.length} labels; give at most ${MAX_LABELS}.`);
  }
  for (const [name, value] of given) {
    assertShort(`The name of a label of ${of}`, name, MAX_LABEL_NAME);
    assertShort(`The label ${JSON.stringify(name)} of ${of}`, value, MAX_LABEL_VALUE);
  }
}

const SINGLETON: OptionShape<{ key: string }> = { key: 'text' };
const DEBOUNCE: OptionShape<{ key: string; waitMs: number; maxWaitMs?: number }> = {
  ...({ key: 'text', waitMs: 'count', maxWaitMs: 'count?' } as const),
};
const LIMITED: OptionShape<{ key: string; limit: number; perMs: number }> = {
  ...({ key: 'text', limit: 'count', perMs: 'count' } as const),
};

/** @throws PilotageError `invalid_config`. */
export function readStartKey(kind: StartKind, given: object): StartKey {
  const of = `start.${kind}`;
  const key = Reflect.get(given, 'key') as string;
  switch (kind) {
    case 'singleton':
      assertOptions(of, given, SINGLETON);
      assertShort(`The key of ${of}`, key, MAX_KEY);
      return { kind, key };
    case 'debounce': {
      assertOptions(of, given, DEBOUNCE);
      assertShort(`The key of ${of}`, key, MAX_KEY);
      const { waitMs, maxWaitMs } = given as { waitMs: number; maxWaitMs?: number };
      assertPeriod(of, 'waitMs', waitMs);
      if (maxWaitMs === undefined) return { kind, key, waitMs };
      assertPeriod(of, 'maxWaitMs', maxWaitMs);
      if (maxWaitMs < waitMs)
        throw refusal(
          `The option maxWaitMs of ${of} is ${maxWaitMs}, less than waitMs (${waitMs}); give at least as much.`,
        );
      return { kind, key, waitMs, maxWaitMs };
    }
    case 'throttle':
    case 'rate': {
      assertOptions(of, given, LIMITED);
      assertShort(`The key of ${of}`, key, MAX_KEY);
      const { limit, perMs } = given as { limit: number; perMs: number };
      if (limit > MAX_STARTS_PER_KEY) {
        throw refusal(`The option limit of ${of} is ${limit}; give at most ${MAX_STARTS_PER_KEY}.`);
      }
      assertPeriod(of, 'perMs', perMs);
      return { kind, key, limit, perMs };
    }
    default:
      return kind satisfies never;
  }
}

function assertPeriod(of: string, name: string, ms: number): void {
  if (ms > MAX_PERIOD_MS)
    throw refusal(`The option ${name} of ${of} is ${ms}; give at most ${MAX_PERIOD_MS} (366 days).`);
}

/** @throws PilotageError `invalid_config` for a text that is empty, too long or has characters that cannot be shown. */
function assertShort(what: string, text: unknown, most: number): void {
  if (typeof text === 'string' && text !== '' && text.length <= most && !UNFIT.test(text)) return;
  const shown = typeof text === 'string' ? JSON.stringify(text.slice(0, 40)) : `a value of the kind ${typeof text}`;
  throw refusal(`${what} is ${shown}; give a text of 1 to ${most} characters without control characters.`);
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
