/** Answers that have to fit a schema: what is asked for, what is read, and what a provider does not take. */
import { afterEach, describe, expect, it } from 'vitest';
import { openaiCompatible } from '#model/openai-compatible';
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
  ])('is read %s', async (_, words) => {
    expect((await played([text(words)])).result).toMatchObject({ reason: 'goal', payload: OSLO });
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
