/** A folder whose agent does what a message says, and answers `re <message>`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Folder, makeFolder } from './command.ts';

/** Messages: `hold …` (waits until there is a file `go`), `pay …` (asks before), `ask …` (waits for words), `count …` (waits for `{ rows }`). Each run says in `asked.txt` that it was. */
const CONFIG = `
import { appendFileSync, existsSync } from 'node:fs';
const call = (tool, args = {}) => ({ kind: 'call_tool', tool, args });
const ROWS = { type: 'object', properties: { rows: { type: 'integer' } }, required: ['rows'] };
export default {
  planner: {
    name: 'obeys',
    next: ({ query, trajectory: { count, steering, steps } }) => {
      appendFileSync('asked.txt', query + '\\n');
      if (query.startsWith('hold') && count === 0) return call('hold');
      if (query.startsWith('pay') && count === 0) return call('pay', { amount: 100 });
      if (query.startsWith('ask') && count === 0) return { kind: 'request_pause', reason: 'await_input' };
      if (query.startsWith('count') && count === 0) return { kind: 'request_pause', reason: 'await_input', payload: { message: 'How many?' }, schema: ROWS };
      const heard = steering.flatMap(({ control }) => control.payload?.message ?? []);
      const outcomes = steps.flatMap(({ calls }) => calls.map(({ outcome }) => outcome.value ?? outcome.payload?.message ?? outcome.payload?.rows));
      return { kind: 'finish', reason: 'goal', payload: ['re ' + query, ...heard, ...outcomes].join(' + ') };
    },
  },
  tools: [
    {
      name: 'hold',
      description: 'Waits.',
      effect: 'read',
      inputSchema: { type: 'object' },
      execute: (_, { signal }) =>
        new Promise((resolve, reject) => {
          const end = () => (clearInterval(look), resolve('held'));
          const look = setInterval(() => existsSync('go') && end(), 10);
          signal.addEventListener('abort', () => (clearInterval(look), reject(signal.reason)));
          console.error('tool: entered');
        }),
    },
    {
      name: 'pay',
      description: 'Pays.',
      inputSchema: { type: 'object', properties: { amount: { type: 'number' } } },
      needsApproval: true,
      execute: ({ amount }) => 'paid ' + amount,
    },
  ],
};
`;

export interface ChattingFolder extends Folder {
  /** The queries that the planner was asked for, one for each decision. */
  asked(): string[];
}

export function chattingFolder(): ChattingFolder {
  const folder = makeFolder();
  folder.write('pilotage.config.ts', CONFIG);
  return { ...folder, asked: () => readFileSync(join(folder.path, 'asked.txt'), 'utf8').trimEnd().split('\n') };
}
