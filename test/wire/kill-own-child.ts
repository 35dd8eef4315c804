/**
 * The process that is killed: `node kill-own-child.ts <folder> <url> <life>` has one run for each case of `own/killed.ts`, whose model is at
 * `<url>/<case>`. In the life `calls` each call says `entered` and never ends, and each run that asks for leave says `paused`; a later one
 * answers what is asked, gives the calls their results, and says `ended` of each run.
 */
import { join } from 'node:path';
import { type Json, local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { react } from '#planners/react';
import { createRuntime, type Run } from '#runtime';
import { answerIfAsked, KILLED_OWN, type KilledOwn } from './own/killed.ts';
import { QUERY } from './own/play.ts';

const [folder = '', url = '', life = ''] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
const isFirst = life === 'calls';

await Promise.all(KILLED_OWN.map(play));
await journal.close();

async function play(killed: KilledOwn): Promise<void> {
  const { id, protocol, stream, tools } = killed;
  const model = protocol.model({ baseURL: `${url}/${id}`, fetch: globalThis.fetch });
  const enter = (value: Json): Promise<Json> => {
    say(`entered ${id}`);
    return isFirst ? new Promise<never>(() => {}) : Promise.resolve(value);
  };
  const runtime = createRuntime({ planner: react({ model }), tools: tools(enter), journal });
  const run = isFirst ? await runtime.start(QUERY, { identity: local('ana', { run: id }) }) : runtime.run(id);
  if (!isFirst) await run.resume().catch(() => {});
  await settled(run, stream);
  if (isFirst) {
    say(`paused ${id}`);
    return;
  }
  await answerIfAsked(run, killed);
  await settled(run, stream);
  const { status } = await run.result();
  say(`ended ${id} ${status}`);
  await runtime.close();
}

/** Comes to the end of the run, or to its pause. Whoever reads a run's events has its replies streamed. */
async function settled(run: Run, stream: boolean): Promise<void> {
  if (stream) for await (const _ of run.events());
  await run.result();
}
