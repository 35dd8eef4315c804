/** Agents that fail, are cancelled, or run out of time, and undo what they have done. */
import type { Control, Tool } from '#pilotage';
import type { Decision, RunView } from '#pilotage/planner';
import type { RunState } from '#pilotage/state';
import { callsToUndo } from '#state';
import type { CrashScenario, CrashWorld } from '#testing';
import { agent, agentTool } from '#tools';
import { call, endless, ordered, outcomes, worker } from './scenarios.ts';

const UNDOES: Partial<Tool> = { undo: (args) => ({ tool: 'cancel', args }) };

/** `book` and `pay` can be undone, `mail` cannot. The first is keyed, the second is made once. */
function shop(world: CrashWorld, more: Partial<Tool> = {}): Tool[] {
  return [
    worker(world, 'book', { effect: 'keyed', ...UNDOES }),
    worker(world, 'pay', { effect: 'once', ...UNDOES }),
    worker(world, 'mail', { effect: 'once' }),
    worker(world, 'cancel', { effect: 'once', ...more }),
    worker(world, 'fail', { effect: 'pure', execute: () => Promise.reject(new Error('no')) }),
    worker(world, 'hold', { effect: 'keyed', execute: endless(world) }),
  ];
}

/** Decides from the list, and sees no way then. */
function inVain(decisions: readonly Decision[]) {
  return ({ trajectory: { count } }: RunView): Decision =>
    decisions[count] ?? { kind: 'finish', reason: 'no_path', payload: count };
}

/** What has a value was undone, once; the end says so. */
function undone(state: RunState, reason: string): string[] {
  const left = callsToUndo(state).filter(({ tool }) => tool === 'book' || tool === 'pay');
  const undoing = state.steps.filter(({ undoes }) => undoes !== undefined);
  const places = new Set(undoing.map(({ undoes }) => JSON.stringify(undoes)));
  const failed = undoing.filter(({ calls }) => calls[0]?.outcome.kind !== 'value');
  const end = state.ending?.kind === 'finished' ? state.ending.reason : state.ending?.error.code;
  return [
    ...left.map(({ tool, step }) => `The call of ${tool} in step ${step} was not undone.`),
    ...(places.size === undoing.length ? [] : ['A call was undone twice.']),
    ...failed.map(({ index }) => `Step ${index} undid nothing.`),
    ...(end === reason ? [] : [`The run ended with ${end}.`]),
  ];
}

const STEPS = [
  call('book', { n: 0 }),
  call('mail', { n: 1 }),
  {
    kind: 'call_parallel',
    branches: ['book', 'pay', 'mail'].map((tool, n) => ({ tool, args: { n: 2 + n } })),
  },
  call('pay', { n: 5 }),
] as const satisfies readonly Decision[];

const failure: CrashScenario = {
  name: 'undo after a failure',
  query: 'go',
  tools: shop,
  options: { onFail: 'undo' },
  planner: inVain(STEPS),
  check: (state) => undone(state, 'no_path'),
};

const broken: CrashScenario = {
  name: 'undo after an exception of the planner',
  query: 'go',
  tools: shop,
  options: { onFail: 'undo' },
  planner: ({ trajectory: { count } }) => {
    const decision = STEPS[count];
    if (decision === undefined) throw new Error('broken');
    return decision;
  },
  check: (state) => undone(state, 'planner_failed'),
};

const stop: Control = { id: 'stop', type: 'CANCEL' };

const cancel: CrashScenario = {
  name: 'undo after a cancel',
  query: 'go',
  tools: shop,
  options: { onFail: 'undo' },
  planner: inVain([...STEPS, call('hold', {})]),
  controls: (entry) => (entry.kind === 'moved' && entry.step === STEPS.length ? stop : undefined),
  check: (state) => undone(state, 'cancelled'),
};

const deadline: CrashScenario = {
  name: 'undo after a deadline',
  query: 'go',
  tools: shop,
  options: { onFail: 'undo' },
  // Where the clock of the scenarios begins, and time enough for all but the last call.
  limits: { deadlineAt: Date.UTC(2026, 0, 1) + 800 },
  planner: inVain([...STEPS, call('hold', {})]),
  check: (state) => undone(state, 'deadline_exceeded'),
};

const approved: CrashScenario = {
  name: 'an undo that needs an approval',
  query: 'go',
  tools: (world) => shop(world, { needsApproval: true }),
  options: { onFail: 'undo' },
  planner: inVain([call('book', { n: 0 }), call('pay', { n: 1 })]),
  answer: (run, { token }) => run.approve(token),
  check: (state) => undone(state, 'no_path'),
};

const plan: CrashScenario = {
  name: 'undo of a plan',
  query: 'go',
  tools: shop,
  options: { onFail: 'undo' },
  planner: inVain([
    {
      kind: 'call_parallel',
      plan: 'p',
      branches: [
        { id: 'a', tool: 'book', args: { n: 0 } },
        { id: 'b', tool: 'pay', args: { n: { $from: 'a', path: '/n' }, second: true }, after: ['a'] },
        { id: 'c', tool: 'fail', args: {}, after: ['b'] },
      ],
    },
  ]),
  check: (state) => undone(state, 'no_path'),
};

/** The task of a call has reached its goal; the run above it has not. */
const taskOf = (name: string, more: Partial<Tool>): CrashScenario => ({
  name,
  query: 'go',
  tools: (world) => [
    ...shop(world, more),
    agentTool(
      agent({
        name: 'trip',
        planner: ordered([call('book', { n: 1 }), call('pay', { n: 2 })], outcomes),
        tools: shop(world, more),
      }),
      {
        description: 'Books a trip.',
      },
    ),
  ],
  options: { onFail: 'undo' },
  planner: inVain([call('book', { n: 0 }), call('trip', { input: 'go' })]),
  check: (state, _, tree) => [
    ...undone(state, 'no_path'),
    ...tree.flatMap((run) => (run === state ? [] : undone(run, 'cancelled'))),
  ],
});

const task = taskOf('undo of a task', {});
const approvedTask: CrashScenario = {
  ...taskOf('undo of a task that needs approvals', { needsApproval: true }),
  answer: (run, { token }) => run.approve(token),
};

export const undoScenarios: readonly CrashScenario[] = [
  failure,
  broken,
  cancel,
  deadline,
  approved,
  plan,
  task,
  approvedTask,
];
