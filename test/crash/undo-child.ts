/**
 * The process that is killed, `node undo-child.ts <folder> <end>`: books three things, fails or is cancelled, and undoes them. It says each entry when
 * it is durable.
 */
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, sendControl } from '#runtime';
import type { Tool, ToolContext } from '#tools';
import { telling } from './telling.ts';

const [folder = '', end = ''] = process.argv.slice(2);
const file = join(folder, 'world.txt');
const done = (): string[] => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []);

/** As a server with idempotency keys does: the same key once. */
function act(what: string, { idempotencyKey }: ToolContext): void {
  if (!done().some((line) => line.endsWith(` ${idempotencyKey}`))) appendFileSync(file, `${what} ${idempotencyKey}\n`);
}

const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
const tool = (name: string, execute: Tool['execute'], more: Partial<Tool> = {}): Tool =>
  ({ name, description: name, inputSchema: { type: 'object' }, effect: 'keyed', execute, ...more }) as Tool;
const tools = [
  tool(
    'book',
    (args, context) => {
      act(`book ${String((args as { n: number }).n)}`, context);
      return args;
    },
    { undo: (args) => ({ tool: 'cancel', args }) },
  ),
  tool('cancel', (args, context) => act(`cancel ${String((args as { n: number }).n)}`, context)),
  tool('hold', async (_, { signal }) => {
    // The same cancel once, however often the call is made.
    await sendControl(journal, 'trip', { id: 'stop', type: 'CANCEL' });
    if (!signal.aborted) await once(signal, 'abort');
    throw signal.reason;
  }),
];
const runtime = createRuntime({
  planner: {
    name: 'books',
    next: ({ trajectory: { count } }) => {
      if (count < 3) return { kind: 'call_tool', tool: 'book', args: { n: count } };
      if (end === 'failure') throw new Error('broken');
      return { kind: 'call_tool', tool: 'hold', args: {} };
    },
  },
  tools,
  onFail: 'undo',
  leaseMs: 300,
  journal: telling(journal, ({ seq, kind }) => process.stdout.write(`ack ${seq} ${kind}\n`)),
});
const identity = local('crash', { run: 'trip' });
const run = (await journal.get('trip')) === undefined ? await runtime.start('go', { identity }) : runtime.run('trip');
if ((await run.state()).ending === null) await run.resume();
await run.result();
await runtime.close();
await journal.close();
process.stdout.write('done\n');
