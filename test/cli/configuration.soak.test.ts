/** What a run is made with comes from the folder's configuration, and the command line has the last word. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createRuntime, local } from '#pilotage';
import { loadConfig } from '#pilotage/config';
import { finish } from '#planners/finish';
import { type OpenAIServer, openaiServer, type ServerHandler } from '#testing';
import { builtUrl } from '../kit/built.ts';
import { makeFolder, runIn } from './command.ts';
import { operatedFolder } from './operated.ts';

const INDEX = builtUrl('src/config/index.ts');

const servers: OpenAIServer[] = [];
afterAll(async () => {
  for (const server of servers) await server.close();
});

async function serve(handler: ServerHandler): Promise<OpenAIServer> {
  const server = await openaiServer(handler);
  servers.push(server);
  return server;
}

/** A react planner on that server, with one tool. */
function reactConfig(model: string): string {
  return `
import { defineConfig } from '${INDEX}';
const weather = {
  name: 'weather', description: 'Weather', inputSchema: { type: 'object' }, effect: 'read', execute: () => ({ sky: 'clear' }),
};
export default defineConfig({
  planner: { ${model} guidance: 'Answer in one word.' },
  tools: [weather],
  limits: { steps: 3 },
  planningHints: { constraints: 'Stay in Oslo.' },
});
`;
}

describe('pilotage.config.ts', () => {
  it('gives planner, model, tools, hints and limits; --model comes first', async () => {
    const folder = makeFolder();
    const own = await serve(() => ({ text: 'Sun' }));
    const other = await serve(() => ({ text: 'Rain' }));
    folder.write('pilotage.config.ts', reactConfig(`model: { baseUrl: '${own.url}', model: 'own' },`));
    expect(await folder.run(['run', 'Oslo?'])).toMatchObject({ code: 0, stdout: 'Sun\n' });
    const request = JSON.stringify(own.requests[0]?.body);
    for (const part of ['Answer in one word.', 'Stay in Oslo.', '"name":"weather"', '"model":"own"']) {
      expect(request).toContain(part);
    }
    expect(request).not.toContain('read_file');
    const flags = ['--base-url', other.url, '--model', 'small'];
    expect(await folder.run(['run', 'Oslo?', ...flags])).toMatchObject({ code: 0, stdout: 'Rain\n' });
    expect(JSON.stringify(other.requests[0]?.body)).toContain('Answer in one word.');
    expect(own.requests).toHaveLength(1);
  });

  it('may leave the model to the environment, and the limits to the command line', async () => {
    const folder = makeFolder();
    folder.write('conf/pilotage.config.ts', reactConfig(''));
    const server = await serve(() => ({ calls: [{ tool: 'weather', args: {} }] }));
    const env = { OPENAI_BASE_URL: server.url, OPENAI_MODEL: 'big' };
    const config = ['--config', 'conf/pilotage.config.ts'];
    const paused = await folder.run(['run', 'x', ...config], env);
    expect(paused.code).toBe(5);
    expect(server.requests).toHaveLength(3);
    const run = runIn(paused.stderr);
    expect(paused.stderr).toContain(`resume ${run} --config conf/pilotage.config.ts --max-steps 6`);
    expect((await folder.run(['run', 'x', ...config, '--max-steps', '1'], env)).code).toBe(5);
    expect(server.requests).toHaveLength(4);
    const none = await folder.run(['run', 'x', ...config]);
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('planner.model is missing') });
  });

  it('says where the journal is, also to the commands that need nothing else; --journal comes first', async () => {
    const folder = operatedFolder();
    const run = runIn((await folder.run(['run', 'pay'])).stderr);
    expect(existsSync(join(folder.path, 'kept/runs.db'))).toBe(true);
    expect(runIn((await folder.run(['list'])).stdout)).toBe(run);
    const away = await folder.run(['list', '--journal', 'other.db']);
    expect(away).toMatchObject({ code: 4, stderr: expect.stringContaining('other.db') });
    const other = await folder.run(['run', 'pay', '--journal', 'other.db']);
    expect(other.stderr).toContain(`approve ${runIn(other.stderr)} --journal other.db`);
    expect(existsSync(join(folder.path, 'other.db'))).toBe(true);
  });

  it.each([
    ['a file that is not there', ['list', '--config', 'no.ts'], 'does not exist'],
    ['tools of its own beside --workspace', ['run', 'x', '--workspace', '.'], '--workspace is for tools'],
    ['a model for another planner', ['run', 'x', '--model', 'm', '--base-url', 'http://127.0.0.1:1/v1'], 'another one'],
    ['a chat with another planner', ['run', 'x', '--chat'], 'another one'],
  ])('refuses %s', async (_, args, text) => {
    const { code, stdout, stderr } = await operatedFolder().run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(text);
  });

  it('refuses one that cannot be read or is wrong, and names the key', async () => {
    const folder = makeFolder();
    folder.write('pilotage.config.ts', 'export default { planer: {} };');
    const wrong = await folder.run(['run', 'x']);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean planner?') });
    folder.write('pilotage.config.ts', "throw new Error('broken')");
    expect(await folder.start(['run', 'x']).done).toMatchObject({ code: 2, stderr: expect.stringContaining('broken') });
    expect(existsSync(join(folder.path, '.pilotage'))).toBe(false);
  });
});

describe('a run of another of the configured planners', () => {
  it('is listed, approved and resumed; the main planner needs no model for that', async () => {
    const folder = makeFolder();
    folder.write(
      'pilotage.config.ts',
      `
import { defineConfig } from '${INDEX}';
const pay = {
  name: 'pay', description: 'Pays', inputSchema: { type: 'object' }, needsApproval: true, execute: () => 'paid',
};
const next = (run) => run.trajectory.count === 0
  ? { kind: 'call_tool', tool: 'pay', args: {} }
  : { kind: 'finish', reason: 'goal', payload: run.trajectory.steps[0].calls[0].outcome.value };
export default defineConfig({
  planner: { guidance: 'Answer in one word.' },
  agents: [{ name: 'pay', planner: { name: 'pay', next }, tools: [pay] }],
  journal: 'runs.db',
});
`,
    );
    const { journal, agents = [] } = await loadConfig(join(folder.path, 'pilotage.config.ts'));
    const runtime = createRuntime({ planner: finish(), agents, ...(journal === undefined ? {} : { journal }) });
    const run = await runtime.start('q', { identity: local('ana'), agent: 'pay' });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await runtime.close();
    expect((await folder.run(['list'])).stdout).toContain(run.id);
    expect(await folder.run(['resume', run.id])).toMatchObject({ code: 5 });
    expect((await folder.run(['approve', run.id])).code).toBe(0);
    expect(await folder.run(['resume', run.id])).toMatchObject({ code: 0, stdout: 'paid\n' });
    expect(await folder.run(['replay', run.id])).toMatchObject({ code: 0, stdout: 'All 2 decisions agree.\n' });
    // A run of its main agent does need one.
    const none = await folder.run(['run', 'q']);
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('planner.model is missing') });
  });
});

describe('a run whose code has changed', () => {
  it('is not gone on with: each difference has a line; --accept-changes goes on, and is shown', async () => {
    const folder = operatedFolder();
    const run = runIn((await folder.run(['run', 'pay'])).stderr);
    expect((await folder.run(['approve', run])).code).toBe(0);
    const env = { VERSION: '2', AMOUNT: 'integer' };
    const refused = await folder.start(['resume', run], env).done;
    expect(refused).toMatchObject({ code: 6, stdout: '' });
    expect(refused.stderr.split('\n')).toEqual([
      'pilotage: The run was started with other code than this (run_changed):',
      '  planner version: 1 → 2',
      expect.stringMatching(/^ {2}tool pay: \w+ → \w+$/),
      `If it may go on all the same: pilotage resume ${run} --accept-changes`,
      '',
    ]);
    expect((await folder.run(['list', '--status', 'paused'])).stdout).toContain(run);
    const accepted = await folder.start(['resume', run, '--accept-changes'], env).done;
    expect(accepted).toMatchObject({ code: 0, stdout: '[{"paid":100}]\n' });
    expect((await folder.run(['inspect', run])).stdout).toContain('▶ goes on with changed code (agent operated)');
  });

  it('is accepted for the run and its task, when the task was answered', async () => {
    const folder = operatedFolder();
    const run = runIn((await folder.run(['run', 'task pay'])).stderr);
    expect((await folder.run(['approve', run])).code).toBe(0);
    const env = { VERSION: '2' };
    const refused = await folder.start(['resume', run], env).done;
    expect(refused).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('planner version: 1 → 2') });
    const accepted = await folder.start(['resume', run, '--accept-changes'], env).done;
    expect(accepted).toMatchObject({ code: 0, stdout: expect.stringContaining('{"paid":100}') });
    expect((await folder.run(['inspect', run])).stdout).toContain('▶ goes on with changed code (agent operated)');
  });

  it('of another planner needs its configuration, or the same word', async () => {
    const folder = operatedFolder();
    const run = runIn((await folder.run(['run', 'pay'])).stderr);
    const elsewhere = makeFolder();
    const there = ['--journal', join(folder.path, 'kept/runs.db')];
    const lost = await elsewhere.run(['resume', run, ...there]);
    expect(lost).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('--config') });
    elsewhere.write('pilotage.config.ts', "export default { planner: { driver: 'finish' }, tools: [] };");
    await folder.run(['approve', run]);
    const refused = await elsewhere.run(['resume', run, ...there]);
    expect(refused.code).toBe(6);
    expect(refused.stderr).toContain('  agent: operated → finish\n');
    expect(refused.stderr).toContain('  tool pay: is gone\n');
  });
});
