/** A folder with a configuration whose planner makes plans without a model: which one, the query says. */
import { builtUrl } from '../kit/built.ts';
import { type Folder, makeFolder } from './command.ts';

const INDEX = builtUrl('src/index.ts');
const CONFIG_FACE = builtUrl('src/config/index.ts');

/**
 * Queries: `refund` (a node asks before it pays), `fail` (the courier does not answer), `hold` (the first node lasts until
 * there is a file `go`), `grow` (a plan in two parts), `break` (the planner fails after the first part), `one call`, `give up`,
 * `cycle` (which nobody can carry out), `throw`, `evil` (names that would command a terminal).
 */
const CONFIG = `
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import { PilotageError } from '${INDEX}';
import { defineConfig } from '${CONFIG_FACE}';

const inputSchema = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] };
const log = (name) => appendFileSync('calls.txt', name + '\\n');
const tools = [
  { name: 'look_up', description: 'Looks an order up.', inputSchema, effect: 'read', execute: (args) => (log('look_up'), args) },
  {
    name: 'ask_courier',
    description: 'Asks the courier.',
    inputSchema,
    effect: 'read',
    retries: 0,
    execute: ({ order }) => {
      log('ask_courier');
      if (order === 'lost') throw new Error('Nobody answers.');
      return { damaged: true };
    },
  },
  { name: 'pay', description: 'Pays.', inputSchema, needsApproval: { reason: 'it is money' }, execute: ({ order }) => (log('pay ' + order), 'paid') },
  {
    name: 'hold',
    description: 'Waits for a file.',
    inputSchema: { type: 'object' },
    effect: 'read',
    execute: async (_, { signal }) => {
      log('hold');
      while (!existsSync('go')) await after(20, undefined, { signal });
      return 'held';
    },
  },
];

const node = (id, tool, args, ...after) => ({ id, tool, args, after });
const plan = (...branches) => ({ kind: 'call_parallel', plan: 'refund', onInvalid: 'per_branch', branches });
const order = node('order', 'look_up', { order: 'A-17' });
const pay = node('pay', 'pay', { order: { $from: 'order', path: '/order' } });
const say = node('say', '_message', 'Paid back.', 'pay');
const courier = node('courier', 'ask_courier', { order: 'A-17' });
const photo = node('photo', 'look_up', { order: 'photo' }, 'courier');

async function* grow(breaks) {
  yield { type: 'branches', plan: 'refund', branches: [order] };
  yield { type: 'text', text: 'More of it.' };
  if (breaks) throw new PilotageError('plan_interrupted', 'The rest of the plan was not readable.');
  return plan(order, node('photo', 'look_up', { order: 'photo' }, 'order'));
}

function decide(run) {
  const { count, steps } = run.trajectory;
  const outcomes = steps.at(-1)?.calls.map(({ outcome }) => outcome.error?.code ?? outcome.value) ?? [];
  if (count > 0) return { kind: 'finish', reason: 'goal', payload: outcomes };
  switch (run.query) {
    case 'refund':
      return plan(order, courier, photo, pay, say);
    case 'fail':
      return { ...plan(order, node('courier', 'ask_courier', { order: 'lost' }, 'order'), photo, node('say', '_message', 'Found.', 'order')), concurrency: 1 };
    case 'hold':
      return plan(node('wait', 'hold', {}), node('first', 'look_up', { order: '1' }, 'wait'), node('second', 'look_up', { order: '2' }, 'wait'));
    case 'grow':
      return grow(false);
    case 'break':
      return grow(true);
    case 'one call':
      return { kind: 'call_tool', tool: 'look_up', args: { order: 'A-17' } };
    case 'give up':
      return { kind: 'finish', reason: 'no_path', payload: 'There is no way.' };
    case 'cycle':
      return plan(node('a', 'look_up', {}, 'b'), node('b', 'look_up', {}, 'a'));
    case 'throw': {
      const faults = [{ code: 'tool_unknown', message: 'The step a has an unknown tool.' }, { code: 'plan_cycle', message: 'b and c wait for each other.' }];
      throw new PilotageError('plan_invalid', 'The plan cannot be carried out.', { data: { faults } });
    }
    default: {
      const evil = '\\u001b[31m\\u202e';
      return plan(node('a' + evil, 'look_up', { order: evil }), node('b', '_message', evil, 'a' + evil));
    }
  }
}

export default defineConfig({
  planner: { name: 'planned', version: '1', next: decide },
  tools,
  journal: 'kept/runs.db',
});
`;

export function plannedFolder(): Folder {
  const folder = makeFolder();
  folder.write('pilotage.config.ts', CONFIG);
  return folder;
}
