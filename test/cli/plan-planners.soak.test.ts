/** The planners of the package behind `pilotage plan`: each makes its plan, and shows it before anything runs. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type OpenAIServer, openaiServer, type ServerHandler, type ServerReply } from '#testing';
import { builtUrl } from '../kit/built.ts';
import { type Folder, makeFolder, runIn } from './command.ts';

const INDEX = builtUrl('src/config/index.ts');
const planners = (name: string): string => builtUrl(`src/planners/${name}/index.ts`);

const servers: OpenAIServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(
  script: readonly ServerReply[] | ServerHandler,
): Promise<{ server: OpenAIServer; flags: string[] }> {
  const server = await openaiServer(script);
  servers.push(server);
  return { server, flags: ['--base-url', server.url, '--model', 'small'] };
}

const submitted = (steps: readonly object[]): ServerReply => ({
  calls: [{ tool: 'submit_plan', args: { planId: 'notes', steps } as never }],
});
const read = { id: 'note', type: 'tool', toolId: 'read_file', input: { path: 'note.txt' } };
const list = { id: 'list', type: 'tool', toolId: 'list_files', input: { path: '.', depth: 1 } };
const end = { id: 'end', type: 'finish', input: { $from: 'note', path: '/path' }, after: ['list'] };
const good = submitted([{ ...list, after: [] }, { ...read, after: [] }, end]);
const bad = submitted([{ ...read, toolId: 'delete_file' }]);

const TREE = `plan notes: 3 nodes (2 ready, 1 waiting)
├─ ○ list  list_files {"path":".","depth":1}  ready
└─ ○ note  read_file {"path":"note.txt"}  ready
   └─ · end  finish {"$from":"note","path":"/path"}  (after list)  waiting

1  ○ list ready   ○ note ready
   list, note ──▶ end
2  · end waiting
`;

function folderWithNote(config?: string): Folder {
  const folder = makeFolder();
  folder.write('note.txt', 'the answer is 42\n');
  if (config !== undefined) folder.write('pilotage.config.ts', config);
  return folder;
}

describe('pilotage plan with a model', () => {
  it('has the model write a plan where no planner is configured, shows it, carries it out and answers', async () => {
    const folder = folderWithNote();
    const { server, flags } = await serve([good]);
    const { code, stdout, stderr } = await folder.run(['plan', 'Read the note', ...flags]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'note.txt\n' });
    expect(stderr).toContain(TREE);
    expect(stderr).toMatch(/try 1 \(plan\) {2}small with plan \d+ {2}valid/);
    expect(stderr).toContain('plan notes: 3 nodes (3 done)');
    expect(JSON.stringify(server.requests[0]?.body.messages)).toContain('Read the note');
  });

  it('AG-24 shows what was wrong with a plan that was asked for again', async () => {
    const { flags } = await serve([bad, good]);
    const { code, stdout, stderr } = await folderWithNote().run(['plan', 'Read the note', '--dry-run', ...flags]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: TREE });
    expect(stderr).toMatch(/try 1 \(plan\) .*not valid: .*delete_file/);
    expect(stderr).toMatch(/try 2 \(repair\) .*valid/);
  });

  it('AG-26 ends as refused when the model gives no plan, and runs nothing', async () => {
    const folder = folderWithNote();
    const { flags } = await serve(() => bad);
    const { code, stdout, stderr } = await folder.run(['plan', 'Read the note', '--dry-run', ...flags]);
    expect(code).toBe(1);
    expect(stdout).toContain('No plan, but one decision: finishes no_path');
    expect(stderr).toContain('! no plan from the models (exhausted): there is no fallback');
    expect(existsSync(join(folder.path, '.pilotage'))).toBe(false);
  });

  it('is resumed by the planner that made the plan', async () => {
    const folder = folderWithNote();
    const { flags } = await serve([good]);
    const started = await folder.run(['plan', 'Read the note', ...flags, '--max-steps', '1']);
    expect(started.code).toBe(5);
    const run = runIn(started.stderr);
    const resumed = await folder.run(['resume', run, ...flags, '--max-steps', '3']);
    expect(resumed).toMatchObject({ code: 0, stdout: 'note.txt\n' });
    const without = await folder.run(['fork', run]);
    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('The run was started with a model.') });
  });

  it('takes the model of a configured pipeline, or another one in its place', async () => {
    const [own, other] = [await serve([good]), await serve([good])];
    const model = JSON.stringify({ baseUrl: own.server.url, model: 'own' });
    const config = `export default { planner: { driver: 'pipeline', model: ${model} } };`;
    const folder = folderWithNote(config);
    expect(await folder.run(['plan', 'x', '--dry-run'])).toMatchObject({ code: 0, stdout: TREE });
    expect(await folder.run(['plan', 'x', '--dry-run', ...other.flags])).toMatchObject({ code: 0, stdout: TREE });
    expect([own, other].map(({ server }) => server.requests.map(({ body }) => body.model))).toEqual([
      ['own'],
      ['small'],
    ]);
    expect(await folder.run(['plan', 'x', '--chat'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--chat is for a react planner'),
    });
  });

  it('shows the first decision of a react planner that is configured', async () => {
    const { server } = await serve([{ calls: [{ tool: 'read_file', args: { path: 'note.txt' } }] }]);
    const model = JSON.stringify({ baseUrl: server.url, model: 'small' });
    const folder = folderWithNote(`export default { planner: { driver: 'react', model: ${model} } };`);
    expect(await folder.run(['plan', 'x', '--dry-run'])).toMatchObject({
      code: 0,
      stdout: 'No plan, but one decision: read_file {"path":"note.txt"}\n',
    });
  });
});

describe('pilotage plan without a model', () => {
  it('shows the plan of a graph planner, and all that is wrong with one that cannot be carried out', async () => {
    const config = (steps: readonly object[]): string =>
      `export default { planner: { driver: 'graph', plan: { planId: 'notes', steps: ${JSON.stringify(steps)} } } };`;
    const folder = folderWithNote(config([{ ...list, after: [] }, { ...read, after: [] }, end]));
    expect(await folder.run(['plan', 'x', '--dry-run'])).toEqual({ code: 0, stdout: TREE, stderr: '' });
    folder.write(
      'pilotage.config.ts',
      config([
        { ...list, toolId: 'ls' },
        { ...read, input: {} },
      ]),
    );
    const refused = await folder.start(['plan', 'x', '--dry-run']).done;
    expect(refused).toMatchObject({ code: 3, stdout: '' });
    expect(refused.stderr).toContain('✗ failed: plan_invalid: ');
    expect(refused.stderr).toMatch(/\n {4}.*"list".*\n {4}.*"note"/);
  });

  it('shows the first step of rules', async () => {
    const folder = folderWithNote(`
import { defineConfig } from '${INDEX}';
import { rules } from '${builtUrl('src/planners/rules/rules.ts')}';
const read = { id: 'note', type: 'tool', toolId: 'read_file', input: { path: 'note.txt' } };
const rule = { id: 'read', match: ({ stepCount }) => stepCount === 0, toPlanStep: () => read };
export default defineConfig({ planner: rules({ rules: [rule] }) });
`);
    expect(await folder.run(['plan', 'x', '--dry-run'])).toMatchObject({
      code: 0,
      stdout: 'No plan, but one decision: read_file {"path":"note.txt"}\n',
    });
  });

  it('shows the plan of an htn planner, and how it was found, or why none was', async () => {
    const folder = folderWithNote(`
import { defineConfig } from '${INDEX}';
import { htn, htnDomain } from '${planners('htn')}';
const domain = htnDomain({
  operators: { list: () => true, read: (state, path) => state.get('there', path) === true },
  tasks: { study: { known: () => false, looked_up: (_, path) => [['list'], ['read', path]] } },
});
const tools = { list: ['list_files', { path: '.', depth: 1 }], read: ['read_file'] };
export default defineConfig({
  planner: htn({
    domain,
    state: () => ({ there: [['note.txt', true]] }),
    todo: ({ goal }) => [['study', goal]],
    step: ([name, path]) => ({ type: 'tool', toolId: tools[name][0], input: tools[name][1] ?? { path } }),
  }),
});
`);
    const found = await folder.run(['plan', 'note.txt', '--dry-run']);
    expect(found.code).toBe(0);
    expect(found.stdout).toMatch(/^plan \S+ 2 nodes \(1 ready, 1 waiting\)\n└─ ○ \S+ {2}list_files/);
    expect(found.stdout).toContain(`
decomposition:
✓ study(note.txt)
  ✗ by known: does not apply
  ✓ by looked_up
    ✓ list()
    ✓ read(note.txt)
`);
    const none = await folder.run(['plan', 'other.txt', '--dry-run']);
    expect(none.code).toBe(1);
    expect(none.stdout).toContain('✗ read(other.txt): its precondition does not hold');
    const run = runIn((await folder.run(['plan', 'note.txt'])).stderr);
    expect((await folder.run(['plan', '--run', run])).stdout).toContain('  ✓ by looked_up\n');
  });
});
