/** Plans by the command: shown before and while they run, made without being run, shown of a stored run, changed. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PlanView } from '#state';
import { type Folder, makeFolder, runIn } from './command.ts';
import { plannedFolder } from './planned.ts';

const callsIn = ({ path }: Folder): string[] => readFileSync(join(path, 'calls.txt'), 'utf8').trim().split('\n').sort();
const steady = (text: string): string => text.replaceAll(/\d+(\.\d+)? m?s\b/g, 'TIME');
const jsonIn = (stdout: string): unknown[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('pilotage plan', () => {
  it('shows the plan before and while it runs, each node by its name, and then what became of it', async () => {
    const folder = plannedFolder();
    const { code, stdout, stderr } = await folder.run(['plan', 'fail']);
    const outcomes = '[{"order":"A-17"},"tool_failed","branch_not_started","Found."]\n';
    expect({ code, stdout }).toEqual({ code: 0, stdout: outcomes });
    expect(steady(stderr).replace(runIn(stderr), 'RUN')).toBe(`▶ RUN  planned: fail
● step 1  plan refund of 4 nodes  TIME
plan refund: 4 nodes (1 ready, 3 waiting)
└─ ○ order  look_up {"order":"A-17"}  ready
   ├─ · courier  ask_courier {"order":"lost"}  waiting
   │  └─ · photo  look_up {"order":"photo"}  waiting
   └─ · say  message "Found."  waiting

1  ○ order ready
   order ──▶ courier, say
2  · courier waiting   · say waiting
   courier ──▶ photo
3  · photo waiting
  ✓ order  look_up  {"order":"A-17"}  TIME
  ✗ courier  ask_courier  {"order":"lost"}  TIME  tool_failed: Nobody answers.
  – photo  look_up  {"order":"photo"}  TIME  branch_not_started: The branch needs courier, which did not end with a value.
  ✎ say  “Found.”
● step 2  is done  TIME
■ finished: goal
plan refund: 4 nodes (2 done, 1 failed, 1 skipped)
└─ ✓ order  look_up {"order":"A-17"}  done
   ├─ ✗ courier  ask_courier {"order":"lost"}  failed: tool_failed
   │  └─ – photo  look_up {"order":"photo"}  skipped: courier failed
   └─ ✓ say  message "Found."  done
1 step, 2 calls
`);
  });

  it('AG-45 of a stored run: what has ended, what waits for whom, and how it is answered; messages are told once', async () => {
    const folder = plannedFolder();
    const started = await folder.run(['plan', 'refund']);
    expect(started.code).toBe(5);
    const run = runIn(started.stderr);
    const stored = await folder.run(['plan', '--run', run]);
    expect(stored).toMatchObject({
      code: 0,
      stdout: `plan refund: 5 nodes (3 done, 1 paused, 1 waiting)
├─ ✓ order  look_up {"order":"A-17"}  done
│  └─ ‖ pay  pay {"order":{"$from":"order","path":"/order"}}  paused
│     └─ · say  message "Paid back."  waiting
└─ ✓ courier  ask_courier {"order":"A-17"}  done
   └─ ✓ photo  look_up {"order":"photo"}  done

1  ✓ order done   ✓ courier done
   order ──▶ pay
   courier ──▶ photo
2  ✓ photo done   ‖ pay paused
   pay ──▶ say
3  · say waiting
`,
      stderr: expect.stringContaining(`approve ${run}\n`),
    });
    await folder.run(['approve', run]);
    const resumed = await folder.run(['resume', run]);
    expect(resumed.code).toBe(0);
    expect(resumed.stderr).toMatch(/✓ pay {2}pay .*\n {2}✎ say {2}“Paid back\.”\n/);
    const ended = await folder.run(['plan', '--run', run]);
    expect(ended.stdout).toContain('plan refund: 5 nodes (5 done)');
    expect(ended.stderr).toBe('');
    expect((await folder.run(['resume', run])).stderr).not.toContain('Paid back');
    expect(callsIn(folder)).toEqual(['ask_courier', 'look_up', 'look_up', 'pay A-17']);
  });

  it('inspect names the nodes, and has the plan as a tree', async () => {
    const folder = plannedFolder();
    const run = runIn((await folder.run(['plan', 'fail'])).stderr);
    const { stdout } = await folder.run(['inspect', run]);
    expect(stdout).toMatch(/● step 1 {2}plan refund of 4 nodes/);
    expect(stdout).toMatch(/✓ order {2}look_up {2}\{"order":"A-17"\}/);
    expect(stdout).toContain('\n   │  └─ – photo  look_up {"order":"photo"}  skipped: courier failed\n');
  });

  it('names the nodes of a plan also when it is killed and resumed', async () => {
    const folder = plannedFolder();
    const { child, untilOutput, done } = folder.start(['plan', 'hold']);
    await untilOutput(/2 {2}· first waiting/);
    child.kill('SIGKILL');
    const run = runIn((await done).stderr);
    folder.write('go', '');
    const { code, stderr } = await folder.run(['resume', run]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/✓ wait {2}hold/);
    expect(stderr).toMatch(/✓ second {2}look_up/);
  });

  it('--json has the events, and among them the plan as it is made and as it ends', async () => {
    const { code, stdout } = await plannedFolder().run(['plan', 'fail', '--json']);
    const lines = jsonIn(stdout) as ({ type: string } & Partial<PlanView>)[];
    expect(code).toBe(0);
    const plans = lines.filter(({ type }) => type === 'plan');
    expect(plans.map(({ nodes }) => nodes?.map(({ id, status }) => `${id} ${status}`))).toEqual([
      ['order ready', 'courier waiting', 'photo waiting', 'say waiting'],
      ['order done', 'courier failed', 'photo skipped', 'say done'],
    ]);
    expect(lines.map(({ type }) => type)).toContain('tool.completed');
  });

  it('--run --json prints the plan alone', async () => {
    const folder = plannedFolder();
    const run = runIn((await folder.run(['plan', 'fail'])).stderr);
    const { stdout } = await folder.run(['plan', '--run', run, '--json']);
    const [plan, ...rest] = jsonIn(stdout) as PlanView[];
    expect(rest).toEqual([]);
    expect(plan).toMatchObject({ plan: 'refund', step: 0, growing: false });
    expect(plan?.nodes[2]).toMatchObject({ id: 'photo', after: ['courier'], error: { code: 'branch_not_started' } });
  });

  it('shows a plan that grows when it is whole, and runs what it has before', async () => {
    const { code, stderr } = await plannedFolder().run(['plan', 'grow']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/● step 1 {2}plan refund of 1 node, and more to come/);
    expect(stderr).toMatch(/the plan is whole: 2 nodes\nplan refund: 2 nodes \(1 ready, 1 waiting\)/);
    expect(stderr).toMatch(/plan refund: 2 nodes \(2 done\)/);
  });

  it('says so when the planner fails before its plan is whole', async () => {
    const { stderr } = await plannedFolder().run(['plan', 'break']);
    expect(stderr).toContain('! the plan ends at 1 node: plan_interrupted: ');
  });

  it('lets nothing that a plan says command the terminal', async () => {
    const folder = plannedFolder();
    const { code, stdout, stderr } = await folder.run(['plan', 'evil']);
    expect(code).toBe(0);
    const inspected = await folder.run(['inspect', runIn(stderr)]);
    const shown = await folder.run(['plan', '--run', runIn(stderr)]);
    expect(stderr).toContain('a␛[31m');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    const commanding = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;
    for (const text of [stdout, stderr, inspected.stdout, shown.stdout]) expect(text).not.toMatch(commanding);
  });

  it('refuses what it cannot do', async () => {
    const folder = plannedFolder();
    const refused = async (...args: string[]): Promise<string> => {
      const { code, stderr } = await folder.run(['plan', ...args]);
      expect(code).toBe(2);
      return stderr;
    };
    expect(await refused()).toContain('plan takes one goal, in quotes, or --run with a run.');
    expect(await refused('goal', '--run', 'run_1')).toContain('plan takes either a goal or --run.');
    expect(await refused('--run', 'run_1', '--dry-run')).toContain('--dry-run is for a goal');
    expect(await refused('goal', '--dry-run', '--session', 's')).toContain('--session is for runs that are stored');
    const { stderr } = await folder.run(['plan', 'one call']);
    expect(await refused('--run', runIn(stderr))).toContain('The run has carried out no plan');
    expect(await refused('--run', 'run_1')).toContain('run_1');
  });

  it('says what it needs where there is neither a configuration nor a model', async () => {
    const { code, stderr } = await makeFolder().run(['plan', 'goal']);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('Nobody can make a plan here') });
  });
});

describe('pilotage plan --dry-run', () => {
  it('shows the plan as a tree and as a graph; nothing is run, and nothing is stored', async () => {
    const folder = plannedFolder();
    expect(await folder.run(['plan', 'refund', '--dry-run'])).toEqual({
      code: 0,
      stderr: '',
      stdout: `plan refund: 5 nodes (2 ready, 3 waiting)
├─ ○ order  look_up {"order":"A-17"}  ready
│  └─ · pay  pay {"order":{"$from":"order","path":"/order"}}  waiting
│     └─ · say  message "Paid back."  waiting
└─ ○ courier  ask_courier {"order":"A-17"}  ready
   └─ · photo  look_up {"order":"photo"}  waiting

1  ○ order ready   ○ courier ready
   order ──▶ pay
   courier ──▶ photo
2  · photo waiting   · pay waiting
   pay ──▶ say
3  · say waiting
`,
    });
    expect(existsSync(join(folder.path, 'calls.txt'))).toBe(false);
    expect(existsSync(join(folder.path, 'kept'))).toBe(false);
  });

  it('--json prints it as one line', async () => {
    const { stdout } = await plannedFolder().run(['plan', 'refund', '--dry-run', '--json']);
    const lines = jsonIn(stdout) as PlanView[];
    expect(lines).toHaveLength(1);
    expect(lines[0]?.nodes.map(({ id, after }) => [id, ...after])).toEqual([
      ['order'],
      ['courier'],
      ['photo', 'courier'],
      ['pay', 'order'],
      ['say', 'pay'],
    ]);
  });

  it('waits for the whole of a plan that grows, and shows what there is of one that fails', async () => {
    const folder = plannedFolder();
    const whole = await folder.run(['plan', 'grow', '--dry-run']);
    expect(whole).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('plan refund: 2 nodes (1 ready, 1 waiting)'),
    });
    const broken = await folder.run(['plan', 'break', '--dry-run']);
    expect(broken).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('plan refund: 1 node (1 ready)'),
      stderr: expect.stringContaining('The rest of the plan was not readable.'),
    });
    expect(existsSync(join(folder.path, 'calls.txt'))).toBe(false);
  });

  it('shows the decision of a planner that does not plan ahead', async () => {
    const folder = plannedFolder();
    expect(await folder.run(['plan', 'one call', '--dry-run'])).toMatchObject({
      code: 0,
      stdout: 'No plan, but one decision: look_up {"order":"A-17"}\n',
    });
    const { stdout } = await folder.run(['plan', 'one call', '--dry-run', '--json']);
    expect(jsonIn(stdout)).toEqual([{ decision: { kind: 'call_tool', tool: 'look_up', args: { order: 'A-17' } } }]);
  });

  it('has the exit code of a refusal when there is no plan, and names every fault', async () => {
    const folder = plannedFolder();
    const given = await folder.run(['plan', 'give up', '--dry-run']);
    expect(given).toMatchObject({ code: 1, stdout: 'No plan, but one decision: finishes no_path There is no way.\n' });
    const cycle = await folder.run(['plan', 'cycle', '--dry-run']);
    expect(cycle).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining('✗ failed: invalid_decision: '),
    });
    const thrown = await folder.run(['plan', 'throw', '--dry-run']);
    expect(thrown).toMatchObject({
      code: 3,
      stdout: '',
      stderr: `✗ failed: plan_invalid: The plan cannot be carried out.
    The step a has an unknown tool.
    b and c wait for each other.
`,
    });
  });
});

describe('a plan that is paused', () => {
  async function held(): Promise<{ folder: Folder; run: string }> {
    const folder = plannedFolder();
    const { untilOutput, done } = folder.start(['plan', 'hold']);
    await untilOutput(/2 {2}· first waiting/);
    const [, run = ''] = /\b(run_[0-9a-z]+)/.exec((await folder.run(['list'])).stdout) ?? [];
    expect((await folder.run(['pause', run])).code).toBe(0);
    folder.write('go', '');
    expect((await done).code).toBe(5);
    return { folder, run };
  }

  it('is changed by hand: other arguments, a node taken out; what has ended is not run again', async () => {
    const { folder, run } = await held();
    expect((await folder.run(['plan', '--run', run])).stdout).toContain('(1 done, 2 ready)');
    const nodes = { first: { args: { order: 'other' } }, second: { skip: true } };
    const { code, stdout, stderr } = await folder.run(['resume', run, '--nodes', JSON.stringify(nodes)]);
    expect(stderr).toContain('with {"first":{"args":{"order":"other"}},"second":{"skip":true}}\n');
    expect(stderr).toContain('✓ first  look_up  {"order":"other"}');
    expect({ code, stdout }).toEqual({ code: 0, stdout: '["held",{"order":"other"},"node_removed"]\n' });
    expect(callsIn(folder)).toEqual(['hold', 'look_up']);
    const shown = await folder.run(['plan', '--run', run]);
    expect(shown.stdout).toContain('– second  look_up  skipped: Somebody took it out of the plan.');
  });

  it('is not changed by what fits nothing, and stays paused', async () => {
    const { folder, run } = await held();
    for (const nodes of [
      '{"first": {"skip": false}}',
      '{"first": {}}',
      '[]',
      '{}',
      '{"first": {"args": 1, "skip": true}}',
    ]) {
      expect(await folder.run(['resume', run, '--nodes', nodes])).toMatchObject({ code: 2 });
    }
    const unknown = await folder.run(['resume', run, '--nodes', '{"third": {"skip": true}}']);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('the plan has no node "third"') });
    const misfit = await folder.run(['resume', run, '--nodes', '{"first": {"args": {}}}']);
    expect(misfit).toMatchObject({ code: 2, stderr: expect.stringContaining('do not fit') });
    expect((await folder.run(['plan', '--run', run])).stdout).toContain('(1 done, 2 ready)');
    expect((await folder.run(['resume', run])).code).toBe(0);
  });

  it('takes no changes when it is not paused between its nodes', async () => {
    const folder = plannedFolder();
    const run = runIn((await folder.run(['plan', 'refund'])).stderr);
    const edit = ['--nodes', '{"say": {"skip": true}}'];
    const wanted = expect.stringContaining('--nodes is for a run that is paused in the middle of a plan');
    expect(await folder.run(['resume', run, ...edit])).toMatchObject({ code: 2, stderr: wanted });
    await folder.run(['reject', run]);
    await folder.run(['resume', run]);
    expect(await folder.run(['resume', run, ...edit])).toMatchObject({ code: 2 });
  });
});
