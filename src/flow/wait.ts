/** Nodes that wait and do nothing else: for somebody's answer, for a time, for an event. What is wrong with a wait that is written out is told when the node is made. */
import {
  assertOptions,
  isEventKey,
  type Json,
  MAX_KEY_CHARS,
  MAX_QUESTION_CHARS,
  type OptionShape,
  PilotageError,
  readMoment,
} from '#core';
import {
  type AwaitedEvent,
  checkOf,
  type InputOf,
  type InputSchema,
  jsonSchemaOf,
  type Question,
  type ToolContext,
} from '#tools';
import type { AsJson, SubflowOptions } from './types.ts';

/** A value, or a function of the node's input that gives it: the same value for the same input. */
export type FromInput<In, T> = T | ((input: In) => T);

/** What a node asks somebody, as `context.ask` does. The value of the node is the answer. */
export interface NodeQuestion<In, S extends InputSchema> extends Pick<Question<S>, 'schema' | 'expiresInMs'> {
  readonly question: FromInput<In, string>;
}

/** How long a node waits, as `context.sleep` does. The value of the node is null. */
export type NodeSleep<In> =
  | { readonly until: FromInput<In, Date | number | string>; readonly forMs?: never }
  | { readonly forMs: FromInput<In, number>; readonly until?: never };

/** The event that a node waits for, as `context.event` does. The value of the node is the payload. */
export interface NodeEvent<In, S extends InputSchema> extends Pick<AwaitedEvent<S>, 'schema' | 'timeoutMs'> {
  readonly key: FromInput<In, string>;
}

/** What a node may wait for in place of running a function: exactly one of the three. */
export interface NodeWaits<In, S extends InputSchema> {
  readonly ask: NodeQuestion<In, S>;
  readonly sleep: NodeSleep<In>;
  readonly event: NodeEvent<In, S>;
}

interface Beside extends Pick<SubflowOptions, 'allowCycle' | 'onError'> {
  readonly description?: string;
}

/** The options of a node that asks somebody, or waits for an event. */
export type WaitOptions<In, S extends InputSchema> = Beside &
  (
    | { readonly ask: NodeQuestion<In, S>; readonly event?: never; readonly sleep?: never }
    | { readonly event: NodeEvent<In, S>; readonly ask?: never; readonly sleep?: never }
  );
export type SleepOptions<In> = Beside & {
  readonly sleep: NodeSleep<In>;
  readonly ask?: never;
  readonly event?: never;
};

/** What comes, as the schema puts it out; any JSON without a schema. */
export type WaitedFor<S extends InputSchema> = InputSchema extends S ? Json : AsJson<InputOf<S>>;

export interface AnyWait extends Beside {
  readonly ask?: NodeQuestion<Json, InputSchema>;
  readonly sleep?: NodeSleep<Json>;
  readonly event?: NodeEvent<Json, InputSchema>;
}

const OPTIONS: OptionShape<AnyWait> = {
  ...({ ask: 'object?', sleep: 'object?', event: 'object?' } as const),
  ...({ description: 'text?', allowCycle: 'any?', onError: 'any?' } as const),
};
const ASK: OptionShape<NodeQuestion<Json, InputSchema>> = {
  question: 'any',
  schema: 'schema?',
  expiresInMs: 'number?',
};
const SLEEP: OptionShape<{ readonly until?: unknown; readonly forMs?: unknown }> = { until: 'any?', forMs: 'any?' };
const EVENT: OptionShape<NodeEvent<Json, InputSchema>> = { key: 'any', schema: 'schema?', timeoutMs: 'number?' };

/** Whether these are the options of a node that waits. */
export function isWait(given: object): given is AnyWait {
  return 'ask' in given || 'sleep' in given || 'event' in given;
}

/** The function of a node that waits. @throws PilotageError `invalid_config` or `tool_schema_invalid` for a wait that cannot be. */
export function waitCall(name: string, given: AnyWait): Execute {
  const of = `The node ${String(name)}`;
  assertOptions(of, given, OPTIONS);
  const { ask, sleep, event } = given;
  const waits = [
    ask && askWith(`ask of the node ${String(name)}`, ask),
    sleep && sleepWith(`sleep of the node ${String(name)}`, sleep),
    event && eventWith(`event of the node ${String(name)}`, event),
  ].filter((wait) => wait !== undefined);
  const [execute] = waits;
  if (execute !== undefined && waits.length === 1) return execute;
  throw refusal(
    `${of} waits for one thing: give it ask, sleep or event, and not two of them. Several at once are the branches of a race.`,
  );
}

type Execute = (input: Json, context: ToolContext) => Promise<unknown>;

function askWith(of: string, wait: NodeQuestion<Json, InputSchema>): Execute {
  assertOptions(of, wait, ASK);
  const { question, ...rest } = wait;
  if (
    typeof question !== 'function' &&
    !(typeof question === 'string' && question !== '' && question.length <= MAX_QUESTION_CHARS)
  ) {
    throw refusal(
      `The option question of ${of} must be a text of 1 to ${MAX_QUESTION_CHARS} characters, or a function of the input that gives one.`,
    );
  }
  assertSchema(of, wait.schema);
  return (input, context) => context.ask({ ...rest, question: valueFor(question, input) });
}

function sleepWith(of: string, wait: NodeSleep<Json>): Execute {
  assertOptions(of, wait, SLEEP);
  const { until, forMs } = wait;
  if ((until === undefined) === (forMs === undefined)) {
    throw refusal(`${of} takes either until, a time, or forMs, milliseconds.`);
  }
  if (until !== undefined) {
    if (typeof until !== 'function') readMoment(`The option until of ${of}`, until);
    return (input, context) => context.sleep({ until: valueFor(until, input) });
  }
  if (typeof forMs !== 'function' && !(Number.isFinite(forMs) && forMs >= 0)) {
    throw refusal(
      `The option forMs of ${of} is ${String(forMs)}; give milliseconds from 0, or a function of the input that gives them.`,
    );
  }
  return (input, context) => context.sleep({ forMs: valueFor(forMs, input) });
}

function eventWith(of: string, wait: NodeEvent<Json, InputSchema>): Execute {
  assertOptions(of, wait, EVENT);
  const { key, ...rest } = wait;
  if (typeof key !== 'function' && !isEventKey(key)) {
    throw refusal(
      `The option key of ${of} must be a text of 1 to ${MAX_KEY_CHARS} characters that a signal can have, or a function of the input that gives one.`,
    );
  }
  assertSchema(of, wait.schema);
  return (input, context) => context.event({ ...rest, key: valueFor(key, input) });
}

function valueFor<T extends number | string | Date>(given: FromInput<Json, T>, input: Json): T {
  return typeof given === 'function' ? given(input) : given;
}

/** Whoever answers or signals is shown it as JSON Schema. @throws PilotageError `tool_schema_invalid`. */
function assertSchema(of: string, schema: InputSchema | undefined): void {
  if (schema === undefined) return;
  jsonSchemaOf(schema, of);
  checkOf(schema, of);
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
