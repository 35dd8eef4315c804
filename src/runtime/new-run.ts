/** The first entry of a run: what the caller gave is checked, captured, and put into the store where it is a file. */
import {
  assertRunLimits,
  type Clock,
  type Continued,
  capture,
  deepFreeze,
  defined,
  type Entry,
  givenLimits,
  givenTraceparent,
  type Identity,
  type Labels,
  type Limits,
  PilotageError,
  readAuthor,
  runLimitsOf,
  runUndoOf,
  type ScheduleOrigin,
  type Started,
  type StartRequest,
  type TurnOrigin,
  type UndoOptions,
} from '#core';
import type { FileOptions } from '#messages';
import { readClientTools } from '#tools';
import type { DriverDeps, ReadyAgent } from '../loop/driver-deps.ts';
import { contextAtStart, withReadArgs } from '../loop/inputs.ts';
import { assertPriced } from '../loop/prices.ts';
import { limitsWithin } from '../tasks/budget-share.ts';
import { pinOf } from '../tasks/spawn.ts';
import type { Agents } from './agents.ts';
import { readHistory, storedHistory } from './given-history.ts';
import { assertStartOptions, type StartOptions } from './start-options.ts';
import { fetchedFiles } from './user-message.ts';

export interface Starting {
  readonly agents: Agents;
  readonly clock: Clock;
  /** Limits of runs that do not set their own. */
  readonly limits: Limits | undefined;
  /** What becomes of the calls of runs that fail, where neither they nor their agents say it. */
  readonly undoing: UndoOptions;
  /** How files of messages are taken. */
  readonly files: FileOptions | undefined;
  readonly deps: Pick<DriverDeps, 'artifacts' | 'redaction' | 'telemetry' | 'onFault'>;
}

/** What the entry has beside what the caller gave. */
interface Beside {
  readonly asked?: StartRequest | undefined;
  readonly turn?: TurnOrigin;
  /** The schedule that starts it. */
  readonly schedule?: ScheduleOrigin;
  /** When it is to begin. */
  readonly startsAt?: number | undefined;
  /** Asked last, when everything else is known to be right. */
  readonly remembered?: () => Promise<Continued | undefined>;
}

const NO_SCOPES: readonly string[] = Object.freeze([]);
const NO_FILES: readonly never[] = Object.freeze([]);

/** @throws PilotageError as `Runtime.start`. */
export function assertStart(query: string, options: StartOptions): void {
  assertStartOptions(options);
  const { priority = 0, signal } = options;
  signal?.throwIfAborted();
  if (typeof query !== 'string')
    throw new PilotageError('invalid_config', 'The query must be a string, such as the goal of the user.');
  if (Number.isInteger(priority) && Math.abs(priority) <= 1000) return;
  throw new PilotageError('invalid_config', `priority is ${priority}; give a whole number from -1000 to 1000.`);
}

/** @throws PilotageError as `Runtime.start`. */
export async function firstEntry(
  starting: Starting,
  query: string,
  identity: Identity,
  options: StartOptions,
  { asked, turn, remembered, schedule, startsAt }: Beside,
): Promise<Entry> {
  const { agents, deps } = starting;
  const agent = options.agent === undefined ? agents.default : agents.named(options.agent);
  const { deadlineMs, ...others } = agent.limits ?? {};
  // The time of a turn is counted from when its turn has come.
  const begun = turn === undefined ? agent : { ...agent, limits: others };
  const started = beginning(starting, begun, query, identity, options, startsAt);
  const turns = options.history && readHistory(options.history);
  const { context: about, inputs: files = NO_FILES } = options;
  const inputs = files.length === 0 ? NO_FILES : await fetchedFiles(files, starting.files ?? {});
  const { readArgs } = agent;
  const said = { ...defined({ context: about }), inputs };
  const given = readArgs === undefined ? said : await withReadArgs(said, identity, readArgs);
  const context = await contextAtStart(given, identity, deps.artifacts);
  const history = turns && (await storedHistory(turns, identity, deps.artifacts));
  const more = {
    ...defined({
      asked: asked && capture<StartRequest>(asked, 'run.asked').json,
      turn: turn && { ...turn, ...defined({ deadlineMs }) },
      schedule,
      startsAt,
      trace: parentOf(deps),
      history,
      context,
      continues: await remembered?.(),
    }),
  };
  return deps.redaction.entry(deepFreeze({ ...started, ...more }));
}

/** A telemetry that throws hinders no run. */
function parentOf({ telemetry, onFault }: Starting['deps']): string | undefined {
  try {
    return telemetry?.parent() ?? givenTraceparent();
  } catch (error) {
    onFault(error);
    return givenTraceparent();
  }
}

function beginning(
  { clock, limits: general, undoing }: Starting,
  { agent, planner, toolsOf, limits, unpriced, undoing: own }: ReadyAgent,
  query: string,
  identity: Identity,
  options: StartOptions,
  startsAt = 0,
): Entry & Started {
  const given = { ...givenLimits(general), ...givenLimits(options.limits) };
  const at = clock.now();
  assertRunLimits(given, at);
  assertPriced(agent, unpriced, given.costUsd !== undefined);
  const { scopes = NO_SCOPES } = options;
  const within = limitsWithin(runLimitsOf(given), limits, Math.max(at, startsAt));
  const undo = runUndoOf([undoing, own, options], within.costMicroUsd);
  const tools = toolsOf(scopes, []);
  const { clientTools = [] } = options;
  return {
    kind: 'started',
    identity,
    query: capture<string>(query, 'run.query').json,
    agent,
    ...(options.author === undefined ? {} : { author: readAuthor(options.author, 'start', 'invalid_config') }),
    limits: within,
    scopes: capture<readonly string[]>(scopes, 'run.scopes').json,
    pin: pinOf(planner, tools),
    ...(clientTools.length === 0 ? {} : { clientTools: readClientTools(clientTools, tools) }),
    ...(options.labels === undefined ? {} : { labels: capture<Labels>({ ...options.labels }, 'run.labels').json }),
    ...(options.conversation === false ? { conversation: false } : {}),
    ...((options.whileAsked ?? planner.whileAsked) === 'keep' ? { whileAsked: 'keep' } : {}),
    ...(undo === undefined ? {} : { undo }),
    seq: 1,
    at,
  };
}
