import { getEventListeners } from 'node:events';
import { MockLanguageModelV4 } from 'ai/test';
import { describe, expect, it } from 'vitest';
import { asPlanner, type Identity, local, resolveWakeMode, type Step } from '#core';
import type { LanguageModel } from '#model';
import { react } from '#planners/react';
import { runView, scriptedModel, toolView } from '#testing';
import { ask, listen } from '../kit/ask.ts';
import { texts } from '../kit/messages.ts';
import { stepOfMove } from '../kit/steps.ts';

const identity = local('ana');
const both = [false, true];

describe('react as a planner', () => {
  it('RA-07 refuses at construction what is no model, and bad prices', () => {
    expect(() => react({ model: 'gpt-5.2' as unknown as LanguageModel })).toThrow(/id of a model/);
    expect(() => react({} as { model: LanguageModel })).toThrow(/No model was given/);
    expect(() => react({ model: scriptedModel([]), prices: { input: -1, output: 0 } })).toThrow(/prices\.input/);
  });

  it('RA-06, PC-15 wakes by push, before and after many runs', async () => {
    const planner = react({ model: scriptedModel(() => ({ text: 'x' })) });
    expect(resolveWakeMode(planner)).toBe('push');
    for (let run = 0; run < 100; run += 1) await ask(planner, runView());
    expect(resolveWakeMode(planner)).toBe('push');
    expect(planner.modelDriven).toBe(true);
  });

  it.each(
    both,
  )('PC-07 an aborted signal: its reason is thrown and no model is called, streaming %s', async (streaming) => {
    const model = scriptedModel([{ text: 'x' }]);
    const reason = new Error('stop');
    const asked = ask(react({ model }), runView({ streaming }), AbortSignal.abort(reason));
    await expect(asked).rejects.toBe(reason);
    expect(model.calls).toHaveLength(0);
  });

  it.each(['tenant', 'user', 'session', 'run', 'all'])('PC-08 fails closed without %s', async (part) => {
    const model = scriptedModel([{ text: 'x' }]);
    const partial = part === 'all' ? {} : { ...identity, [part]: '' };
    const view = { ...runView(), identity: partial as Identity };
    await expect(ask(react({ model }), view)).rejects.toMatchObject({ code: 'identity_required' });
    await expect(ask(react({ model }), { ...view, streaming: true })).rejects.toMatchObject({
      code: 'identity_required',
    });
    expect(model.calls).toHaveLength(0);
  });

  it.each(both)('RA-02 the very error of the model comes back, after one call, streaming %s', async (streaming) => {
    // Inside a stream only an error that says so may not pass.
    const error = Object.assign(new Error('quota'), { isRetryable: false });
    const model = scriptedModel([{ error }]);
    await expect(ask(react({ model }), runView({ streaming }))).rejects.toBe(error);
    expect(model.calls).toHaveLength(1);
  });

  it('RA-04 the request names no model', async () => {
    const model = scriptedModel([{ text: 'x' }]);
    await ask(react({ model }), runView());
    expect(Object.keys(model.calls[0] ?? {}).sort()).toEqual(['abortSignal', 'prompt']);
  });

  it('RA-05, PC-11 deltas come in order with their kind only when somebody listens; the move is the same', async () => {
    const reply = { reasoning: 'first a thought, then', text: 'an answer in several pieces' };
    const model = scriptedModel([reply, reply]);
    const planner = react({ model });
    const silent = await listen(planner, runView());
    const loud = await listen(planner, runView({ streaming: true }));
    expect(silent.deltas).toEqual([]);
    const said = (type: string) =>
      loud.deltas.map((delta) => (delta.type === type && 'text' in delta ? delta.text : '')).join('');
    expect([said('reasoning'), said('text')]).toEqual([reply.reasoning, reply.text]);
    expect(loud.deltas.findLastIndex(({ type }) => type === 'reasoning')).toBeLessThan(
      loud.deltas.findIndex(({ type }) => type === 'text'),
    );
    expect(loud.move).toEqual(silent.move);
  });

  it('cancels the stream of the model when the consumer leaves', async () => {
    let cancelled = false;
    const model = new MockLanguageModelV4({
      doStream: async () => ({
        stream: new ReadableStream({
          pull: (controller) => controller.enqueue({ type: 'text-delta', id: '0', delta: 'more ' }),
          cancel() {
            cancelled = true;
          },
        }),
      }),
    });
    const source = react({ model }).next(runView({ streaming: true }), new AbortController().signal);
    if (!(Symbol.asyncIterator in source)) throw new Error('not a stream');
    await source.next();
    await source.return(undefined as never);
    expect(cancelled).toBe(true);
  });

  it.each(
    both,
  )('CR-01, CR-03 128 runs at once on one planner stay apart, and one abort stops one, streaming %s', async (streaming) => {
    const model = scriptedModel(({ prompt }) => ({ text: `for ${texts(prompt, 'user').join(' ')}` }));
    const planner = react({ model });
    const stop = new AbortController();
    stop.abort(new Error('only me'));
    const answers = await Promise.allSettled(
      Array.from({ length: 128 }, (_, run) =>
        ask(
          planner,
          runView({ identity: local('ana', { run: `r${run}` }), query: `run ${run}`, streaming }),
          run === 64 ? stop.signal : new AbortController().signal,
        ),
      ),
    );
    for (const [run, answer] of answers.entries()) {
      if (run === 64) expect(answer).toMatchObject({ status: 'rejected', reason: stop.signal.reason });
      else expect(answer).toMatchObject({ value: { decision: { payload: `for run ${run}` } } });
    }
  });

  it('CR-05 leaves no listener on a signal that 1000 steps share', async () => {
    const { signal } = new AbortController();
    const planner = react({ model: scriptedModel(() => ({ calls: [{ tool: 'search' }] })) });
    const tools = toolView(['search']);
    const steps: Step[] = [];
    for (let index = 0; index < 1000; index += 1) {
      // What a run has done is read at each step: one with few steps is quick.
      if (steps.length === 10) steps.length = 0;
      const streaming = index % 2 === 0;
      steps.push(
        stepOfMove(
          steps.length,
          await ask(planner, runView({ identity, tools, steps: [...steps], streaming }), signal),
        ),
      );
    }
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('CR-07 works deep-frozen', async () => {
    const planner = react({ model: scriptedModel([{ text: 'x' }]), guidance: 'g' });
    expect(Object.isFrozen(planner)).toBe(true);
    for (const part of Object.values(planner)) Object.freeze(part);
    expect(asPlanner(planner)).toBe(planner);
    expect((await ask(planner, runView())).decision).toMatchObject({ payload: 'x' });
  });
});
