import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventsIn, makeFolder, runIn } from './command.ts';
import { project } from './surveyed.ts';

describe('pilotage run without a model', () => {
  it('ends on a huge tree, and says that there is more', async () => {
    const folder = makeFolder();
    for (let top = 0; top < 60; top += 1) {
      const inside = join(folder.path, `folder-${top}`);
      mkdirSync(inside);
      const files = top === 0 ? 4000 : 20;
      for (let file = 0; file < files; file += 1) writeFileSync(join(inside, `${'n'.repeat(60)}${file}.txt`), '');
    }
    const { code, stdout } = await folder.run(['run', 'x']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/At least [\d,]+ files in 60 folders/);
    expect(stdout).toContain('The rest of `folder-0`: there is too much of it.');
  });

  it('comes to the same report when it is killed at any point and resumed', async () => {
    const folder = project();
    const journal = ['--journal', join(makeFolder().path, 'runs.db')];
    const whole = await folder.run(['run', 'x', '--json', ...journal]);
    const events = eventsIn(whole.stdout);
    const reportOf = (text: string): unknown => eventsIn(text).find(({ type }) => type === 'planner.finish');
    const { payload } = reportOf(whole.stdout) as { payload: string };
    for (let point = 1; point < events.length; point += 1) {
      const { child, done } = folder.start(['run', 'x', '--json', ...journal]);
      let seen = 0;
      child.stdout?.on('data', (text: string) => {
        seen += text.split('\n').length - 1;
        if (seen >= point) child.kill('SIGKILL');
      });
      const { stdout } = await done;
      const resumed = await folder.run(['resume', runIn(stdout), ...journal]);
      expect(resumed.code).toBe(0);
      expect(resumed.stdout).toBe(payload);
    }
    // Two processes for each point.
  }, 400_000);
});
