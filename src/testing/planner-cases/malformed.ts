/** Replies of a model that are wrong. What comes of each is a decision or a typed error, and never a goal that was not reached. */
import assert from 'node:assert/strict';
import { isMove, local, MAX_BRANCHES, type Move, PilotageError } from '#core';
import { runView } from '../run-view.ts';
import { type ScriptedReply, scriptedModel } from '../scripted-model.ts';
import {
  ANSWER,
  assertAsked,
  callNext,
  caseFailure,
  checkedMove,
  inRuntime,
  LOOK_UP,
  lookUp,
  type PlannerBench,
  type PlannerCase,
  shownError,
  untilEnded,
} from './kit.ts';
import { TOOLS } from './views.ts';

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
