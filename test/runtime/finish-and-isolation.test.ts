/** What a finished run hands out, and that a hundred sessions at once see only their own. */
import { describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, local, type Tool } from '#pilotage';
import type { PlannerFunction } from '#pilotage/planner';

const anything = { type: 'object' } as const;

describe('a finish', () => {
  it('DV-12 with a payload of 32,768 bytes hands out an artifact reference in its place', async () => {
    const journal = memoryJournal();
    const payload = 'x'.repeat(32_766);
    const runtime = createRuntime({ journal, planner: () => ({ kind: 'finish', reason: 'goal', payload }) });
    const identity = local('ana');
    const result = await (await runtime.start('q', { identity })).result();
    expect(result).toMatchObject({ payload: { artifactRef: expect.stringMatching(/^art_/), sizeBytes: 32_768 } });
    const { artifactRef } = (result as unknown as { payload: { artifactRef: string } }).payload;
    const stored = await journal.artifacts.get(identity, artifactRef);
    expect(Buffer.from(stored?.bytes ?? []).toString()).toBe(JSON.stringify(payload));
    await runtime.close();
  });

  it('DV-12 with one byte less keeps it', async () => {
    const payload = 'x'.repeat(32_765);
    const runtime = createRuntime({
      journal: memoryJournal(),
      planner: () => ({ kind: 'finish', reason: 'goal', payload }),
    });
    expect(await (await runtime.start('q', { identity: local('ana') })).result()).toMatchObject({ payload });
    await runtime.close();
  });
});

describe('a hundred sessions at once', () => {
  it('ID-06 each see only their own pauses, answers and artifacts', async () => {
    const journal = memoryJournal();
    const big: Tool = {
      name: 'big',
      description: 'A large result',
      effect: 'read',
      inputSchema: anything,
      execute: (_, { identity }) => `${identity.session}:${'y'.repeat(40_000)}`,
    };
    const planner: PlannerFunction = ({ trajectory }) => {
      if (trajectory.count === 0) return { kind: 'call_tool', tool: 'big', args: {} };
      if (trajectory.count === 1) return { kind: 'request_pause', reason: 'await_input' };
      const answer = trajectory.step(1)?.calls[0]?.outcome;
      return { kind: 'finish', reason: 'goal', payload: answer?.kind === 'verdict' ? (answer.payload ?? null) : null };
    };
    const runtime = createRuntime({ journal, planner, tools: [big] });
    const sessions = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const identity = local('ana', { session: `s${index}` });
        const run = await runtime.start('q', { identity });
        expect(await run.result()).toMatchObject({ status: 'paused' });
        await run.resume({ payload: { session: identity.session } });
        expect(await run.result()).toMatchObject({ status: 'finished', payload: { session: identity.session } });
        const outcome = (await run.state()).steps[0]?.calls[0]?.outcome;
        const ref = outcome?.kind === 'value' ? (outcome.artifact?.artifactRef ?? '') : '';
        return { identity, ref };
      }),
    );
    for (const [index, { identity, ref }] of sessions.entries()) {
      const own = await journal.artifacts.get(identity, ref);
      expect(Buffer.from(own?.bytes ?? []).toString()).toContain(`${identity.session}:`);
      const neighbour = sessions[(index + 1) % sessions.length];
      expect(await journal.artifacts.get(identity, neighbour?.ref ?? '')).toBeUndefined();
    }
    await runtime.close();
  });
});
