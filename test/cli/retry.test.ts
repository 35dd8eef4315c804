/** `pilotage retry`: what has failed of a plan is carried out again, each time by another process. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { builtUrl } from '../kit/built.ts';
import { makeFolder, runIn } from './command.ts';

const CONFIG = `
import { appendFileSync, existsSync } from 'node:fs';
import { defineConfig } from '${builtUrl('src/config/index.ts')}';
import { graph } from '${builtUrl('src/planners/graph/index.ts')}';
const act = (name) => ({
  name,
  description: name,
  inputSchema: { type: 'object' },
  effect: 'once',
  execute: () => {
    appendFileSync('done.txt', name + '\\n');
    if (name !== 'charge' && !existsSync(name + '.mended')) throw new Error(name + ' is down');
    return name;
  },
});
const step = (id, ...after) => ({ id, type: 'tool', toolId: id, after });
export default defineConfig({
  planner: graph({ plan: { steps: [step('charge'), step('book', 'charge'), step('log', 'charge')] } }),
  tools: [act('charge'), act('book'), act('log')],
});
`;

describe('pilotage retry', () => {
  it('goes on with a plan that has failed: all of it, or the nodes that are named', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    const failed = await folder.run(['run', 'a trip']);
    const run = runIn(failed.stderr);
    expect(failed.code).toBe(3);
    expect(failed.stderr).toContain('plan_failed');
    expect(failed.stderr).toContain(`retry ${run}`);
    const unknown = await folder.run(['retry', run, '--nodes', 'charge']);
    expect(unknown.code).not.toBe(0);
    expect(unknown.stderr).toContain('has a value');
    folder.write('log.mended', '');
    const half = await folder.run(['retry', run, '--nodes', 'log']);
    expect(half).toMatchObject({ code: 3 });
    expect(half.stderr).toContain('is retried: log');
    folder.write('book.mended', '');
    expect(await folder.run(['retry', run])).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder.path, 'done.txt'), 'utf8').trim().split('\n').toSorted()).toEqual([
      'book',
      'book',
      'charge',
      'log',
      'log',
    ]);
    expect(await folder.run(['retry', run])).toMatchObject({ code: 6 });
  });
});
