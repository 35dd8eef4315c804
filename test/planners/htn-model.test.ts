/** A model that chooses among the methods of the htn planner, and one that fills in its leaves. */
import { describe, expect, it } from 'vitest';
import type { Json } from '#core';
import type { ModelEntry } from '#model';
import { local, PilotageError } from '#pilotage';
import { type HtnOptions, type HtnTask, htn, htnDomain, traceOfStep } from '#planners/htn';
import { chooseWith, fillWith, type HtnModelOptions } from '#planners/htn-model';
import type { Run } from '#runtime';
import { type ReplyFunction, type ScriptedModel, type ScriptedReply, scriptedModel } from '#testing';
import { texts } from '../kit/messages.ts';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';
import { view } from './parcels.ts';

/** One way or another to go, and a word to be said. */
const DOMAIN = htnDomain({
  operators: { drive: () => true, walk: () => true },
  tasks: {
    go: { 'by road': () => [['drive']], 'on foot': (_, ...to: Json[]) => (to.length < 3 ? [['walk']] : undefined) },
    say: [],
  },
});

interface Played {
  readonly run: Run;
  readonly result: Awaited<ReturnType<Run['result']>>;
  readonly calls: readonly string[];
  readonly moves: Awaited<ReturnType<typeof movesOf>>;
}

const movesOf = (made: World, run: Run) => entriesOf(made.journal, run, 'moved');

async function play(
  todo: readonly HtnTask[],
  helpers: Pick<HtnOptions, 'choose' | 'fill' | 'lazy'>,
  microUsd?: number,
): Promise<Played> {
  const calls: string[] = [];
  const tools = ['drive', 'walk', 'ring'].map((name) =>
    make(
      name,
      (args) => {
        calls.push([name, ...Object.values(args)].join(' '));
        return 'done';
      },
      { inputSchema: { type: 'object', properties: { times: { type: 'integer' } }, additionalProperties: false } },
    ),
  );
  const step: HtnOptions['step'] = ([toolId]) => ({ type: 'tool', toolId });
  const planner = htn({ domain: DOMAIN, state: () => ({}), todo: () => todo, step, ...helpers });
  const made = world({ planner, tools });
  const limits = microUsd === undefined ? {} : { limits: { costUsd: microUsd / 1_000_000 } };
  const run = await start(made, { query: 'Home </goal> please', identity: local('ana'), ...limits });
  let isOver = false;
  const ended = run.result().finally(() => {
    isOver = true;
  });
  await advanceUntil(made.clock, () => isOver);
  const result = await ended;
  expect(made.faults.filter((fault) => !PilotageError.is(fault, 'model_unavailable'))).toEqual([]);
  return { run, result, calls, moves: await movesOf(made, run) };
}

const USED = { inputTokens: 100, outputTokens: 10 };
const PRICES = { input: 1, output: 1 };
const answer = (value: Json): ScriptedReply => ({ text: JSON.stringify(value), usage: USED });
const chosen = (method: string): ScriptedReply => answer({ method });
const steps = (...given: Json[]): ScriptedReply => answer({ steps: given });
/** A reply of 1,100 tokens. */
const dear = (reply: ScriptedReply): ScriptedReply => ({ ...reply, usage: { inputTokens: 1_000, outputTokens: 100 } });
const down: ScriptedReply = { error: Object.assign(new Error('It is being mended.'), { statusCode: 503 }) };

const NO_RETRIES: HtnModelOptions = { retries: 0 };
const GO: readonly HtnTask[] = [['go', '</task>', 'home']];

function firstText(model: ScriptedModel): string {
  return texts(model.calls[0]?.prompt ?? [], 'user').join('\n');
}

describe('chooseWith', () => {
  it('tries the method that the model names, and what that took is in the move', async () => {
    const model = scriptedModel([chosen('on foot')]);
    const choose = chooseWith(model, { prices: PRICES, describe: { 'on foot': 'Slow, and dry.' } });
    const { calls, result, moves } = await play(GO, { choose });
    expect(calls).toEqual(['walk']);
    expect(result).toMatchObject({ status: 'finished', reason: 'goal', usage: { ...USED, costMicroUsd: 110 } });
    expect(moves.map(({ usage }) => usage)).toEqual([{ ...USED, costMicroUsd: 110 }, undefined]);
    const [request] = model.calls;
    expect(request).toMatchObject({ temperature: 0, responseFormat: { type: 'json', name: 'choice' } });
    expect(JSON.stringify(request?.responseFormat)).toContain('"enum":["by road","on foot"]');
    expect(firstText(model).split('\n')).toEqual(
      expect.arrayContaining([
        '- by road',
        '- on foot: Slow, and dry.',
        'Home <\\/goal> please',
        '["go","<\\/task>","home"]',
      ]),
    );
  });

  it.each([
    ['a bare name', 'on foot'],
    ['words around it', 'That would be {"method": "on foot"}.'],
    ['a fence', '```json\n{"method": "on foot"}\n```'],
    ['more than was asked for', '{"method": "on foot", "why": "It is dry."}'],
  ])('reads %s', async (_what, text) => {
    const { calls } = await play(GO, { choose: chooseWith(scriptedModel([{ text }])) });
    expect(calls).toEqual(['walk']);
  });

  it('of an answer that names no method the first is tried, and both are recorded, with what all tries took', async () => {
    const model = scriptedModel(() => ({ text: 'I would fly.', usage: USED }));
    const { calls, moves } = await play(GO, { choose: chooseWith(model) });
    expect(calls).toEqual(['drive']);
    // Asked again in each of the lower modes.
    expect(model.calls).toHaveLength(3);
    expect(moves[0]?.usage).toEqual({ inputTokens: 300, outputTokens: 30 });
    expect(moves[0]?.remarks?.map(({ type }) => type)).toEqual(['model.output_downgraded', 'model.output_downgraded']);
    const { provenance = {} } = moves[0] ?? {};
    expect(traceOfStep({ provenance })?.nodes[0]).toMatchObject({ status: 'done', answer: 'I would fly.' });
  });

  it('begins with the mode that has worked', async () => {
    const model = scriptedModel(({ responseFormat }) =>
      responseFormat === undefined ? chosen('on foot') : { text: '?' },
    );
    const choose = chooseWith(model);
    for (const calls of [3, 4]) {
      await play(GO, { choose });
      expect(model.calls).toHaveLength(calls);
    }
  });

  it('when the model is down, the run waits for it, and no method is tried meanwhile', async () => {
    const model = scriptedModel([down, chosen('on foot')]);
    const { calls, result } = await play(GO, { choose: chooseWith(model, NO_RETRIES) });
    expect(calls).toEqual(['walk']);
    expect(result).toMatchObject({ reason: 'goal' });
  });

  it('tries again what may pass, and tells so', async () => {
    const reply: ReplyFunction = (_, index) =>
      index === 0
        ? { error: Object.assign(new Error('busy'), { statusCode: 503, responseHeaders: { 'retry-after-ms': '0' } }) }
        : chosen('on foot');
    const { calls, moves } = await play(GO, { choose: chooseWith(scriptedModel(reply)) });
    expect(calls).toEqual(['walk']);
    expect(moves[0]?.remarks).toMatchObject([{ type: 'model.fallback', from: 'scripted', to: 'scripted' }]);
  });

  it('a refused key pauses the run', async () => {
    const refused = { error: Object.assign(new Error('No such key.'), { statusCode: 401 }) };
    const { calls, result } = await play(GO, { choose: chooseWith(scriptedModel([refused])) });
    expect(calls).toEqual([]);
    expect(result).toMatchObject({
      status: 'paused',
      pauses: [
        { payload: { why: 'key_refused', message: expect.stringContaining('asked for one of by road, on foot') } },
      ],
    });
  });

  it('a limit of money ends the run, and nothing more is asked once it is reached', async () => {
    const todo: HtnTask[] = [1, 2, 3, 4].map((trip) => ['go', trip]);
    // Each question takes 1,100. A call at a time: one question a move, and the limit is looked at between two.
    const lazily = scriptedModel(() => dear(chosen('on foot')));
    const byOne = await play(todo, { lazy: true, choose: chooseWith(lazily, { prices: PRICES }) }, 2_000);
    expect(byOne.result).toMatchObject({
      reason: 'max_cost',
      metadata: { budget: 'cost' },
      usage: { costMicroUsd: 2_200 },
    });
    expect(byOne.calls).toEqual(['walk', 'walk']);
    // All ahead: within the move the rest is done by the first method, with nobody asked.
    const ahead = scriptedModel(() => dear(chosen('on foot')));
    const atOnce = await play(todo, { choose: chooseWith(ahead, { prices: PRICES }) }, 2_000);
    expect(atOnce.result).toMatchObject({ metadata: { budget: 'cost' }, usage: { costMicroUsd: 2_200 } });
    expect(atOnce.calls).toEqual(['walk', 'walk', 'drive', 'drive']);
    expect([lazily.calls.length, ahead.calls.length]).toEqual([2, 2]);
  });

  it('refuses what is no model', () => {
    expect(() => chooseWith({ model: 7 } as unknown as ModelEntry)).toThrow(
      expect.objectContaining({ code: 'invalid_config' }),
    );
    expect(() => fillWith(scriptedModel([]), { prices: { input: -1, output: 0 } })).toThrow(
      expect.objectContaining({ code: 'invalid_config' }),
    );
  });
});

describe('fillWith', () => {
  const SAY: readonly HtnTask[] = [['say', 'hello']];
  const hello = { type: 'message', input: 'Hello.' };
  const ring = { type: 'tool', toolId: 'ring', input: { times: 2 } };

  it('solves a leaf by the steps that the model gives', async () => {
    const model = scriptedModel([steps(ring, hello)]);
    const fill = fillWith(model, { prices: PRICES, describe: { say: 'A greeting, with a ring before it.' } });
    const { calls, result, moves } = await play(SAY, { fill });
    expect(calls).toEqual(['ring 2']);
    expect(result).toMatchObject({ reason: 'goal', usage: { costMicroUsd: 110 } });
    expect(moves[0]?.decision).toMatchObject({
      branches: [
        { tool: 'ring', args: { times: 2 } },
        { tool: '_message', args: expect.anything() },
      ],
    });
    const text = firstText(model);
    for (const said of ['- ring: ring', 'say: A greeting, with a ring before it.', '["say","hello"]', '<\\/goal>']) {
      expect(text).toContain(said);
    }
  });

  it('gives back once what cannot be carried out, with all that is wrong', async () => {
    const model = scriptedModel([
      ...Array.from({ length: 3 }, () =>
        steps({ type: 'tool', toolId: 'fly', input: {} }, { type: 'finish', input: 1 }),
      ),
      steps(hello),
    ]);
    const { result, moves } = await play(SAY, { fill: fillWith(model) });
    expect(result).toMatchObject({ reason: 'goal' });
    expect(moves[0]?.usage).toEqual({ inputTokens: 400, outputTokens: 40 });
    const [, told = ''] = texts(model.calls[3]?.prompt ?? [], 'user');
    expect(told).toContain('"fly": there is no such tool');
    expect(told).toContain('The step 2 is neither of the type tool nor of the type message');
    model.assertConsumed();
  });

  it.each([
    ['no steps', { text: 'Hello!' }, 'The answer has no list of steps'],
    ['an input that does not fit', steps({ ...ring, input: { times: 'often' } }), 'does not fit the tool ring'],
    ['a step that refers to another', steps(ring, { type: 'message', input: { $from: 'step 1' } }), 'no such step'],
    ['a step that is none', steps(7), 'neither of the type'],
  ])('fails the run when it gives %s again and again', async (_what, reply, message) => {
    const model = scriptedModel(() => reply);
    const { calls, result } = await play(SAY, { fill: fillWith({ model, structuredOutput: 'text' }) });
    expect(calls).toEqual([]);
    expect(model.calls).toHaveLength(2);
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'plan_invalid', message: expect.stringContaining(message) },
    });
    expect(JSON.stringify(result)).toContain('`fill` failed for the task say');
  });

  it('while the model is down the run waits for it', async () => {
    const { result } = await play(SAY, { fill: fillWith(scriptedModel([down, steps()]), NO_RETRIES) });
    expect(result).toMatchObject({ reason: 'goal' });
  });

  it('may find that there is nothing to do', async () => {
    const { result, moves } = await play(SAY, { fill: fillWith(scriptedModel([steps()])) });
    expect(result).toMatchObject({ reason: 'goal', payload: { results: {} } });
    // The move that ends the run has what it took.
    expect(moves.map(({ usage }) => usage)).toEqual([USED]);
  });

  it('once the money is used up, leaves further behind wait, and are not asked about', async () => {
    const model = scriptedModel(() => dear(steps(ring)));
    const todo: HtnTask[] = [['say', 1], ['go'], ['say', 2], ['say', 3]];
    const { calls, result } = await play(todo, { fill: fillWith(model, { prices: PRICES }) }, 1_000);
    expect(result).toMatchObject({ reason: 'max_cost', metadata: { budget: 'cost' }, usage: { costMicroUsd: 1_100 } });
    expect(calls).toEqual(['ring 2', 'drive']);
    expect(model.calls).toHaveLength(1);
  });
});

it('stops with its run', async () => {
  const model = scriptedModel([{ stall: true }]);
  const controller = new AbortController();
  const asked = chooseWith(model)(['go'], ['by road', 'on foot'], view(), controller.signal);
  controller.abort(new Error('enough'));
  await expect(asked).rejects.toThrow('enough');
});
