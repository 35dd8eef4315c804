/** The order in which the steps of a list are carried out, by planners that have it whole and by planners that get it in parts. */
import { describe, expect, it } from 'vitest';
import type { Json, Planner } from '#core';
import { graph } from '#planners/graph';
import { pipeline } from '#planners/pipeline';
import type { PlanStep } from '#plans';
import type { RunResult } from '#runtime';
import { type ScriptedReply, scriptedModel } from '#testing';
import { make } from '../kit/tools.ts';
import { turn } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

type Given = Omit<PlanStep, 'id'> & { readonly id: string };

const act = (id: string, more: Partial<PlanStep> = {}): Given => ({
  id,
  type: 'tool',
  toolId: 'act',
  input: { id },
  ...more,
});
const end = (input: Json = 'the end', more: Partial<PlanStep> = {}): Given => ({
  id: 'end',
  type: 'finish',
  input,
  ...more,
});

const submitted = (steps: readonly Given[]): ScriptedReply => ({
  calls: [{ tool: 'submit_plan', args: { planId: 'p', steps: steps as unknown as Json } }],
});
const inLines = (steps: readonly Json[] | readonly Given[]): ScriptedReply => ({
  text: [...steps.map((step) => JSON.stringify({ type: 'step', step })), '{"type":"finish"}'].join('\n'),
});

const PLANNERS: Readonly<Record<string, (steps: readonly Given[]) => Planner>> = {
  graph: (steps) => graph({ plan: { steps } }),
  'graph, from a stream': (steps) =>
    graph({
      async *plan() {
        yield* steps;
      },
    }),
  pipeline: (steps) => pipeline({ model: scriptedModel([submitted(steps)]), replans: 0 }),
  'pipeline, in lines': (steps) =>
    pipeline({ model: scriptedModel([inLines(steps)]), template: 'plan-ndjson', replans: 0 }),
  'pipeline, streamed': (steps) => pipeline({ model: scriptedModel([inLines(steps)]), stream: true, replans: 0 }),
};

interface Played {
  /** What began and ended, as `+a` and `-a`. */
  readonly log: readonly string[];
  readonly result: RunResult;
}

async function play(planner: Planner): Promise<Played> {
  const log: string[] = [];
  const tool = make(
    'act',
    async ({ id, fails }) => {
      log.push(`+${String(id)}`);
      for (let turns = 0; turns < 3; turns += 1) await turn();
      log.push(`-${String(id)}`);
      if (fails === true) throw new Error('It failed.');
      return { yes: id };
    },
    { effect: 'read' },
  );
  const run = await start(world({ planner, tools: [tool] }));
  return { result: await run.result(), log };
}

const inOrder = (...ids: readonly string[]): string[] => ids.flatMap((id) => [`+${id}`, `-${id}`]);

describe.each(Object.entries(PLANNERS))('%s', (_, plannerOf) => {
  it('a reference adds a need and takes none away', async () => {
    const steps = [act('pay'), act('compute'), end({ $from: 'compute', path: '/yes' })];
    const { log, result } = await play(plannerOf(steps));
    expect(log).toEqual(inOrder('pay', 'compute'));
    expect(result).toMatchObject({ reason: 'goal', payload: 'compute' });
  });

  it('only `after` takes a step out of the chain, which goes on from it', async () => {
    const steps = [act('a'), act('b', { after: [] }), act('c'), end()];
    const { log } = await play(plannerOf(steps));
    expect(log.slice(0, 2).toSorted()).toEqual(['+a', '+b']);
    expect(log.indexOf('+c')).toBeGreaterThan(log.indexOf('-b'));
  });

  it('what is written behind a step that is passed over is carried out; what hangs on it is not', async () => {
    const when = { step: 'a', equals: 'never' };
    const steps = [act('a'), act('b', { when }), act('b2', { after: ['b'] }), act('c'), end('done')];
    const { log, result } = await play(plannerOf(steps));
    expect(log).toEqual(inOrder('a', 'c'));
    expect(result).toMatchObject({ reason: 'goal', payload: 'done' });
  });

  it('what is written behind one that is passed over early waits for all that this one waited for', async () => {
    const no = { step: 'check', equals: 'never' };
    const steps = [
      act('check'),
      act('maybe', { when: no, after: ['check'] }),
      // It is known at once that `audit` is passed over, and only later that `pay` has ended.
      act('pay', { after: ['check'] }),
      act('audit', { input: { id: { $from: 'maybe' } } }),
      act('more', { input: { id: { $from: 'maybe' } } }),
      act('receipt'),
      end(),
    ];
    const { log, result } = await play(plannerOf(steps));
    expect(log).toEqual(inOrder('check', 'pay', 'receipt'));
    expect(result).toMatchObject({ reason: 'goal', payload: 'the end' });
    // An end that did not wait would stop what is under way.
    const short = steps.filter(({ id }) => id !== 'receipt');
    expect(await play(plannerOf(short))).toMatchObject({ log: inOrder('check', 'pay'), result: { reason: 'goal' } });
  });

  it('behind one that fails nothing is', async () => {
    const steps = [act('a'), act('b', { input: { id: 'b', fails: true } }), act('c'), end('done')];
    const { log, result } = await play(plannerOf(steps));
    expect(log).toEqual(inOrder('a', 'b'));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'plan_failed', data: { failed: ['b'] } } });
  });

  it.each([
    ['holds', { yes: 'a' }, ['a'], 'early'],
    ['does not hold', 'never', ['a', 'pay'], 'late'],
  ])('a finish with a condition has its turn before what is written behind it: it %s', async (_what, equals, ran, payload) => {
    const early: Given = { id: 'early', type: 'finish', input: 'early', when: { step: 'a', equals } };
    const { log, result } = await play(plannerOf([act('a'), early, act('pay'), end('late')]));
    expect(log).toEqual(inOrder(...ran));
    expect(result).toMatchObject({ reason: 'goal', payload });
  });
});

it.each([true, false])('a line that is mended keeps its place (streamed: %s)', async (stream) => {
  const bad = { id: 'b', type: 'tool', toolId: 'nobody', input: { id: 'b' } } as const;
  const model = scriptedModel([inLines([act('a'), bad, act('c'), end()]), inLines([act('b')])]);
  const { log, result } = await play(pipeline({ model, stream, template: 'plan-ndjson', replans: 0 }));
  expect(log).toEqual(inOrder('a', 'b', 'c'));
  expect(result).toMatchObject({ reason: 'goal' });
});
