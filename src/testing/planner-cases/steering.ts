/** Messages that come in while a run goes, and a run that is called off. */
import assert from 'node:assert/strict';
import { type CallTool, type Control, type Decision, local, type Planner } from '#core';
import type { Journal } from '#journal';
import type { Run } from '#runtime';
import type { RunState } from '#state';
import { type Tool, tool } from '#tools';
import { runView } from '../run-view.ts';
import { type ScriptedRequest, scriptedModel } from '../scripted-model.ts';
import {
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
  type WatchedPlanner,
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
