/** A run that asks the agent at a URL, of its own process, on the journal in a folder: `node a2a-tool-child.ts FOLDER URL`. */
import { join } from 'node:path';
import { type Json, local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { a2aTool } from '#server/a2a';

const [folder = '.', url = ''] = process.argv.slice(2);
const runtime = createRuntime({
  planner: {
    name: 'asks',
    next: (run) => {
      const outcome = run.trajectory.step(0)?.calls?.[0]?.outcome;
      if (outcome === undefined) return { kind: 'call_tool', tool: 'ask_peer', args: { message: run.query } };
      const payload = outcome.kind === 'value' ? outcome.value : (JSON.parse(JSON.stringify(outcome)) as Json);
      return { kind: 'finish', reason: 'goal', payload };
    },
  },
  tools: [a2aTool({ name: 'ask_peer', url })],
  journal: sqliteJournal({ path: join(folder, 'journal.db') }),
  leaseMs: 1_000,
  takeoverGraceMs: 0,
});
const run = await runtime.start('wait 2000', { identity: { ...local('ann'), run: 'the-run' } });
console.log('started');
console.log(`result ${JSON.stringify(await run.payload())}`);
await runtime.close();
