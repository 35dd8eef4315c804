/** Files and sources that are not what they should be, and models of version 3, whose files have another form: no run ends over them. */
import type { LanguageModelV3Content, LanguageModelV4Content } from '@ai-sdk/provider';
import { MockLanguageModelV3, MockLanguageModelV4 } from 'ai/test';
import { describe, expect, it } from 'vitest';
import { type Json, type JsonObject, local } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { createRuntime, type RunResult } from '#runtime';
import { type Tool, tool } from '#tools';
import { base64, png } from './pictures.ts';
import { answerOf, whole, wire } from './pieces.ts';
import { anthropic } from './replies/anthropic.ts';
import type { Saying } from './replies/saying.ts';
import { CITY, WEATHER } from './weather.ts';

const CALL: Saying = { said: [{ call: 'call_abcdefghi', args: '{"city":"Oslo"}' }], stop: 'calls' };
const LAST: Saying = { said: [{ text: 'Done.' }], stop: 'end' };
const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const CALLED = { type: 'tool-call' as const, toolCallId: 'c1', toolName: 'weather', input: '{"city":"Oslo"}' };
const SAID = { type: 'text' as const, text: 'Done.' };

function shot(...value: readonly object[]): Tool {
  const shown = { type: 'content', value } as never;
  return tool({ ...WEATHER, effect: 'read', inputSchema: CITY, execute: () => 'seen', toModelOutput: () => shown });
}

async function play(model: Parameters<typeof react>[0]['model'], ...tools: readonly Tool[]): Promise<RunResult> {
  const runtime = createRuntime({ planner: react({ model }), tools, journal: memoryJournal() });
  return (await runtime.start('How is the sky?', { identity: local('ana') })).result();
}

/** What Claude reads of the tool's result, which has this part. */
async function readOf(part: object): Promise<Json | undefined> {
  const { fetch, requests } = wire(
    [CALL, LAST].map((saying) => answerOf(anthropic, saying, false)),
    whole,
  );
  const result = await play(anthropic.model({ baseURL: 'http://provider.test', fetch }), shot(part));
  expect(result).toMatchObject({ reason: 'goal', answer: 'Done.' });
  const messages = requests[1]?.body['messages'] as readonly { content: readonly JsonObject[] }[];
  return messages[2]?.content[0]?.['content'];
}

/** A model that gives these replies. */
function replies(...contents: readonly LanguageModelV4Content[][]): MockLanguageModelV4 {
  const given = contents.map((content) => ({
    ...{ content, usage, warnings: [] },
    finishReason: { unified: 'stop' as const, raw: undefined },
  }));
  return new MockLanguageModelV4({ doGenerate: given });
}

function oldReplies(provider: string, ...contents: readonly LanguageModelV3Content[][]): MockLanguageModelV3 {
  const given = contents.map((content) => ({
    ...{ content, usage, warnings: [] },
    finishReason: { unified: 'stop' as const, raw: undefined },
  }));
  return new MockLanguageModelV3({ provider, doGenerate: given });
}

describe('a model of version 3', () => {
  it.each([
    ['base64', base64(png())],
    ['bytes', png()],
  ])('its file, which is %s, is kept, and goes back to it in its form', async (_, data) => {
    const picture = { type: 'file' as const, mediaType: 'image/png', data };
    const model = oldReplies('old.chat', [picture, CALLED], [SAID]);
    const result = await play(model, shot({ type: 'text', text: 'clear' }));
    expect(result).toMatchObject({ answer: 'Done.', files: [{ mime: 'image/png', sizeBytes: png().length }] });
    expect(model.doGenerateCalls[1]?.prompt[2]?.content[0]).toMatchObject({
      type: 'file',
      data: new Uint8Array(png()),
    });
  });

  it('is shown the picture of a result in its form', async () => {
    const model = oldReplies('anthropic.messages', [CALLED], [SAID]);
    const data = { type: 'data', data: base64(png()) };
    await play(model, shot({ type: 'file', mediaType: 'image/png', data }));
    expect(model.doGenerateCalls[1]?.prompt[3]?.content[0]).toMatchObject({
      output: { type: 'content', value: [{ type: 'image-data', mediaType: 'image/png', data: base64(png()) }] },
    });
  });
});

describe('in a reply', () => {
  it('an empty file is none: it is no answer, and does not go back', async () => {
    const nothing = { type: 'file' as const, mediaType: 'image/png', data: { type: 'data' as const, data: '' } };
    const model = replies([nothing], [nothing, CALLED], [SAID]);
    const result = await play(model, shot({ type: 'text', text: 'clear' }));
    expect(result).toMatchObject({ reason: 'goal', answer: 'Done.', usage: { steps: 2 } });
    expect(result).not.toHaveProperty('files');
    expect(JSON.stringify(model.doGenerateCalls[2]?.prompt)).not.toContain('"file"');
  });

  it('what a package has left out of files and sources does not lose the reply', async () => {
    const odd = [
      { type: 'file', data: { type: 'data', data: base64(png()) } },
      { type: 'file', mediaType: 'image/png' },
      { type: 'file', mediaType: 'image/png', data: { type: 'url', url: 'nowhere' } },
      { type: 'source', sourceType: 'url', id: '1' },
      { type: 'source', sourceType: 'document', id: '2' },
      { type: 'source' },
    ] as unknown as LanguageModelV4Content[];
    expect(await play(replies([SAID, ...odd]))).toMatchObject({
      answer: 'Done.',
      files: [{ sizeBytes: png().length }],
      sources: [{ type: 'document', title: 'Document' }],
    });
  });

  it('a picture that is too large for the next model is told to it', async () => {
    const data = Buffer.concat([png(), Buffer.alloc(4_000_000)]);
    const painter = replies([{ type: 'file', mediaType: 'image/png', data: { type: 'data', data } }, CALLED]);
    const { fetch, requests } = wire([answerOf(anthropic, LAST, false)], whole);
    const claude = react({ model: anthropic.model({ baseURL: 'http://provider.test', fetch }) });
    const first = react({ model: painter });
    const runtime = createRuntime({
      planner: { ...claude, next: (view, signal) => (view.trajectory.count === 0 ? first : claude).next(view, signal) },
      tools: [shot({ type: 'text', text: 'clear' })],
      journal: memoryJournal(),
    });
    const run = await runtime.start('Draw the sky.', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ answer: 'Done.' });
    const sent = JSON.stringify(requests[0]?.body);
    expect(sent).toContain(`\\"size_bytes\\":${data.length}`);
    expect(sent.length).toBeLessThan(100_000);
  });
});

describe('in a result', () => {
  const file = (mediaType: string, bytes: Uint8Array) => {
    return { type: 'file', mediaType, data: { type: 'data', data: base64(bytes) } };
  };
  const JPEG = Buffer.from('ffd8ffe000104a464946', 'hex');

  it.each([
    ['image/png; charset=binary', png(), 'image/png'],
    ['IMAGE/PNG', png(), 'image/png'],
    ['image/jpg', JPEG, 'image/jpeg'],
    ['image/png', JPEG, 'image/jpeg'],
  ])('a picture that is called %s is sent as what it is', async (called, bytes, is) => {
    expect(await readOf(file(called, bytes))).toMatchObject([
      { type: 'image', source: { media_type: is, data: base64(bytes) } },
    ]);
  });

  it('a picture that is none is told', async () => {
    expect(await readOf(file('image/png', Buffer.from('<html>404</html>')))).toContain('"size_bytes":16');
  });

  it.each(['https://', 'https://exa mple/a.png'])('the URL %s, which is none, is told', async (url) => {
    expect(await readOf({ type: 'image-url', url })).toContain(url);
  });
});

it('an attachment that is no picture is told, and one is sent as what it is, however large', async () => {
  const { fetch, requests } = wire([answerOf(anthropic, LAST, false)], whole);
  const claude = anthropic.model({ baseURL: 'http://provider.test', fetch });
  const runtime = createRuntime({ planner: react({ model: claude }), journal: memoryJournal() });
  const large = Buffer.concat([png(), Buffer.alloc(4_000_000)]);
  const inputs = [
    { bytes: Buffer.from('<html>'), mime: 'image/png' },
    { bytes: large, mime: 'image/jpeg' },
  ];
  await (await runtime.start('Look.', { identity: local('ana'), inputs })).result();
  const [turn] = requests[0]?.body['messages'] as readonly { content: readonly JsonObject[] }[];
  expect(turn?.content).toMatchObject([
    { type: 'text' },
    { type: 'text', text: expect.stringContaining('"size_bytes":6') },
    { type: 'image', source: { media_type: 'image/png', data: base64(large) } },
  ]);
});
