/**
 * The process that is killed: `node handles-child.ts <folder> <run> <onLost> <fatal>` drives a run whose calls share a page, anew or
 * from where an earlier process left it, and says what it does. Once it has said a line that matches `fatal`, it is killed.
 */
import { join } from 'node:path';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, handle, local, tool } from '#pilotage';
import { telling } from './telling.ts';

const [folder = '', id = '', onLost = '', fatal = ''] = process.argv.slice(2);
const deadly = fatal === '' ? undefined : new RegExp(`^${fatal}$`);
// A pipe takes a line at once, so what was said before death is heard.
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
  if (deadly?.test(line)) process.kill(process.pid, 'SIGKILL');
};

interface Page {
  readonly opening: number;
  readonly visited: string[];
}

const page = handle<Page>({
  name: 'page',
  onLost: onLost === 'fail' ? 'fail' : 'reopen',
  open: ({ opening }) => {
    say(`open ${opening}`);
    return { opening, visited: [] };
  },
  close: (live, { reason }) => say(`close ${live.opening} ${reason}`),
});

const visit = tool({
  name: 'visit',
  description: 'Goes to a place.',
  effect: 'read',
  inputSchema: { type: 'object' },
  handles: { page },
  execute: ({ to }, { handles }) => {
    handles.page.visited.push(String(to));
    say(`visit ${String(to)}`);
    return { opening: handles.page.opening, visited: [...handles.page.visited] };
  },
});

const branches = ['b', 'c'].map((to) => ({ id: to, tool: 'visit', args: { to } }));
const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
const runtime = createRuntime({
  planner: ({ trajectory: { count } }) => {
    if (count === 0) return { kind: 'call_tool', tool: 'visit', args: { to: 'a' } };
    if (count === 1) return { kind: 'call_parallel', branches, concurrency: 1 };
    if (count === 2) return { kind: 'call_tool', tool: 'visit', args: { to: 'd' } };
    return { kind: 'finish', reason: 'goal' };
  },
  tools: [visit],
  journal: telling(journal, (entry) => {
    if (entry.kind === 'call_ended') say(`ended ${entry.step}.${entry.call}`);
  }),
});
const run = runtime.run(id);
if ((await journal.get(id)) === undefined) {
  await runtime.start('go', { identity: local('crash', { run: id }) });
} else await run.resume();
await run.result();
await runtime.close();
await journal.close();
