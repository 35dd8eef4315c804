/** Pictures in results, with the providers' packages on the wire: the second request has the picture itself, where the protocol has a place for it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, it } from 'vitest';
import { type JsonObject, local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import type { ModelEntry } from '#model';
import { withTools } from '#pilotage/tools';
import { react } from '#planners/react';
import { createRuntime, type Run, type RunResult, type RuntimeOptions } from '#runtime';
import { base64, base64Shot, mcpTool, pathsOf, png, storedShot } from './pictures.ts';
import { answerOf, anywhere, whole, wire } from './pieces.ts';
import { PROVIDERS } from './replies/providers.ts';
import type { Provider, Saying } from './replies/saying.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-pictures-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CALL: Saying = { said: [{ call: 'call_abcdefghi', args: '{"city":"Oslo"}' }], stop: 'calls' };
const TYPED: Saying = { said: [{ text: '```json\n{"tool": "weather", "args": {"city": "Oslo"}}\n```' }], stop: 'end' };
const LAST: Saying = { said: [{ text: 'It is clear.' }], stop: 'end' };
let runs = 0;

interface Look {
  readonly provider: Provider;
  readonly tools: RuntimeOptions['tools'];
  readonly stream?: boolean;
  readonly entry?: Omit<ModelEntry, 'model'>;
}

interface Looked {
  readonly result: RunResult;
  readonly state: Awaited<ReturnType<Run['state']>>;
  readonly second: JsonObject;
  /** All that the journal has of the run's entries. */
  readonly entries: string;
}

/** A run that calls the tool once and then answers, on a journal in a file. */
async function look({ provider, tools = [], stream = false, entry = {} }: Look): Promise<Looked> {
  runs += 1;
  const path = join(folder, `${runs}.db`);
  const first = entry.toolCalls === 'text' ? TYPED : CALL;
  const answers = [first, LAST].map((saying) => answerOf(provider, saying, stream));
  const { fetch, requests } = wire(answers, stream ? anywhere(7) : whole);
  const journal = sqliteJournal({ path });
  const model = provider.model({ baseURL: 'http://provider.test', fetch });
  const runtime = createRuntime({ planner: react({ model: { model, ...entry } }), tools, journal });
  const run = await runtime.start('How is the sky?', { identity: local('ana') });
  if (stream) for await (const _ of run.events());
  const result = await run.result();
  const state = await run.state();
  await runtime.close();
  await journal.close();
  expect(result).toMatchObject({ status: 'finished', reason: 'goal', answer: 'It is clear.' });
  const second = requests[1]?.body ?? {};
  return { result, state, second, entries: entriesIn(path) };
}

function entriesIn(path: string): string {
  const database = new DatabaseSync(path, { readOnly: true });
  const rows = database.prepare('SELECT body FROM entries').all();
  database.close();
  return rows.map(({ body }) => String(body)).join('\n');
}

const PICTURE = base64(png());
/** Where the second request has the picture. `image_url` of a message with the role `user` is behind the results. */
const BEHIND = ['/messages/#/content/#/image_url/url'];
const IN_ANTHROPIC = ['/messages/#/content/#/content/#/source/data'];
const IN_RESPONSES = ['/input/#/output/#/image_url'];
const PLACES: Readonly<Record<string, readonly string[]>> = {
  anthropic: IN_ANTHROPIC,
  'amazon-bedrock': ['/messages/#/content/#/toolResult/content/#/image/source/bytes'],
  'amazon-bedrock, anthropic': IN_ANTHROPIC,
  'openai, responses': IN_RESPONSES,
  'azure, responses': IN_RESPONSES,
  'xai, responses': IN_RESPONSES,
  'open-responses': IN_RESPONSES,
  google: ['/contents/#/parts/#/functionResponse/parts/#/inlineData/data'],
  'google, interactions': ['/input/#/content/#/result/#/data'],
  mistral: ['/messages/#/content/#/image_url'],
};
const CALLING = PROVIDERS.filter(({ places }) => places.includes('calls'));
const named = (name: string): Provider => CALLING.find((provider) => provider.name === name) as Provider;

describe.each(CALLING.map((provider) => [provider.name, provider] as const))('%s', (name, provider) => {
  it.each([false, true])('sees the picture itself (streamed: %s)', async (stream) => {
    const { second, entries } = await look({ provider, tools: [storedShot()], stream });
    expect(pathsOf(second, PICTURE)).toEqual(PLACES[name] ?? BEHIND);
    expect(entries).not.toContain(PICTURE);
  });

  it('with calls in text: in the turn that has the results', async () => {
    const { second } = await look({ provider, tools: [storedShot()], entry: { toolCalls: 'text' } });
    expect(pathsOf(second, PICTURE)).toHaveLength(1);
    expect(pathsOf(second, '<tool_result')).toHaveLength(1);
  });

  it('that takes no pictures reads a line with the reference', async () => {
    const { second, state } = await look({ provider, tools: [storedShot()], entry: { inputs: [] } });
    const ref = state.steps[0]?.calls[0]?.artifacts?.[0]?.artifactRef ?? 'none';
    expect(pathsOf(second, PICTURE)).toEqual([]);
    expect(JSON.stringify(second)).toContain(`A file of this result, by reference:`);
    expect(pathsOf(second, ref)).not.toEqual([]);
  });
});

it.each([
  'openai, chat',
  'openai-compatible',
  'groq',
  'cohere',
])('%s: the picture is in a turn of the user', async (name) => {
  const { second } = await look({ provider: named(name), tools: [storedShot()] });
  const messages = second['messages'] as readonly JsonObject[];
  const roles = messages.filter((message) => pathsOf(message, PICTURE).length > 0).map(({ role }) => role);
  expect(roles).toEqual(['user']);
});

describe('a tool of the AI SDK whose value has base64', () => {
  const tools = () => withTools({ weather: base64Shot() }, { weather: { effect: 'read' } });

  it('keeps its value, and the journal has none of the base64', async () => {
    const { second, entries, state } = await look({ provider: named('anthropic'), tools: tools() });
    expect(pathsOf(second, PICTURE)).toEqual(IN_ANTHROPIC);
    expect(pathsOf(second, 'It is clear.')).toEqual(['/messages/#/content/#/content/#/text']);
    expect(entries).not.toContain(PICTURE);
    const outcome = state.steps[0]?.calls[0]?.outcome;
    expect(outcome).toMatchObject({
      value: { sky: 'clear', picture: { mime: 'image/png' } },
      media: [{ at: '/picture' }],
    });
  });
});

describe('a tool of MCP', () => {
  const text = 'What the server says, long enough that nobody would want to keep it in two places of one entry.';
  const content = [
    { type: 'text', text },
    { type: 'image', data: PICTURE, mimeType: 'image/png' },
    {
      type: 'audio',
      data: base64(Buffer.from('a voice that is heard, and heard for long enough to be a file')),
      mimeType: 'audio/wav',
    },
    {
      type: 'resource',
      resource: {
        uri: 'file:///a.pdf',
        mimeType: 'application/pdf',
        blob: base64(Buffer.from('%PDF-1.7 with pages and pages and pages of words in it')),
      },
    },
    { type: 'resource', resource: { uri: 'file:///a.txt', mimeType: 'text/plain', text: 'the words of a.txt' } },
    { type: 'resource_link', uri: 'https://example.test/b', name: 'b' },
  ];

  it('texts are read as texts, what the model takes is seen, all else is a line; nothing stands in the journal twice', async () => {
    const { second, entries, state } = await look({
      provider: named('anthropic'),
      tools: { weather: mcpTool({ content }) },
    });
    expect(pathsOf(second, PICTURE)).toEqual(IN_ANTHROPIC);
    expect(pathsOf(second, 'the words of a.txt')).toHaveLength(1);
    expect(pathsOf(second, base64(Buffer.from('%PDF-1.7 with pages and pages and pages of words in it')))).toEqual(
      IN_ANTHROPIC,
    );
    const words = JSON.stringify(second);
    for (const told of ['audio/wav', 'https://example.test/b']) expect(words).toContain(told);
    for (const { data = 'none' } of content as { data?: string }[]) expect(entries).not.toContain(data);
    expect(entries).not.toContain(base64(Buffer.from('%PDF-1.7 with pages and pages and pages of words in it')));
    expect(entries.split(text)).toHaveLength(2);
    expect(state.steps[0]?.calls[0]?.outcome).toMatchObject({
      kind: 'value',
      value: { content: [{ type: 'text', text }, {}, {}, {}, {}, {}] },
    });
  });

  it.each([
    'anthropic',
    'openai, responses',
    'google',
    'amazon-bedrock',
  ])('%s: with isError the model reads an error', async (name) => {
    const failed = { content: [{ type: 'text', text: 'No such city.' }], isError: true };
    const { second, state } = await look({ provider: named(name), tools: { weather: mcpTool(failed) } });
    expect(JSON.stringify(second)).toMatch(/call_error>\\+nNo such city/);
    if (name === 'anthropic') expect(JSON.stringify(second)).toContain('"is_error":true');
    // For flows and plans it is the value that the server gave.
    expect(state.steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'value', value: failed });
  });

  it('a result without files is the same as ever', async () => {
    const plain = mcpTool({ content: [] });
    const { state } = await look({
      provider: named('anthropic'),
      tools: {
        weather: { ...plain, toModelOutput: ({ output }: { output: unknown }) => ({ type: 'json', value: output }) },
      },
    });
    expect(state.steps[0]?.calls[0]?.outcome).toEqual({ kind: 'value', value: { content: [] } });
  });
});
