import { afterEach, describe, expect, it } from 'vitest';
import type { OutputMode } from '#core';
import { askStructured, readyModel, type StructuredOptions, structuredFormat } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import {
  type OpenAIServer,
  openaiServer,
  type ScriptedModel,
  type ScriptedReply,
  type ServerReply,
  scriptedModel,
} from '#testing';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { httpError, request } from '../kit/model.ts';

const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const;
const good: ScriptedReply = { text: '{"n":1}', usage: { inputTokens: 10, outputTokens: 1 } };
const unread: ScriptedReply = { text: 'one', usage: { inputTokens: 10, outputTokens: 1 } };

function parse(text: string): { n: number } {
  const value = JSON.parse(text);
  if (typeof value.n !== 'number') throw new Error('n is no number');
  return value;
}

function optionsFor(model: Parameters<typeof readyModel>[0]): StructuredOptions<{ n: number }> {
  const signal = new AbortController().signal;
  return { model: readyModel(model), request, schema, name: 'count', parse, signal, clock: new ImpatientClock() };
}

const asked = (model: ScriptedModel): unknown[] =>
  model.calls.map(({ responseFormat, prompt }) => [
    responseFormat?.type === 'json' ? (responseFormat.schema === undefined ? 'object' : 'schema') : 'text',
    prompt.length > request.prompt.length,
  ]);
const downgrade = (from: OutputMode, to: OutputMode): object => ({
  type: 'model.output_downgraded',
  model: 'scripted',
  from,
  to,
});
const AS_SCHEMA = ['schema', false];
const AS_OBJECT = ['object', true];
const AS_TEXT = ['text', true];

describe('an answer that keeps to a schema', () => {
  it('is asked for with the schema, and nothing is added to the prompt', async () => {
    const model = scriptedModel([good]);
    const answer = await askStructured(optionsFor(model));
    expect(answer).toEqual({
      ok: true,
      value: { n: 1 },
      mode: 'json_schema',
      remarks: [],
      usage: { inputTokens: 10, outputTokens: 1 },
    });
    expect(model.calls[0]?.responseFormat).toEqual({ type: 'json', schema, name: 'count' });
    expect(model.calls[0]?.prompt).toEqual(request.prompt);
  });

  it.each([400, 422])('is asked for one mode lower each time the provider refuses with %i', async (status) => {
    const model = scriptedModel([{ error: httpError(status) }, { error: httpError(status) }, good]);
    const answer = await askStructured(optionsFor(model));
    expect(answer).toMatchObject({ ok: true, value: { n: 1 }, mode: 'text' });
    expect(answer.remarks).toEqual([downgrade('json_schema', 'json_object'), downgrade('json_object', 'text')]);
    expect(asked(model)).toEqual([AS_SCHEMA, AS_OBJECT, AS_TEXT]);
    const last = model.calls[2]?.prompt.at(-1);
    expect(last).toMatchObject({ role: 'user', content: [{ text: expect.stringContaining(JSON.stringify(schema)) }] });
  });

  it('begins with the best way that the model has, or where it is told to', async () => {
    const textual = scriptedModel([good]);
    await askStructured(optionsFor({ model: textual, structuredOutput: 'text' }));
    expect(asked(textual)).toEqual([AS_TEXT]);
    const told = scriptedModel([good]);
    await askStructured({ ...optionsFor(told), mode: 'json_object' });
    expect(asked(told)).toEqual([AS_OBJECT]);
  });

  it('that cannot be read is asked for one mode lower, and all calls count', async () => {
    const model = scriptedModel([unread, { ...unread, text: '{"n":"one"}' }, good]);
    const answer = await askStructured(optionsFor(model));
    expect(answer).toMatchObject({ ok: true, mode: 'text', usage: { inputTokens: 30, outputTokens: 3 } });
    expect(asked(model)).toEqual([AS_SCHEMA, AS_OBJECT, AS_TEXT]);
  });

  it('that cannot be read in text either is given back with what is wrong with it', async () => {
    const model = scriptedModel([unread, unread, { ...unread, text: '{}' }]);
    const answer = await askStructured(optionsFor(model));
    expect(answer).toMatchObject({
      ok: false,
      error: { message: 'n is no number' },
      reply: { text: '{}' },
      mode: 'text',
    });
    expect(answer.usage).toEqual({ inputTokens: 30, outputTokens: 3 });
    expect(model.calls.length).toBe(3);
  });

  it.each(['length', 'content-filter'] as const)('that ends by %s is not asked for again', async (finish) => {
    const model = scriptedModel([{ ...unread, finish }]);
    expect(await askStructured(optionsFor(model))).toMatchObject({ ok: false, remarks: [], reply: { finish } });
  });

  it('whose format the provider left out with a warning is taken when it fits, and the mode is known to be lower', async () => {
    const warnings = [{ type: 'unsupported' as const, feature: 'responseFormat' }];
    const warned = { type: 'model.warned', model: 'scripted', warnings: ['unsupported: responseFormat'] };
    const model = scriptedModel([{ ...good, warnings }]);
    const answer = await askStructured(optionsFor(model));
    expect(answer).toMatchObject({ ok: true, value: { n: 1 }, mode: 'json_object' });
    expect(answer.remarks).toEqual([warned, downgrade('json_schema', 'json_object')]);
    const misfit = scriptedModel([{ ...unread, warnings }, good]);
    const second = await askStructured(optionsFor(misfit));
    expect(second).toMatchObject({ ok: true, mode: 'json_object' });
    expect(second.remarks).toEqual([warned, downgrade('json_schema', 'json_object')]);
  });

  it('a warning of something else is told, and changes nothing', async () => {
    const model = scriptedModel([{ ...good, warnings: [{ type: 'unsupported', feature: 'topK' }] }]);
    expect(await askStructured(optionsFor(model))).toMatchObject({
      mode: 'json_schema',
      remarks: [{ type: 'model.warned', warnings: ['unsupported: topK'] }],
    });
  });

  it.each([401, 404])('other refusals end the asking: %i', async (status) => {
    const error = httpError(status);
    const model = scriptedModel([{ error }]);
    await expect(askStructured(optionsFor(model))).rejects.toMatchObject({ code: 'model_unavailable', cause: error });
    expect(model.calls.length).toBe(1);
  });

  it('a refusal that has nothing to do with the format is thrown in the end', async () => {
    const error = httpError(400);
    const model = scriptedModel(() => ({ error }));
    await expect(askStructured(optionsFor(model))).rejects.toBe(error);
    expect(model.calls.length).toBe(3);
  });

  it('the reason of an abort is thrown, and no lower mode is tried', async () => {
    const controller = new AbortController();
    const reason = new Error('stop');
    const model = scriptedModel(() => {
      controller.abort(reason);
      return { error: httpError(400) };
    });
    await expect(askStructured({ ...optionsFor(model), signal: controller.signal })).rejects.toBe(reason);
    expect(model.calls.length).toBe(1);
  });

  it('the name of a schema is one that providers take', () => {
    const nameOf = (name: string): unknown => structuredFormat('json_schema', schema, name).responseFormat;
    expect(nameOf('my plan: v2')).toMatchObject({ name: 'my_plan__v2' });
    expect(nameOf('x'.repeat(100))).toMatchObject({ name: 'x'.repeat(64) });
    expect(nameOf('')).toMatchObject({ name: 'answer' });
  });
});

describe('an answer with a schema from a real server', () => {
  let server: OpenAIServer | undefined;
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });

  it('that knows neither format gives it by its text', async () => {
    server = await openaiServer((body): ServerReply => {
      if ('response_format' in body) return { error: { status: 400, message: 'response_format is unknown' } };
      return { text: '{"n":7}' };
    });
    const answer = await askStructured(optionsFor(openaiCompatible({ baseUrl: server.url, model: 'small' })));
    expect(answer).toMatchObject({ ok: true, value: { n: 7 }, mode: 'text' });
    const formats = server.requests.map(({ body }) => (body as { response_format?: { type: string } }).response_format);
    expect(formats.map((format) => format?.type)).toEqual(['json_schema', 'json_object', undefined]);
  });
});
