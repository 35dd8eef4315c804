/** Another way from one step on, and whether a run would go the same way today. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type OpenAIServer, openaiServer, type ServerReply } from '#testing';
import { eventsIn, makeFolder, runIn } from './command.ts';
import { operatedFolder } from './operated.ts';

const servers: OpenAIServer[] = [];
afterAll(async () => {
  for (const server of servers) await server.close();
});

async function serve(script: readonly ServerReply[]): Promise<{ server: OpenAIServer; flags: string[] }> {
  const server = await openaiServer(script);
  servers.push(server);
  return { server, flags: ['--base-url', server.url, '--model', 'small'] };
}

const read: ServerReply = { calls: [{ tool: 'read_file', args: { path: 'note.txt' } }] };
const usage = { inputTokens: 1_000, outputTokens: 100 };

/** A run of a model that reads a note and answers. */
async function answered(): Promise<{ folder: ReturnType<typeof makeFolder>; run: string }> {
  const folder = makeFolder();
  folder.write('note.txt', 'the answer is 42\n');
  const { flags } = await serve([
    { ...read, usage },
    { text: 'It is 42.', usage },
  ]);
  const { code, stderr } = await folder.run(['run', 'Read it', ...flags, '--prices', '2,10']);
  expect(code).toBe(0);
  return { folder, run: runIn(stderr) };
}

describe('pilotage fork', () => {
  it('goes another way with another model, goal and result, and shows both runs in decisions and cost', async () => {
    const { folder, run } = await answered();
    const { server, flags } = await serve([{ text: 'It is 7.', usage }]);
    const more = ['--at', '2', '--result', '"the answer is 7"', '--goal', 'Say it', '--prices', '1,1'];
    const { code, stdout, stderr } = await folder.run(['fork', run, ...more, ...flags]);
    expect(code).toBe(0);
    expect(stderr).toMatch(new RegExp(`^⑂ (run_\\w+) is a fork of ${run}: from step 2 on, once calls are held back\n`));
    const sent = JSON.stringify(server.requests[0]?.body.messages);
    expect(sent).toContain('the answer is 7');
    expect(sent).toContain('Say it');
    expect(sent).not.toContain('42');
    const fork = runIn(stderr);
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toEqual([
      'It is 7.',
      `- ${run}  react: Read it`,
      `+ ${fork}  react: Say it`,
      expect.stringMatching(/^- step 1 {2}read_file {"path":"note.txt"} {2}→ .*42/),
      '+ step 1  read_file {"path":"note.txt"}  → "the answer is 7"',
      expect.stringMatching(/^- ended: goal .*It is 42\./),
      expect.stringMatching(/^\+ ended: goal .*It is 7\./),
      '  cost    1 step, 1 call, 2,200 tokens, $0.006000 → 1 step, 1 call, 2,200 tokens, $0.004100',
    ]);
    const { stdout: inspected } = await folder.run(['inspect', fork]);
    expect(inspected).toContain(`fork of  ${run}, from step 2 on, once calls held\n`);
    expect(inspected).toContain('goal     Say it\n');
  });

  it('holds effects back unless they are allowed, and leaves the run as it was', async () => {
    const folder = operatedFolder();
    const run = runIn((await folder.run(['run', 'pay'])).stderr);
    const before = (await folder.run(['inspect', run])).stdout;
    const held = await folder.run(['fork', run, '--at', '1', '--json']);
    expect(held).toMatchObject({ code: 0, stderr: '' });
    const events = eventsIn(held.stdout) as unknown as { type: string }[];
    expect(events.at(-2)).toMatchObject({ type: 'planner.finish', payload: ['effect_held_back'] });
    expect(events.at(-1)).toMatchObject({ type: 'comparison', a: { run }, sameEnding: false });
    const asked = await folder.run(['fork', run, '--at', '1', '--allow-effects']);
    expect(asked.code).toBe(5);
    const fork = runIn(asked.stderr);
    expect(asked.stderr).toContain(`approve ${fork}\n`);
    await folder.run(['approve', fork]);
    expect(await folder.run(['resume', fork])).toMatchObject({ code: 0, stdout: '[{"paid":100}]\n' });
    expect(existsSync(join(folder.path, 'paid.txt'))).toBe(true);
    expect((await folder.run(['inspect', run])).stdout).toBe(before);
  });

  it.each([
    [['--at', '4'], 'the run has taken 1 step. Give 1 to 2.'],
    [['--at', '1', '--result', '1'], 'no call just before step 1'],
    [['--result', '1'], 'step 1 has 3 calls. Say which with --call'],
    [['--result', '1', '--call', '4'], 'from 1 to 3'],
    [['--result', '{'], '--result is not JSON'],
    [['--call', '1'], '--call goes with --result'],
  ])('refuses %j', async (more, text) => {
    const folder = makeFolder();
    const run = runIn((await folder.run(['run', 'x'])).stderr);
    const { code, stdout, stderr } = await folder.run(['fork', run, ...more]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(text);
    expect((await folder.run(['list'])).stdout.trim().split('\n')).toHaveLength(1);
  });
});

describe('pilotage replay', () => {
  it('says that all decisions agree, and calls no tool', async () => {
    const { folder, run } = await answered();
    const { flags, server } = await serve([read, { text: 'It is 42.' }]);
    folder.write('note.txt', 'the answer is 7\n');
    expect(await folder.run(['replay', run, ...flags])).toEqual({
      code: 0,
      stdout: 'All 2 decisions agree.\n',
      stderr: '',
    });
    expect(JSON.stringify(server.requests[1]?.body.messages)).toContain('the answer is 42');
  });

  it('names the first step that would be decided otherwise, and has an exit code for it', async () => {
    const { folder, run } = await answered();
    const { flags, server } = await serve([{ calls: [{ tool: 'git_log', args: {} }] }, { text: 'unasked' }]);
    expect(await folder.run(['replay', run, ...flags])).toEqual({
      code: 7,
      stdout: 'Step 1 would be decided otherwise.\n- recorded  read_file {"path":"note.txt"}\n+ today     git_log\n',
      stderr: '',
    });
    expect(server.requests).toHaveLength(1);
    const { flags: again } = await serve([read, { text: 'It is 7.' }]);
    const asJson = await folder.run(['replay', run, '--json', ...again]);
    expect(asJson.code).toBe(7);
    expect(JSON.parse(asJson.stdout)).toMatchObject({ run, compared: 2, divergence: { step: 1 } });
    expect(await folder.run(['replay', run])).toMatchObject({ code: 2, stderr: expect.stringContaining('--model') });
  });

  it('is without a divergence for a survey, whatever the folder is now', async () => {
    const folder = makeFolder();
    folder.write('README.md', '# A project\n');
    const run = runIn((await folder.run(['run', 'x'])).stderr);
    folder.write('other.txt', 'x');
    expect(await folder.run(['replay', run])).toMatchObject({ code: 0, stdout: 'All 3 decisions agree.\n' });
  });
});
