/** Agents that wait for people and for other runs, to be cut in two by a crash. */
import { memoryJournal } from '#journal';
import type { Clock, Json } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Branch, CallParallel, Decision, PlannerFunction, RunView, SpawnSpec, SpawnTask } from '#pilotage/planner';
import type { RunState } from '#pilotage/state';
import type { CrashScenario } from '#testing';
import { type AgentTool, type AnyTool, LoginRequired } from '#tools';
import { call, endless, oneOfEach, ordered, outcomes, worker } from './scenarios.ts';

const parallel = (...branches: readonly Branch[]): CallParallel => ({ kind: 'call_parallel', branches });
const branch = (tool: string, args: Json): Branch => ({ tool, args });

/** The planner of a run and of its tasks: each query has its own. */
const byQuery =
  (planners: Readonly<Record<string, PlannerFunction>>): PlannerFunction =>
  (run, signal) =>
    planners[run.query]?.(run, signal) ?? { kind: 'finish', reason: 'no_path' };

const spawn = (task: SpawnTask['task'], query: string, more: Partial<SpawnSpec> = {}, groupId?: string): SpawnTask => ({
  kind: 'spawn_task',
  task,
  spec: { description: query, query, ...more },
  ...(groupId === undefined ? {} : { groupId }),
});

const spawnBranch = (query: string, groupId: string, spec: { readonly [name: string]: Json } = {}): Branch =>
  branch('_spawn_task', { kind: 'background', group_id: groupId, spec: { description: query, query, ...spec } });

/** Something that outlives the processes of one play, and is not there in the next. */
function perPlay<T>(make: () => T): { readonly journal: (clock: Clock, store: string) => Journal; now(): T } {
  const plays = new Map<string, { readonly journal: Journal; readonly kept: T }>();
  let current: T | undefined;
  return {
    journal: (clock, store) => {
      const play = plays.get(store) ?? { journal: memoryJournal({ clock }), kept: make() };
      plays.set(store, play);
      current = play.kept;
      return new Proxy(play.journal, {
        get: (journal, name) => {
          if (name === 'close') return async () => {};
          const member: unknown = Reflect.get(journal, name);
          return typeof member === 'function' ? member.bind(journal) : member;
        },
      });
    },
    now: () => {
      if (current === undefined) throw new Error('Nothing is played.');
      return current;
    },
  };
}

function taskOf(tree: readonly RunState[], path: string): RunState | undefined {
  return tree.find(({ identity }) => identity.run.endsWith(`.${path}`));
}

function endOf(state: RunState | undefined): string {
  if (state?.ending?.kind === 'finished') return state.ending.reason;
  return state?.ending?.error.code ?? 'missing';
}

/** A sentence for each task, named by its path, that did not end so. */
function otherEnds(tree: readonly RunState[], ends: Readonly<Record<string, string>>): string[] {
  return Object.entries(ends).flatMap(([path, end]) => {
    const found = endOf(taskOf(tree, path));
    return found === end ? [] : [`The task ${path} ended with ${found}, not ${end}.`];
  });
}

const approvals: CrashScenario = {
  name: 'approvals beside other calls, some with edited arguments, one refused',
  query: 'go',
  tools: (world) => [
    ...oneOfEach(world),
    worker(world, 'pay', { needsApproval: true }),
    worker(world, 'book', { effect: 'keyed', needsApproval: { when: (args) => (args as { n: number }).n < 9 } }),
  ],
  planner: ordered(
    [
      parallel(branch('pay', { n: 0 }), branch('once', { n: 1 }), branch('pay', { n: 2 }), branch('book', { n: 3 })),
      parallel(branch('read', { n: 4 }), branch('pay', { refuse: true }), branch('book', { n: 9 })),
      call('pay', { n: 6 }),
    ],
    outcomes,
  ),
  answer: (run, { token, payload }) => {
    const args = payload?.['args'] as { n?: number; refuse?: boolean };
    if (args.refuse === true) return run.reject(token, { reason: 'not this one' });
    return run.approve(token, args.n === 2 ? { args: { n: 2, amount: 5 } } : {});
  },
  check: ({ steps }, entries) => {
    const [, , edited] = steps[0]?.calls ?? [];
    const asked = entries.filter((entry) => entry.kind === 'paused' && entry.reason === 'approval_required').length;
    const value = edited?.outcome.kind === 'value' ? JSON.stringify(edited.outcome.value) : undefined;
    return [
      ...(asked === 5 ? [] : [`Somebody was asked ${asked} times.`]),
      // What a call came to that somebody says has happened is for them to say.
      ...(value === undefined || value === 'null' || value === '{"from":"pay","n":2,"amount":5}'
        ? []
        : [`The edited call gave ${value}.`]),
      ...(JSON.stringify(steps[1]?.calls[1]).includes('tool_rejected') ? [] : ['The refused call was not refused.']),
    ];
  },
};

const account = perPlay(() => new Set<string>());
const logins: CrashScenario = {
  name: 'logins, in the middle of a batch and alone',
  query: 'go',
  journal: account.journal,
  tools: (world) => {
    const loggedIn = account.now();
    const behindLogin = (name: string, effect: 'keyed' | 'once') =>
      worker(world, name, {
        effect,
        execute: async (args, context) => {
          if (!loggedIn.has(name)) throw new LoginRequired(`https://login.example/${name}`);
          await world.effect(context);
          return { from: name, ...(args as object) };
        },
      });
    return [...oneOfEach(world), behindLogin('mail', 'keyed'), behindLogin('transfer', 'once')];
  },
  planner: ordered(
    [
      parallel(branch('once', { n: 0 }), branch('mail', { n: 1 }), branch('keyed', { n: 2 })),
      call('transfer', { n: 3 }),
      call('mail', { n: 4 }),
    ],
    outcomes,
  ),
  answer: (run, { token, payload }) => {
    account.now().add(String(payload?.['tool']));
    return run.resume({ token });
  },
  check: ({ steps }) => {
    const mail = steps[0]?.calls[1]?.outcome.kind;
    return mail === 'value' ? [] : [`The call that waited for a login came to ${mail}.`];
  },
};

const retained: CrashScenario = {
  name: 'a task whose result the run waits for',
  query: 'root',
  tools: oneOfEach,
  planner: byQuery({
    root: ordered([call('once', { n: 0 }), spawn('foreground', 'child'), call('once', { n: 1 })], outcomes),
    child: ordered([call('once', { n: 2 }), parallel(branch('keyed', { n: 3 }), branch('once', { n: 4 }))], outcomes),
  }),
  check: (_, __, tree) => otherEnds(tree, { '1.0': 'goal' }),
};

const pausedChild: CrashScenario = {
  name: 'a task that asks somebody, twice',
  query: 'root',
  tools: (world) => [...oneOfEach(world), worker(world, 'pay', { needsApproval: true })],
  planner: byQuery({
    root: ordered([spawn('foreground', 'child'), call('keyed', { n: 0 })], outcomes),
    child: ordered(
      [
        call('once', { n: 1 }),
        { kind: 'request_pause', reason: 'await_input' },
        parallel(branch('pay', { n: 2 }), branch('once', { n: 3 })),
      ],
      outcomes,
    ),
  }),
  answer: (run, { token, call: waiting }) =>
    waiting === undefined ? run.resume({ token, payload: { message: 'yes' } }) : run.approve(token),
  check: (state, _, tree) => [
    ...otherEnds(tree, { '0.0': 'goal' }),
    ...(state.pauses.length === 0 && state.tasks.every(({ pauses }) => pauses.length === 0)
      ? []
      : ['A pause is left.']),
  ],
};

const group: CrashScenario = {
  name: 'a group of tasks in the background that is awaited',
  query: 'root',
  tools: oneOfEach,
  planner: byQuery({
    root: ordered(
      [
        parallel(spawnBranch('left', 'g'), branch('once', { n: 0 }), spawnBranch('right', 'g')),
        call('keyed', { n: 1 }),
        { kind: 'await_task', taskId: 'crash.0.0', groupId: 'g' },
      ],
      outcomes,
    ),
    left: ordered([call('once', { n: 2 }), call('keyed', { n: 3 })], outcomes),
    right: ordered([call('once', { n: 4 })], outcomes),
  }),
  check: ({ background, groups }, _, tree) => [
    ...otherEnds(tree, { '0.0': 'goal', '0.2': 'goal' }),
    ...(groups[0]?.end?.status === 'completed' ? [] : ['The group did not complete.']),
    ...(background.length <= 1 ? [] : [`The group came ${background.length} times by itself.`]),
  ],
};

/** Pauses until the results of its tasks wake it. */
const wakened = (run: RunView): Decision => {
  const { count, background } = run.trajectory;
  if (count === 0) return parallel(spawnBranch('left', 'g'), spawnBranch('right', 'g', { seal: true }));
  const [result] = background;
  if (result === undefined) return { kind: 'request_pause', reason: 'external_event' };
  const members = result.group.members.map(({ id, end }) => ({ id, result: end?.result ?? null }));
  return {
    kind: 'finish',
    reason: 'goal',
    payload: { status: result.group.status, members, times: background.length },
  };
};
const wake: CrashScenario = {
  name: 'a run that is woken by the results of its tasks',
  query: 'root',
  tools: oneOfEach,
  planner: byQuery({
    root: wakened,
    left: ordered([call('once', { n: 0 })], outcomes),
    right: ordered([call('keyed', { n: 1 }), { kind: 'request_pause', reason: 'await_input' }], outcomes),
  }),
  answer: (run, { token, reason }) => (reason === 'external_event' ? undefined : run.resume({ token })),
  check: ({ background }, entries, tree) => [
    ...otherEnds(tree, { '0.0': 'goal', '0.1': 'goal' }),
    ...(background.length === 1 ? [] : [`The group came ${background.length} times.`]),
    ...(entries.filter(({ kind }) => kind === 'resumed').length <= 1 ? [] : ['The run was woken twice.']),
  ],
};

/** What each step came to, without what may be under way yet. */
const statuses = (run: RunView): Json =>
  run.trajectory.steps.map(({ calls }) =>
    calls.map(({ outcome }) => {
      if (outcome.kind !== 'value') return outcome.kind;
      const { status, reason } = outcome.value as { status?: string; reason?: string };
      return `${status} ${reason}`;
    }),
  );

/** Never comes to an end by itself, whatever became of its calls. */
const endlessly =
  (tool: string): PlannerFunction =>
  (run) =>
    call(tool, { n: 100 + run.trajectory.count });

const failFast: CrashScenario = {
  name: 'a group that one failure cancels',
  query: 'root',
  tools: (world) => [
    ...oneOfEach(world),
    worker(world, 'endless_once', { execute: endless(world) }),
    worker(world, 'endless_keyed', { effect: 'keyed', execute: endless(world) }),
  ],
  planner: byQuery({
    root: ordered(
      [
        parallel(spawnBranch('slow', 'g', { fail_fast: true }), spawnBranch('slower', 'g'), spawnBranch('fails', 'g')),
        { kind: 'await_task', taskId: 'crash.0.0', groupId: 'g' },
        call('once', { n: 0 }),
      ],
      statuses,
    ),
    slow: endlessly('endless_once'),
    slower: endlessly('endless_keyed'),
    fails: ordered([call('keyed', { n: 3 }), { kind: 'finish', reason: 'no_path' }], outcomes),
  }),
  check: ({ groups }, _, tree) => [
    ...otherEnds(tree, { '0.0': 'cancelled', '0.1': 'cancelled', '0.2': 'no_path' }),
    ...(groups[0]?.end?.reason === 'fail-fast:no_path' ? [] : [`The group ended with ${groups[0]?.end?.reason}.`]),
  ],
};

const quorum: CrashScenario = {
  name: 'a group of which one result is enough, in a budget',
  query: 'root',
  limits: { steps: 12, costUsd: 0.0002 },
  tools: (world) => [
    worker(world, 'once', { effect: 'once', costUsd: 0.00001 }),
    worker(world, 'endless_keyed', { effect: 'keyed', costUsd: 0.00001, execute: endless(world) }),
  ],
  planner: byQuery({
    root: ordered(
      [
        parallel(
          spawnBranch('slow', 'g', { quorum: 1, limits: { steps: 3 } }),
          spawnBranch('quick', 'g', { limits: { steps: 3 } }),
        ),
        { kind: 'await_task', taskId: 'crash.0.0', groupId: 'g' },
        call('once', { n: 0 }),
      ],
      statuses,
    ),
    slow: endlessly('endless_keyed'),
    quick: ordered([call('once', { n: 2 })], outcomes),
  }),
  check: ({ groups, totals }, _, tree) => [
    ...otherEnds(tree, { '0.0': 'cancelled', '0.1': 'goal' }),
    ...(groups[0]?.end?.reason === 'quorum' ? [] : [`The group ended with ${groups[0]?.end?.reason}.`]),
    ...(totals.costMicroUsd <= 200 && totals.steps + totals.taskSteps <= 12 ? [] : ['More was used than there was.']),
  ],
};

const cancelledTree: CrashScenario = {
  name: 'a cancel in the middle of a tree',
  query: 'root',
  tools: (world) => [...oneOfEach(world), worker(world, 'endless_once', { execute: endless(world) })],
  planner: byQuery({
    root: ordered(
      [spawn('background', 'apart', { onCancel: 'isolate' }), spawn('foreground', 'child'), call('once', { n: 0 })],
      outcomes,
    ),
    child: ordered([call('keyed', { n: 1 }), spawn('foreground', 'grandchild'), call('once', { n: 2 })], outcomes),
    grandchild: endlessly('endless_once'),
    apart: ordered([call('keyed', { n: 5 }), call('once', { n: 6 })], outcomes),
  }),
  controls: ({ kind }, task) =>
    kind === 'call_began' && task === '1.0.1.0'
      ? { id: 'stop', type: 'CANCEL', payload: { reason: 'enough' } }
      : undefined,
  check: (state, _, tree) => [
    ...otherEnds(tree, { '0.0': 'goal', '1.0': 'cancelled', '1.0.1.0': 'cancelled' }),
    ...(endOf(state) === 'cancelled' ? [] : [`The run ended with ${endOf(state)}.`]),
    ...(tree.some(({ steps }) => steps.some(({ index, decision }) => index === 2 && decision.kind === 'call_tool'))
      ? ['Somebody went on after the cancel.']
      : []),
  ],
};

const deployed = perPlay(() => ({ processes: 0 }));
const changedCode: CrashScenario = {
  name: 'a run that each process goes on with in another version',
  query: 'root',
  journal: deployed.journal,
  options: { migrate: () => ({}) },
  tools: (world) => {
    const { processes } = deployed.now();
    return [
      worker(world, 'once', { inputSchema: { type: 'object', title: `of ${processes}` } }),
      worker(world, 'keyed', { effect: 'keyed' }),
    ];
  },
  planner: {
    name: 'changing',
    get version() {
      deployed.now().processes += 1;
      return `version ${deployed.now().processes}`;
    },
    next: byQuery({
      root: ordered(
        [call('once', { n: 0 }), { kind: 'request_pause', reason: 'await_input' }, spawn('foreground', 'child')],
        outcomes,
      ),
      child: ordered([call('once', { n: 1 }), call('keyed', { n: 2 })], outcomes),
    }),
  },
  check: (_, __, tree) => otherEnds(tree, { '2.0': 'goal' }),
};

/** A tool whose calls are carried out by a planner with tools of its own. */
function carried(name: string, next: PlannerFunction, tools: readonly AnyTool[], more: Partial<AgentTool> = {}) {
  const agent = { name: `by ${name}`, planner: { name: `by ${name}`, next }, tools };
  return { name, description: name, inputSchema: { type: 'object' }, ...more, agent } satisfies AnyTool;
}

const called: CrashScenario = {
  name: 'calls that tasks carry out, alone and beside others, with an approval inside',
  query: 'root',
  tools: (world) => {
    const pay = worker(world, 'pay', { needsApproval: true });
    const inner = carried('inner', ordered([call('pay', { n: 5 })], outcomes), [pay]);
    const outer = carried(
      'outer',
      ordered([call('keyed', { n: 3 }), call('inner', { n: 4 }), call('once', { n: 6 })], outcomes),
      [...oneOfEach(world), inner],
    );
    return [...oneOfEach(world), outer, carried('fails', () => ({ kind: 'finish', reason: 'no_path' }), [])];
  },
  planner: ordered(
    [
      call('once', { n: 0 }),
      call('outer', { n: 1 }),
      parallel(branch('outer', { n: 2 }), branch('once', { n: 7 }), branch('fails', {})),
    ],
    outcomes,
  ),
  answer: (run, { token }) => run.approve(token),
  check: (state, entries, tree) => [
    ...otherEnds(tree, { '1.0': 'goal', '1.0.1.0': 'goal', '2.0': 'goal', '2.0.1.0': 'goal', '2.2': 'no_path' }),
    ...(entries.filter(({ kind }) => kind === 'spawned').length === 3 ? [] : ['A call was started anew.']),
    ...(state.groups.length === 0 && state.background.length === 0 ? [] : ['A call came as a result by itself.']),
  ],
};

const calledForNothing: CrashScenario = {
  name: 'a call that a task carries out, and that a join does not need any more',
  query: 'root',
  tools: (world) => {
    const slow = worker(world, 'slow', { effect: 'keyed', execute: endless(world) });
    return [...oneOfEach(world), carried('endless', endlessly('slow'), [slow])];
  },
  planner: ordered(
    [
      { ...parallel(branch('endless', {}), branch('keyed', { n: 0 })), join: { kind: 'first_success' } },
      call('once', { n: 1 }),
    ],
    statuses,
  ),
  check: ({ totals }, _, tree) => [
    ...(['cancelled', 'missing'].includes(endOf(taskOf(tree, '0.0'))) ? [] : ['The call that was given up went on.']),
    ...(totals.calls >= 2 ? [] : [`${totals.calls} calls were counted.`]),
  ],
};

export const taskScenarios: readonly CrashScenario[] = [
  approvals,
  logins,
  retained,
  pausedChild,
  group,
  wake,
  failFast,
  quorum,
  cancelledTree,
  changedCode,
  called,
  calledForNothing,
];
