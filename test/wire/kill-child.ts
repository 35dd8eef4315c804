/**
 * The process that is killed: `node kill-child.ts <folder> <url> <life>` has one run for each case of `killed.ts`, whose model is at
 * `<url>/<case>`. In the life `calls` each call says `entered` and never ends; in a later one it gives its result, and each run says `ended`.
 */
import { join } from 'node:path';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { react } from '#planners/react';
import { createRuntime, type Run } from '#runtime';
import { tool } from '#tools';
import { KILLED } from './killed.ts';
import { CITY, QUERY, WEATHER } from './weather.ts';

const [folder = '', url = '', life = ''] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
// As long as somebody reads a journal from elsewhere, all of its runs are streamed.
const journals = {
  whole: sqliteJournal({ path: join(folder, 'whole.db') }),
  streamed: sqliteJournal({ path: join(folder, 'streamed.db') }),
};

await Promise.all(KILLED.map(play));
for (const journal of Object.values(journals)) await journal.close();

async function play({ id, provider, stream }: (typeof KILLED)[number]): Promise<void> {
  const model = provider.model({ baseURL: `${url}/${id}`, fetch: globalThis.fetch });
  const weather = tool({
    ...WEATHER,
    effect: 'read',
    inputSchema: CITY,
    execute: () => {
      say(`entered ${id}`);
      return life === 'calls' ? new Promise<never>(() => {}) : 'sunny';
    },
  });
  const journal = stream ? journals.streamed : journals.whole;
  const runtime = createRuntime({ planner: react({ model }), tools: [weather], journal });
  const isFirst = life === 'calls';
  const run = isFirst ? await runtime.start(QUERY, { identity: local('ana', { run: id }) }) : runtime.run(id);
  // Whoever reads a run's events has its replies streamed.
  const read = stream ? drain(run) : undefined;
  if (!isFirst) await run.resume();
  await read;
  const result = await run.result();
  say(`ended ${id} ${result.status}`);
  if (result.status === 'finished') say(`answer ${id} ${result.answer ?? ''}`);
  await runtime.close();
}

async function drain(run: Run): Promise<void> {
  for await (const _ of run.events());
}
