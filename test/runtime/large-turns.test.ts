/** What is large is read and stored one a turn of the event loop. */
import { expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, local, type Planner, tool } from '#pilotage';

const LARGE = 'x'.repeat(40_000);

/** Counts the turns of the loop. */
function turns(): { readonly now: () => number; readonly stop: () => void } {
  let count = 0;
  let isOver = false;
  const next = (): void => {
    count += 1;
    if (!isOver) setImmediate(next);
  };
  next();
  return {
    now: () => count,
    stop: () => {
      isOver = true;
    },
  };
}

const six: Planner = {
  name: 'six',
  next: (view) =>
    view.trajectory.count > 0
      ? { kind: 'finish', reason: 'goal' }
      : { kind: 'call_parallel', branches: Array.from({ length: 6 }, () => ({ tool: 'large', args: {} })) },
};

async function play(run: (context: { saveArtifact: (bytes: string, about: { mime: string }) => unknown }) => unknown) {
  const large = tool({
    name: 'large',
    description: 'Gives much.',
    effect: 'read',
    inputSchema: { type: 'object' },
    execute: (_, context) => run(context) as never,
  });
  const runtime = createRuntime({ planner: six, tools: [large], journal: memoryJournal() });
  const started = await runtime.start('Go.', { identity: local('ana') });
  const result = await started.result();
  const trajectory = await started.trajectory();
  await runtime.close();
  expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
  return trajectory.steps[0]?.calls.map(({ outcome }) => outcome);
}

it('six large values that are ready at once are read in six turns', async () => {
  const clock = turns();
  const read: number[] = [];
  const outcomes = await play(() => ({
    toJSON: () => {
      read.push(clock.now());
      return LARGE;
    },
  }));
  clock.stop();
  expect(outcomes).toHaveLength(6);
  for (const outcome of outcomes ?? [])
    expect(outcome).toMatchObject({ kind: 'value', artifact: { sizeBytes: 40_002 } });
  expect(new Set(read).size).toBe(6);
});

it('so are six that are refused for their size', async () => {
  const clock = turns();
  const read: number[] = [];
  const outcomes = await play(() => ({
    get size() {
      read.push(clock.now());
      return Array(200_000);
    },
  }));
  clock.stop();
  for (const outcome of outcomes ?? []) expect(outcome).toMatchObject({ error: { code: 'unserializable' } });
  expect(new Set(read).size).toBe(6);
});

it('large artifacts are stored one after the other, each as it was when it was given', async () => {
  const kept: Promise<unknown>[] = [];
  const outcomes = await play(async ({ saveArtifact }) => {
    const bytes = Buffer.alloc(2 << 20, 97 + kept.length);
    const saved = saveArtifact(bytes as never, { mime: 'text/plain' }) as Promise<{ artifactRef: string }>;
    kept.push(saved);
    bytes.fill(0);
    return (await saved).artifactRef;
  });
  expect(new Set((outcomes ?? []).map((outcome) => JSON.stringify(outcome))).size).toBe(6);
});
