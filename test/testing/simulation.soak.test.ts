import { describe, expect, it } from 'vitest';
import { CONTROL_TYPES } from '#core';
import { generateScript } from '../simulation/generate.ts';
import { ODD } from '../simulation/odd.ts';
import { AGENTS, FLOWS } from '../simulation/script.ts';
import { historyOf, simulate } from '../simulation/simulate.ts';

describe('the simulation', () => {
  it('SP-26 SP-45 TK-37 ID holds what must always hold, whatever the seed', async () => {
    const failed = [];
    for (let seed = 1; seed <= 200; seed += 1) {
      const history = await simulate(seed);
      expect(history.runs).toBeGreaterThan(0);
      if (history.violations.length > 0) failed.push(history);
    }
    expect(failed).toEqual([]);
  });

  it('plays what it is there for: tasks, pauses, controls, crashes, stalls and store faults', async () => {
    const scripts = Array.from({ length: 300 }, (_, seed) => generateScript(seed));
    const faults = new Set(scripts.flatMap((script) => script.faults.map(({ kind }) => kind)));
    const controls = new Set(scripts.flatMap((script) => script.acts.map(({ type }) => type)));
    expect([...faults].sort()).toEqual([
      'clock',
      'crash',
      'cut',
      'deploy',
      'disk',
      'freeze',
      'hearing',
      'kill',
      'refuse',
      'sleep',
      'stall',
      'store',
      'unheard',
    ]);
    expect([...controls].sort()).toEqual([...CONTROL_TYPES].sort());
    const happened: string[] = [];
    for (let seed = 0; seed < 80; seed += 1) happened.push(await historyOf(seed));
    for (const kind of [
      'spawned',
      'task_ended',
      'group_ended',
      'awaiting',
      'paused',
      'resumed',
      'control',
      'call_began',
    ]) {
      expect(happened.some((history) => history.includes(` ${kind} `))).toBe(true);
    }
  });
});

describe('what the simulation plays', () => {
  it('has limits that bind, forks, replays, conversations, summaries, attachments, circles, odd values and readers who leave', async () => {
    const scripts = Array.from({ length: 1_200 }, (_, seed) => generateScript(seed));
    const text = JSON.stringify(scripts);
    for (const odd of ODD) expect(text).toContain(`"odd":"${odd}"`);
    for (const part of ['"throws":', '"forbidden":', '"secret"', '"aside":true', '"tokens":', '"calls":', '"again'])
      expect(text).toContain(part);
    const readers = new Set(scripts.flatMap((script) => script.readers.map(({ how }) => how)));
    expect([...readers].sort()).toEqual(['dropped', 'raced', 'replayed', 'returned', 'thrown', 'unread']);
    expect(scripts.some(({ slots, slotsPerTenant }) => slotsPerTenant < slots)).toBe(true);
    const happened: string[] = [];
    for (const { seed, forks, memory, compactEvery, progress } of scripts) {
      const isRich = forks.length > 0 || memory !== undefined || compactEvery !== undefined;
      if (isRich && progress !== undefined && happened.length < 150) happened.push(await historyOf(seed));
    }
    for (const line of ['forked as', ' compacted ', ' compaction_failed ', ' no_progress ', '"budget":"tokens"']) {
      expect([line, happened.some((history) => history.includes(line))]).toEqual([line, true]);
    }
  });

  it('has scenes: calls that whoever goes on with a run gives up, and answers of the store that are heard too late', async () => {
    const scripts = Array.from({ length: 400 }, (_, seed) => generateScript(seed));
    const scenes = scripts.filter(({ roots }) => roots.some(({ run }) => run === 'scene'));
    const happened: string[] = [];
    for (const { seed } of scenes) happened.push(await historyOf(seed));
    for (const line of [
      '"reuse":true',
      'skipped plan_redirected',
      '"policyMs":',
      '"kind":"unheard"',
      'while this process carried it out, and goes on there',
    ])
      expect([line, happened.some((history) => history.includes(line))]).toEqual([line, true]);
  });

  it('has every planner that Pilotage comes with, and flows as runs and as calls', async () => {
    const scripts = Array.from({ length: 1_500 }, (_, seed) => generateScript(seed));
    const roots = scripts.flatMap((script) => script.roots);
    expect(new Set(roots.flatMap(({ agent }) => agent ?? []))).toEqual(new Set(AGENTS));
    expect(new Set(roots.flatMap(({ flow }) => flow?.name ?? []))).toEqual(new Set(FLOWS));
    const chosen = scripts.filter(
      (script) => script.flows.length > 0 || script.roots.some(({ agent }) => agent !== undefined),
    );
    const happened: string[] = [];
    for (const { seed } of chosen.slice(0, 60)) happened.push(await historyOf(seed));
    for (const line of ['route_not_found', 'node_exception', 'again again/', 'each each/', 'plan_grown'])
      expect([line, happened.some((history) => history.includes(line))]).toEqual([line, true]);
  });
});
