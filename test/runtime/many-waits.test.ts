/** What it costs that thousands of calls of a step wait in the middle of their work. */
import { expect, it } from 'vitest';
import { finish, script } from '../kit/decisions.ts';
import { looksAt } from '../kit/looks.ts';
import { isWaiting } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const isBranch = (item: object): boolean => 'tool' in item && 'args' in item;

it('a branch that begins to wait, or gets its event, has nobody walk over all branches', async () => {
  const looksFor = async (size: number): Promise<number> => {
    const waits = make('waits', ({ key }, context) => context.event({ key: String(key) }));
    const branches = Array.from({ length: size }, (_, at) => ({
      id: `b${at}`,
      tool: 'waits',
      args: { key: `k${at}` },
    }));
    const made = world({
      planner: script({ kind: 'call_parallel', plan: 'p', branches }, finish('done')),
      tools: [waits],
    });
    const looks = await looksAt(isBranch, async () => {
      const run = await start(made);
      await until(() => isWaiting(made, run.id));
      for (let at = 0; at < size; at += 1) await made.runtime.signal(`k${at}`, at);
      expect(await run.result()).toMatchObject({ status: 'finished' });
    });
    await made.runtime.close();
    return looks;
  };
  const [few, many] = [await looksFor(50), await looksFor(200)];
  expect(many).toBeLessThan(6 * few);
});
