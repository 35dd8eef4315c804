/** A control whose answer another process gives, of which this one hears late. */
import { expect, it } from 'vitest';
import { local } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { call, pause, script } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf } from '../kit/run-record.ts';
import { holding, make } from '../kit/tools.ts';
import { advanceUntil, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const identity = local('ana', { run: 'r' });

/** The journal as a process sees it that looks for what others have written only when it is told to. */
function lateJournal(base: Journal): { readonly journal: Journal; look(): void } {
  const wakes = new Set<() => void>();
  const watch = (_: string, wake: () => void): (() => void) => {
    wakes.add(wake);
    return () => void wakes.delete(wake);
  };
  return { journal: changed(base, { watch }), look: () => [...wakes].forEach((wake) => void wake()) };
}

it('is heard although this process takes over and writes before it has looked', async () => {
  const clock = new VirtualClock();
  const base = memoryJournal({ clock });
  const { tool, entered, release } = holding();
  const planner = ({ query }: { query: string }) => (query === 'hold' ? call('hold') : pause);
  const here = world({ planner, tools: [tool], journal: lateJournal(base).journal, clock, maxLiveRuns: 1 });
  const elsewhere = world({ planner, tools: [tool], journal: base, clock });
  const run = await start(here, { identity });
  expect(await run.result()).toMatchObject({ status: 'paused' });
  // No room here: what is said to the run is taken elsewhere.
  await start(here, { query: 'hold', identity: local('ana', { run: 'other' }) });
  await entered;
  const answer = run.approve('pause_of_nobody');
  const refused = expect(answer).rejects.toMatchObject({ code: 'pause_not_found' });
  await until(async () => (await base.inbox('r')).length === 1);
  await elsewhere.runtime.run('r').steer('USER_MESSAGE', { message: 'one' }, { until: 'applied' });
  await until(async () => (await base.get('r'))?.lease === undefined);
  await run.steer('USER_MESSAGE', { message: 'two' });
  await here.runtime.run('other').cancel();
  release();
  await refused;
  const taken = await entriesOf(base, run, 'control');
  expect(taken.map(({ control, applied }) => [control.type, applied])).toEqual([
    ['APPROVE', false],
    ['USER_MESSAGE', true],
    ['USER_MESSAGE', true],
  ]);
  expect([...here.faults, ...elsewhere.faults]).toEqual([]);
});

it('is heard although this process takes over and writes nothing', async () => {
  const clock = new VirtualClock();
  const base = memoryJournal({ clock });
  const late = lateJournal(base);
  const [first, second] = [holding(), holding()];
  const gated = make('gated', () => 'made', { needsApproval: true });
  const branches = ['gated', 'hold'].map((tool) => ({ tool, args: {} }));
  const planner = script({ kind: 'call_parallel', branches });
  const elsewhere = world({ planner, tools: [gated, first.tool], journal: base, clock });
  const here = world({ planner, tools: [gated, second.tool], journal: late.journal, clock });
  const run = await start(elsewhere, { identity });
  await first.entered;
  await until(async () => (await entriesOf(base, run, 'paused')).length === 1);
  const answer = here.runtime.run('r').approve('pause_of_nobody');
  const refused = expect(answer).rejects.toMatchObject({ code: 'pause_not_found' });
  await advanceUntil(clock, async () => (await entriesOf(base, run, 'control')).length === 1);
  await elsewhere.runtime.close();
  const head = (await base.get('r'))?.head;
  here.runtime.work();
  await advanceUntil(clock, () => second.runs() === 1);
  expect((await base.get('r'))?.head).toBe(head);
  late.look();
  await refused;
  await here.runtime.close();
  expect([...here.faults, ...elsewhere.faults]).toEqual([]);
});
