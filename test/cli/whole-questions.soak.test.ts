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

const ASKING = `
import { defineConfig } from '${builtUrl('src/config/index.ts')}';

const last = ({ trajectory }) => trajectory.step(trajectory.count - 1)?.calls[0]?.outcome;
const booker = {
  name: 'booker',
  tools: [],
  planner: (run) =>
    run.trajectory.count === 0
      ? { decision: { kind: 'request_pause', reason: 'await_input' }, text: 'Which city?\\nAnd which day?' }
      : { kind: 'finish', reason: 'goal', payload: 'Booked for ' + last(run).payload.message },
};
export default defineConfig({
  planner: (run) =>
    run.trajectory.count === 0
      ? { kind: 'call_tool', tool: 'book', args: {} }
      : { kind: 'finish', reason: 'goal', payload: last(run).value },
  tools: [{ name: 'book', description: 'Books a trip.', inputSchema: { type: 'object' }, agent: booker }],
});
`;

describe('a question of a sub-agent', () => {
  it('is shown in its words by run and inspect, and answered through the run above', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', ASKING);
    const asked = await folder.run(['run', 'plan my week']);
    expect(asked.code).toBe(5);
    const run = runIn(asked.stderr);
    const inspected = await folder.run(['inspect', run]);
    for (const shown of [asked.stderr, inspected.stdout]) {
      expect(shown).toMatch(new RegExp(`The task ${run}\\.0\\.0 waits for your message\\.`));
      expect(shown).toMatch(/asks {5}Which city\?\n.* {6,}And which day\?\n/);
    }
    expect(await folder.run(['resume', run, '--message', 'Oslo'])).toMatchObject({
      code: 0,
      stdout: 'Booked for Oslo\n',
    });
  });
});

const CHAT = `
import { defineConfig } from '${builtUrl('src/config/index.ts')}';

const note = { kind: 'call_tool', tool: 'keep', args: { text: 'short' } };
const ask = { kind: 'request_pause', reason: 'await_input' };
const heard = ({ trajectory }) => [
  trajectory.step(0).calls[0].outcome.value,
  trajectory.step(1).calls[0].outcome.payload.message.length,
  ...trajectory.steering.map(({ control }) => control.payload.message.length),
];
export default defineConfig({
  planner: (run) => [note, ask][run.trajectory.count] ?? { kind: 'finish', reason: 'goal', payload: heard(run) },
  tools: [{
    name: 'keep',
    description: 'Keeps a text.',
    inputSchema: { type: 'object' },
    needsApproval: true,
    execute: ({ text }) => text.length,
  }],
});
`;

describe('what is said in 50,000 characters', () => {
  it('by one process after the other is heard whole, and shown whole by inspect', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', CHAT);
    const long = (word: string): string => `${word} ${'x'.repeat(50_000)}`;
    const run = runIn((await folder.run(['run', 'keep a note'])).stderr);
    expect(await folder.run(['approve', run, '--args', JSON.stringify({ text: long('args') })])).toMatchObject({
      code: 0,
    });
    expect(await folder.run(['resume', run])).toMatchObject({ code: 5 });
    expect(await folder.run(['send', run, long('message')])).toMatchObject({ code: 0 });
    expect(await folder.run(['send', run, long('second')])).toMatchObject({ code: 0 });
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: '[50005,50008,50007]\n' });
    const { stdout } = await folder.run(['inspect', run]);
    for (const word of ['args', 'message', 'second']) expect(stdout.split(long(word))).toHaveLength(2);
  });
});

const BOOKING = `
import { defineConfig } from '${builtUrl('src/config/index.ts')}';

const last = ({ trajectory }) => trajectory.step(trajectory.count - 1)?.calls[0]?.outcome;
const calls = ['book', 'name', 'name'].map((tool) => ({ kind: 'call_tool', tool, args: {} }));
const schema = { type: 'object', properties: { nights: { type: 'integer' } }, required: ['nights'] };
const made = (name, execute) => ({ name, description: name, inputSchema: { type: 'object' }, effect: 'pure', execute });
export default defineConfig({
  planner: (run) => calls[run.trajectory.count] ?? { kind: 'finish', reason: 'goal', payload: run.trajectory.steps.map((step) => step.calls[0].outcome.value ?? step.calls[0].outcome.error.code) },
  tools: [
    made('book', (_, context) => context.ask({ question: 'How many nights?', schema, payload: { city: 'Oslo' } })),
    made('name', (_, context) => context.ask({ question: 'In which name?' })),
  ],
});
`;

describe('a question of a call', () => {
  it('is shown with its form, and answered, in words too, or declined', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', BOOKING);
    const asked = await folder.run(['run', 'a trip']);
    expect(asked.code).toBe(5);
    const run = runIn(asked.stderr);
    expect(asked.stderr).toContain('The run waits for an answer: book asks: How many nights?');
    expect(asked.stderr).toContain('"city": "Oslo"');
    expect(asked.stderr).toContain(`answer ${run} --value '{"nights":1}'`);
    const refused = await folder.run(['answer', run, '--value', '{"nights":"two"}']);
    expect(refused.code).toBe(6);
    const asJson = await folder.run(['answer', run, '--value', '{"nights":"two"}', '--json']);
    expect({ ...asJson, stdout: JSON.parse(asJson.stdout) }).toMatchObject({
      code: 6,
      stdout: { state: 'refused', error: { code: 'payload_invalid' } },
    });
    expect(refused.stderr + refused.stdout).toContain('/nights: must be integer');
    expect(await folder.run(['answer', run, '--value', '{"nights":2}'])).toMatchObject({ code: 0 });
    const next = await folder.run(['resume', run]);
    expect(next.code).toBe(5);
    expect(next.stderr).toContain(`resume ${run} --message`);
    expect(await folder.run(['resume', run, '--message', 'Ana'])).toMatchObject({ code: 5 });
    expect(await folder.run(['reject', run, '--reason', 'no more'])).toMatchObject({ code: 0 });
    const ended = await folder.run(['resume', run]);
    expect(ended).toMatchObject({ code: 0 });
    expect(JSON.parse(ended.stdout)).toEqual([{ nights: 2 }, 'Ana', 'question_declined']);
  });
});
