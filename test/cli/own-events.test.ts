/** What a planner says in events of its own is shown while it runs, and by `inspect`. */
import { describe, expect, it } from 'vitest';
import { builtUrl } from '../kit/built.ts';
import { makeFolder } from './command.ts';

const CONFIG = `
import { defineConfig } from '${builtUrl('src/config/index.ts')}';
const remarks = [
  { type: 'acme/plan.scored', data: { score: 0.7, why: '\\u001b[31mred' } },
  { type: 'acme/said', data: 'two\\nlines' },
  { type: 'scored', data: 1 },
];
export default defineConfig({
  planner: () => ({ decision: { kind: 'finish', reason: 'goal', payload: 'done' }, remarks }),
  tools: [],
});
`;

describe('pilotage', () => {
  it('shows a planner’s own events, and what was no remark, and nothing that a terminal obeys', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    const ran = await folder.run(['run', 'q']);
    expect(ran.code).toBe(0);
    const id = /run_\w+/.exec(ran.stderr)?.[0] ?? '';
    const inspected = await folder.run(['inspect', id]);
    for (const shown of [ran.stderr, inspected.stdout]) {
      expect(shown).toContain('◇ acme/plan.scored  {"score":0.7,"why":"\\u001b[31mred"}');
      expect(shown).toContain('◇ acme/said  two lines');
      expect(shown).toMatch(/! a remark of the planner was dropped: "scored" is neither a remark type of Pilotage/);
      expect(shown).not.toContain('\u001b[31mred');
    }
    const json = await folder.run(['inspect', id, '--json']);
    expect(json.stdout).toContain('"type":"acme/plan.scored"');
  });
});
