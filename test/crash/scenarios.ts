/** Small agents that together use everything a crash can cut in two. */
import { once } from 'node:events';
import type { Control, Json, Tool, ToolContext } from '#pilotage';
import type { CallParallel, CallTool, Decision, Move, RunView } from '#pilotage/planner';
import type { Entry } from '#pilotage/state';
import type { CrashScenario, CrashWorld } from '#testing';
import { ToolFailure } from '#tools';

type Extra = Partial<Omit<Tool, 'name' | 'run'>>;

/** A tool that counts its effect and gives back its argument. */
export function worker(world: CrashWorld, name: string, extra: Extra & { execute?: Tool['execute'] } = {}): Tool {
  return {
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object' },
    execute: async (args, context) => {
      await world.effect(context);
      return { from: name, ...(args as object) };
    },
    ...extra,
  };
}

export const call = (tool: string, args: Json): CallTool => ({ kind: 'call_tool', tool, args });

/** Decides from the list, then finishes. */
export function ordered(decisions: readonly Decision[], payload: (run: RunView) => Json) {
  return (run: RunView): Decision =>
    decisions[run.trajectory.count] ?? { kind: 'finish', reason: 'goal', payload: payload(run) };
}

/** What each step came to. */
export function outcomes(run: { readonly trajectory: Pick<RunView['trajectory'], 'steps'> }): Json {
  return run.trajectory.steps.map((step) => step.calls.map(({ outcome }) => said(outcome)));
}

function said(outcome: RunView['trajectory']['steps'][number]['calls'][number]['outcome']): Json {
  if (outcome.kind === 'value') return outcome.value;
  return outcome.kind === 'verdict' ? outcome.verdict : `${outcome.kind}: ${outcome.error.code}`;
}

/** Which steps went well: what a join promises, whoever won it. */
function verdicts(run: RunView): Json {
  return run.trajectory.steps.map((step) => step.error?.code ?? 'ok');
}

/** Does its thing, and then waits until it is stopped. */
export function endless(world: CrashWorld): Tool['execute'] {
  return async (_args, context: ToolContext) => {
    await world.effect(context);
    if (!context.signal.aborted) await once(context.signal, 'abort');
    throw context.signal.reason;
  };
}

const EFFECTS = ['pure', 'read', 'keyed', 'once'] as const;
export const oneOfEach = (world: CrashWorld): Tool[] => EFFECTS.map((effect) => worker(world, effect, { effect }));

const sequential: CrashScenario = {
  name: 'one after another',
  query: 'go',
  tools: oneOfEach,
  planner: ordered(
    [...EFFECTS, ...EFFECTS].map((effect, n) => call(effect, { n })),
    outcomes,
  ),
};

const joined = (join: CallParallel['join'], step: number): CallParallel => ({
  kind: 'call_parallel',
  branches: ['keyed', 'once', 'read'].map((tool, n) => ({ tool, args: { step, n } })),
  ...(join === undefined ? {} : { join }),
});
const joins: CrashScenario = {
  name: 'parallel calls with each join',
  query: 'go',
  tools: oneOfEach,
  planner: ordered(
    [
      joined(undefined, 0),
      joined({ kind: 'first_success' }, 1),
      joined({ kind: 'n', n: 2 }, 2),
      joined({ kind: 'keyed', keys: ['a', 'b', 'c'] }, 3),
    ],
    verdicts,
  ),
};

/** The join is met while another branch is in the middle of an effect. */
const losers: CrashScenario = {
  name: 'a join that stops the others',
  query: 'go',
  tools: (world) => [
    ...oneOfEach(world),
    worker(world, 'endless_keyed', { effect: 'keyed', execute: endless(world) }),
    worker(world, 'endless_once', { effect: 'once', execute: endless(world) }),
  ],
  planner: ordered(
    [
      {
        kind: 'call_parallel',
        branches: [
          { tool: 'endless_keyed', args: { n: 0 } },
          { tool: 'endless_once', args: { n: 1 } },
          { tool: 'read', args: { n: 2 } },
        ],
        join: { kind: 'first_success' },
      },
      call('once', { n: 3 }),
    ],
    verdicts,
  ),
};

const graph: CrashScenario = {
  name: 'a graph of branches',
  query: 'go',
  tools: oneOfEach,
  planner: ordered(
    [
      {
        kind: 'call_parallel',
        branches: [
          { id: 'route', tool: 'read', args: { to: 'left' } },
          { id: 'order', tool: 'keyed', args: { items: [1, 2] } },
          { id: 'pay', tool: 'once', args: { first: { $from: 'order', path: '/items/0' } }, after: ['route'] },
          {
            id: 'left',
            tool: 'keyed',
            args: { side: 'left' },
            when: { branch: 'route', equals: { from: 'read', to: 'left' } },
          },
          { id: 'right', tool: 'once', args: { side: 'right' }, when: { branch: 'route', equals: 'right' } },
          { id: 'last', tool: 'once', args: { all: { $from: 'left' } }, after: ['pay'] },
        ],
      },
    ],
    outcomes,
  ),
};

const failsTwice =
  (world: CrashWorld): Tool['execute'] =>
  async (_args, context) => {
    await world.effect(context);
    if (context.attempt < 3) throw new ToolFailure('not yet', { retryable: true });
    return 'at last';
  };
const retries: CrashScenario = {
  name: 'retries',
  query: 'go',
  tools: (world) => [
    worker(world, 'flaky_read', { effect: 'read', execute: failsTwice(world) }),
    worker(world, 'flaky_keyed', { effect: 'keyed', execute: failsTwice(world) }),
    worker(world, 'failing_once', { effect: 'once', execute: failsTwice(world) }),
  ],
  planner: ordered([call('flaky_read', {}), call('flaky_keyed', {}), call('failing_once', {})], outcomes),
};

const heavyText =
  (world: CrashWorld): Tool['execute'] =>
  async (_args, context) => {
    await world.effect(context);
    return { text: 'x'.repeat(40_000), size: 40_000 };
  };
const heavy: CrashScenario = {
  name: 'heavy results',
  query: 'go',
  tools: (world) => [
    worker(world, 'heavy_keyed', { effect: 'keyed', execute: heavyText(world) }),
    worker(world, 'heavy_once', { execute: heavyText(world) }),
    ...oneOfEach(world),
  ],
  planner: ordered(
    [
      call('heavy_once', {}),
      {
        kind: 'call_parallel',
        branches: [
          { id: 'big', tool: 'heavy_keyed', args: {} },
          { tool: 'once', args: { size: { $from: 'big', path: '/size' } } },
        ],
      },
    ],
    outcomes,
  ),
};

const pauses: CrashScenario = {
  name: 'pauses',
  query: 'go',
  tools: oneOfEach,
  planner: ordered(
    [
      call('once', { n: 0 }),
      { kind: 'request_pause', reason: 'approval_required', payload: { what: 'the order' } },
      call('keyed', { n: 1 }),
      { kind: 'request_pause', reason: 'await_input' },
      call('once', { n: 2 }),
    ],
    outcomes,
  ),
  answer: (run, { token, reason }) =>
    reason === 'approval_required' ? run.approve(token) : run.resume({ token, payload: { reason: 'no' } }),
};

const stop = (entry: Entry, when: boolean): Control | undefined =>
  when ? { id: `stop_${entry.kind}`, type: 'CANCEL' } : undefined;
const cancel: CrashScenario = {
  name: 'a cancel in the middle of a call',
  query: 'go',
  tools: (world) => [
    ...oneOfEach(world),
    worker(world, 'endless_once', { execute: endless(world) }),
    worker(world, 'endless_keyed', { effect: 'keyed', execute: endless(world) }),
  ],
  planner: ordered(
    [
      call('once', { n: 0 }),
      {
        kind: 'call_parallel',
        branches: [
          { tool: 'endless_once', args: {} },
          { tool: 'endless_keyed', args: {} },
        ],
      },
    ],
    outcomes,
  ),
  controls: (entry) => stop(entry, entry.kind === 'call_began' && entry.step === 1),
};

const steered: CrashScenario = {
  name: 'controls while paused',
  query: 'go',
  tools: oneOfEach,
  planner: (run) =>
    ordered(
      [call('once', { n: 0 }), { kind: 'request_pause', reason: 'await_input' }, call('keyed', { goal: run.goal })],
      outcomes,
    )(run),
  controls: (entry) =>
    entry.kind === 'moved' && entry.step === 1
      ? { id: 'goal', type: 'REDIRECT', payload: { goal: 'elsewhere' } }
      : undefined,
  check: (state) => (state.goal === 'elsewhere' ? [] : ['The redirect was lost.']),
};

const stepBudget: CrashScenario = {
  name: 'a budget of steps that is raised',
  query: 'go',
  limits: { steps: 2, onCeiling: 'pause' },
  tools: oneOfEach,
  planner: ordered([call('once', { n: 0 }), call('keyed', { n: 1 }), call('once', { n: 2 })], outcomes),
  answer: (run, { token }) => run.resume({ token, limits: { steps: 10 } }),
};

const costBudget: CrashScenario = {
  name: 'a budget of money that is used up',
  query: 'go',
  limits: { costUsd: 0.000025 },
  tools: (world) => EFFECTS.map((effect) => worker(world, effect, { effect, costUsd: 0.00001 })),
  planner: ordered([call('once', { n: 0 }), call('keyed', { n: 1 }), call('read', { n: 2 })], outcomes),
  check: (state) => (state.totals.costMicroUsd <= 25 ? [] : [`The run cost ${state.totals.costMicroUsd}.`]),
};

const reconciled: CrashScenario = {
  name: 'once tools that are asked what happened',
  query: 'go',
  tools: (world) => [
    worker(world, 'knows', {
      reconcile: (args, context) =>
        world.count(context) > 0
          ? { status: 'done', value: { from: 'knows', ...(args as object) } }
          : { status: 'not_done' },
    }),
    worker(world, 'knows_not', { reconcile: () => ({ status: 'unknown' }) }),
    worker(world, 'fails', {
      reconcile: () => {
        throw new Error('the other side is down');
      },
    }),
  ],
  planner: ordered([call('knows', { n: 0 }), call('knows_not', { n: 1 }), call('fails', { n: 2 })], outcomes),
  check: (state) =>
    state.steps[0]?.calls[0]?.outcome.kind === 'value' ? [] : ['A tool that knows what happened was not believed.'],
};

const refusal = { code: 'tool_invalid_args', message: 'The arguments are no JSON.' };
const slips: readonly Move[] = [
  { decision: { kind: 'finish', reason: 'no_path' }, fault: { code: 'empty_reply', message: 'Nothing was said.' } },
  { decision: { ...call('once', { n: 1 }), refusal } },
  { decision: call('tool_search', { query: 'later' }) },
  {
    decision: {
      kind: 'call_parallel',
      onInvalid: 'per_branch',
      branches: [
        { tool: 'once', args: { n: 3 } },
        { tool: '_finish', args: {}, refusal },
        { tool: 'later', args: { n: 4 } },
      ],
    },
    remarks: [{ type: 'planner.action_extra_field_dropped', field: 'thought' }],
  },
  { decision: call('once', { n: 5 }) },
  { decision: call('later', { n: 6 }) },
];
const summary = { goals: [], facts: [], pending: [], lastOutputDigest: '', note: 'three steps' };
const slipping: CrashScenario = {
  name: 'what a model gets wrong, and a history that is shortened',
  query: 'go',
  tools: (world) => [...oneOfEach(world), worker(world, 'later', { effect: 'keyed', loading: 'deferred' })],
  planner: {
    name: 'slipping',
    next: (run) => {
      const { count, compaction = null } = run.trajectory;
      const made = { outcomes: outcomes(run), note: compaction?.summary.note ?? '', tools: run.tools.list().length };
      return slips[count] ?? { kind: 'finish', reason: 'goal', payload: made };
    },
    compact: async ({ trajectory: { count } }) => {
      if (count === 4) return { compaction: { summary, before: 3, tokenEstimate: 900 }, usage: { inputTokens: 9 } };
      if (count === 5) return { failure: { code: 'empty_summary', message: 'no' }, tokenEstimate: 900 };
      return undefined;
    },
  },
  check: ({ found, rejections, steps, totals }, entries) => {
    const shortened = entries.filter(({ kind }) => kind === 'compacted' || kind === 'compaction_failed');
    return [
      ...(found.join() === 'later' ? [] : [`The run has found ${found.join(', ') || 'nothing'}.`]),
      ...(shortened.length === 2 ? [] : [`The history was shortened, or tried to be, ${shortened.length} times.`]),
      ...(totals.inputTokens === 9 ? [] : [`The run used ${totals.inputTokens} tokens.`]),
      ...(steps[0]?.error?.code === 'empty_reply' && rejections === 0 ? [] : ['The fault was lost.']),
    ];
  },
};

export const scenarios: readonly CrashScenario[] = [
  sequential,
  joins,
  losers,
  graph,
  retries,
  heavy,
  pauses,
  cancel,
  steered,
  stepBudget,
  costBudget,
  reconciled,
  slipping,
];
