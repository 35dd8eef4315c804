/** Nobody approves blind: what is asked stands whole wherever the commands show it, however large it is. */
import { describe, expect, it } from 'vitest';
import { builtUrl } from '../kit/built.ts';
import { makeFolder, runIn } from './command.ts';

const CONFIG = `
import { defineConfig } from '${builtUrl('src/config/index.ts')}';

const chars = Number(process.env.CHARS ?? 0);
const mail = { kind: 'call_tool', tool: 'send_mail', args: { body: 'x'.repeat(chars) + ' the end' } };
export default defineConfig({
  planner: (run) => (run.trajectory.count === 0 ? mail : { kind: 'finish', reason: 'goal', payload: 'y'.repeat(40_000) }),
  tools: [{
    name: 'send_mail',
    description: 'Sends a mail.',
    inputSchema: { type: 'object' },
    needsApproval: true,
    execute: ({ body }) => body.length,
  }],
});
`;

describe('a question about large arguments', () => {
  it.each(['5000', '50000'])('of %s characters is shown whole by run, inspect and approve', async (CHARS) => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    const env = { CHARS };
    const asked = await folder.run(['run', 'write to bob'], env);
    expect(asked.code).toBe(5);
    const run = runIn(asked.stderr);
    const inspected = await folder.run(['inspect', run]);
    for (const shown of [asked.stderr, inspected.stdout]) {
      expect(shown).toContain(`"body": "${'x'.repeat(Number(CHARS))} the end"`);
      expect(shown).not.toContain('artifactRef');
    }
    expect(await folder.run(['approve', run])).toMatchObject({ code: 0 });
    expect(await folder.run(['resume', run], env)).toMatchObject({ code: 0, stdout: `${'y'.repeat(40_000)}\n` });
    expect((await folder.run(['inspect', run])).stdout).toMatch(/\n\ny{40000}\n$/);
  });
});
