import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { local, type RunView } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { runView, scriptedModel, toolView } from '#testing';
import { tool } from '#tools';
import { ask } from '../kit/ask.ts';
import { texts } from '../kit/messages.ts';
import { stepOfMove } from '../kit/steps.ts';

const input = { type: 'object', properties: { q: { type: 'string' } } };

describe('one step of react, in order', () => {
  it('RA-01 an abort comes before the identity, both before the model; then one call with tools and messages', async () => {
    const model = scriptedModel([{ calls: [{ id: 'a', tool: 'search', args: { q: 'x' } }] }]);
    const planner = react({ model, parallelToolCalls: false });
    const nobody = runView({ identity: { ...local('ana'), user: '' } });
    const gone = new Error('gone');
    await expect(ask(planner, nobody, AbortSignal.abort(gone))).rejects.toBe(gone);
    await expect(ask(planner, nobody)).rejects.toMatchObject({ code: 'identity_required' });
    expect(model.calls).toEqual([]);
    const view = runView({ tools: toolView(['search', 'read']) });
    expect(await ask(planner, view)).toMatchObject({ decision: { kind: 'call_tool', tool: 'search', callId: 'a' } });
    expect(model.calls).toHaveLength(1);
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(['read', 'search']);
    expect(model.calls[0]?.prompt.map(({ role }) => role)).toEqual(['system', 'user']);
  });

  it('RA-03, W51 calls that run one after another belong to one step: nothing is left pending, and nobody is asked between', async () => {
    const order: string[] = [];
    const model = scriptedModel([
      { calls: ['a', 'b', 'c'].map((q) => ({ id: q, tool: 'note', args: { q } })) },
      { text: 'Done.' },
    ]);
    const note = tool({
      name: 'note',
      description: 'Notes it.',
      effect: 'read',
      inputSchema: input,
      execute: async ({ q }) => {
        order.push(`begin ${String(q)}`);
        await Promise.resolve();
        order.push(`end ${String(q)}`);
        return null;
      },
    });
    const planner = react({ model, parallelToolCalls: false });
    const runtime = createRuntime({ planner, tools: [note], journal: memoryJournal() });
    const run = await runtime.start('go', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ status: 'finished', usage: { steps: 1, calls: 3 } });
    await runtime.close();
    expect(order).toEqual(['a', 'b', 'c'].flatMap((q) => [`begin ${q}`, `end ${q}`]));
    expect(model.calls).toHaveLength(2);
  });

  it("RA-40 a prompt builder's error is the step's error, before any call of the model; it has nothing but the view", async () => {
    const broken = new Error('no prompt today');
    const model = scriptedModel([]);
    const given: unknown[][] = [];
    const planner = react({
      model,
      buildPrompt: (...all) => {
        given.push(all);
        throw broken;
      },
    });
    const view = runView();
    await expect(ask(planner, view)).rejects.toBe(broken);
    await expect(ask(planner, runView({ ...view, streaming: true }))).rejects.toBe(broken);
    expect(model.calls).toEqual([]);
    expect(given.map(([first, second]) => [typeof first, typeof second])).toEqual([
      ['object', 'function'],
      ['object', 'function'],
    ]);
    expect(given[0]?.[0]).toBe(view);
  });

  it('RA-40 a prompt builder may go on from our messages, which are the same with and without it', async () => {
    const reply = { calls: [{ id: 'a', tool: 'search', args: { q: 'x' } }] };
    const plain = scriptedModel([reply, { text: 'x' }]);
    const built = scriptedModel([reply, { text: 'x' }]);
    const rule: LanguageModelV4Prompt[number] = { role: 'system', content: 'House rule.' };
    const buildPrompt = (_: RunView, ours: () => LanguageModelV4Prompt) => [rule, ...ours()];
    const first = runView({ tools: toolView(['search']) });
    for (const planner of [react({ model: plain }), react({ model: built, buildPrompt })]) {
      const steps = [stepOfMove(0, await ask(planner, first))];
      await ask(planner, runView({ ...first, steps }));
    }
    expect(built.calls.map(({ prompt }) => prompt)).toEqual(plain.calls.map(({ prompt }) => [rule, ...prompt]));
    expect(texts(built.calls[1]?.prompt ?? [], 'system')[0]).toBe('House rule.');
  });

  it('CP-04, W42 a summary that is there stays as it is while the request fits: nobody is asked for another', async () => {
    const model = scriptedModel([]);
    const planner = react({ model, compaction: { budgetTokens: 5_000 } });
    const steps = [0, 1, 2].map((index) =>
      stepOfMove(index, { decision: { kind: 'call_tool', tool: 'search', args: { q: 'long '.repeat(4_000) } } }),
    );
    const last = stepOfMove(3, { decision: { kind: 'call_tool', tool: 'search', args: { q: 'x' } } });
    const summary = { goals: ['g'], facts: ['f'], pending: [], lastOutputDigest: 'd', note: '' };
    const compaction = { summary, before: 3, tokenEstimate: 15_000 };
    const view = runView({ tools: toolView(['search']), steps: [...steps, last], compaction });
    const { signal } = new AbortController();
    expect(await planner.compact?.(view, signal)).toBeUndefined();
    expect(model.calls).toEqual([]);
  });

  it('RP-15 a run whose every step was faulty in part looks at a few of them, not at all of itself', async () => {
    const model = scriptedModel(() => ({ text: 'Done.' }));
    const planner = react({ model });
    const bad = { code: 'tool_invalid_args', message: '/q: required' };
    const steps = Array.from({ length: 200 }, (_, index) =>
      stepOfMove(index, {
        decision: {
          kind: 'call_parallel',
          branches: [
            { tool: 'search', args: {}, callId: `a${index}`, refusal: bad },
            { tool: 'search', args: { q: 'x' }, callId: `b${index}` },
          ],
        },
      }),
    );
    const view = runView({ tools: toolView(['search']), steps });
    let looked = 0;
    const { trajectory } = view;
    const step = (index: number) => {
      looked += 1;
      return trajectory.step(index);
    };
    const counted = { ...trajectory, step };
    const watched = { ...view, trajectory: counted };
    await ask(planner, watched);
    looked = 0;
    await ask(planner, watched);
    expect(looked).toBeGreaterThan(0);
    expect(looked).toBeLessThan(50);
    expect(texts(model.calls[1]?.prompt ?? [], 'user').at(-1)).toMatch(/^<runtime_note>\ncritical: /);
  });
});
