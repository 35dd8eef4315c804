/** What calls give on their way is a line each, also that of tasks; how many calls there may be is a flag. */
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '#core';
import { builtUrl } from '../kit/built.ts';
import { eventsIn, makeFolder } from './command.ts';

const INDEX = builtUrl('src/config/index.ts');

/** A tool that speaks when the file `go` is there, called as a node of a plan and by a task of the run. */
const CONFIG = `
import { existsSync } from 'node:fs';
import { defineConfig } from '${INDEX}';
const speak = {
  name: 'speak', description: 'Speaks', inputSchema: { type: 'object' }, effect: 'pure',
  execute: async ({ word }, { emit }) => {
    while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 10));
    emit(word + '\\n\\u001b[31mred');
    emit({ of: word });
    return word;
  },
};
const call = (word) => ({ kind: 'call_tool', tool: 'speak', args: { word } });
const plan = [
  { kind: 'call_parallel', plan: 'p', branches: [{ id: 'first', tool: 'speak', args: { word: 'Os' } }] },
  { kind: 'spawn_task', task: 'foreground', spec: { description: 'd', query: 'child' } },
  call('more'),
];
const child = [call('lo')];
export default defineConfig({
  planner: ({ query, trajectory: { count } }) =>
    (query === 'child' ? child : plan)[count] ?? { kind: 'finish', reason: 'goal', payload: 'done' },
  tools: [speak],
});
`;

describe('pilotage run', () => {
  it('shows each chunk as a line, with the name of its node or its task, and nothing that a terminal obeys', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    const started = folder.start(['run', 'q', '--max-calls', '2', '--timeout', '100']);
    await started.untilOutput(/● step 1/);
    folder.write('go', '');
    const { code, stderr } = await started.done;
    expect(code).toBe(0);
    const lines = stderr.split('\n').filter((line) => line.includes('…'));
    expect(lines).toEqual([
      '  … first  speak  Os ␛[31mred',
      '  … first  speak  {"of":"Os"}',
      expect.stringMatching(/^ {2}… task run_\w+\.1\.0 {2}speak {2}lo ␛\[31mred$/),
      expect.stringMatching(/^ {2}… task run_\w+\.1\.0 {2}speak {2}\{"of":"lo"\}$/),
    ]);
    // The task had the second of two calls; the third was not made.
    expect(stderr).toContain('✗ speak');
    expect(stderr).toContain('budget_exceeded');
  });

  it('prints them as events with --json', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    const started = folder.start(['run', 'q', '--json']);
    await started.untilOutput(/tool\.invoked/);
    folder.write('go', '');
    const { stdout } = await started.done;
    const chunks = eventsIn(stdout).filter((event): event is RunEvent<'tool.chunk'> => event.type === 'tool.chunk');
    expect(chunks.map(({ index, chunk }) => [index, chunk])).toEqual(
      ['Os', 'lo', 'more'].flatMap((word) => [
        [1, `${word}\n\u001b[31mred`],
        [2, { of: word }],
      ]),
    );
  });
});
