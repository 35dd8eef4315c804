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

/** Agents, and nothing else: the first answers with its own name, and the second waits for an approval. */
const AGENTS_ALONE = `
import { defineConfig } from '${CONFIG_FACE}';
import { edge, flow, node } from '${FLOW}';
const inputSchema = { type: 'object' };
const read = node('read', { effect: 'pure', inputSchema, execute: () => 'read' });
const send = node('send', { effect: 'once', needsApproval: true, execute: () => 'sent' });
const look = { name: 'look', description: 'Looks.', inputSchema, effect: 'read', execute: () => 'seen' };
const next = ({ trajectory: { count } }) => count > 0
  ? { kind: 'finish', reason: 'goal', payload: 'greeted' }
  : { kind: 'call_parallel', plan: 'p', branches: [{ tool: 'look', args: {}, callId: 'first' }] };
export default defineConfig({
  agents: [
    { name: 'greet', planner: { name: 'greeter', next }, tools: [look] },
    flow({ name: 'ship', inputSchema, entry: read, exit: send, edges: [edge(read, send)] }),
  ],
});
`;

describe('a configuration with agents alone', () => {
  it('takes the first agent, also for a plan, and the others by their names; no model is asked for', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', AGENTS_ALONE);
    const env = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_MODEL: 'nobody' };
    const greeted = await folder.run(['run', 'hello'], env);
    expect(greeted).toMatchObject({ code: 0, stdout: 'greeted\n' });
    expect(greeted.stderr).toContain('greet: hello');
    const planned = await folder.run(['plan', 'hello', '--dry-run']);
    expect(planned.code).toBe(0);
    expect(planned.stdout).toContain('look');
    const run = runIn((await folder.run(['run', 'a lamp', '--agent', 'ship', '--input', '{}'])).stderr);
    expect(await folder.run(['approve', run])).toMatchObject({ code: 0 });
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: 'sent\n' });
    const unknown = await folder.run(['run', 'q', '--agent', 'nope']);
    expect(unknown.stderr).toContain('has no agent "nope", only greet, ship');
  });

  it('refuses options about a model or a folder, which no agent would heed', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', AGENTS_ALONE);
    const priced = await folder.run(['run', 'hello', '--prices', '1,2']);
    expect(priced).toMatchObject({ code: 2 });
    expect(priced.stderr).toContain('the configuration has another one');
    const fenced = await folder.run(['run', 'hello', '--workspace', '.']);
    expect(fenced).toMatchObject({ code: 2 });
    expect(fenced.stderr).toContain('the configuration has tools of its own');
  });

  it('still asks for a model when there is no agent, or tools that need a planner', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', 'export default { agents: [] };');
    expect(await folder.run(['run', 'hello'])).toMatchObject({ code: 2 });
    folder.write('pilotage.config.ts', AGENTS_ALONE.replace('agents: [', 'tools: [look], agents: ['));
    expect(await folder.run(['run', 'hello'])).toMatchObject({ code: 2 });
  });
});

describe('pilotage run --agent', () => {
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
