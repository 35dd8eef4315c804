/** Advances the run `r` for a moment, starts it if it is not there, and says how it stands. Nothing is closed. `node slice-child.ts <file>` */
import { appendFileSync } from 'node:fs';
import { setTimeout as rest } from 'node:timers/promises';
import { local } from '#core';
import { createRuntime } from '#runtime';
import { call, finish, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';

const [, , path = ''] = process.argv;
const work = make(
  'work',
  async ({ n }, { sleep }) => {
    if (n === 10) await sleep({ forMs: 200 });
    appendFileSync(`${path}-effects`, `${n}\n`);
    await rest(20);
    return n;
  },
  { effect: 'once' },
);
const planner = script(...Array.from({ length: 20 }, (_, n) => call('work', { n })), finish('all'));
const runtime = createRuntime({ planner, tools: [work], journal: path });
const { id } = await runtime.start('q', { identity: local('ana', { run: 'r' }) });
const { status } = await runtime.advance(id, { forMs: 150, graceMs: 60 });
console.log(status);
