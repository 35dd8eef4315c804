/** SIGTERM: what is under way has its grace, and the run is given back. */
import { describe, expect, it } from 'vitest';
import { makeFolder, runIn, type Started } from './command.ts';

/** Its tool waits until there is a file `go`, and says on stderr what becomes of it. */
const CONFIG = `
import { existsSync } from 'node:fs';
export default {
  planner: {
    name: 'waits',
    next: ({ trajectory: { count, step } }) =>
      count === 0
        ? { kind: 'call_tool', tool: 'wait', args: {} }
        : { kind: 'finish', reason: 'goal', payload: 'done' },
  },
  tools: [
    {
      name: 'wait',
      description: 'Waits.',
      effect: 'read',
      inputSchema: { type: 'object' },
      execute: (_, { signal }) =>
        new Promise((resolve, reject) => {
          console.error('tool: entered');
          const look = setInterval(() => existsSync('go') && end(() => resolve('waited'), 'ended'), 10);
          const end = (settle, how) => {
            clearInterval(look);
            console.error('tool: ' + how);
            settle();
          };
          signal.addEventListener('abort', () => end(() => reject(signal.reason), 'aborted'));
        }),
    },
  ],
};
`;

async function waiting(...flags: string[]) {
  const folder = makeFolder();
  folder.write('pilotage.config.ts', CONFIG);
  const started = folder.start(['run', 'x', ...flags]);
  await started.untilOutput(/tool: entered/);
  return { folder, started };
}

async function terminated({ child, untilOutput }: Started): Promise<void> {
  child.kill('SIGTERM');
  await untilOutput(/Stopping\. What is under way has/);
}

describe('a run whose process gets a SIGTERM', () => {
  it('lets the call that is under way end, keeps its result, and begins nothing more', async () => {
    const { folder, started } = await waiting('--grace', '3600');
    await terminated(started);
    folder.write('go', '');
    const { code, stdout, stderr } = await started.done;
    expect([code, stdout]).toEqual([143, '']);
    expect(stderr).toContain('tool: ended');
    expect(stderr).toContain(`Stopped. Go on with: pilotage resume ${runIn(stderr)}`);
    expect((await folder.run(['list', '--json'])).stdout).toContain('"status":"running"');
    const resumed = await folder.start(['resume', runIn(stderr)]).done;
    expect(resumed).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(resumed.stderr).not.toContain('tool: entered');
  });

  it('aborts the call when the grace is over', async () => {
    const { folder, started } = await waiting('--grace', '0.2');
    await terminated(started);
    const { code, stderr } = await started.done;
    expect(code).toBe(143);
    expect(stderr).toContain('tool: aborted');
    folder.write('go', '');
    const resumed = await folder.start(['resume', runIn(stderr)]).done;
    expect(resumed).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(resumed.stderr).toContain('tool: entered');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('aborts it at once at a further %s', async (signal) => {
    const { started } = await waiting('--grace', '3600');
    await terminated(started);
    started.child.kill(signal);
    const { code, stderr } = await started.done;
    expect(code).toBe(143);
    expect(stderr).toContain('tool: aborted');
  });

  it('aborts it at once without a grace', async () => {
    const { started } = await waiting('--grace', '0');
    started.child.kill('SIGTERM');
    const { code, stderr } = await started.done;
    expect(code).toBe(143);
    expect(stderr).toContain('tool: aborted');
    expect(stderr).not.toContain('Stopping.');
  });
});
