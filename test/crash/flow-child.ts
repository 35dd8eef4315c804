/**
 * The process that is killed: `node flow-child.ts <folder> <life> <n> <kind> <count>` runs the flow for the number `n` to its
 * end, anew or from where an earlier process left it, and says each fact on standard output once it is durable. Behind so
 * many lines of that kind it is killed.
 */
import { join } from 'node:path';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { stampFlow } from './flow-agent.ts';
import { telling } from './telling.ts';

const [folder = '', life = '', n = '', kind = '', count = ''] = process.argv.slice(2);
const deadly = new RegExp(kind);
let left = Number(count);
// A pipe takes a line at once, so what was said before death is heard.
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
  if (!deadly.test(line)) return;
  left -= 1;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
};

const made = stampFlow(join(folder, 'effects.jsonl'), Number(life), say);
const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
const runtime = createRuntime({
  agents: [made],
  journal: telling(journal, (entry, run) => {
    const call = entry.kind === 'call_ended' ? ` ${run}/${entry.step}.${entry.call}` : '';
    say(`ack ${run} ${entry.seq} ${entry.kind}${call}`);
  }),
  onFault: (error) => {
    throw error;
  },
});
const id = `run_${n}`;
const run = runtime.run(id);
if ((await journal.get(id)) === undefined) {
  await runtime.start('go', { identity: local('crash', { run: id }), context: { args: Number(n) } });
} else if ((await run.state()).ending === null) {
  await run.resume();
}
say(`end ${(await run.result()).status}`);
await runtime.close();
await journal.close();
