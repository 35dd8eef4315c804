/** A worker of one version of the code. `node version-child.ts <version> <path>`; it works until it is killed. */
import { sqliteJournal } from '../../src/journal/sqlite.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { call, echo, script } from './support.ts';

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
