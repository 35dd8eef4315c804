/** A flow of the configuration is run, answered and gone on with from the command line. */
import { describe, expect, it } from 'vitest';
import { builtUrl } from '../kit/built.ts';
import { makeFolder, runIn } from './command.ts';

const CONFIG_FACE = builtUrl('src/config/index.ts');
const FINISH = builtUrl('src/planners/finish/finish.ts');
const FLOW = builtUrl('src/flow/index.ts');

const CONFIG = `
import { defineConfig } from '${CONFIG_FACE}';
import { finish } from '${FINISH}';
import { edge, flow, node } from '${FLOW}';
const inputSchema = { type: 'object', properties: { item: { type: 'string' } }, required: ['item'] };
const read = node('read', { effect: 'pure', inputSchema, execute: ({ item }) => item.toUpperCase() });
const send = node('send', { effect: 'once', needsApproval: true, execute: (item) => 'sent ' + item });
export default defineConfig({
  planner: finish(),
  agents: [flow({ name: 'ship', inputSchema, entry: read, exit: send, edges: [edge(read, send)] })],
});
`;

describe('pilotage run --planner', () => {
  it('runs a flow with its input; approve and resume carry it to its output', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    const started = await folder.run(['run', 'a lamp', '--agent', 'ship', '--input', '{"item":"lamp"}']);
    expect(started).toMatchObject({ code: 5, stdout: '' });
    expect(started.stderr).toContain('ship: a lamp');
    const run = runIn(started.stderr);
    expect(await folder.run(['approve', run])).toMatchObject({ code: 0 });
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: 'sent LAMP\n' });
  });

  it('says what it does not take', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CONFIG);
    expect(await folder.run(['run', 'q', '--input', '{}'])).toMatchObject({ code: 2 });
    const unknown = await folder.run(['run', 'q', '--agent', 'nope']);
    expect(unknown.stderr).toContain('has no agent "nope", only finish, ship');
    const misfit = await folder.run(['run', 'q', '--agent', 'ship', '--input', '{"item":1}']);
    expect(misfit).toMatchObject({ code: 3 });
    expect(misfit.stderr).toContain('validation_failed');
  });

  it('shows the name of an agent on one line, and nothing in it that a terminal obeys', async () => {
    const name = 'evil\u001b[31m\nname';
    const folder = makeFolder();
    const given = `agents: [{ name: ${JSON.stringify(name)}, planner: finish(), tools: [] }, `;
    folder.write('pilotage.config.ts', CONFIG.replace('agents: [', given));
    const started = await folder.run(['run', 'a lamp', '--agent', name]);
    expect(started.stderr).toContain('evil␛[31m name: a lamp');
    const inspected = await folder.run(['inspect', runIn(started.stderr)]);
    for (const text of [started.stderr, inspected.stdout]) expect(text).not.toContain('\u001b[31m');
  });
});
