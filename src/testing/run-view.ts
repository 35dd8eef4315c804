/** A run view made by hand, for testing a planner without a runtime. */
import {
  type Author,
  assertKnownKeys,
  type BackgroundResult,
  type Compaction,
  type CompactionFailures,
  type ContextLimit,
  type Control,
  defined,
  type EarlierRuns,
  type GroupView,
  type Identity,
  type LoadedInput,
  local,
  type MediaView,
  type OptionShape,
  type Recalled,
  RunCache,
  type RunContext,
  type RunView,
  type SteeringTurn,
  type Step,
  skillView,
  type TaskView,
  type ToolPolicy,
  type ToolSchema,
  type ToolView,
  type Trajectory,
  type Turn,
} from '#core';

export interface RunViewOptions {
  readonly identity?: Identity;
  /** The name of the agent. Default `agent`. */
  readonly agent?: string;
  readonly query?: string;
  readonly author?: Author;
  readonly goal?: string;
  readonly history?: readonly Turn[];
  readonly context?: RunContext;
  readonly inputs?: readonly LoadedInput[];
  readonly steps?: readonly Step[];
  readonly steering?: readonly SteeringTurn[];
  readonly compaction?: Compaction;
  readonly compactionFailures?: CompactionFailures;
  readonly contextLimits?: readonly ContextLimit[];
  readonly controls?: readonly Control[];
  readonly tools?: ToolView;
  readonly startedAt?: number;
  readonly tasks?: boolean;
  /** Groups, with the tasks that the run has spawned as their members. */
  readonly groups?: readonly GroupView[];
  readonly background?: readonly BackgroundResult[];
  readonly noProgress?: NonNullable<RunView['noProgress']>;
  readonly lastMove?: NonNullable<RunView['lastMove']>;
  readonly streaming?: boolean;
  readonly media?: MediaView;
  readonly earlier?: EarlierRuns;
  readonly recalled?: Recalled;
  /** What the planner has kept of the run, from the view before. Default nothing. */
  readonly cache?: RunCache;
}

const NO_HISTORY: readonly Turn[] = [];
const NO_STEERING: readonly SteeringTurn[] = [];
const NO_CONTEXT: RunContext = {};
const OPTIONS: OptionShape<RunViewOptions> = {
  ...({
    identity: 'any?',
    agent: 'any?',
    query: 'any?',
    author: 'any?',
    goal: 'any?',
    history: 'any?',
    context: 'any?',
    inputs: 'any?',
  } as const),
  ...({ steps: 'any?', steering: 'any?', compaction: 'any?', compactionFailures: 'any?', controls: 'any?' } as const),
  ...({ contextLimits: 'any?' } as const),
  ...({ tools: 'any?', startedAt: 'any?', tasks: 'any?', groups: 'any?', background: 'any?' } as const),
  ...({
    lastMove: 'any?',
    noProgress: 'any?',
    streaming: 'any?',
    media: 'any?',
    cache: 'any?',
    earlier: 'any?',
    recalled: 'any?',
  } as const),
};
/** What a view has beside: one view may be made of another, `runView({ ...view, steps })`. */
const MADE: OptionShape<Omit<RunView, keyof RunViewOptions>> = {
  ...({ trajectory: 'any', skills: 'any', budget: 'any', rejections: 'any', task: 'any?', notice: 'any?' } as const),
};
const NO_INPUTS: readonly LoadedInput[] = [];
const NO_GROUPS: readonly GroupView[] = [];
const NO_BACKGROUND: readonly BackgroundResult[] = [];
const NO_TOOLS: ToolView = toolView([]);

/** Makes a run view. Default: a fresh run of `local('test')` with the query `hello`, no tools, started on 2 January 2026. */
export function runView(options: RunViewOptions = {}): RunView {
  assertKnownKeys('runView', options, Object.keys(OPTIONS), Object.keys(MADE));
  const { query = 'hello', steps = [], noProgress, lastMove, media, earlier, recalled, author } = options;
  return Object.freeze({
    identity: options.identity ?? local('test'),
    agent: options.agent ?? 'agent',
    query,
    ...defined({ author }),
    goal: options.goal ?? query,
    history: options.history ?? NO_HISTORY,
    context: options.context ?? NO_CONTEXT,
    inputs: options.inputs ?? NO_INPUTS,
    trajectory: trajectoryOf(options, steps),
    controls: options.controls ?? [],
    tools: options.tools ?? NO_TOOLS,
    skills: skillView(options.context?.skills),
    budget: { stepsLeft: 64, costMicroUsdSpent: 0 },
    startedAt: options.startedAt ?? Date.UTC(2026, 0, 2, 23, 59),
    rejections: 0,
    tasks: options.tasks ?? false,
    ...defined({ noProgress, lastMove, media, earlier, recalled }),
    streaming: options.streaming ?? false,
    cache: options.cache ?? new RunCache(),
  });
}

function trajectoryOf(options: RunViewOptions, steps: readonly Step[]): Trajectory {
  const {
    steering = NO_STEERING,
    groups = NO_GROUPS,
    background = NO_BACKGROUND,
    compaction,
    compactionFailures,
    contextLimits,
  } = options;
  return Object.freeze({
    count: steps.length,
    steps,
    steering,
    step: (index: number) => steps[index],
    tasks: groups.flatMap(({ members }) => members).sort((a: TaskView, b: TaskView) => a.step - b.step),
    groups: new Map(groups.map((group) => [group.id, group])),
    background,
    ...defined({ compaction, compactionFailures, contextLimits }),
  });
}

/** Tools by name, or whole schemas. Deferred tools are listed only when `found` names them. */
export function toolView(
  tools: readonly (string | ToolSchema)[],
  found: readonly string[] = [],
  policy?: ToolPolicy,
): ToolView {
  const all = tools
    .map((tool) => (typeof tool === 'string' ? schemaOf(tool) : tool))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const get = (name: string) => all.find((tool) => tool.name === name);
  const list = [...all.filter((tool) => tool.loading === 'always'), ...found.flatMap((name) => get(name) ?? [])];
  return { list: () => list, all: () => all, get, ...defined({ policy }) };
}

function schemaOf(name: string): ToolSchema {
  return {
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object' },
    effect: 'read',
    tags: [],
    loading: 'always',
    examples: [],
  };
}
