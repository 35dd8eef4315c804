/**
 * The process that is killed: `node pictures-child.ts <folder> <url> <hold>` drives the run `run_watch`, whose model is at `<url>`. Each call
 * says `entered <city>`, and that of the city `<hold>` never ends; what a model reads of a result is told as `told <city>`.
 */
import { join } from 'node:path';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import type { Tool } from '#tools';
import { storedShot } from './pictures.ts';
import { anthropic } from './replies/anthropic.ts';

const [folder = '', url = '', hold = ''] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
const shot = storedShot();
const cityIn = (args: unknown): string => (args as { readonly city: string }).city;
const watched: Tool = {
  ...shot,
  execute: (args, context) => {
    say(`entered ${cityIn(args)}`);
    return cityIn(args) === hold ? new Promise<never>(() => {}) : shot.execute(args, context);
  },
  toModelOutput: (about) => {
    say(`told ${cityIn(about.input)}`);
    return shot.toModelOutput?.(about) as never;
  },
};
const model = anthropic.model({ baseURL: url, fetch: globalThis.fetch });
const runtime = createRuntime({ planner: react({ model }), tools: [watched], journal });
const identity = local('ana', { run: 'run_watch' });
const isFirst = (await runtime.list({ tenant: identity.tenant })).length === 0;
const run = isFirst ? await runtime.start('Watch.', { identity, limits: { steps: 100 } }) : runtime.run('run_watch');
if (!isFirst) await run.resume();
const result = await run.result();
say(`ended ${result.status} ${result.status === 'finished' ? result.answer : ''}`);
await runtime.close();
await journal.close();
