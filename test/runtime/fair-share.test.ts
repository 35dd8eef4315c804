/** Tenants share the slots of a worker. */
import { expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime } from '#pilotage';
import { VirtualClock } from '#testing';

const identity = (tenant: string, run: string) => ({ tenant, user: 'u', session: 's', run });

/** Runs that end when they are told, twenty of which one tenant has stored for whoever works. */
async function scene() {
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
  // It carries out one run, which keeps its slot, and stores the others.
  const [front, worker] = [make(1), make(4)];
  const start = (tenant: string, run: string) =>
    front.start('q', { identity: identity(tenant, run), conversation: false });
  onTestFinished(async () => {
    const closed = Promise.all([worker.close(), front.close()]);
    for (const end of ends) end();
    await closed;
  });
  await start('front', 'front');
  for (let number = 0; number < 20; number += 1) await start('big', `big${number}`);
  return { clock, began, ends, worker, start };
}

it('a tenant with one run does not wait for the backlog of another', async () => {
  const { clock, began, ends, worker, start } = await scene();
  worker.work();
  await expect.poll(() => began.length).toBe(5);
  await start('small', 'small');
  clock.advance(200);
  ends[1]?.();
  await expect.poll(() => began.length).toBe(6);
  expect(began.slice(1)).toEqual(['big0', 'big1', 'big2', 'big3', 'small']);
});

it('of two tenants that wait when a worker comes, the one with the backlog does not get all of its slots', async () => {
  const { began, worker, start } = await scene();
  await start('small', 'small');
  worker.work();
  await expect.poll(() => began.length).toBe(5);
  expect(began.slice(1).sort()).toEqual(['big0', 'big1', 'big2', 'small']);
});
