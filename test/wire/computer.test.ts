/**
 * OpenAI's computer, whose results are screenshots in a form of their own: beside the AI SDK's loop on the same bytes, in every later
 * request, and also where there is nothing to show. `killed-own.test.ts` kills the process among such calls.
 */
import { openai as openaiTools } from '@ai-sdk/openai';
import { describe, expect, it } from 'vitest';
import { type Json, type JsonObject, local } from '#core';
import { withTools } from '#pilotage/tools';
import { react } from '#planners/react';
import type { Run } from '#runtime';
import type { ToolSet } from '#tools';
import { start, world } from '../kit/world.ts';
import { type Case, comparing, endOf } from './own/compare.ts';
import { computerCall, largeShot, type Screenshot, screenshot } from './own/computer.ts';
import { ours } from './own/play.ts';
import { openai, says } from './own/protocols.ts';
import { base64, png } from './pictures.ts';
import { whole, wire } from './pieces.ts';

const computer = (made: unknown[], shot: (number: number) => Screenshot): Record<string, object> => ({
  computer: openaiTools.tools.computer({
    execute: (async (input: unknown) => {
      made.push(input);
      return shot(made.length);
    }) as never,
  }),
});
const click = {
  actions: [{ type: 'click', x: 1, y: 2, button: 'left' }],
  pendingSafetyChecks: [],
  status: 'completed',
};
const check = { id: 'cu_sc_1', code: 'malicious_instructions', message: 'Somebody tells the model what to do.' };

function looking(shot: (number: number) => Screenshot, more: Partial<Case> = {}): Case {
  return {
    protocol: openai,
    tools: (made) => computer(made, shot),
    replies: [[[computerCall(1)], 'stop'], [[computerCall(2)], 'stop'], endOf.openai],
    made: [click, click],
    ...more,
  };
}

comparing({
  'OpenAI: screenshots of its computer, and one that acknowledges what the model was warned of': looking(
    (number) => ({ ...screenshot(png(number)), ...(number === 1 ? { acknowledgedSafetyChecks: [check] } : {}) }),
    {
      replies: [
        [[{ ...computerCall(1), pending_safety_checks: [check] }], 'stop'],
        [[computerCall(2)], 'stop'],
        endOf.openai,
      ],
      made: [{ ...click, pendingSafetyChecks: [check] }, click],
    },
  ),
  'OpenAI: screenshots that are larger than what an entry of the journal may be': looking(largeShot),
  'OpenAI: a screenshot at a URL, and one that OpenAI has': looking((number) => ({
    output:
      number === 1
        ? { type: 'computer_screenshot', imageUrl: 'https://shots.example/1.png', detail: 'original' }
        : { type: 'computer_screenshot', fileId: 'file_1' },
  })),
});

type Item = JsonObject & { readonly output: JsonObject };
const itemsOf = (body: JsonObject | undefined): readonly JsonObject[] => (body?.['input'] ?? []) as JsonObject[];
const outputsIn = (body: JsonObject | undefined): readonly Item[] =>
  itemsOf(body).filter(({ type }) => type === 'computer_call_output') as Item[];
const isPng = expect.stringMatching(/^data:image\/png;base64,iVBORw0KGgo/);

const fails = async (): Promise<never> => {
  throw new Error('the screen is locked');
};
const reject = async (run: Run) => {
  const result = await run.result();
  if (result.status !== 'paused') throw new Error('The run is not paused.');
  await run.reject(result.pauses[0]?.token ?? '', { reason: 'not that button' });
};

describe('where there is no screenshot, another picture stands in the form, and what happened is told behind', () => {
  it.each([
    ['of a call that fails', false, 'the screen is locked', undefined],
    ['of a call that was rejected', true, 'not that button', reject],
  ] as const)('%s', async (_, needsApproval, words, before) => {
    const made = { computer: openaiTools.tools.computer({ execute: fails as never }) };
    const tools = withTools(made as never, { computer: { effect: 'read', retries: 0, needsApproval } } as never);
    const answers = [
      openai.answer([computerCall(1)], 'stop', false),
      openai.answer([says.openai('Done.')], 'stop', false),
    ];
    const asked = { protocol: openai, answers, stream: false, cut: whole };
    const { requests, result } = await ours(tools as ToolSet, asked, before);
    expect(result).toMatchObject({ status: 'finished', answer: 'Done.' });
    const items = itemsOf(requests[1]?.body);
    expect(items.at(-2)).toMatchObject({
      ...{ type: 'computer_call_output', call_id: 'call_1' },
      output: { type: 'computer_screenshot', image_url: isPng },
    });
    expect(items.at(-1)).toMatchObject({ role: 'user' });
    expect(JSON.stringify(items.at(-1))).toContain(words);
  });
});

it('old screenshots leave as other pictures do: each call keeps its form, and a line has the reference', async () => {
  const STEPS = 18;
  const calls = Array.from({ length: STEPS }, (_, at) => openai.answer([computerCall(at + 1)], 'stop', false));
  const answers = [...calls, openai.answer([says.openai('Done.')], 'stop', false)];
  const { fetch, requests } = wire(answers, whole);
  const model = openai.model({ baseURL: 'http://provider.test/v1', fetch });
  const tools = withTools(computer([], largeShot) as never, { computer: { effect: 'read' } } as never) as ToolSet;
  // Screenshots do not count as the text that they are written as.
  const planner = react({ model: { model, contextTokens: 32_000 } });
  const made = world({ planner, tools });
  const run = await start(made, { query: 'Look.', identity: local('ana'), limits: { steps: 40 } });
  expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Done.' });
  expect(requests).toHaveLength(STEPS + 1);
  for (const { body } of requests) {
    for (const { output } of outputsIn(body)) expect(output).toMatchObject({ image_url: isPng });
    expect(itemsOf(body).filter(({ type }) => type === 'function_call_output')).toEqual([]);
  }
  const { body: last } = requests[STEPS] ?? {};
  expect(outputsIn(last)).toHaveLength(STEPS);
  const urlOf = (number: number): Json => largeShot(number).output['imageUrl'] as Json;
  const shown = outputsIn(last).map(({ output }, at) => output['image_url'] === urlOf(at + 1));
  expect(shown).toEqual(Array.from({ length: STEPS }, (_, at) => at >= STEPS - 9));
  expect(JSON.stringify(last).split('A file of this result, by reference:')).toHaveLength(STEPS - 9 + 1);
  // Nothing of the pictures is in the journal.
  const entries = JSON.stringify(await made.journal.read(run.id));
  expect(entries).not.toContain(base64(png()).slice(0, 60));
});

it('screenshots and failures of a history that a program brings along have the form too', async () => {
  const call = (id: string) => ({ type: 'tool-call' as const, toolCallId: id, toolName: 'computer', input: click });
  const result = (id: string) => ({ type: 'tool-result' as const, toolCallId: id, toolName: 'computer' });
  const history = [
    { role: 'user' as const, content: 'Look.' },
    { role: 'assistant' as const, content: [call('call_1'), call('call_2')] },
    {
      role: 'tool' as const,
      content: [
        { ...result('call_1'), output: { type: 'json' as const, value: screenshot(png()) } },
        { ...result('call_2'), output: { type: 'error-text' as const, value: 'the screen is locked' } },
      ],
    },
    { role: 'assistant' as const, content: 'Done.' },
  ];
  const { fetch, requests } = wire([openai.answer([says.openai('Done.')], 'stop', false)], whole);
  const model = openai.model({ baseURL: 'http://provider.test/v1', fetch });
  const tools = computer([], largeShot) as ToolSet;
  const run = await start(world({ planner: react({ model }), tools }), { history });
  expect(await run.result()).toMatchObject({ status: 'finished' });
  const items = itemsOf(requests[0]?.body);
  expect(outputsIn(requests[0]?.body)).toMatchObject([
    { call_id: 'call_1', output: { image_url: screenshot(png()).output['imageUrl'] } },
    { call_id: 'call_2', output: { image_url: isPng } },
  ]);
  const behind = items.findLastIndex(({ type }) => type === 'computer_call_output') + 1;
  expect(JSON.stringify(items[behind])).toContain('the screen is locked');
});
