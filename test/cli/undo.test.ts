/** `pilotage run --on-fail undo`: what was done is undone before the run ends, and every command shows it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { builtUrl } from '../kit/built.ts';
import { makeFolder, runIn } from './command.ts';

const CONFIG = `
import { appendFileSync } from 'node:fs';
import { defineConfig } from '${builtUrl('src/config/index.ts')}';
import { graph } from '${builtUrl('src/planners/graph/index.ts')}';
const act = (name, more) => ({
  name,
  description: name,
  inputSchema: { type: 'object' },
  effect: 'keyed',
  execute: () => {
    appendFileSync('done.txt', name + '\\n');
    return name;
  },
  ...more,
});
const step = (id, ...after) => ({ id, type: 'tool', toolId: id, after });
const fail = act('fail', { retries: 0, execute: () => Promise.reject(new Error('no room')) });
export default defineConfig({
  planner: graph({ plan: { steps: [step('book'), step('fail', 'book')] } }),
  tools: [act('book', { undo: () => ({ tool: 'cancel', args: {} }) }), act('cancel'), fail],
});
`;

describe('pilotage run --on-fail', () => {
  it('undoes what was done, shows it, and offers no retry', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    const failed = await folder.run(['run', 'a trip', '--on-fail', 'undo']);
    expect(failed.code).toBe(3);
    expect(readFileSync(join(folder.path, 'done.txt'), 'utf8')).toBe('book\ncancel\n');
    expect(failed.stderr).toContain('↩ undoes what it has done, and ends then: plan_failed');
    expect(failed.stderr).toContain('cancel undoes call 1 of step 1');
    expect(failed.stderr).toContain('↩ 1 call undone');
    const run = runIn(failed.stderr);
    expect(failed.stderr).not.toContain(`retry ${run}`);
    const inspected = await folder.run(['inspect', run]);
    expect(inspected.stdout).toContain('↩ 1 call undone');
    const again = await folder.run(['retry', run]);
    expect(again.code).not.toBe(0);
    expect(again.stderr).toContain('has undone what it had done');
  });

  it('keeps it otherwise, and refuses other words', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    expect((await folder.run(['run', 'a trip'])).code).toBe(3);
    expect(readFileSync(join(folder.path, 'done.txt'), 'utf8')).toBe('book\n');
    const refused = await folder.run(['run', 'a trip', '--on-fail', 'forget']);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('give one of undo, keep');
  });

  it('names what it could not undo, and what it left as it is', async () => {
    const folder = makeFolder();
    const stuck = "act('cancel', { retries: 0, execute: () => Promise.reject(new Error('no \\u001b[31mdesk')) })";
    const twice = CONFIG.replace("step('fail', 'book')", "step('again', 'book'), step('fail', 'again')")
      .replace("act('cancel')", stuck)
      .replace('tools: [', "tools: [act('again', { undo: () => ({ tool: 'cancel', args: {} }) }), ");
    folder.write('pilotage.config.ts', twice);
    const failed = await folder.run(['run', 'a trip', '--on-fail', 'undo']);
    const { stdout } = await folder.run(['inspect', runIn(failed.stderr)]);
    for (const text of [failed.stderr, stdout]) {
      expect(text).toMatch(/↩ again \(call 2 of step 1\) could not be undone: \w+: no ␛\[31mdesk/);
      expect(text).toMatch(/↩ book \(call 1 of step 1\) could not be undone: \w+: /);
    }
  });
});
