/** A plan that has ends, and comes to none of them, has not reached its goal. */
import { expect, it } from 'vitest';
import type { RunResult } from '#pilotage';
import { graph } from '#planners/graph';
import type { Plan, PlanStep, PlanYield } from '#plans';
import { pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const work = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({
  id,
  type: 'tool',
  toolId: 'work',
  input: { id },
  ...more,
});
const end = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({ id, type: 'finish', input: 'done', ...more });
const worker = make('work', ({ id }) => id ?? null);

async function carried(plan: Parameters<typeof graph>[0]['plan']): Promise<RunResult> {
  return (await start(world({ planner: graph({ plan }), tools: [worker] }))).result();
}

const ifB = { when: { step: 'a', equals: 'b' } } as const;

it.each<[string, Plan]>([
  ['a list', { steps: [work('a'), end('done', ifB)] }],
  ['a graph', { nodes: { a: work('a'), done: end('done', ifB) }, edges: { a: ['done'] } }],
])('AG-42 of %s whose only finish was passed over the run ends as no_path, and says why', async (_, plan) => {
  expect(await carried(plan)).toMatchObject({
    status: 'finished',
    reason: 'no_path',
    metadata: {
      error: {
        code: 'plan_end_missed',
        message: 'The plan reached none of its finish steps. "done": the condition on "a" does not hold.',
        nodes: ['done'],
      },
    },
  });
});

it('AG-42 says which step before the finish was passed over', async () => {
  const result = await carried({ steps: [work('a'), work('b', ifB), end('done', { after: ['b'] })] });
  expect(result).toMatchObject({
    reason: 'no_path',
    metadata: {
      error: {
        message: expect.stringContaining(
          '"done": the step "b" before it was skipped: the condition on "a" does not hold.',
        ),
      },
    },
  });
});

it('AG-42 holds for a plan that comes as a stream', async () => {
  async function* plan(): AsyncGenerator<PlanYield> {
    yield work('a');
    yield end('done', ifB);
  }
  expect(await carried(plan)).toMatchObject({ reason: 'no_path', metadata: { error: { code: 'plan_end_missed' } } });
});

it('AG-42 one end of several is enough, and a plan without an end has its results', async () => {
  const both = { steps: [work('a'), end('no', ifB), end('yes', { when: { step: 'a', equals: 'a' } })] };
  expect(await carried(both)).toMatchObject({ reason: 'goal', answer: 'done' });
  expect(await carried({ steps: [work('a'), work('b', ifB)] })).toMatchObject({
    reason: 'goal',
    answer: '{"results":{"a":"a"}}',
  });
});

it('AG-42 a finish that somebody took out is missed too', async () => {
  const gated = { ...worker, needsApproval: true };
  const made = world({ planner: graph({ plan: { steps: [work('a'), end('done')] } }), tools: [gated] });
  const run = await start(made);
  await pausesOf(run);
  await run.pause();
  const [held] = (await pausesOf(run)).filter(({ reason }) => reason === 'external_event');
  await run.resume({ token: held?.token ?? '', nodes: { done: { skip: true } } });
  await run.approve();
  expect(await run.result()).toMatchObject({ reason: 'no_path', metadata: { error: { code: 'plan_end_missed' } } });
});
