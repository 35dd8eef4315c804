/** A task that is spawned, ends, and whose result finds its way back: by itself, or because it is awaited. */
import assert from 'node:assert/strict';
import {
  AWAIT_TOOL,
  type Decision,
  type Finish,
  type Json,
  local,
  type RunView,
  resolveWakeMode,
  SPAWN_TOOL,
  taskCallsOf,
} from '#core';
import type { Journal } from '#journal';
import type { RunState } from '#state';
import { type Tool, tool } from '#tools';
import { type ScriptedReply, scriptedModel } from '../scripted-model.ts';
import {
  ANSWER,
  type AskedMove,
  assertAsked,
  calls,
  inRuntime,
  type PlannerBench,
  type PlannerCase,
  requestText,
  until,
  untilEnded,
  WORK,
  watched,
} from './kit.ts';

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
  else assertTold(state, asked);
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
function assertTold({ tasks }: RunState, asked: readonly AskedMove[]): void {
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
