/**
 * Turns a configuration into the options of a runtime. Everything malformed is refused here, before a run can start. Nothing is
 * opened yet.
 */
import {
  asPlanner,
  assertOptions,
  defined,
  type GivenPlanner,
  type Limits,
  type OptionShape,
  type Planner,
  type PlanningHints,
  type RedactionOptions,
  type UndoLimits,
} from '#core';
import type { PlannerRegistry } from '#planners';
import { createRuntime, type HistoryHooks, type ProgressGuard, type RuntimeOptions, type StoreOptions } from '#runtime';
import { type Config, hasAgentsAlone, type ServerPart } from './config.ts';
import { type DriverPart, shippedPlanners } from './drivers.ts';
import {
  aFunction,
  anything,
  at,
  type ConfigShape,
  check,
  invalidConfig,
  isFilled,
  isRecord,
  shape,
  text,
  texts,
  whole,
} from './shape.ts';

export interface ReadyOptions {
  /** Where the planner's `driver` is looked up. Default: `shippedPlanners()`. */
  readonly planners?: PlannerRegistry;
}

export interface ReadyConfig {
  /** The options for `createRuntime`. Without a planner when the configuration has agents alone. */
  readonly runtime: RuntimeOptions & { readonly planner?: Planner };
  /** Hints for the context of runs that have no hints of their own. Absent when the configuration has none. */
  readonly hints?: PlanningHints;
}

const OPTIONS: OptionShape<ReadyOptions> = { planners: 'object?' };
/** A key with the check `anything` is checked by the runtime, which names the key in the same way. */
const CONFIG: ConfigShape<Config> = {
  planner: anything,
  agents: check('a list of agents, such as flows', Array.isArray),
  tools: check('a list of tools, or an object of tools by name', isObject),
  limits: shape<Omit<Limits, 'costMicroUsd'>>({
    steps: anything,
    stepsPer: anything,
    calls: anything,
    deadlineAt: anything,
    costUsd: anything,
    tokens: anything,
    onCeiling: anything,
  }),
  memory: shape({ strategy: anything, turns: anything }),
  store: shape<StoreOptions>({ index: anything, namespace: aFunction }),
  history: shape<HistoryHooks>({ load: aFunction, save: aFunction }),
  onFail: anything,
  undo: shape<UndoLimits>({ calls: anything, costUsd: anything, timeoutMs: anything }),
  parallelCalls: anything,
  maxLiveRuns: whole(1),
  maxLiveRunsPerTenant: whole(1),
  leaseMs: whole(1),
  takeoverGraceMs: whole(0),
  goesOn: anything,
  patienceMs: whole(0),
  progress: shape<ProgressGuard>({ hintAfter: anything, action: anything, actAfter: anything }),
  files: anything,
  policy: aFunction,
  redact: shape<RedactionOptions>({ rules: anything, also: anything }),
  migrate: aFunction,
  telemetry: check('what openTelemetry() of pilotage/telemetry gives', isRecord),
  planningHints: shape<NonNullable<Config['planningHints']>>({ constraints: text, preferredTools: texts }),
  server: shape<ServerPart>({
    ...{ parts: check('a list of parts, such as [api()]', isParts), authenticate: aFunction, errorText: aFunction },
    ...{ hosts: texts, origins: texts, maxBodyBytes: whole(1), maxStreamsPerUser: whole(1) },
  }),
  journal: check('a path or a journal', (value) => (isRecord(value) ? 'append' in value : isFilled(value))),
};
const checkConfig = shape(CONFIG);
const checkMaxSteps = whole(0);

/**
 * @throws PilotageError `invalid_config` naming the path of the key that is unknown or whose value is wrong,
 * `driver_unknown`, or the registration error of a tool.
 */
export async function readyConfig(config: Config<DriverPart>, options: ReadyOptions = {}): Promise<ReadyConfig> {
  checkConfig(config, '');
  assertOptions('readyConfig', options, OPTIONS);
  const { planner: part = {}, planningHints, server: _, ...passedOn } = config;
  const made = hasAgentsAlone(config) ? {} : await plannerOf(part, options.planners ?? shippedPlanners());
  const { planner, maxSteps }: Partial<MadePlanner> = made;
  const runtime = { ...passedOn, ...defined({ planner }), ...limitsOf(maxSteps, config.limits) };
  // The runtime opens nothing here: it only checks these options.
  createRuntime(runtime);
  return { runtime, ...hintsOf(planningHints) };
}

interface MadePlanner {
  readonly planner: Planner;
  /** The limit in the planner's part. */
  readonly maxSteps?: number;
}

async function plannerOf(part: unknown, planners: PlannerRegistry): Promise<MadePlanner> {
  if (isPlanner(part)) return { planner: at('planner', () => asPlanner(part)) };
  checkPart(part, 'planner');
  const { driver = 'react', maxSteps, ...options } = part as DriverPart;
  text(driver, 'planner.driver');
  if (maxSteps !== undefined) checkMaxSteps(maxSteps, 'planner.maxSteps');
  const planner = asPlanner(await planners.resolve(driver, options));
  return { planner, ...defined({ maxSteps }) };
}

const checkPart = check('a planner, a function, or { driver, … }', isRecord);

function isPlanner(part: unknown): part is GivenPlanner {
  return typeof part === 'function' || (isRecord(part) && typeof part['next'] === 'function');
}

/** Returns the step limit, from whichever of its two places it is given in. */
function limitsOf(maxSteps: number | undefined, limits: Limits | undefined): Pick<RuntimeOptions, 'limits'> {
  if (maxSteps === undefined || maxSteps === 0) return limits === undefined ? {} : { limits };
  if (limits?.steps === undefined) return { limits: { ...limits, steps: maxSteps } };
  throw invalidConfig('planner.maxSteps', 'and limits.steps are the same limit, and both are given. Give one of them.');
}

function hintsOf(part: Config['planningHints']): Pick<ReadyConfig, 'hints'> {
  const { constraints = '', preferredTools = [] } = part ?? {};
  const hints: PlanningHints = {
    ...(constraints.trim() === '' ? {} : { constraints }),
    ...(preferredTools.length === 0 ? {} : { preferredTools }),
  };
  return Object.keys(hints).length === 0 ? {} : { hints };
}

function isParts(value: unknown): boolean {
  return Array.isArray(value) && value.every((part: unknown) => isRecord(part) && typeof part['routes'] === 'function');
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
