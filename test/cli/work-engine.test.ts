/** What `pilotage work` takes of an engine. A worker whose runs Restate wakes: `work-engine.soak.test.ts`. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { workFolder } from './working.ts';

it.each([
  [['--engine', 'dapr'], 'There is no engine dapr. Give --engine restate, or leave it out.'],
  [['--engine', 'restate'], '--engine restate needs --ingress'],
  [['--engine', 'restate', '--ingress', 'http://127.0.0.1:1'], '--engine restate needs --ingress'],
  [['--serve', '9080'], '--serve goes with --engine restate.'],
  [['--engine-admin', 'http://127.0.0.1:1'], '--engine-admin goes with --engine restate.'],
])('refuses %j', async (args, words) => {
  const folder = workFolder();
  const { code, stderr } = await folder.run(['work', '--journal', join(folder.path, 'runs.db'), ...args]);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(words) });
});
