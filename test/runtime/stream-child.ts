/**
 * `node stream-child.ts <folder> <what> [<from>]`: `first` starts a run whose tool writes a row for each line that it is told, and says `wrote`
 * when it is stored; `again` goes on with the run, whose tool then ends; `read` says each row of its stream, from that index on.
 */
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { tool } from '#tools';
import { call, script } from '../kit/decisions.ts';

const [folder = '', what = '', from = '1'] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
const writes = tool({
  name: 'writes',
  description: 'Writes.',
  effect: 'pure',
  inputSchema: { type: 'object' },
  timeoutMs: 600_000,
  execute: async (_, { stream }) => {
    const log = stream('log');
    if (what === 'first') {
      for await (const line of createInterface({ input: process.stdin })) await log.write(line);
    }
    await log.write('end');
    return 'written';
  },
});
const runtime = createRuntime({
  planner: { name: 'child', next: script(call('writes')) },
  tools: [writes],
  journal,
  leaseMs: 500,
});
if (what === 'read') {
  for await (const { index, value } of runtime.run('streaming').stream('log', { from: Number(from) })) {
    say(`${index} ${String(value)}`);
  }
} else {
  if (what === 'first') await runtime.start('q', { identity: local('ann', { run: 'streaming' }) });
  const run = runtime.run('streaming');
  if (what === 'again') await run.resume();
  say(`ended ${(await run.result()).status}`);
}
await runtime.close();
await journal.close();
process.exit(0);
