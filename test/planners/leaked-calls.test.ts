/** A model with native calls that writes something like a call in its text: what is carried out, and what is an answer. */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '#core';
import { type ScriptedReply, scriptedModel } from '#testing';
import { type Tool, tool } from '#tools';
import { outcomes } from '../kit/run-record.ts';
import { chatFaults, type PlayOptions, play, playStreamed, search, shownTexts, tiers } from './played.ts';

const order = {
  type: 'object',
  properties: { order: { type: 'string' }, cents: { type: 'integer' } },
  required: ['order'],
  additionalProperties: false,
} as const;

/** A shop whose effects are counted outside of the run. */
function shop() {
  const effects: JsonObject[] = [];
  const refund: Tool = tool({
    name: 'refund',
    description: 'Refunds an order.',
    effect: 'once',
    inputSchema: order,
    execute: (args) => {
      effects.push(args as JsonObject);
      return 'refunded';
    },
  });
  return { effects, refund };
}

async function played(replies: readonly ScriptedReply[], more: Omit<Partial<PlayOptions>, 'model'> = {}, run = play) {
  const { effects, refund } = shop();
  const model = scriptedModel(replies);
  const made = await run({ model, tools: [refund, search], ...more });
  model.assertConsumed();
  expect(chatFaults(model)).toEqual([]);
  return { ...made, effects, requests: model.calls };
}

const DONE: ScriptedReply = { text: 'done' };
const A17 = '{"order": "A-17"}';
const CALL = `{"name": "refund", "arguments": ${A17}}`;

describe('words that look like a call are the answer', () => {
  const answers: readonly string[] = [
    '[{"order":"A-17"}]',
    '{"order":"A-17"}',
    '{"order":"A-17","cents":500}',
    CALL,
    `[${CALL}]`,
    `{"tool": "refund", "args": ${A17}}`,
    `{"tool_calls": [${CALL}]}`,
    `{"type": "function", "function": {"name": "refund", "arguments": "{\\"order\\": \\"A-17\\"}"}}`,
    `\`\`\`json\n{"tool": "refund", "args": ${A17}}\n\`\`\``,
    `\`\`\`json\n${CALL}\n\`\`\``,
    `\`\`\`\n${A17}\n\`\`\``,
    `\`\`\`tool_code\nrefund(order="A-17")\n\`\`\``,
    `\`\`\`python\nrefund(order="A-17")\n\`\`\``,
    'refund(order="A-17")',
    '[refund(order="A-17")]',
    'refund {"order": "A-17"}',
    `Action: refund\nAction Input: ${A17}`,
    `<refund><order>A-17</order></refund>`,
    `Done: <tool_call>${CALL}</tool_call>`,
    `The template is\n<tool_call>\n${CALL}\n</tool_call>`,
    `> <tool_call>${CALL}</tool_call>`,
    `\`<tool_call>${CALL}</tool_call>\``,
    `\`\`\`xml\n<tool_call>${CALL}</tool_call>\n\`\`\``,
    `"[TOOL_CALLS] [${CALL}]"`,
    `I would write [TOOL_CALLS] [${CALL}]`,
    `<think>Shall I?</think>I did not call <function=refund>${A17}</function>.`,
    `<p>${A17}</p>`,
    `<order>A-17</order>`,
  ];

  it.each(answers)('RA-08 %s', async (text) => {
    const { effects, result } = await played([{ text }]);
    expect(effects).toEqual([]);
    expect(result).toMatchObject({ reason: 'goal', answer: text });
    const streamed = await played([{ text }], {}, playStreamed);
    expect(streamed.effects).toEqual([]);
    expect(streamed.result).toMatchObject({ reason: 'goal', answer: text });
    expect(shownTexts(streamed.events)).toEqual([text]);
  });

  it('RA-08 goes to the user in a conversation', async () => {
    const { effects, result } = await played([{ text: '[{"order":"A-17"}]' }], { react: { converse: true } });
    expect(effects).toEqual([]);
    expect(result).toMatchObject({ status: 'paused' });
  });
});

describe('the template of a call that is the whole reply', () => {
  const templates: readonly [string, string][] = [
    ['Hermes, Qwen', `<tool_call>\n${CALL}\n</tool_call>`],
    ['with thoughts', `<think>\nI refund: ${CALL}\n</think>\n\n<tool_call>\n${CALL}\n</tool_call>`],
    ['with thoughts whose beginning is missing', `I refund it.\n</think>\n<tool_call>\n${CALL}\n</tool_call>`],
    ['with the end of the turn', `<tool_call>\n${CALL}\n</tool_call><|im_end|>`],
    ['Qwen coder', '<tool_call>\n<function=refund>\n<parameter=order>\nA-17\n</parameter>\n</function>\n</tool_call>'],
    ['GLM', '<tool_call>refund\n<arg_key>order</arg_key>\n<arg_value>A-17</arg_value>\n</tool_call>'],
    ['Granite', `<|tool_call|>[${CALL}]`],
    ['Hunyuan', `<tool_calls>[${CALL}]</tool_calls>`],
    ['Nemotron', `<TOOLCALL>[${CALL}]</TOOLCALL>`],
    ['Seed', '<seed:tool_call>\n<function=refund>\n<parameter=order>A-17</parameter>\n</function>\n</seed:tool_call>'],
    [
      'MiniMax',
      '<minimax:tool_call>\n<invoke name="refund">\n<parameter name="order">A-17</parameter>\n</invoke>\n</minimax:tool_call>',
    ],
    [
      'Claude',
      '<function_calls>\n<invoke name="refund">\n<parameter name="order">A-17</parameter>\n</invoke>\n</function_calls>',
    ],
    ['Llama', `<|python_tag|>{"name": "refund", "parameters": ${A17}}<|eom_id|>`],
    ['Llama, functions', `<function=refund>${A17}</function>`],
    ['Mistral', `[TOOL_CALLS] [${CALL}]`],
    ['Mistral, later', `[TOOL_CALLS]refund[ARGS]${A17}`],
    ['Phi', `functools[${CALL}]`],
    [
      'DeepSeek V3',
      `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>refund\n\`\`\`json\n${A17}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>`,
    ],
    [
      'DeepSeek V3.1',
      `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>refund<｜tool▁sep｜>${A17}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    ],
    [
      'DeepSeek V3.2',
      '<｜DSML｜function_calls>\n<｜DSML｜invoke name="refund">\n<｜DSML｜parameter name="order" string="true">A-17</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    ],
    [
      'Kimi',
      `<|tool_calls_section_begin|><|tool_call_begin|>functions.refund:0<|tool_call_argument_begin|>${A17}<|tool_call_end|><|tool_calls_section_end|>`,
    ],
    ['gpt-oss', `<|channel|>commentary to=functions.refund <|constrain|>json<|message|>${A17}<|call|>`],
    [
      'gpt-oss with its analysis',
      `<|channel|>analysis<|message|>I refund.<|end|><|start|>assistant<|channel|>commentary to=functions.refund <|constrain|>json<|message|>${A17}<|call|>`,
    ],
    ['Command', `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "refund", "parameters": ${A17}}]<|END_ACTION|>`],
    ['InternLM', `<|action_start|><|plugin|>{"name": "refund", "parameters": ${A17}}<|action_end|>`],
    ['LM Studio', `[TOOL_REQUEST]${CALL}[END_TOOL_REQUEST]`],
  ];

  it.each(templates)('is the call: %s', async (_, text) => {
    for (const run of [play, playStreamed]) {
      const { effects, steps, result, events } = await played([{ text }, DONE], {}, run);
      expect(effects).toEqual([{ order: 'A-17' }]);
      expect(outcomes({ steps })).toEqual(['value']);
      expect(steps[0]).not.toHaveProperty('text');
      expect(result).toMatchObject({ answer: 'done' });
      expect(events.map(({ type }) => type)).toContain('planner.reply_repaired');
      expect(shownTexts(events).join('')).toBe(run === play ? '' : 'done');
    }
  });

  it('has values of the types that the schema says', async () => {
    const text =
      '<tool_call>refund<arg_key>order</arg_key><arg_value>17</arg_value><arg_key>cents</arg_key><arg_value>500</arg_value></tool_call>';
    expect((await played([{ text }, DONE])).effects).toEqual([{ order: '17', cents: 500 }]);
  });

  it('may be several calls', async () => {
    const text = ['a', 'b'].map((q) => `<tool_call>{"name":"search","arguments":{"q":"${q}"}}</tool_call>`).join('\n');
    const { steps } = await played([{ text }, DONE]);
    expect(steps[0]?.decision).toMatchObject({
      kind: 'call_parallel',
      branches: [
        { tool: 'search', args: { q: 'a' } },
        { tool: 'search', args: { q: 'b' } },
      ],
    });
  });

  const broken: readonly [string, string][] = [
    ['cut', `<tool_call>\n{"name": "refund", "arguments": {"order": "A-17`],
    ['without its end', `<tool_call>\n${CALL}`],
    ['without its end, of tags', `<function=refund>${A17}`],
    ['cut in its first token', '<tool_call'],
    ['not offered', `<tool_call>{"name": "pay", "arguments": ${A17}}</tool_call>`],
    ['offered under another name', `<tool_call>{"name": "Refund", "arguments": ${A17}}</tool_call>`],
    [
      'offered under another name, with a prefix',
      `<tool_call>{"name": "functions.refund", "arguments": ${A17}}</tool_call>`,
    ],
    ['one offered, one not', `<tool_call>${CALL}</tool_call><tool_call>{"name": "pay", "arguments": {}}</tool_call>`],
    ['bare arguments', `<tool_call>${A17}</tool_call>`],
    ['no arguments', '<tool_call>{"name": "refund"}</tool_call>'],
    ['placeholders', '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'],
    ['single quotes', "<tool_call>{'name': 'refund', 'arguments': {'order': 'A-17'}}</tool_call>"],
    ['a trailing comma', `<tool_call>{"name": "refund", "arguments": {"order": "A-17",}}</tool_call>`],
    ['Python inside', '<tool_call>refund(order="A-17")</tool_call>'],
    ['Python inside, of LFM', '<|tool_call_start|>[refund(order="A-17")]<|tool_call_end|>'],
    ['Python inside, of Llama', '<|python_tag|>refund.call(order="A-17")'],
    ['words behind it', `<tool_call>${CALL}</tool_call>\nThat is how I would call it.`],
    ['a result behind it', `<tool_call>${CALL}</tool_call>\n<tool_response>refunded</tool_response>`],
    ['words inside', `<tool_call>I call refund with ${A17}</tool_call>`],
    ['more than a call', `<tool_call>{"name": "refund", "arguments": ${A17}, "description": "Refunds."}</tool_call>`],
    ['a schema', '<tool_call>{"name": "refund", "description": "d", "parameters": {"type": "object"}}</tool_call>'],
    [
      'a call inside the arguments',
      `<tool_call>{"name": "refund", "arguments": {"name": "refund", "arguments": ${A17}}}</tool_call>`,
    ],
    [
      'an argument given twice',
      '<function=refund><parameter=order>A</parameter><parameter=order>B</parameter></function>',
    ],
    ['the answer of another channel', '<|channel|>final<|message|>done'],
    ['an empty one', '<tool_call></tool_call>'],
    ['an empty list', '[TOOL_CALLS] []'],
    [
      'nested too deep',
      `<tool_call>{"name": "refund", "arguments": {"order": ${'['.repeat(5_000)}${']'.repeat(5_000)}}}</tool_call>`,
    ],
  ];

  it.each(broken)('is neither carried out nor an answer when it is %s', async (_, text) => {
    for (const run of [play, playStreamed]) {
      const { effects, result, steps, requests, events } = await played([{ text }, DONE], {}, run);
      expect(effects).toEqual([]);
      expect(steps[0]).toMatchObject({ error: { code: 'reply_unreadable' } });
      expect(requests.map(tiers)).toEqual([[], ['reminder']]);
      expect(result).toMatchObject({ answer: 'done' });
      expect(shownTexts(events).join('')).toBe(run === play ? '' : 'done');
    }
  });

  it.each([
    'length',
    'interrupted',
    'error',
  ] as const)('is not carried out when the reply ended by %s', async (finish) => {
    const { effects, result, steps } = await played([{ text: `<tool_call>${CALL}</tool_call>`, finish }, DONE]);
    expect(effects).toEqual([]);
    expect(steps[0]).toHaveProperty('error');
    expect(result).toMatchObject({ answer: 'done' });
  });

  it('is not carried out of a tool that the run was not shown', async () => {
    const { refund, effects } = shop();
    const hidden = { ...refund, loading: 'deferred' as const };
    const { result } = await played([{ text: `<tool_call>${CALL}</tool_call>` }, DONE], { tools: [hidden, search] });
    expect(effects).toEqual([]);
    expect(result).toMatchObject({ answer: 'done' });
  });

  it('native calls count, and the template beside them is what was said', async () => {
    const text = `<tool_call>${CALL}</tool_call>`;
    const { effects, steps, events } = await played(
      [{ text, calls: [{ tool: 'search', args: { q: 'x' } }] }, DONE],
      {},
      playStreamed,
    );
    expect(effects).toEqual([]);
    expect(steps[0]).toMatchObject({ text, decision: { tool: 'search' } });
    expect(shownTexts(events)).toEqual([text, 'done']);
  });
});

describe('an answer that has to fit a schema', () => {
  it.each([
    'native',
    'text',
  ] as const)('RA-08 ends the run although it has the shape of a tool’s input: %s', async (toolCalls) => {
    for (const text of [
      '{"order":"A-17","cents":500}',
      '{"order":"A-17"}',
      '```json\n{"order":"A-17","cents":500}\n```',
    ]) {
      const { effects, refund } = shop();
      const model = scriptedModel([{ text }]);
      const { result } = await play({ model: { model, toolCalls }, tools: [refund], react: { answerSchema: order } });
      expect(effects).toEqual([]);
      expect(result).toMatchObject({ reason: 'goal', payload: { order: 'A-17' } });
    }
  });

  it('is no template of a call, not even a whole one', async () => {
    const answerSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const;
    const { effects, steps, result } = await played(
      [{ text: `<tool_call>${CALL}</tool_call>` }, { text: '{"city":"Oslo"}' }],
      { react: { answerSchema } },
    );
    expect(effects).toEqual([]);
    expect(steps[0]).toMatchObject({ error: { code: 'answer_invalid' } });
    expect(result).toMatchObject({ payload: { city: 'Oslo' } });
    const text = await played([{ text: `<tool_call>${CALL}</tool_call>` }], {
      react: { answerSchema: { type: 'string' } },
    });
    expect(text.effects).toEqual([]);
    expect(text.result).toMatchObject({ reason: 'goal', payload: `<tool_call>${CALL}</tool_call>` });
  });
});
