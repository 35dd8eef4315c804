/**
 * What a planner makes of the replies of a model: of wrong ones a decision or a typed error, and never a goal that
 * was not reached; on an ordinary day its moves and parallel calls.
 */
import assert from 'node:assert/strict';
import {
  type Branch,
  branchesOf,
  type CallParallel,
  isMove,
  local,
  MAX_BRANCHES,
  type Move,
  PilotageError,
} from '#core';
import { type ScriptedReply, scriptedModel } from '../models.ts';
import { runView } from '../run-view.ts';
import {
  ANSWER,
  assertAsked,
  callNext,
  caseFailure,
  checkedMove,
  decidedMove,
  inRuntime,
  LOOK_UP,
  lookUp,
  ordinary,
  type PlannerBench,
  type PlannerCase,
  requestText,
  shownError,
  untilEnded,
  watched,
} from './kit.ts';
import { ORDINARY, TOOLS } from './views.ts';

interface Malformed {
  readonly what: string;
  readonly reply: ScriptedReply;
  /** Words are an answer, however odd they are; nothing else of these is. */
  readonly isText?: true;
}

const call = (input: string, tool: string = LOOK_UP): ScriptedReply => ({ calls: [{ tool, input }] });

const EMPTY: Malformed = { what: 'an empty reply', reply: { text: '' } };
const TORN: Malformed = { what: 'arguments that are torn off', reply: call('{"about": "the wea') };
const UNKNOWN: Malformed = { what: 'a call of an unknown tool', reply: call('{}', 'no_such_tool') };

const REPLIES: readonly Malformed[] = [
  EMPTY,
  TORN,
  UNKNOWN,
  { what: 'blanks', reply: { text: ' \n\t ' } },
  { what: 'thoughts and nothing else', reply: { reasoning: 'Let me think.' } },
  { what: 'junk', reply: { text: '}{ \u0000\u0007 �� ]]>' }, isText: true },
  { what: 'brackets, thousands deep', reply: { text: '['.repeat(5_000) }, isText: true },
  { what: 'a page of HTML', reply: { text: '<html><body><h1>502 Bad Gateway</h1></body></html>' }, isText: true },
  { what: 'a text that was cut short', reply: { text: 'The answer is', finish: 'length' } },
  { what: 'a call that was cut short', reply: { ...call('{"about": "the wea'), finish: 'length' } },
  { what: 'a text that the provider broke off', reply: { text: 'The answer is', finish: 'error' } },
  { what: 'a filtered reply', reply: { text: 'I', finish: 'content-filter' } },
  { what: 'arguments that are no JSON', reply: call('about=the weather') },
  { what: 'arguments that are no object', reply: call('[1, 2]') },
  { what: 'arguments of the wrong types', reply: call('{"about": {"deep": [null]}}') },
  { what: 'a call without a name', reply: call('{}', '') },
  { what: 'a call of a name with control characters', reply: call('{}', 'look\u0000up\n'.repeat(50)) },
  { what: 'a finish without an answer', reply: call('{"done": true}', '_finish') },
  { what: 'a spawn without a spec', reply: call('{"kind": "sideways"}', '_spawn_task') },
  { what: 'an await of nothing', reply: call('{"task_id": ""}', '_await_task') },
  {
    what: 'too many calls at once',
    reply: { calls: Array.from({ length: MAX_BRANCHES + 1 }, () => ({ tool: LOOK_UP, args: { about: 'x' } })) },
  },
];

async function runMalformedOutput(bench: PlannerBench): Promise<void> {
  for (const malformed of REPLIES) {
    for (const tasks of [false, true]) await askOnce(bench, malformed, tasks);
  }
  for (const malformed of [EMPTY, TORN, UNKNOWN]) await runToTheEnd(bench, malformed);
}

async function askOnce(bench: PlannerBench, { what, reply, isText }: Malformed, tasks: boolean): Promise<void> {
  const made = await bench.make(scriptedModel(() => reply));
  const view = runView({ query: 'What is the weather?', tools: TOOLS, tasks });
  let answer: unknown;
  try {
    answer = await callNext(made.planner, view);
  } catch (error) {
    if (!PilotageError.is(error))
      throw caseFailure(`${what}: the planner threw an untyped error, ${shownError(error)}`, error);
    return;
  }
  const move = checkedMove(answer, what);
  if (isText === undefined) assert.ok(!isGoal(move, answer), `${what} was taken for the goal`);
  assertAsked(bench, made);
}

/** A fault is asked again about; what it would end with does not count. */
function isGoal({ decision }: Move, answer: unknown): boolean {
  const isFault = isMove(answer as Move) && (answer as Move).fault !== undefined;
  return decision.kind === 'finish' && decision.reason === 'goal' && !isFault;
}

/** A model that never says anything else: the run comes to an end all the same, and not to its goal. */
async function runToTheEnd(bench: PlannerBench, { what, reply }: Malformed): Promise<void> {
  const { planner } = await bench.make(scriptedModel(() => reply));
  const { ending } = await inRuntime(planner, [lookUp], async ({ runtime, journal }) => {
    const { id } = await runtime.start('What is the weather?', { identity: local('kit') });
    return untilEnded(journal, id);
  });
  const reason = ending?.kind === 'finished' ? ending.reason : ending?.error.code;
  assert.notEqual(reason, 'goal', `${what}, over and over: the run reached its goal`);
  assert.notEqual(reason, 'planner_failed', `${what}, over and over: the planner threw an untyped error`);
}

export const malformedOutput: PlannerCase = {
  name: 'malformed output',
  about: 'a typed error or a decision for each reply that is wrong',
  wants: 'Nothing: only a planner with a model can do it.',
  script: () => ANSWER,
  needs: { capability: 'modelDriven', without: 'the planner has no model whose output could be malformed' },
  run: runMalformedOutput,
};

async function runTopPrompts(bench: PlannerBench): Promise<void> {
  for (const { when, view } of ORDINARY) {
    const made = await bench.make();
    await decidedMove(made.planner, view, when);
    assertAsked(bench, made);
  }
}

export const topPrompts: PlannerCase = {
  name: 'top prompts',
  about: 'a valid decision for what people ask every day',
  wants: 'Any decision, for the usual goals, histories and tools.',
  script: ordinary,
  run: runTopPrompts,
};

async function runParallelShape(bench: PlannerBench): Promise<void> {
  const made = await bench.make();
  const { planner, asked, check } = watched(made.planner);
  const state = await inRuntime(planner, [lookUp], async ({ runtime, journal }) => {
    const { id } = await runtime.start('Compare the weather in three cities', { identity: local('kit') });
    return untilEnded(journal, id);
  });
  check();
  assertAsked(bench, made);
  const parallel = asked.flatMap(({ move: { decision } }) => (decision.kind === 'call_parallel' ? [decision] : []));
  assert.ok(parallel.length > 0, 'the planner made no parallel call; if it never makes one, say so in `skip`');
  for (const call of parallel) assertShape(call, bench.capabilities.modelDriven);
  assertUniqueIds(asked.map(({ move }) => move));
  for (const { decision, calls } of state.steps) {
    if (decision.kind !== 'call_parallel') continue;
    assert.equal(calls.length, decision.branches.length, 'a branch has no outcome');
    const values = calls.filter(({ outcome }) => outcome.kind === 'value').length;
    assert.ok(values > 0, 'no branch of a parallel call could be carried out');
  }
  assert.equal(state.ending?.kind, 'finished', 'the run did not finish after a parallel call');
}

/** The decision is valid by now; this is what validation cannot know. */
function assertShape({ branches }: CallParallel, modelDriven: boolean): void {
  assert.ok(branches.length > 1, 'a parallel call of one branch is a call: use call_tool');
  if (!modelDriven) return;
  const asked = branches.filter(({ tool }) => tool === LOOK_UP).length;
  assert.equal(asked, MODEL_CALLS.length, `the model made ${MODEL_CALLS.length} calls, and ${asked} were decided`);
  // Each of the model's calls is owed an answer under its id.
  assert.ok(branches.every(hasId), "a branch of a model's parallel call has no callId");
}

function hasId({ callId }: Branch): boolean {
  return callId !== undefined && callId !== '';
}

function assertUniqueIds(moves: readonly Move[]): void {
  const ids = moves.flatMap(({ decision }) => branchesOf(decision).flatMap(({ callId }) => callId ?? []));
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
  assert.deepEqual(twice, [], 'these call ids are used more than once in the run');
}

/** Two providers' bad habits: an id twice, and an empty one. */
const MODEL_CALLS = [
  { id: 'same', tool: LOOK_UP, args: { about: 'Lisbon' } },
  { id: 'same', tool: LOOK_UP, args: { about: 'Porto' } },
  { id: '', tool: LOOK_UP, args: { about: 'Faro' } },
];

export const parallelShape: PlannerCase = {
  name: 'parallel shape',
  about: 'parallel calls have ids, joins and an outcome each',
  wants: 'Several calls of the tool `lookUp` at once, then the end.',
  script: (request) => (requestText(request).includes('looked up') ? ANSWER : { calls: MODEL_CALLS }),
  run: runParallelShape,
};
