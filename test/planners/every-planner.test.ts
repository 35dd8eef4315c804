/** What holds for every planner that there is, asked by hand; what is special to one stands in its own file. */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { asPlanner, type Identity, local, type Planner, type RunView } from '#core';
import { flowPlanner, mapPlanner } from '#flow';
import { deterministic } from '#planners/deterministic';
import { finish } from '#planners/finish';
import { graph } from '#planners/graph';
import { fromHtnPlanner, htn, htnDomain } from '#planners/htn';
import { pipeline } from '#planners/pipeline';
import { react } from '#planners/react';
import { rules } from '#planners/rules';
import { runView, type ScriptedModel, scriptedModel, toolView } from '#testing';
import { drawn } from '../flow/by-hand.ts';
import { ask } from '../kit/ask.ts';
import { texts } from '../kit/messages.ts';
import { end, plan } from './pipeline-play.ts';

/** Each makes a move that has the query of the run in it, or the run's id. */
const MADE: Readonly<Record<string, (model: ScriptedModel) => Planner>> = {
  finish: () => finish(),
  deterministic: () => deterministic({ steps: [{ do: 'finish', reason: 'goal', payload: ({ query }) => query }] }),
  react: (model) => react({ model, compaction: { budgetTokens: 10_000 } }),
  graph: () => graph({ plan: ({ query }) => ({ steps: [{ id: 'end', type: 'finish', input: query }] }) }),
  rules: () =>
    rules({
      rules: [
        { id: 'end', match: () => true, toPlanStep: ({ goal = '' }) => ({ id: 'end', type: 'finish', input: goal }) },
      ],
    }),
  htn: () =>
    htn({
      domain: htnDomain({ operators: { look: () => true }, tasks: {} }),
      state: () => ({}),
      todo: ({ query }) => [['look', query]],
      step: ([toolId, q]) => ({ type: 'tool', toolId, input: { q: q ?? null } }),
    }),
  'htn by contract': () =>
    fromHtnPlanner({
      initialTask: ({ goal = '' }) => ({
        id: 'look',
        kind: 'primitive',
        primitive: { type: 'tool', toolId: 'look', input: { q: goal } },
      }),
      decompose: () => [],
    }),
  pipeline: (model) => pipeline({ model }),
  flow: () => flowPlanner(drawn({ entry: 'a', exits: ['b'], edges: ['a > b'] })),
  map: () => mapPlanner('map:f/each', 'each.item', 2),
};
const NAMES = Object.keys(MADE);

/** A model that plans, or answers, with the words it was asked with. */
function answering(name: string): ScriptedModel {
  return scriptedModel(({ prompt }) => {
    const asked = /query of \w+/.exec(texts(prompt, 'user').join(' '))?.[0] ?? '';
    return name === 'pipeline' ? plan(end(asked)) : { text: asked };
  });
}

function made(name: string): { readonly planner: Planner; readonly model: ScriptedModel } {
  const model = answering(name);
  return { model, planner: MADE[name]?.(model) as Planner };
}

function viewFor(name: string, run: string): RunView {
  const query = `query of ${run}`;
  return runView({
    identity: local('ana', { run }),
    query,
    tools: toolView(['look']),
    context: { args: name === 'map' ? [query] : query },
  });
}

/** A view that no runtime would make. */
function viewWithout(name: string, part: string): RunView {
  const whole = viewFor(name, 'r1');
  const identity = part === 'all' ? {} : { ...whole.identity, [part]: ' ' };
  return { ...whole, identity: identity as Identity };
}

describe.each(NAMES)('%s', (name) => {
  it('PC-07 throws the reason of an aborted signal, and asks no model', async () => {
    const { planner, model } = made(name);
    const reason = new Error('stop');
    await expect((async () => ask(planner, viewFor(name, 'r1'), AbortSignal.abort(reason)))()).rejects.toBe(reason);
    expect(model.calls).toEqual([]);
  });

  it.each(['tenant', 'user', 'session', 'run', 'all'])('ID-01, PC-08 fails closed without %s', async (part) => {
    const { planner, model } = made(name);
    const view = viewWithout(name, part);
    await expect((async () => ask(planner, view))()).rejects.toMatchObject({ code: 'identity_required' });
    expect(model.calls).toEqual([]);
  });

  it('CR-07 works deep-frozen', async () => {
    const { planner } = made(name);
    for (const part of Object.values(planner)) Object.freeze(part);
    expect(Object.isFrozen(planner)).toBe(true);
    expect(asPlanner(planner)).toBe(planner);
    expect(JSON.stringify(await ask(planner, viewFor(name, 'r1')))).toMatch(/query of r1\b|"r1"/);
  });

  it('CR-01, CR-03 128 runs at once stay apart; one that is aborted stops none of the others, and nobody stays on a signal', async () => {
    const { planner } = made(name);
    const shared = new AbortController();
    const stop = AbortSignal.abort(new Error('only me'));
    const answers = await Promise.allSettled(
      Array.from({ length: 128 }, async (_, run) =>
        ask(planner, viewFor(name, `r${run}`), run === 64 ? stop : shared.signal),
      ),
    );
    for (const [run, answer] of answers.entries()) {
      if (run === 64) {
        expect(answer).toMatchObject({ status: 'rejected', reason: stop.reason });
        continue;
      }
      const said = answer.status === 'fulfilled' ? JSON.stringify(answer.value) : String(answer.reason);
      expect(new Set(said.match(/\br\d+\b/g))).toEqual(new Set([`r${run}`]));
    }
    expect(getEventListeners(shared.signal, 'abort')).toHaveLength(0);
  });
});

it.each([
  'tenant',
  'user',
  'session',
  'run',
  'all',
])('CP-09, ID-01 nothing is shortened for a view without %s, and no model is asked', async (part) => {
  const model = answering('react');
  const { compact } = react({ model, compaction: { budgetTokens: 1 } });
  const shorten = async () => compact?.(viewWithout('react', part), new AbortController().signal);
  await expect(shorten()).rejects.toMatchObject({ code: 'identity_required' });
  expect(model.calls).toEqual([]);
});
