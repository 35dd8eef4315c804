/** Files that a model makes: they are artifacts of the session, an answer by themselves, and go back to their own provider in their place. */
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { type Json, type JsonObject, local, type RunEvent } from '#core';
import { memoryJournal } from '#journal';
import { type ReactOptions, react } from '#planners/react';
import { createRuntime, type Run, type RunResult, type RuntimeOptions } from '#runtime';
import { tool } from '#tools';
import { base64, pathsOf, png } from './pictures.ts';
import { type Answer, anywhere, jsonAnswer, type Wire, whole, wire } from './pieces.ts';
import { anthropic } from './replies/anthropic.ts';
import { events } from './replies/saying.ts';
import { CITY, WEATHER } from './weather.ts';

const PICTURE = base64(png());
const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 12 };

function gemini(parts: readonly Json[], stream: boolean): Answer {
  const json = {
    candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata,
    modelVersion: 'gemini-3-pro-image',
    responseId: 'r1',
  };
  return stream ? streamed(events([json])) : jsonAnswer(json);
}

function streamed(frames: readonly Uint8Array[]): Answer {
  return { status: 200, mime: 'text/event-stream', body: Buffer.concat([...frames]) };
}

const google = ({ fetch }: Wire): LanguageModelV4 =>
  createGoogle({ apiKey: 'k', baseURL: 'http://provider.test', fetch })('gemini-3-pro-image');

const DRAWN = { inlineData: { mimeType: 'image/png', data: PICTURE }, thoughtSignature: 'c2lnbmVk' };
const DRAFT = {
  inlineData: { mimeType: 'image/png', data: base64(png(1)) },
  thought: true,
  thoughtSignature: 'ZHJhZnQ=',
};
const CALL = { functionCall: { name: 'weather', args: { city: 'Oslo' } }, thoughtSignature: 'c2VhbGVk' };

const weather = tool({ ...WEATHER, effect: 'read', inputSchema: CITY, execute: () => 'sunny' });

interface Made {
  readonly run: Run;
  readonly result: RunResult;
  readonly events: readonly RunEvent[];
}

async function play(
  model: LanguageModelV4,
  stream: boolean,
  options: Partial<RuntimeOptions & ReactOptions> = {},
): Promise<Made> {
  const { journal = memoryJournal(), converse = false, memory } = options;
  const planner = react({ model, converse });
  const runtime = createRuntime({ planner, tools: [weather], journal, ...(memory === undefined ? {} : { memory }) });
  const run = await runtime.start('Draw the sky.', { identity: local('ana') });
  const told: RunEvent[] = [];
  if (stream) for await (const event of run.events()) told.push(event);
  const result = await run.result();
  if (!stream) for await (const event of run.events({ from: 1 })) told.push(event);
  return { run, result, events: told };
}

describe.each([false, true])('streamed: %s', (stream) => {
  const cut = stream ? anywhere(5) : whole;

  it('a reply of a file alone ends the run with its file', async () => {
    const journal = memoryJournal();
    const sent = wire([gemini([DRAWN], stream)], cut);
    const { run, result, events: told } = await play(google(sent), stream, { journal });
    const file = { artifactRef: expect.stringMatching(/^art_/), mime: 'image/png', sizeBytes: png().length };
    expect(result).toMatchObject({ status: 'finished', reason: 'goal', files: [file] });
    expect(result).not.toHaveProperty('answer');
    expect(told.filter(({ type }) => type === 'planner.files')).toMatchObject([{ step: 0, files: [file] }]);
    expect(sent.requests).toHaveLength(1);
    const made = result.status === 'finished' ? (result.files ?? []) : [];
    const artifactRef = made[0]?.artifactRef ?? 'none';
    const stored = await journal.artifacts.get(local('ana', { run: run.id }), artifactRef);
    expect(Buffer.from(stored?.bytes ?? [])).toEqual(Buffer.from(png()));
    expect(JSON.stringify(await journal.read(run.id))).not.toContain(PICTURE);
  });

  it('files beside words and calls are kept, and go back in their places with their signatures', async () => {
    const sent = wire(
      [gemini([{ text: 'First the sky.' }, DRAFT, DRAWN, CALL], stream), gemini([{ text: 'Done.' }], stream)],
      cut,
    );
    const { run, result } = await play(google(sent), stream);
    expect(result).toMatchObject({ answer: 'Done.', files: [{ mime: 'image/png' }, { mime: 'image/png' }] });
    const [, model] = sent.requests[1]?.body['contents'] as readonly { parts: readonly JsonObject[] }[];
    expect(model?.parts.slice(0, 3)).toEqual([{ text: 'First the sky.' }, DRAFT, DRAWN]);
    expect(model?.parts[3]).toMatchObject({ functionCall: { name: 'weather' }, thoughtSignature: 'c2VhbGVk' });
    const state = await run.state();
    expect(state.steps[0]).toMatchObject({
      text: 'First the sky.',
      files: [{ mime: 'image/png' }, { mime: 'image/png' }],
    });
  });

  it('a model that asks its user with a picture has its own picture when the user has answered', async () => {
    const sent = wire([gemini([DRAWN], stream), gemini([DRAWN], false)], cut);
    const { run, result } = await play(google(sent), stream, { converse: true });
    expect(result.status).toBe('paused');
    await run.steer('USER_MESSAGE', { message: 'Make it blue.' });
    await run.result();
    const contents = sent.requests[1]?.body['contents'] as readonly { role: string; parts: readonly JsonObject[] }[];
    expect(contents.find(({ role }) => role === 'model')?.parts).toEqual([DRAWN]);
  });
});

it('the picture that a tool of the provider has made is a file, and its base64 is nowhere in the journal', async () => {
  const journal = memoryJournal();
  const json = {
    ...{ id: 'resp_1', object: 'response', created_at: 1_700_000_000, model: 'gpt-5', status: 'completed' },
    ...{ incomplete_details: null, error: null },
    output: [{ type: 'image_generation_call', id: 'ig_1', status: 'completed', result: PICTURE }],
    usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 },
  };
  const sent = wire([jsonAnswer(json)], whole);
  const model = createOpenAI({ apiKey: 'k', baseURL: 'http://provider.test', fetch: sent.fetch })('gpt-5');
  const { run, result } = await play(model, false, { journal });
  expect(result).toMatchObject({
    status: 'finished',
    reason: 'goal',
    files: [{ mime: 'image/png', sizeBytes: png().length }],
  });
  expect(JSON.stringify(await journal.read(run.id))).not.toContain(PICTURE);
});

it('the model of another provider gets the file in a turn behind the reply', async () => {
  const first = wire([gemini([{ text: 'Look:' }, DRAWN, CALL], false)], whole);
  const second = wire([jsonAnswer(anthropic.whole({ said: [{ text: 'Done.' }], stop: 'end' }))], whole);
  const claude = anthropic.model({ baseURL: 'http://provider.test', fetch: second.fetch });
  const models = [google(first), claude];
  const planner = react({ model: models });
  const pool = createRuntime({
    planner: {
      ...planner,
      next: (view, signal) => react({ model: models[view.trajectory.count] as LanguageModelV4 }).next(view, signal),
    },
    tools: [weather],
    journal: memoryJournal(),
  });
  const run = await pool.start('Draw the sky.', { identity: local('ana') });
  expect(await run.result()).toMatchObject({ answer: 'Done.' });
  const messages = second.requests[0]?.body['messages'] as readonly JsonObject[];
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  expect(pathsOf(messages[1] as JsonObject, PICTURE)).toEqual([]);
  expect(pathsOf(messages[2] as JsonObject, PICTURE)).toEqual(['/content/#/source/data']);
  expect(JSON.stringify(messages[2])).toContain('Made by you in the reply before:');
});

it('the next run of the session has the file that the one before was answered with', async () => {
  const sent = wire([gemini([DRAWN], false), gemini([{ text: 'It is blue now.' }], false)], whole);
  const runtime = createRuntime({
    planner: react({ model: google(sent) }),
    tools: [],
    journal: memoryJournal(),
    memory: { strategy: 'window' },
  });
  const identity = (run: string) => local('ana', { session: 'art', run });
  await (await runtime.start('Draw the sky.', { identity: identity('run_one') })).result();
  await (await runtime.start('Make it blue.', { identity: identity('run_two') })).result();
  expect(pathsOf(sent.requests[1]?.body['contents'] as Json, PICTURE)).toHaveLength(1);
  expect(JSON.stringify(sent.requests[1]?.body)).not.toContain('There is no answer.');
});

it('whoever has a handle of the run reads the files of its result, and nothing of another session', async () => {
  const journal = memoryJournal();
  const sent = wire([gemini([DRAWN], false), gemini([{ text: 'Nothing.' }], false)], whole);
  const runtime = createRuntime({ planner: react({ model: google(sent) }), tools: [], journal });
  const run = await runtime.start('Draw the sky.', { identity: local('ana', { session: 'art' }) });
  const result = await run.result();
  const [{ artifactRef } = { artifactRef: '' }] = result.status === 'finished' ? (result.files ?? []) : [];
  const read = await runtime.run(run.id).artifact(artifactRef);
  expect(read).toEqual({ bytes: new Uint8Array(png()), mime: 'image/png' });
  const other = await runtime.start('Look.', { identity: local('ana', { session: 'other' }) });
  await other.result();
  expect(await other.artifact(artifactRef)).toBeUndefined();
});
