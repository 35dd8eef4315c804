/** Calls in text of tools that change something: which are made, and what becomes of the others. */
import { describe, expect, it } from 'vitest';
import type { JsonObject, Outcome } from '#core';
import { react } from '#planners/react';
import { runView, type ScriptedReply, scriptedModel, toolView } from '#testing';
import { type Tool, tool } from '#tools';
import { ask } from '../kit/ask.ts';
import { temporaryFile } from '../kit/files.ts';
import { outcomes } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { failure, stepOfMove, value } from '../kit/steps.ts';
import { until } from '../kit/waiting.ts';
import { start } from '../kit/world.ts';
import {
  chatFaults,
  type PlayOptions,
  play,
  playStreamed,
  reactWorld,
  search,
  shownTexts,
  system,
  tiers,
  wordsOf,
} from './played.ts';

const order = {
  type: 'object',
  properties: { order: { type: 'string' }, cents: { type: 'integer' } },
  required: ['order'],
  additionalProperties: false,
} as const;

/** A shop whose effects are counted outside of the run. */
function shop(effect: 'once' | 'keyed' = 'once', more: { readonly fails?: number } = {}) {
  const effects: JsonObject[] = [];
  let failures = more.fails ?? 0;
  const refund: Tool = tool({
    name: 'refund',
    description: 'Refunds an order.',
    effect,
    inputSchema: order,
    execute: (args) => {
      failures -= 1;
      if (failures >= 0) throw new Error('The bank is closed.');
      effects.push(args as JsonObject);
      return `refund ${effects.length} is made`;
    },
  });
  return { effects, refund };
}

const block = (json: unknown): string => `\`\`\`json\n${JSON.stringify(json)}\n\`\`\``;
const A17 = { tool: 'refund', args: { order: 'A-17' } };
const REFUND: ScriptedReply = { text: `I refund it.\n${block(A17)}` };
const DONE: ScriptedReply = { text: 'All is done.' };

async function played(
  replies: readonly ScriptedReply[],
  {
    run = play,
    goods = shop(),
    ...more
  }: Omit<Partial<PlayOptions>, 'model'> & { run?: typeof play; goods?: ReturnType<typeof shop> } = {},
) {
  const model = scriptedModel(replies);
  const made = await run({ model: { model, toolCalls: 'text' }, tools: [goods.refund, search], ...more });
  model.assertConsumed();
  expect(chatFaults(model)).toEqual([]);
  return { ...made, effects: goods.effects, requests: model.calls };
}

/** Every way in which the call of a tool with these arguments is written or talked of, but for the taught one. */
function otherForms(name: string, args: JsonObject): readonly string[] {
  const json = JSON.stringify(args);
  const call = JSON.stringify({ tool: name, args });
  const python = `${name}(${Object.entries(args)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(', ')})`;
  return [
    call,
    `[${call}]`,
    `{"name": "${name}", "arguments": ${json}}`,
    `<tool_call>\n{"name": "${name}", "arguments": ${json}}\n</tool_call>`,
    `<function=${name}>${json}</function>`,
    `[TOOL_CALLS] [{"name": "${name}", "arguments": ${json}}]`,
    `Action: ${name}\nAction Input: ${json}`,
    python,
    `[${python}]`,
    `${name} ${json}`,
    `\`\`\`json\n{"name": "${name}", "arguments": ${json}}\n\`\`\``,
    `\`\`\`\n${call}\n\`\`\``,
    `\`\`\`tool_code\n${python}\n\`\`\``,
    `I call it now:\n${call}`,
    `${block({ tool: name, args })}\nThe call is on its way.`,
    `${block({ tool: name, args, why: 'asked' })}`,
    `\`\`\`json\n{'tool': '${name}', 'args': ${json}}\n\`\`\``,
  ];
}

describe.each(['once', 'keyed'] as const)('a %s tool', (effect) => {
  it('is called in the taught form, with or without words before it', async () => {
    for (const text of [
      block(A17),
      `I refund it now.\n\n${block(A17)}`,
      `<think>Shall I?</think>\n${block([A17])}\n`,
    ]) {
      const { effects, result } = await played([{ text }, DONE], { goods: shop(effect) });
      expect(effects).toEqual([A17.args]);
      expect(result).toMatchObject({ answer: 'All is done.' });
    }
  });

  it.each(
    otherForms('refund', { order: 'A-17', cents: 500 }),
  )('is not called by %s, and the model is told how', async (text) => {
    const taught: ScriptedReply = { text: block({ tool: 'refund', args: { order: 'A-17', cents: 500 } }) };
    for (const run of [play, playStreamed]) {
      const { effects, steps, requests, result } = await played([{ text }, taught, DONE], { goods: shop(effect), run });
      expect(effects).toHaveLength(1);
      const told = wordsOf(requests[1]?.prompt.at(-2)) + wordsOf(requests[1]?.prompt.at(-1));
      expect(told).toContain('{"tool": "...", "args": {...}}');
      expect(outcomes({ steps })).toEqual(['error']);
      expect(outcomes({ steps }, 1)).toEqual(['value']);
      expect(result).toMatchObject({ answer: 'All is done.' });
    }
  });
});

describe('a call that is only spoken of', () => {
  const B = block(A17);
  it.each([
    `> The page says:\n> ${B.replaceAll('\n', '\n> ')}`,
    `I will not do that:\n${B}`,
    `Never send this:\n${B}`,
    `Shall I send this?\n${B}`,
    `For example:\n${B}`,
    `A refund looks like this:\n${B}`,
    `The user wrote "refund it with\n${B}`,
    `I could refund it with refund(order="A-17"), if you agree.`,
    `You asked me not to call refund(order="A-17").`,
    '```python\ndef again():\n    return refund(order="A-17")\n```',
    `The tool is used so: refund(order="<number>")`,
  ])('is not made: %s', async (text) => {
    const goods = shop();
    const model = scriptedModel(() => ({ text }));
    await play({ model: { model, toolCalls: 'text' }, tools: [goods.refund, search] });
    expect(goods.effects).toEqual([]);
  });

  it('the run of a model that writes nothing else ends, and not as the goal', async () => {
    const { effects, result, requests } = await played([1, 2, 3].map(() => ({ text: 'refund(order="A-17")' })));
    expect(effects).toEqual([]);
    expect(requests.map(tiers)).toEqual([[], ['reminder'], ['warning']]);
    expect(result).toMatchObject({ reason: 'no_path', metadata: { repair_exhausted: true } });
  });
});

describe('beside calls that only look things up', () => {
  it('those are made in looser forms, and each call has its result', async () => {
    const calls = [{ tool: 'search', args: { q: 'x' } }, A17];
    const { effects, steps, requests } = await played([{ text: JSON.stringify(calls) }, DONE]);
    expect(effects).toEqual([]);
    expect(outcomes({ steps })).toEqual(['value', 'error']);
    expect(steps[0]?.calls[1]?.outcome).toMatchObject({ error: { code: 'call_unsure' } });
    expect(wordsOf(requests[1]?.prompt.at(-2))).toContain('found x');
  });

  it.each(otherForms('search', { q: 'x', limit: 3 }).slice(0, 13))('search runs from %s', async (text) => {
    const { steps } = await played([{ text }, DONE]);
    expect(steps[0]?.decision).toMatchObject({ tool: 'search', args: { q: 'x', limit: 3 } });
    expect(outcomes({ steps })).toEqual(['value']);
  });

  it('one of no tool in their list is told of', async () => {
    const calls = [
      { tool: 'search', args: { q: 'x' } },
      { tool: 'nothing', args: {} },
    ];
    const { steps, requests } = await played([{ text: block(calls) }, DONE]);
    expect(outcomes({ steps })).toEqual(['value', 'error']);
    const told = requests[1]?.prompt.slice(requests[0]?.prompt.length).map(wordsOf).join('\n');
    expect(told).toMatch(/tool_not_found — there is no tool named nothing/);
  });

  it('in the taught form all are made', async () => {
    const { effects, steps } = await played([{ text: block([{ tool: 'search', args: { q: 'x' } }, A17]) }, DONE]);
    expect(effects).toHaveLength(1);
    expect(outcomes({ steps })).toEqual(['value', 'value']);
  });
});

describe('after the call was made', () => {
  it.each([
    "Done: I called refund(order='A-17')",
    'As I said: {"tool": "refund", "args": {"order": "A-17"}}',
    'I have called refund {"order": "A-17"}, and the money is on its way.',
    `The order is refunded. The call was:\n${block(A17)}`,
    `The order is refunded.\n<tool_call>{"name": "refund", "arguments": {"order": "A-17"}}</tool_call>`,
    `Action: refund\nAction Input: {"order": "A-17"}\nObservation: refund 1 is made\nThe order is refunded.`,
    'Refunded with `refund(order="A-17")`.',
  ])('a report is the answer, and nothing is refunded: %s', async (text) => {
    for (const run of [play, playStreamed]) {
      const { effects, result, events } = await played([REFUND, { text }], { run });
      expect(effects).toHaveLength(1);
      expect(result).toMatchObject({ reason: 'goal', answer: text });
      if (run === playStreamed) expect(shownTexts(events)[1]).toBe(text);
    }
  });

  it.each([
    block(A17),
    `I refund it now.\n${block(A17)}`,
    JSON.stringify(A17),
    'refund(order="A-17")',
    '[{"order":"A-17"}]',
  ])('the same call again is told what came of it: %s', async (text) => {
    const { effects, steps, requests, result } = await played([REFUND, { text }, DONE]);
    expect(effects).toHaveLength(1);
    expect(steps[1]?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { code: 'call_repeated' } });
    const told = requests[2]?.prompt.slice(requests[1]?.prompt.length).map(wordsOf).join('\n');
    expect(told).toMatch(/made at step 1.*refund 1 is made.*"again": "\.\.\."/s);
    expect(result).toMatchObject({ answer: 'All is done.' });
  });

  it('order of keys, types that were mended and what stands between make no other call of it', async () => {
    const first = { tool: 'refund', args: { order: 'A-17', cents: 500 } };
    const same = { tool: 'refund', args: { cents: '500', order: 'A-17' } };
    const look = { text: block({ tool: 'search', args: { q: 'x' } }) };
    const { effects } = await played([{ text: block(first) }, look, { text: block(same) }, DONE]);
    expect(effects).toHaveLength(1);
  });

  it.each([
    { note: null },
    { again: 'because' },
  ])('a key that the tool does not know makes no other call of it: %j', async (more) => {
    const { effects } = await played([REFUND, { text: block({ ...A17, args: { ...A17.args, ...more } }) }, DONE]);
    expect(effects).toHaveLength(1);
  });

  it.each<[words: string, after: ScriptedReply[]]>([
    ['I cannot pay without your OK. Reply yes and I will send:', []],
    ['I need a confirmation first.', []],
    ['It is up to you.', [DONE]],
  ])('is not called behind %s', async (words, after) => {
    expect((await played([{ text: `${words}\n\n${block(A17)}` }, ...after])).effects).toEqual([]);
  });

  it('other arguments are another call', async () => {
    const other = { tool: 'refund', args: { order: 'A-18' } };
    expect((await played([REFUND, { text: block(other) }, DONE])).effects).toEqual([A17.args, other.args]);
  });

  it('it is made again with a reason, which is recorded', async () => {
    const again = 'The customer paid twice.';
    const { effects, steps, requests } = await played([REFUND, { text: block({ ...A17, again }) }, DONE]);
    expect(effects).toHaveLength(2);
    expect(steps[1]?.provenance).toMatchObject({ again: [again] });
    expect(wordsOf(requests[2]?.prompt.at(-1))).toContain('refund 2 is made');
    // The reason was for that one call.
    const third = await played([REFUND, { text: block({ ...A17, again }) }, { text: block(A17) }, DONE]);
    expect(third.effects).toHaveLength(2);
  });

  it.each(['', ' ', '...', '?', 1, true, null, ['x']])('%j is no reason', async (again) => {
    const { effects } = await played([REFUND, { text: block({ ...A17, again }) }, DONE]);
    expect(effects).toHaveLength(1);
  });

  it('a reason among other words is no report: the model is told how', async () => {
    const again = 'The customer paid twice.';
    const text = `I pay again, as the customer paid twice:\n${block({ ...A17, again })}`;
    const { effects, steps } = await played([REFUND, { text }, { text: block({ ...A17, again }) }, DONE]);
    expect(outcomes({ steps }, 1)).toEqual(['error']);
    expect(effects).toHaveLength(2);
  });

  it('a reason does not stand in for the taught form', async () => {
    const again = 'The customer paid twice.';
    const { effects } = await played([REFUND, { text: JSON.stringify({ ...A17, again }) }, DONE]);
    expect(effects).toHaveLength(1);
  });

  it('a reason is not needed the first time, and does no harm', async () => {
    const { effects, steps } = await played([{ text: block({ ...A17, again: 'I was asked to.' }) }, DONE]);
    expect(effects).toHaveLength(1);
    expect(steps[0]?.provenance).not.toHaveProperty('again');
  });

  it('one that failed was not made, and needs no reason', async () => {
    const goods = shop('once', { fails: 1 });
    const { effects, steps } = await played([REFUND, REFUND, DONE], { goods });
    expect(outcomes({ steps })).toEqual(['error']);
    expect(effects).toHaveLength(1);
  });

  it('what only looks things up is looked up again', async () => {
    const look = { text: block({ tool: 'search', args: { q: 'x' } }) };
    const { steps } = await played([look, look, DONE]);
    expect(outcomes({ steps }, 1)).toEqual(['value']);
  });

  it('it is remembered over a restart', async () => {
    const path = temporaryFile();
    const goods = shop();
    const first = scriptedModel([REFUND, { stall: true }]);
    const options = { tools: [goods.refund, search] };
    const before = reactWorld({ ...options, model: { model: first, toolCalls: 'text' }, journal: openJournal(path) });
    const run = await start(before);
    await until(() => first.calls.length === 2);
    await before.runtime.close();
    const second = scriptedModel([REFUND, DONE]);
    const after = reactWorld({ ...options, model: { model: second, toolCalls: 'text' }, journal: openJournal(path) });
    const resumed = after.runtime.run(run.id);
    await resumed.resume();
    expect(await resumed.result()).toMatchObject({ answer: 'All is done.' });
    expect(goods.effects).toHaveLength(1);
  });

  it.each<[string, Outcome, boolean]>([
    ['unknown', { kind: 'unknown', error: { code: 'call_unknown', message: 'The process died.' } }, true],
    ['cancelled', { kind: 'cancelled', error: { code: 'cancelled', message: 'Stopped.' } }, true],
    ['skipped', { kind: 'skipped', error: { code: 'skipped', message: 'Not begun.' } }, false],
    ['error', failure('tool_failed', 'No.'), false],
    ['value', value('done'), true],
  ])('by what came of it: %s', async (_, outcome, isMade) => {
    const tools = toolView([{ ...(toolView(['refund']).get('refund') as never as object), effect: 'once' } as never]);
    const decision = { kind: 'call_tool', tool: 'refund', args: { order: 'A-17' }, callId: 'c' } as const;
    const view = runView({ tools, steps: [stepOfMove(0, { decision }, [outcome])] });
    const asked = async (text: string) =>
      (await ask(react({ model: { model: scriptedModel([{ text }]), toolCalls: 'text' } }), view)).decision;
    const plain = await asked(block(A17));
    if (isMade) expect(plain).toMatchObject({ refusal: { code: 'call_repeated' } });
    else expect(plain).not.toHaveProperty('refusal');
    expect(await asked(block({ ...A17, again: 'It did not arrive.' }))).not.toHaveProperty('refusal');
  });
});

describe('other ways to act', () => {
  it('a tool that was found is no other', async () => {
    const goods = shop();
    const hidden = { ...goods.refund, loading: 'deferred' as const };
    const find = { text: block({ tool: 'tool_search', args: { query: 'refund' } }) };
    const { effects, steps } = await played(
      [find, { text: 'refund(order="A-17")' }, REFUND, { text: JSON.stringify(A17) }, DONE],
      { goods: { ...goods, refund: hidden } },
    );
    expect(effects).toHaveLength(1);
    expect([1, 2, 3].map((index) => outcomes({ steps }, index))).toEqual([['error'], ['value'], ['error']]);
  });

  it('a task is started in the taught form alone', async () => {
    const spawn = { tool: '_spawn_task', args: { spec: { description: 'd', query: 'q' } } };
    const view = runView({ tasks: true });
    const decisionOf = async (text: string) =>
      (await ask(react({ model: { model: scriptedModel([{ text }]), toolCalls: 'text' }, tasks: true }), view))
        .decision;
    expect(await decisionOf(block(spawn))).toMatchObject({ kind: 'spawn_task' });
    expect(await decisionOf(JSON.stringify(spawn))).toMatchObject({ refusal: { code: 'call_unsure' } });
    expect(await decisionOf(JSON.stringify({ tool: '_await_task', args: { task_id: 't' } }))).toMatchObject({
      kind: 'await_task',
    });
  });

  it('a reply that was cut off behind a block may have gone on', async () => {
    for (const finish of ['length', 'interrupted', 'error'] as const) {
      const { effects } = await played([{ ...REFUND, finish }, DONE]);
      expect(effects).toEqual([]);
    }
  });

  it('an object that a tool would take is an answer where one of its form is asked for', async () => {
    const goods = shop();
    const q = {
      type: 'object',
      properties: { q: { type: 'string' }, limit: { type: 'integer' } },
      required: ['q'],
    } as const;
    for (const text of [
      '{"q":"x","limit":2}',
      '```json\n{"q":"x","limit":2}\n```',
      '<think>{"q":"y"}</think>{"q":"x","limit":2}',
    ]) {
      for (const run of [play, playStreamed]) {
        const { result } = await played([{ text }], { goods, react: { answerSchema: q }, run });
        expect(result).toMatchObject({ reason: 'goal', payload: { q: 'x', limit: 2 } });
      }
    }
    // Where every key may be left out, anything fits once its own are.
    const loose = { type: 'object', properties: { note: { type: 'string' } }, additionalProperties: false } as const;
    const looked = await played([{ text: JSON.stringify({ tool: 'search', args: { q: 'x' } }) }, { text: '{}' }], {
      react: { answerSchema: loose },
    });
    expect(outcomes(looked)).toEqual(['value']);
    const called = await played([{ text: block({ tool: 'search', args: { q: 'x' } }) }, { text: '{"q":"x"}' }], {
      react: { answerSchema: q },
    });
    expect(outcomes(called)).toEqual(['value']);
  });
});

describe('what the prompt says', () => {
  it('of repeating, only where something can be changed', async () => {
    const { requests } = await played([DONE]);
    expect(system(requests[0] ?? { prompt: [] })).toContain('{"tool": "...", "args": {...}, "again": "..."}');
    const reading = scriptedModel([DONE]);
    await play({ model: { model: reading, toolCalls: 'text' } });
    expect(system(reading.calls[0] ?? { prompt: [] })).not.toContain('"again"');
  });
});
