/** A word that is spelt wrong is not passed over in silence: wherever a handle or a runtime takes options. */
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { call, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

async function paused() {
  const made = world({
    planner: script(call('gated', { n: 1 })),
    tools: [make('gated', (args) => args, { needsApproval: true })],
  });
  const run = await start(made);
  const result = await run.result();
  const token = result.status === 'paused' ? (result.pauses[0]?.token ?? '') : '';
  return { ...made, run, token };
}

describe('an unknown option', () => {
  it('of approve is refused with its name and the right ones, and nothing is answered', async () => {
    const { run, token } = await paused();
    const answered = run.approve(token, { arg: { n: 2 } } as never);
    await expect(answered).rejects.toMatchObject({
      code: 'invalid_config',
      message: 'approve has no option "arg". Did you mean args? Its options are args, digest, payload, reason.',
    });
    expect((await run.state()).pauses).toHaveLength(1);
    await run.approve(token, { args: { n: 2 } });
    expect((await run.result()).status).toBe('finished');
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ value: { n: 2 } });
  });

  type Made = Awaited<ReturnType<typeof paused>>;
  const wrong = { odd: 1 } as never;
  it.each<[string, (made: Made) => unknown]>([
    ['reject', ({ run, token }) => run.reject(token, wrong)],
    ['resume', ({ run }) => run.resume(wrong)],
    ['settle', ({ run, token }) => run.settle(token, { happened: true, odd: 1 } as never)],
    ['steer', ({ run }) => run.steer('USER_MESSAGE', { message: 'x' }, wrong)],
    ['steer', ({ run }) => run.pause(wrong)],
    ['cancel', ({ run }) => run.cancel({ resaon: 'x' } as never)],
    ['fork', ({ run }) => run.fork(wrong)],
    ['the result of fork', ({ run }) => run.fork({ result: wrong })],
    ['replay', ({ run }) => run.replay(wrong)],
    ['repair', ({ run }) => run.repair({ by: 'me', odd: 1 } as never)],
    ['events', ({ run }) => run.events(wrong)],
    ['start', ({ runtime }) => runtime.start('q', { identity: local('ana'), limit: {} } as never)],
    ['context', ({ runtime }) => runtime.start('q', { identity: local('ana'), context: wrong })],
    ['run', ({ runtime }) => runtime.run('r', wrong)],
    ['list', ({ runtime }) => runtime.list(wrong)],
    ['tasks.spawn', ({ runtime }) => runtime.tasks.spawn('q', { identity: local('ana'), key: 'x' } as never)],
    ['tasks.list', ({ runtime }) => runtime.tasks.list(local('ana'), wrong)],
  ])('of %s is refused, and so is what is no object at all', async (of, ask) => {
    const made = await paused();
    const runs = (await made.runtime.list()).length;
    await expect((async () => ask(made))()).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining(`${of} has no option`),
    });
    expect([(await made.runtime.list()).length, (await made.run.state()).pauses.length]).toEqual([runs, 1]);
  });

  it.each([null, 7, 'yes', []])('answers that are no object are refused: %j', async (answer) => {
    const { run, token } = await paused();
    for (const ask of [
      () => run.approve(token, answer as never),
      () => run.resume(answer as never),
      () => run.cancel(answer as never),
    ]) {
      await expect(ask()).rejects.toMatchObject({ code: 'invalid_config' });
    }
  });
});
