/** The planners of the scenarios without a model. Each does again what has no receipt, in another way if it knows one. */

import type { Json, Planner } from '#pilotage';
import type { Branch, Decision, RunView } from '#pilotage/planner';
import { htn, htnDomain } from '#planners/htn';
import { type Rule, rules } from '#planners/rules';
import { FEE, letter, ROOM } from './errands.ts';
import { receiptOf } from './world.ts';

/** What the calls of the run came to that ended with a value. */
function valuesOf({ trajectory }: RunView): readonly Json[] {
  return trajectory.steps.flatMap(({ calls }) =>
    calls.flatMap(({ outcome }) => (outcome.kind === 'value' ? [outcome.value] : [])),
  );
}

function hasReceipt(run: RunView, subject: string): boolean {
  return JSON.stringify(valuesOf(run)).includes(`"${receiptOf(subject)}"`);
}

const done: Decision = { kind: 'finish', reason: 'goal', payload: 'All is done.' };
const SUBJECTS = ['fee', 'letter', 'room'];

const LETTER: Branch = { tool: 'send', args: { subject: 'letter', body: { $from: 'page', path: '/body' } } };
const READS: readonly Branch[] = [
  { id: 'load_key', tool: 'load_key', args: {} },
  { id: 'page', tool: 'look', args: {} },
];

export function parallelPlanner(run: RunView): Decision {
  const missing = SUBJECTS.filter((subject) => !hasReceipt(run, subject));
  if (missing.length === 0) return done;
  const wanted: Readonly<Record<string, Branch>> = {
    fee: { tool: 'pay', args: FEE.args },
    letter: LETTER,
    room: { tool: 'book', args: ROOM.args },
  };
  return {
    kind: 'call_parallel',
    branches: [...READS, ...missing.flatMap((subject) => wanted[subject] ?? [])].map((branch, index) => ({
      id: String(index),
      ...branch,
    })),
  };
}

/** Each thing is done by a task; the query of the task names it. */
export function taskPlanner(run: RunView): Decision {
  if (run.task !== undefined) return inTask(run);
  const missing = SUBJECTS.find((subject) => !hasReceipt(run, subject));
  if (missing === undefined) return done;
  return { kind: 'spawn_task', task: 'foreground', spec: { description: missing, query: missing } };
}

function inTask(run: RunView): Decision {
  const { query } = run;
  const values = valuesOf(run);
  if (hasReceipt(run, query)) return { kind: 'finish', reason: 'goal', payload: { receipt: receiptOf(query) } };
  const page = values.find(
    (value): value is { body: Json } => typeof value === 'object' && value !== null && 'body' in value,
  );
  switch (query) {
    case 'fee':
      return { kind: 'call_tool', tool: 'pay', args: FEE.args };
    case 'letter':
      if (page === undefined) return { kind: 'call_tool', tool: 'look', args: {} };
      return { kind: 'call_tool', tool: 'send', args: letter(page.body).args };
    default:
      return { kind: 'call_tool', tool: 'book', args: ROOM.args };
  }
}

/** When the fee could not be paid, it is wired. */
const RULES: readonly Rule[] = [
  {
    id: 'done',
    match: (_, run) => SUBJECTS.every((subject) => hasReceipt(run, subject)),
    toPlanStep: () => ({ id: 'end', type: 'finish', input: 'All is done.' }),
  },
  {
    id: 'key',
    match: ({ stepCount }) => stepCount === 0,
    toPlanStep: () => ({ id: 'load_key', type: 'tool', toolId: 'load_key', input: {} }),
  },
  {
    id: 'page',
    match: ({ stepCount }) => stepCount === 1,
    toPlanStep: () => ({ id: 'page', type: 'tool', toolId: 'look', input: {} }),
  },
  {
    id: 'fee',
    match: (_, run) => !hasReceipt(run, 'fee'),
    toPlanStep: ({ stepCount, transcript }) => {
      const failed = transcript.some(({ role, text }) => role === 'tool' && text.startsWith('pay:'));
      return { id: `fee${stepCount}`, type: 'tool', toolId: failed ? 'wire' : 'pay', input: FEE.args };
    },
  },
  {
    id: 'letter',
    match: (_, run) => !hasReceipt(run, 'letter'),
    toPlanStep: ({ stepCount }) => ({
      id: `letter${stepCount}`,
      type: 'tool',
      toolId: 'send',
      input: { subject: 'letter', body: { $from: 'page', path: '/body' } },
    }),
  },
  {
    id: 'room',
    match: () => true,
    toPlanStep: ({ stepCount }) => ({ id: `room${stepCount}`, type: 'tool', toolId: 'book', input: ROOM.args }),
  },
];
export const rulesPlanner: Planner = rules({ name: 'errands-by-rules', rules: RULES });

const domain = htnDomain({
  operators: {
    key: () => true,
    look: () => true,
    pay: () => true,
    wire: () => true,
    send: () => true,
    check: () => true,
    book: () => true,
  },
  tasks: {
    errands: () => [['key'], ['look'], ['room'], ['fee'], ['send']],
    // What was checked cannot be checked: the room is booked unchecked, and all behind it is planned anew.
    room: { checked: () => [['check'], ['book']], unchecked: () => [['book']] },
    fee: { by_pay: () => [['pay']], by_wire: () => [['wire']] },
  },
});

export const htnPlanner: Planner = htn({
  name: 'errands-by-tasks',
  domain,
  state: () => ({}),
  todo: () => [['errands']],
  step: ([does]) => {
    switch (does) {
      case 'key':
        return { id: 'load_key', type: 'tool', toolId: 'load_key', input: {} };
      case 'look':
        return { id: 'page', type: 'tool', toolId: 'look', input: {} };
      case 'check':
        return { type: 'tool', toolId: 'check', input: {} };
      case 'book':
        return { type: 'tool', toolId: 'book', input: ROOM.args };
      case 'send':
        return { type: 'tool', toolId: 'send', input: LETTER.args };
      default:
        return { type: 'tool', toolId: String(does), input: FEE.args };
    }
  },
});
