/** A worker of one version of the code. `node version-child.ts <version> <path>`; it works until it is killed. */
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { call, script } from '../kit/decisions.ts';
import { echo } from '../kit/tools.ts';

const [, , version = '', path = ''] = process.argv;
const planner = { name: 'p', version, next: script(call('echo')) };
const runtime = createRuntime({
  planner,
  tools: [echo],
  journal: sqliteJournal({ path, synchronous: 'normal' }),
  onFault: (error) => console.log(error instanceof Error && 'code' in error ? error.code : String(error)),
});
runtime.work();
console.log('working');
