/** A process is killed at each thing that it does with a live handle: the next one opens it again, and never in silence. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { RunEvent } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#pilotage';
import { builtFile } from '../kit/built.ts';
import { type Life, live } from '../kit/lives.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-handles-sigkill-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CHILD = builtFile('test/crash/handles-child.ts');
const DEATHS = [
  'open 1',
  'visit a',
  'ended 0\\.0',
  'visit b',
  'ended 1\\.0',
  'visit c',
  'ended 1\\.1',
  'visit d',
  'ended 2\\.0',
];

const lifeOf = (run: string, onLost: string, fatal: string): Promise<Life> =>
  live({ program: CHILD, folder, args: [run, onLost, fatal], isEnough: () => false, delayMs: 0 });

async function eventsOf(id: string): Promise<RunEvent[]> {
  const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
  const runtime = createRuntime({ planner: () => ({ kind: 'finish', reason: 'goal' }), journal });
  const events: RunEvent[] = [];
  for await (const event of runtime.run(id).events()) events.push(event);
  await runtime.close();
  await journal.close();
  return events;
}

interface Visit {
  readonly opening: number;
  readonly visited: readonly string[];
}

/** A sentence for each call that used a page without what earlier calls had done in it, although nobody was told. */
function silentLosses(events: readonly RunEvent[]): string[] {
  let done: string[] = [];
  const found: string[] = [];
  for (const event of events) {
    if (event.type === 'handle.lost') done = [];
    if (event.type !== 'tool.completed' || event.outcome.kind !== 'value') continue;
    const { visited, opening } = event.outcome.value as unknown as Visit;
    const missing = done.filter((place) => !visited.includes(place));
    if (missing.length > 0) found.push(`The page ${opening} of step ${event.step} has not been at ${missing.join()}.`);
    done.push(visited.at(-1) ?? '');
  }
  return found;
}

describe.each(['reopen', 'fail'])('TJ-11 with onLost %s', (onLost) => {
  it.each(DEATHS)('SIGKILL at “%s” loses the page, and whoever reads the run is told', async (fatal) => {
    const run = `run_${onLost}_${DEATHS.indexOf(fatal)}`;
    const first = await lifeOf(run, onLost, fatal);
    expect(first.killed).toBe(true);
    const second = await lifeOf(run, onLost, '');
    expect(second.killed).toBe(false);
    const events = await eventsOf(run);
    expect(events.at(-1)).toMatchObject({ type: 'planner.finish', reason: 'goal' });
    expect(silentLosses(events)).toEqual([]);
    // What was recorded had been in the page of the process that is dead; the last step needs none any more.
    const used = first.lines.some((line) => line === 'ended 0.0');
    const isOver = fatal === 'ended 2\\.0';
    const lost = events.filter(({ type }) => type === 'handle.lost');
    expect(lost).toHaveLength(used && !isOver ? 1 : 0);
    const opened = second.lines.filter((line) => line.startsWith('open'));
    const isRefused = onLost === 'fail' && ['ended 1\\.1', 'visit d'].includes(fatal);
    expect(opened).toEqual(isOver || isRefused ? [] : [used ? 'open 2' : 'open 1']);
    const closed = second.lines.filter((line) => line.startsWith('close'));
    expect(closed).toEqual(opened.map((line) => `${line.replace('open', 'close')} finished`));
    const refused = events.filter((event) => event.type === 'tool.failed');
    for (const event of refused) expect(event).toMatchObject({ outcome: { error: { code: 'handle_lost' } } });
    // All that is left of the step that finds it gone.
    const left = { 'ended 0\\.0': 2, 'visit b': 2, 'ended 1\\.0': 1, 'visit c': 1, 'ended 1\\.1': 1, 'visit d': 1 }[
      fatal
    ];
    expect(refused).toHaveLength(onLost === 'fail' ? (left ?? 0) : 0);
  });
});
