import { expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime } from '#pilotage';
import { VirtualClock } from '#testing';

const identity = (tenant: string, run: string) => ({ tenant, user: 'u', session: 's', run });

it('a tenant with one run does not wait for the backlog of another', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const began: string[] = [];
  const ends: (() => void)[] = [];
  const planner = async ({ identity: { run } }: { identity: { run: string } }) => {
    began.push(run);
    await new Promise<void>((resolve) => ends.push(resolve));
    return { kind: 'finish', reason: 'goal' } as const;
  };
  const make = (maxLiveRuns: number) => createRuntime({ planner, tools: [], journal, clock, maxLiveRuns });
  // It carries out one run, which keeps its slot, and stores the others for whoever works.
  const front = make(1);
  const start = (tenant: string, run: string) =>
    front.start('q', { identity: identity(tenant, run), conversation: false });
  await start('front', 'front');
  for (let number = 0; number < 20; number += 1) await start('big', `big${number}`);
  const worker = make(4);
  worker.work();
  await expect.poll(() => began.length).toBe(5);
  await start('small', 'small');
  clock.advance(200);
  ends[1]?.();
  await expect.poll(() => began.length).toBe(6);
  expect(began.slice(1)).toEqual(['big0', 'big1', 'big2', 'big3', 'small']);
  const closed = Promise.all([worker.close(), front.close()]);
  for (const end of ends) end();
  await closed;
});
