/** A program that plays crashes and then has nothing more to do: `leaving-child.ts <folder> <scenario>`. It never ends itself. */
import { join } from 'node:path';
import type { Clock } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { assertCrashProof, crashEverywhere } from '#testing';
import { scenarios } from './scenarios.ts';
import { taskScenarios } from './task-scenarios.ts';

const [, , folder = '', name = ''] = process.argv;
const scenario = [...scenarios, ...taskScenarios].find((candidate) => candidate.name === name);
if (scenario === undefined) throw new Error(`There is no scenario ${name}.`);
const inSqlite = {
  ...scenario,
  journal: (clock: Clock, store: string) =>
    sqliteJournal({ path: join(folder, `${store}.db`), clock, synchronous: 'normal' }),
};
assertCrashProof(await crashEverywhere(scenario), await crashEverywhere(inSqlite, { doubles: 2 }));
process.stdout.write('over\n');
