/** Answers that have to fit a schema: what is asked for, what is read, and what a provider does not take. */
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Json, JsonObject } from '#core';
import { openaiCompatible } from '#model/openai-compatible';
import { react } from '#planners/react';
import { GUIDANCE } from '#prompt';
import { type OpenAIServer, openaiServer, type ScriptedReply, type ServerReply, scriptedModel } from '#testing';
import { only } from '../kit/events.ts';
import {
  chatFaults,
  good,
  type PlayOptions,
  play,
  playStreamed,
  reminder,
  shownTexts,
  system,
  wordsOf,
} from './played.ts';

const answerSchema = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
} as const;
const OSLO = { city: 'Oslo', days: 3 };
const text = (words: string): ScriptedReply => ({ text: words });

async function played(replies: readonly ScriptedReply[], more: Partial<PlayOptions> = {}) {
  const model = scriptedModel(replies);
  const made = await play({ model, ...more, react: { answerSchema, ...more.react } });
  model.assertConsumed();
  expect(chatFaults(model)).toEqual([]);
  return { ...made, requests: model.calls };
}

describe('an answer with a schema', () => {
  it('is asked for in the prompt and by the response format, and is the payload as JSON', async () => {
    const { result, requests } = await played([good(), text(JSON.stringify(OSLO))]);
    expect(result).toMatchObject({ reason: 'goal', payload: OSLO });
    expect(requests.map(({ responseFormat }) => responseFormat)).toEqual(
      Array(2).fill({ type: 'json', schema: answerSchema, name: 'answer' }),
    );
    expect(system(requests[0] ?? { prompt: [] })).toContain(`<answer_format>\n`);
    expect(system(requests[0] ?? { prompt: [] })).toContain(JSON.stringify(answerSchema));
  });

  it.each([
    ['in a fence', `\`\`\`json\n${JSON.stringify(OSLO)}\n\`\`\``],
    ['with a number as text', '{"city":"Oslo","days":"3"}'],
    ['in single quotes', "{'city': 'Oslo', 'days': 3}"],
    ['behind a thought', `<think>Perhaps {"city":"Rome","days":1}?</think>\n${JSON.stringify(OSLO)}`],
    ['behind a thought whose beginning the server kept', `Rome? No.\n</think>\n\n${JSON.stringify(OSLO)}`],
  ])('is read %s', async (_, words) => {
    expect((await played([text(words)])).result).toMatchObject({ reason: 'goal', payload: OSLO });
  });

  it.each<[string, JsonObject]>([
    ['a type', { type: 'string', nullable: true }],
    ['a reference', { allOf: [{ $ref: '#/$defs/day' }], nullable: true }],
    ['alternatives', { anyOf: [{ type: 'string' }, { type: 'number' }], nullable: true }],
  ])('is null where the schema says nullable beside %s', async (_, day) => {
    const nullable = { type: 'object', properties: { day }, required: ['day'], $defs: { day: { type: 'string' } } };
    const { result } = await played([text('{"day":null}')], { react: { answerSchema: nullable } });
    expect(result).toMatchObject({ reason: 'goal', payload: { day: null } });
  });

  it('that does not fit is given back with what is wrong, and asked for again', async () => {
    const { result, requests, steps } = await played([text('{"city":"Oslo"}'), text(JSON.stringify(OSLO))]);
    expect(result).toMatchObject({ reason: 'goal', payload: OSLO });
    expect(steps[0]).toMatchObject({ error: { code: 'answer_invalid' }, text: '{"city":"Oslo"}' });
    const added = requests[1]?.prompt.slice(requests[0]?.prompt.length) ?? [];
    expect(added.map(({ role }) => role)).toEqual(['assistant', 'user', 'user']);
    expect(wordsOf(added[1])).toMatch(/^Your last reply was not accepted:\n<reply_error>\nanswer_invalid — .*days/);
    expect(reminder(requests[1] ?? { prompt: [] })).toEqual([GUIDANCE.finish.reminder]);
  });

  it('that never fits is no goal', async () => {
    const { result } = await played(['{"city":1}', '{"days":2}', 'Oslo, for three days.'].map(text));
    expect(result).toMatchObject({ reason: 'no_path', metadata: { repair_exhausted: true, repair_attempts: 3 } });
  });

  it('is read from _finish too', async () => {
    const finish = (answer: object) => ({ calls: [{ tool: '_finish', args: { answer } }] }) as ScriptedReply;
    const { result, requests } = await played([finish({ city: 'Oslo' }), finish(OSLO)]);
    expect(result).toMatchObject({ reason: 'goal', payload: OSLO });
    expect(wordsOf(requests[1]?.prompt.at(-2))).toMatch(/^<call_error>\nfinish_invalid — .*days/);
  });

  it('is an answer although a tool would take it as arguments', async () => {
    const q = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] } as const;
    for (const toolCalls of ['native', 'text'] as const) {
      const model = scriptedModel([text('{"q":"x"}')]);
      const { result } = await play({ model: { model, toolCalls }, react: { answerSchema: q } });
      expect(result).toMatchObject({ reason: 'goal', payload: { q: 'x' } });
    }
  });

  it.each([
    ['json_object', { type: 'json' }],
    ['text', undefined],
  ] as const)('goes by what the model can: %s', async (structuredOutput, format) => {
    const model = scriptedModel([text(JSON.stringify(OSLO))]);
    const { result } = await play({ model: { model, structuredOutput }, react: { answerSchema } });
    expect(result).toMatchObject({ payload: OSLO });
    expect(model.calls[0]?.responseFormat).toEqual(format);
  });
});

describe('an answer that need not be an object', () => {
  const shapes = {
    anyOf: [
      {
        type: 'object',
        properties: { kind: { const: 'round' }, radius: { type: 'number' } },
        required: ['kind', 'radius'],
      },
      { type: 'object', properties: { kind: { const: 'flat' } }, required: ['kind'] },
    ],
  };
  const cities = { type: 'array', items: { type: 'string' } } as const;
  const wrapper = {
    type: 'object',
    properties: { answer: cities },
    required: ['answer'],
    additionalProperties: false,
  };

  it('is asked for in an object, since servers take no other root, and taken out of it', async () => {
    const { result, requests } = await played([text('{"answer":["Oslo"]}')], { react: { answerSchema: cities } });
    expect(result).toMatchObject({ reason: 'goal', payload: ['Oslo'] });
    expect(requests[0]?.responseFormat).toEqual({ type: 'json', schema: wrapper, name: 'answer' });
    expect(system(requests[0] ?? { prompt: [] })).toContain(JSON.stringify(wrapper));
  });

  it.each([
    ['as it is', '["Oslo"]'],
    ['in a fence', '```json\n["Oslo"]\n```'],
    ['in single quotes', "['Oslo']"],
    ['in its object, in single quotes', "{'answer': ['Oslo']}"],
    ['in its object, as text', '{"answer":"[\\"Oslo\\"]"}'],
  ])('is read %s', async (_, words) => {
    const { result } = await played([text(words)], { react: { answerSchema: cities } });
    expect(result).toMatchObject({ reason: 'goal', payload: ['Oslo'] });
  });

  it.each<[string, JsonObject, string, Json]>([
    ['a number where a text fits too', { anyOf: [{ type: 'number' }, { type: 'string' }] }, '4', 4],
    ['null where a list may be', { type: ['array', 'null'], items: { type: 'string' } }, 'null', null],
    ['the only number', { const: 4 }, ' 4 ', 4],
    ['a text in quotes', { type: 'string' }, '"4 o\'clock"', "4 o'clock"],
    ['digits where a text is wanted', { type: 'string' }, '42', '42'],
    ['a variant of a union', shapes, '{"kind":"round","radius":2}', { kind: 'round', radius: 2 }],
    [
      'digits that no number keeps',
      { anyOf: [{ type: 'number' }, { type: 'string' }] },
      '9007199254740993',
      '9007199254740993',
    ],
  ])('without its object JSON is what it says: %s', async (_, answerSchema, words, payload) => {
    const { result } = await played([text(words)], { react: { answerSchema } });
    expect(result).toMatchObject({ reason: 'goal', payload });
  });

  it.each([
    ['another object', '{"list":["Oslo"]}', '/answer: required'],
    ['an object in its object', '{"answer":{"list":["Oslo"]}}', '/answer/0: the schema wants string'],
    ['words', 'I found Oslo.', 'the schema wants object'],
  ])('is not made of %s', async (_, words, why) => {
    const replies = [text(words), text('{"answer":["Oslo"]}')];
    const { result, steps } = await played(replies, { react: { answerSchema: cities } });
    expect(result).toMatchObject({ reason: 'goal', payload: ['Oslo'] });
    expect(steps[0]).toMatchObject({ error: { code: 'answer_invalid', message: expect.stringContaining(why) } });
  });

  it.each<[string, JsonObject, string, string]>([
    [
      'a list in a list without end',
      { type: 'array', items: { $ref: '#' } },
      '{"answer":[1]}',
      'the schema wants array',
    ],
    ['another word than the only one', { const: 'yes' }, '{"answer":"no"}', 'must be equal to constant'],
    ['too few items', { type: 'array', minItems: 2 }, '{"answer":[1]}', 'fewer than 2 items'],
    [
      'a third of a pair',
      { type: 'array', prefixItems: [{ type: 'number' }], items: false },
      '[1,2]',
      'NOT have more than 1 items',
    ],
    ['a variant with half of its object', shapes, '{"kind":"round","radius":2,"answer":1}', '/answer: '],
    ['no variant', shapes, '{"kind":"square"}', '/answer: required'],
    ['an object of another name', { type: ['object', 'null'] }, '{"result":{"a":1}}', '/answer: required'],
    ['the default', { type: 'array', items: { type: 'number' }, default: [] }, '{"result":[1]}', '/answer: required'],
    [
      'what an outer word refuses',
      { anyOf: [{ required: ['a'] }], required: ['id'], type: ['object', 'null'] },
      '{"answer":{"a":1}}',
      "must have required property 'id'",
    ],
  ])('is not %s', async (_, answerSchema, words, why) => {
    const { steps } = await played([text(words), text(words), text(words)], { react: { answerSchema } });
    expect(steps[0]).toMatchObject({ error: { code: 'answer_invalid', message: expect.stringContaining(why) } });
  });

  it('may refer by an anchor, and hold what looks like a reference', async () => {
    const anchored = {
      type: 'array',
      items: { $ref: '#item' },
      $defs: { item: { $anchor: 'item', type: 'object', required: ['a'] } },
    };
    const modern = { $schema: 'https://json-schema.org/draft/2020-12/schema', ...anchored };
    const data = { enum: [{ $ref: '#/x' }] };
    for (const [answerSchema, payload] of [
      [modern, [{ a: 1 }]],
      [data, { $ref: '#/x' }],
    ] as const) {
      const { result } = await played([text(JSON.stringify({ answer: payload }))], { react: { answerSchema } });
      expect(result).toMatchObject({ reason: 'goal', payload });
    }
  });

  it('takes the schema of zod as it is', async () => {
    const answerSchema = z.toJSONSchema(z.tuple([z.number(), z.string()]));
    const { result } = await played([text('{"answer":[1,"a"]}')], { react: { answerSchema } });
    expect(result).toMatchObject({ reason: 'goal', payload: [1, 'a'] });
  });

  it('a call that is not well-formed JSON is a call, also where any text would be an answer', async () => {
    const model = scriptedModel([text("```json\n{'tool': 'search', 'args': {'q': 'x'}}\n```"), text('found')]);
    const { result, steps } = await play({
      model: { model, toolCalls: 'text' },
      react: { answerSchema: { type: 'string' } },
    });
    expect(steps[0]?.decision).toMatchObject({ kind: 'call_tool', tool: 'search' });
    expect(result).toMatchObject({ reason: 'goal', payload: 'found' });
  });

  it('is read from _finish, with and without its object', async () => {
    for (const answer of [['Oslo'], { answer: ['Oslo'] }]) {
      const finish = { calls: [{ tool: '_finish', args: { answer } }] } as ScriptedReply;
      const { result } = await played([finish], { react: { answerSchema: cities } });
      expect(result).toMatchObject({ reason: 'goal', payload: ['Oslo'] });
    }
  });

  it.each<[string, JsonObject, string, Json]>([
    ['a number', { type: 'integer' }, '3', 3],
    ['a word of an enum', { type: 'string', enum: ['yes', 'no'] }, 'yes', 'yes'],
    ['nothing', { type: ['string', 'null'] }, '{"answer":null}', null],
    [
      'one of two objects',
      { anyOf: [{ type: 'object', properties: { a: {} }, required: ['a'] }, { type: 'null' }] },
      '{"answer":{"a":1}}',
      { a: 1 },
    ],
    [
      'what refers to itself',
      { type: 'array', items: { anyOf: [{ type: 'integer' }, { $ref: '#' }] } },
      '{"answer":[1,["2",[3]]]}',
      [1, [2, [3]]],
    ],
    [
      'what refers to definitions',
      {
        $defs: { city: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
        type: 'array',
        items: { $ref: '#/$defs/city' },
      },
      '{"answer":[{"name":5}]}',
      [{ name: '5' }],
    ],
  ])('may be %s', async (_, answerSchema, words, payload) => {
    const { result } = await played([text(words)], { react: { answerSchema } });
    expect(result).toMatchObject({ reason: 'goal', payload });
  });
});

describe('a provider that refuses the response format, over HTTP', () => {
  const open: OpenAIServer[] = [];
  afterEach(async () => {
    for (const server of open.splice(0)) await server.close();
  });

  async function served(accepts: readonly (string | undefined)[], replies: readonly ServerReply[]) {
    let replied = 0;
    const server = await openaiServer(({ ...body }) => {
      const { response_format: format } = body as { response_format?: { type: string } };
      if (!accepts.includes(format?.type))
        return { error: { status: 400, message: 'response_format is not supported' } };
      replied += 1;
      return replies[replied - 1] ?? { error: { status: 500, message: 'too many' } };
    });
    open.push(server);
    const model = openaiCompatible({ baseUrl: server.url, model: 'm' });
    const formats = () =>
      server.requests.map(({ body }) => (body as { response_format?: { type: string } }).response_format?.type);
    return { model, formats, server };
  }
  const call: ServerReply = { calls: [{ tool: 'search', args: { q: 'x' } }] };
  const answer: ServerReply = { text: JSON.stringify(OSLO) };

  it.each([
    ['whole', play],
    ['streamed', playStreamed],
  ] as const)('is asked one mode lower, which is told once and remembered: %s', async (_, run) => {
    const { model, formats } = await served([undefined], [call, answer]);
    const { result, events } = await run({ model, react: { answerSchema } });
    expect(result).toMatchObject({ reason: 'goal', payload: OSLO });
    expect(formats()).toEqual(['json_schema', 'json_object', undefined, undefined]);
    expect(only(events, 'model.output_downgraded').map(({ model: name, from, to }) => [name, from, to])).toEqual([
      ['m', 'json_schema', 'json_object'],
      ['m', 'json_object', 'text'],
    ]);
  });

  it('goes no lower than is needed', async () => {
    const { model, formats } = await served(['json_object'], [answer]);
    const { result, events } = await play({ model, react: { answerSchema } });
    expect(result).toMatchObject({ payload: OSLO });
    expect(formats()).toEqual(['json_schema', 'json_object']);
    expect(only(events, 'model.output_downgraded')).toHaveLength(1);
  });

  it('a request that is refused in every mode fails the run with that refusal', async () => {
    const { model, formats } = await served([], []);
    const { result } = await play({ model, react: { answerSchema } });
    expect(result).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('not supported') } });
    expect(formats()).toEqual(['json_schema', 'json_object', undefined]);
  });

  it('without a schema a refusal is what it is: one request', async () => {
    const { model, formats } = await served([], []);
    expect((await play({ model })).result).toMatchObject({ status: 'failed' });
    expect(formats()).toEqual([undefined]);
  });

  it('a refusal in the middle of a stream takes back what was shown', async () => {
    const refusal = { afterEvents: 3, message: 'the schema is not supported', code: 400 };
    const { model } = await served(['json_schema', 'json_object'], [{ ...answer, errorEvent: refusal }, answer]);
    const { result, events } = await playStreamed({ model, react: { answerSchema } });
    expect(result).toMatchObject({ payload: OSLO });
    expect(shownTexts(events)).toEqual([JSON.stringify(OSLO)]);
  });
});

describe('an answer with a schema of a library', () => {
  const stay = z.object({
    city: z.string(),
    nights: z.int().refine((nights) => nights < 30, 'at most 29 nights'),
    guests: z.array(z.object({ name: z.string() })).default([]),
  });
  const wanted = { city: 'Oslo', nights: 3 };

  it('is asked for as closed JSON Schema, and its payload is the JSON that the model has written', async () => {
    const { result, requests } = await played([text(JSON.stringify(wanted))], { react: { answerSchema: stay } });
    expect(result).toMatchObject({ reason: 'goal', payload: wanted });
    expect(requests[0]?.responseFormat).toMatchObject({
      type: 'json',
      schema: {
        type: 'object',
        required: ['city', 'nights'],
        properties: { guests: { items: { properties: { name: { type: 'string' } }, additionalProperties: false } } },
        additionalProperties: false,
      },
    });
  });

  it('is checked by what JSON Schema cannot say, and the model is told', async () => {
    const { result, requests } = await played(
      [text(JSON.stringify({ city: 'Oslo', nights: 90 })), text(JSON.stringify(wanted))],
      { react: { answerSchema: stay } },
    );
    expect(result).toMatchObject({ reason: 'goal', payload: wanted });
    expect(JSON.stringify(requests[1]?.prompt)).toContain('/nights: at most 29 nights');
  });

  it('may be one that is no object, and of which no part of an intersection is closed', async () => {
    const both = z.array(z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() })));
    const pairs = [{ a: 'x', b: 'y' }];
    const { result } = await played([text(JSON.stringify({ answer: pairs }))], { react: { answerSchema: both } });
    expect(result).toMatchObject({ reason: 'goal', payload: pairs });
  });

  it('is what it was when the library has written it as JSON Schema', async () => {
    const answerSchema = z.toJSONSchema(stay);
    const all = { ...wanted, guests: [] };
    const { requests } = await played([text(JSON.stringify(all))], { react: { answerSchema } });
    expect(requests[0]?.responseFormat).toMatchObject({ schema: JSON.parse(JSON.stringify(answerSchema)) });
  });

  it('fails the run when its check is a promise, and says so', async () => {
    const slow = stay.refine(() => Promise.resolve(true));
    const { result } = await played([text(JSON.stringify(wanted))], { react: { answerSchema: slow } });
    expect(result).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('is a promise') } });
  });

  it('is refused when it cannot be written as JSON Schema', () => {
    const answerSchema = z.object({ at: z.date() });
    expect(() => react({ model: scriptedModel([]), answerSchema })).toThrow('cannot be written as JSON Schema');
  });
});
