/** What comes to a run from outside: messages while it goes, being called off, and the results of its tasks. */
import assert from 'node:assert/strict';
import {
  AWAIT_TOOL,
  type CallTool,
  type Control,
  type Decision,
  type Finish,
  type Json,
  local,
  type Planner,
  type RunView,
  resolveWakeMode,
  SPAWN_TOOL,
  taskCallsOf,
} from '#core';
import type { Journal } from '#journal';
import type { Run } from '#runtime';
import type { RunState } from '#state';
import { type Tool, tool } from '#tools';
import { type ScriptedReply, type ScriptedRequest, scriptedModel } from '../models.ts';
import { runView } from '../run-view.ts';
import {
  ANSWER,
  type AskedMove,
  assertAsked,
  callNext,
  calls,
  caseFailure,
  checkedMove,
  decidedMove,
  inRuntime,
  LOOK_UP,
  ordinary,
  type PlannerBench,
  type PlannerCase,
  requestText,
  shownError,
  until,
  untilEnded,
  type WatchedPlanner,
  WORK,
  watched,
  within,
} from './kit.ts';
import { TOOLS } from './views.ts';

const MESSAGE = 'Mind the gap, please.';
const GOAL = 'Find the last train home';

async function runSteeringDrain(bench: PlannerBench): Promise<void> {
  await drainMessages(bench);
  await cancelBetweenSteps(bench);
  await cancelBeforeNext(bench);
  await cancelWhileThinking(bench);
}

const FIRST: CallTool = { kind: 'call_tool', tool: LOOK_UP, args: { about: 'trains' }, callId: 'kit_0' };

/** The kit makes the first move, so that a call is in flight for every planner; then the planner is asked. */
function afterFirst(planner: Planner): WatchedPlanner {
  return watched(planner, ({ trajectory }) => (trajectory.count === 0 ? FIRST : undefined));
}

/** The tool: what it does the first time is given; it then gives a value. */
function steered(atFirst: (run: string) => Promise<void>): Tool {
  let isFirst = true;
  return tool({
    name: LOOK_UP,
    description: 'Looks something up.',
    effect: 'read',
    inputSchema: { type: 'object' },
    async execute(_args, { identity }) {
      if (isFirst) {
        isFirst = false;
        await atFirst(identity.run);
      }
      return 'looked up: trains';
    },
  });
}

/** Sends a control while a call is in flight, and waits until it is the run's `count`th. It is applied later. */
async function send(run: Run, journal: Journal, sending: Promise<void>, count: number): Promise<void> {
  sending.catch(() => {});
  const stored = async (): Promise<true | undefined> => {
    const taken = (await journal.read(run.id)).filter(({ kind }) => kind === 'control');
    return taken.length + (await journal.inbox(run.id)).length >= count || undefined;
  };
  await until(journal, run.id, stored, 'a control was not stored');
}

async function drainMessages(bench: PlannerBench): Promise<void> {
  const requests: ScriptedRequest[] = [];
  const model = scriptedModel((request) => {
    requests.push(request);
    return requests.length === 1 ? calls(LOOK_UP, { about: 'trains' }) : ordinary(request);
  });
  const made = await bench.make(model);
  const { planner, asked, check } = afterFirst(made.planner);
  const state = await playWith(planner, async (run, journal) => {
    await send(run, journal, run.steer('USER_MESSAGE', { message: MESSAGE }), 1);
    await send(run, journal, run.steer('REDIRECT', { goal: GOAL }), 2);
  });
  check();
  assertAsked(bench, made);
  assert.ok(asked.length > 0, 'the planner was not asked after the messages had come');
  const seen = asked.flatMap(({ view }) => view.controls.map(({ type }) => type));
  assert.deepEqual(seen, ['USER_MESSAGE', 'REDIRECT'], 'each message is to be in one view');
  assert.equal(asked[0]?.view.goal, GOAL, 'the goal is not the new one');
  assert.notEqual(state.ending?.kind, 'failed', 'the run failed after messages had come');
  for (const [index, request] of requests.entries()) assertTold(request, index);
}

/** A model is told of a message once, and goes on knowing it. */
function assertTold(request: ScriptedRequest, index: number): void {
  const said = requestText(request);
  assert.equal(said.split(MESSAGE).length - 1, 1, `request ${index} does not have the user's message exactly once`);
  assert.ok(said.includes(GOAL), `request ${index} does not have the new goal`);
}

async function playWith(planner: Planner, atFirst: (run: Run, journal: Journal) => Promise<void>): Promise<RunState> {
  let world: { run: (id: string) => Run; journal: Journal } | undefined;
  const gate = steered(async (id) => {
    if (world !== undefined) await atFirst(world.run(id), world.journal);
  });
  return inRuntime(planner, [gate], async ({ runtime, journal }) => {
    world = { run: (id) => runtime.run(id), journal };
    const { id } = await runtime.start('When does a train go?', { identity: local('kit') });
    const settled = (now: RunState): RunState | undefined =>
      now.ending !== null || now.pauses.length > 0 ? now : undefined;
    return until(journal, id, settled, 'the run did not settle');
  });
}

async function cancelBetweenSteps(bench: PlannerBench): Promise<void> {
  const { planner: own, model } = await bench.make();
  const { planner, asked } = afterFirst(own);
  const { ending } = await playWith(planner, (run, journal) => send(run, journal, run.cancel({ hard: false }), 1));
  assert.equal(ending?.kind === 'finished' && ending.reason, 'cancelled', 'a cancelled run came to something else');
  assert.equal(asked.length + model.calls.length, 0, 'the planner was asked after the run had been cancelled');
}

async function cancelBeforeNext(bench: PlannerBench): Promise<void> {
  const control: Control = { id: 'cancel', type: 'CANCEL' };
  const view = runView({ query: 'When does a train go?', tools: TOOLS, controls: [control] });
  // The loop ends such a run by itself, so what is decided here matters only as far as it is sound.
  await decidedMove((await bench.make()).planner, view, 'a view with a CANCEL');
  const { planner, model } = await bench.make();
  const reason = new Error('called off');
  await assertStops(callNext(planner, view, AbortSignal.abort(reason)), reason, 'asked with an aborted signal');
  assert.equal(model.calls.length, 0, 'asked with an aborted signal: the planner asked its model');
}

/** Only a model takes long enough to be interrupted. */
async function cancelWhileThinking(bench: PlannerBench): Promise<void> {
  if (!bench.capabilities.modelDriven) return;
  const abort = new AbortController();
  const reason = new Error('called off');
  const model = scriptedModel(() => {
    queueMicrotask(() => abort.abort(reason));
    return { stall: true };
  });
  const { planner } = await bench.make(model);
  const view = runView({ query: 'When does a train go?', tools: TOOLS });
  const thinking = within(
    callNext(planner, view, abort.signal),
    'the planner did not stop when its signal was aborted',
  );
  await assertStops(thinking, reason, 'aborted while its model was thinking');
}

async function assertStops(answer: Promise<unknown>, reason: Error, when: string): Promise<void> {
  let made: unknown;
  try {
    made = await answer;
  } catch (error) {
    if (error !== reason)
      throw caseFailure(`${when}: the planner threw ${shownError(error)}, not the signal's reason`, error);
    return;
  }
  const decision: Decision = checkedMove(made, when).decision;
  const ended = decision.kind === 'finish' ? decision.reason : decision.kind;
  assert.equal(ended, 'cancelled', `${when}: its decision was another`);
}

export const steeringDrain: PlannerCase = {
  name: 'steering drain',
  about: 'messages are seen once, and a cancel is the end',
  wants: 'Any decision, after a first call that the kit makes; none is to be made once the signal is aborted.',
  script: ordinary,
  needs: { capability: 'honoursCancel', without: 'the planner does not stop when its signal is aborted' },
  run: runSteeringDrain,
};

// A task that is spawned, ends, and whose result finds its way back: by itself, or because it is awaited.

const RESULT = 'the task has counted 1729 sheep';
const ROOT = 'wake-round-trip';
const DONE: Finish = { kind: 'finish', reason: 'goal', payload: RESULT };

/** What the case has learnt so far; the model's words depend on it. */
interface Trip {
  journal: Journal | undefined;
  /** The planner polls: it awaits what it has spawned. */
  awaits: boolean;
  /** What it has spawned. */
  task: string | undefined;
}

async function runWakeRoundTrip(bench: PlannerBench): Promise<void> {
  const trip: Trip = { journal: undefined, awaits: false, task: undefined };
  const made = await bench.make(scriptedModel((request) => nextWords(requestText(request), trip)));
  trip.awaits = resolveWakeMode(made.planner) === 'poll';
  const { planner, asked, check } = watched(made.planner, (view) => workerOf(view, trip));
  const state = await inRuntime(planner, [workTool(trip)], async ({ runtime, journal }) => {
    trip.journal = journal;
    runtime.work();
    await runtime.start('Count the sheep', { identity: local('kit', { run: ROOT }), limits: { steps: 16 } });
    return untilEnded(journal, ROOT);
  });
  check();
  assertAsked(bench, made);
  assertSpawned(state);
  if (trip.awaits) assertAwaited(state);
  else assertNewsTold(state, asked);
  const { ending } = state;
  const came = ending?.kind === 'finished' ? ending.reason : ending?.error.message;
  assert.equal(came, 'goal', 'the run did not finish with its goal');
}

function nextWords(said: string, { task, awaits }: Trip): ScriptedReply {
  if (said.includes(RESULT)) return ANSWER;
  if (task === undefined) {
    return calls(SPAWN_TOOL, { kind: 'background', spec: { description: 'sheep', query: 'Count the sheep' } });
  }
  return awaits ? calls(AWAIT_TOOL, { task_id: task }) : calls(WORK, {});
}

/** The task itself is not the planner's: the kit ends it, for a planner that polls only when it is awaited. */
async function workerOf({ identity, trajectory }: RunView, trip: Trip): Promise<Decision | undefined> {
  if (identity.run === ROOT) {
    trip.task = trajectory.tasks[0]?.id;
    return undefined;
  }
  if (trip.awaits) await isAwaited(trip);
  return DONE;
}

function isAwaited({ journal }: Trip): Promise<true> {
  const found = ({ open, ending }: RunState): true | undefined =>
    ending !== null || (open !== null && open.waits.length > 0) || undefined;
  return until(journal as Journal, ROOT, found, 'a planner with the wake mode poll awaited nothing');
}

/** Takes until what the run has spawned has ended, and the run has been told. */
function workTool(trip: Trip): Tool {
  const told = async ({ tasks }: RunState): Promise<Json | undefined> => {
    const inbox = (await trip.journal?.inbox(ROOT)) ?? [];
    const waiting = new Set(inbox.flatMap(({ message }) => (message.type === 'TASK_ENDED' ? [message.end.task] : [])));
    return tasks.every(({ id, end }) => end !== undefined || waiting.has(id)) ? 'worked' : undefined;
  };
  return tool({
    name: WORK,
    description: 'Does something else for a while.',
    effect: 'read',
    inputSchema: { type: 'object' },
    execute: () => until(trip.journal as Journal, ROOT, told, 'the task did not end'),
  });
}

function assertSpawned({ steps, tasks }: RunState): void {
  assert.ok(
    steps.some(({ decision }) => taskCallsOf(decision).length > 0),
    'the planner spawned no task',
  );
  assert.ok(tasks.length > 0, 'no task was started');
  const ends = tasks.map(({ end }) => end?.status ?? 'running');
  assert.deepEqual(new Set(ends), new Set(['complete']), 'not every task was complete when the run ended');
}

function assertAwaited({ steps }: RunState): void {
  const awaited = steps.filter(({ decision }) => decision.kind === 'await_task');
  assert.ok(awaited.length > 0, 'a planner with the wake mode poll awaited nothing');
  const outcome = awaited.at(-1)?.calls[0]?.outcome;
  const resolved = outcome?.kind === 'value' && JSON.stringify(outcome.value).includes(RESULT);
  assert.ok(resolved, `the await came to ${JSON.stringify(outcome)}`);
}

/** The outcome came by itself, once, and was there when the planner finished. */
function assertNewsTold({ tasks }: RunState, asked: readonly AskedMove[]): void {
  const last = asked.findLast(({ move }) => move.decision.kind === 'finish')?.view;
  const groups = new Set(tasks.map(({ group }) => group));
  for (const group of groups) {
    const told = (last?.trajectory.background ?? []).filter((result) => result.group.id === group);
    assert.equal(told.length, 1, `the group ${group} was not in trajectory.background when it finished`);
    const [result] = told;
    assert.ok(JSON.stringify(result?.group.members).includes(RESULT), `the group ${group} came without its result`);
  }
}

export const wakeRoundTrip: PlannerCase = {
  name: 'wake round trip',
  about: 'a task is spawned, ends, and its result comes back',
  wants:
    'Spawn one background task without staying with it. With the wake mode poll await it, then finish with goal. With push ' +
    'or hybrid pause for an external event, or call the tool `work`, until the result is in trajectory.background; then finish.',
  script: () => ANSWER,
  needs: { capability: 'wakeRoundTrip', without: 'the planner spawns no tasks' },
  run: runWakeRoundTrip,
};
