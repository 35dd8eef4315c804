/** Approvals and rules when the process dies: an answer, its rule and the call that follows are never half there. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { local, type ToolPolicy } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { assertCrashProof, crashEverywhere, VirtualClock } from '#testing';
import { approvalScenarios } from '../crash/approval-scenarios.ts';
import { call, script } from '../kit/decisions.ts';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil } from '../kit/waiting.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-approvals-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a crash at every moment', () => {
  it.each(approvalScenarios.map((scenario) => [scenario.name, scenario] as const))('%s', async (_, scenario) => {
    const report = await crashEverywhere(scenario, { doubles: 3 });
    assertCrashProof(report);
    expect(report.points.length).toBeGreaterThan(15);
  });
});

describe('another process, on the same file', () => {
  it('knows the rule, tells of a question that the first one has left, and asks no policy for nothing', async () => {
    const clock = new VirtualClock();
    const path = join(folder, 'shared.db');
    const made: unknown[] = [];
    const policy: ToolPolicy = ({ tool }) => (tool === 'pay' ? { ask: 'Money.', remindAfterMs: 60_000 } : 'allow');
    const open = () => {
      const journal = sqliteJournal({ path, clock, synchronous: 'normal' });
      const tools = [make('pay', (args) => made.push(args), { effect: 'once' })];
      const planner = { name: 'pays', next: script(call('pay', { sum: 1 })) };
      return { journal, runtime: createRuntime({ planner, tools, policy, journal, clock }) };
    };
    const first = open();
    const run = await first.runtime.start('q', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await first.runtime.close();
    await first.journal.close();

    const second = open();
    second.runtime.work();
    const again = second.runtime.run(run.id);
    clock.advance(200_000);
    await advanceUntil(clock, async () => (await entriesOf(second.journal, again, 'reminded')).length > 0);
    // Of the three that were missed, one is told.
    expect(await entriesOf(second.journal, again, 'reminded')).toMatchObject([{ times: 1 }]);
    await again.approve(undefined, { remember: { scope: 'user' } });
    await again.result();
    await second.runtime.close();
    await second.journal.close();

    const third = open();
    const next = await third.runtime.start('q', { identity: local('ana') });
    expect(await next.result()).toMatchObject({ status: 'finished' });
    const stranger = await third.runtime.start('q', { identity: local('bob') });
    expect(await stranger.result()).toMatchObject({ status: 'paused' });
    expect(made).toHaveLength(2);
    await third.runtime.close();
    await third.journal.close();
  });
});
