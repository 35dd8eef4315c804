/** Nodes of a flow share live handles; the items of a map, which is a task of its own, have others. */
import { expect, it } from 'vitest';
import { local } from '#core';
import { edge, flow, join, map, node } from '#flow';
import { handle } from '#tools';
import { world } from '../kit/world.ts';

it('opens one for the nodes of a flow and one for the items of a map, and closes both', async () => {
  const closed: string[] = [];
  const shell = handle({
    name: 'shell',
    keepMs: 60_000,
    open: ({ identity: { run } }) => ({ run, said: [] as string[] }),
    close: ({ run, said }) => void closed.push(`${run.includes('.') ? 'task' : 'flow'}: ${said.join()}`),
  });
  const first = node('first', {
    effect: 'read',
    handles: { shell },
    policy: { retries: 1 },
    execute: (names: readonly string[], { handles }) => {
      handles.shell.said.push('first');
      return names;
    },
  });
  const each = map('each', {
    effect: 'read',
    concurrency: 1,
    handles: { shell },
    execute: (name: string, { handles }) => handles.shell.said.push(name),
  });
  const last = join('last', {
    of: [first, each],
    effect: 'read',
    handles: { shell },
    execute: (_, { handles }) => {
      handles.shell.said.push('last');
      return [...handles.shell.said];
    },
  });
  const talk = flow({ name: 'talk', inputSchema: {}, entry: first, exit: last, edges: [edge(first, each)] });
  const { runtime, faults } = world({ agents: [talk] });
  const run = await talk.start(runtime, ['a', 'b'], { identity: local('ana') });
  expect(await run.result()).toMatchObject({ status: 'finished', payload: ['first', 'last'] });
  expect(closed).toEqual(['task: a,b', 'flow: first,last']);
  expect(faults).toEqual([]);
});
