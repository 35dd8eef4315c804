/** Attachments and stored values, from `start` to what a model is sent. */
import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from '@ai-sdk/provider';
import { afterEach, describe, expect, it } from 'vitest';
import { local } from '#core';
import type { ModelEntry } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import type { StartOptions } from '#runtime';
import { type OpenAIServer, openaiServer, type ScriptedReply, scriptedModel } from '#testing';
import { type Tool, tool } from '#tools';
import { only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { openJournal } from '../kit/sqlite.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start } from '../kit/world.ts';
import { chat, chatFaults, good, input, type PlayOptions, play, reactWorld, read, wordsOf } from './played.ts';

const DONE: ScriptedReply = { text: 'done' };
const png = { bytes: Buffer.alloc(2_000_000, '\x89PNG\r\n\x1a\n', 'latin1'), mime: 'image/png', fileName: 'map.png' };
const pdf = { bytes: Buffer.from('%PDF-1.7'), mime: 'application/pdf', fileName: 'terms.pdf' };
const mp3 = { bytes: Buffer.from('ID3'), mime: 'audio/mpeg' };
const csv = { bytes: Buffer.from('a,b'), mime: 'text/csv', fileName: 'rows.csv' };

type Part = LanguageModelV4TextPart | LanguageModelV4FilePart;

/** The request turn of the last request. */
async function turnFor(
  inputs: NonNullable<StartOptions['inputs']>,
  {
    replies = [DONE],
    entry = {},
    query = 'What is this?',
    ...more
  }: {
    replies?: readonly ScriptedReply[];
    entry?: Partial<ModelEntry>;
    query?: string;
  } & Partial<PlayOptions> = {},
) {
  const model = scriptedModel(replies);
  const made = await play({ ...more, model: { ...entry, model }, start: { inputs, query } });
  expect(chatFaults(model)).toEqual([]);
  const turns = chat(model.calls.at(-1) ?? { prompt: [] });
  return { ...made, requests: model.calls, turns, parts: (turns[0]?.content ?? []) as readonly Part[] };
}

/** The reference that a part holds in place of the bytes. */
function stubIn(part: Part | undefined): Record<string, unknown> {
  const text = part?.type === 'text' ? part.text : '';
  expect(text).toMatch(/^An attachment of this request, by reference:\n<attachment>\n\{/);
  return JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)) as Record<string, unknown>;
}

describe('attachments', () => {
  it('MM-01 without any the turn is the text alone; with some the text comes first, and is left out when empty', async () => {
    expect((await turnFor([])).parts).toEqual([{ type: 'text', text: 'What is this?' }]);
    const { parts } = await turnFor([png, csv]);
    expect(parts.map(({ type }) => type)).toEqual(['text', 'file', 'text']);
    expect(parts[0]).toEqual({ type: 'text', text: 'What is this?' });
    expect((await turnFor([png], { query: '' })).parts.map(({ type }) => type)).toEqual(['file']);
  });

  it('MM-02, MM-03 an image is sent with its bytes; what the model does not take goes by reference', async () => {
    const { parts } = await turnFor([png, pdf, mp3, csv]);
    expect(parts[1]).toMatchObject({ type: 'file', mediaType: 'image/png', filename: 'map.png' });
    const stubs = parts.slice(2).map(stubIn);
    expect(stubs).toMatchObject([
      { mime: 'application/pdf', size_bytes: 8, file_name: 'terms.pdf' },
      { mime: 'audio/mpeg', size_bytes: 3 },
      { mime: 'text/csv', size_bytes: 3, file_name: 'rows.csv' },
    ]);
    for (const stub of stubs) expect(stub['artifact_ref']).toMatch(/^art_/);
    expect(stubs[1]).not.toHaveProperty('file_name');
  });

  it('MM-06 a model that takes PDFs gets the PDF, one that takes no images the reference', async () => {
    const takes = await turnFor([pdf], { entry: { inputs: ['application/pdf'] } });
    expect(takes.parts[1]).toMatchObject({ type: 'file', mediaType: 'application/pdf', data: { type: 'data' } });
    const blind = await turnFor([png], { entry: { inputs: [] } });
    expect(stubIn(blind.parts[1])).toMatchObject({ mime: 'image/png', size_bytes: 2_000_000 });
  });

  it('MM-04 the reference names the first tool that reads the type, by the type itself or its family, never by any type', async () => {
    const reader = (name: string, mimeTypes: readonly string[]): Tool => make(name, () => 'read', { mimeTypes });
    const tools = [reader('any', ['*/*']), reader('docs', ['application/pdf']), reader('sound', ['audio/*'])];
    const { parts } = await turnFor([pdf, mp3, { ...csv, mime: 'model/gltf+json' }], { tools });
    const [first, second, third] = parts.slice(1).map(stubIn);
    expect(first?.['fetch']).toEqual({ tool: 'docs', id: first?.['artifact_ref'] });
    expect(second?.['fetch']).toEqual({ tool: 'sound', id: second?.['artifact_ref'] });
    expect(third).not.toHaveProperty('fetch');
  });

  it('MM-04 a tool that is found later does not change the request turn, also after a restart', async () => {
    const hidden: Tool = tool({
      name: 'docs',
      description: 'Reads documents.',
      effect: 'read',
      loading: 'deferred',
      mimeTypes: ['application/pdf'],
      inputSchema: input,
      execute: () => 'text',
    });
    const path = temporaryFile();
    const find: ScriptedReply = { calls: [{ tool: 'tool_search', args: { query: 'documents' } }] };
    const stalled = scriptedModel([find, { stall: true }]);
    const before = reactWorld({ model: stalled, tools: [hidden], journal: openJournal(path) });
    const run = await start(before, { inputs: [pdf] });
    await until(() => stalled.calls.length === 2);
    await before.runtime.close();
    const model = scriptedModel([DONE]);
    const after = reactWorld({ model, tools: [hidden], journal: openJournal(path) });
    await after.runtime.run(run.id).resume();
    await after.runtime.run(run.id).result();
    expect(model.calls[0]?.prompt).toEqual(stalled.calls[1]?.prompt);
  });

  it('MM-05 they stand in the first turn only, and in every request', async () => {
    const { requests } = await turnFor([pdf], { replies: [good(), DONE] });
    const [first, second] = requests;
    expect(second?.prompt.slice(0, first?.prompt.length)).toEqual(first?.prompt);
    expect(JSON.stringify(second?.prompt).match(/by reference/g)).toHaveLength(1);
  });

  it('MM-22 one that cannot be read is named in the turn, and told once', async () => {
    const gone = { artifactRef: 'art_0000000000000000', mime: 'image/png', sizeBytes: 3, fileName: 'gone.png' };
    const { parts, events, result } = await turnFor([gone, csv], { replies: [good(), {}, DONE] });
    expect(parts[1]).toEqual({
      type: 'text',
      text: 'An attachment of this request could not be read, and is missing:\n<attachment>\n{"artifact_ref":"art_0000000000000000","file_name":"gone.png"}\n</attachment>',
    });
    expect(only(events, 'input.unreadable').map(({ artifactRef, fileName }) => [artifactRef, fileName])).toEqual([
      ['art_0000000000000000', 'gone.png'],
    ]);
    expect(result).toMatchObject({ reason: 'goal' });
  });

  it('MM-22 a session cannot name the attachment of another', async () => {
    const first = await turnFor([csv]);
    const [ref] = (await first.run.state()).context.inputs ?? [];
    expect(ref).toBeDefined();
    const model = scriptedModel([DONE]);
    const stranger = reactWorld({ model, journal: first.journal });
    const run = await start(stranger, { identity: local('ben'), inputs: ref === undefined ? [] : [ref] });
    await run.result();
    expect(wordsOf(model.calls[0]?.prompt[1])).toContain('could not be read');
  });

  describe('over HTTP', () => {
    const open: OpenAIServer[] = [];
    afterEach(async () => {
      for (const server of open.splice(0)) await server.close();
    });

    it('MM-06 a 2 MB PNG arrives as it is', async () => {
      const server = await openaiServer([{ text: 'a map' }]);
      open.push(server);
      const { result } = await play({
        model: openaiCompatible({ baseUrl: server.url, model: 'm' }),
        start: { inputs: [png], query: 'What is this?' },
      });
      expect(result).toMatchObject({ answer: 'a map' });
      const content = server.requests[0]?.body.messages.at(-1)?.content as readonly Record<string, { url: string }>[];
      const url = content.find((part) => 'image_url' in part)?.['image_url']?.url ?? '';
      expect(url.startsWith('data:image/png;base64,')).toBe(true);
      expect(Buffer.from(url.slice(url.indexOf(',') + 1), 'base64').equals(png.bytes)).toBe(true);
    });
  });
});

describe('stored values', () => {
  it('MM-17 a run begins with the rows of its session, newest first, and how many more there are', async () => {
    const keep = make('keep', async (_, { saveArtifact }) => {
      for (let index = 0; index < 25; index += 1)
        await saveArtifact(`text ${index}`, { mime: 'text/plain', fileName: `${index}.txt` });
      return 'kept';
    });
    const first = await play({ model: scriptedModel([{ calls: [{ tool: 'keep' }] }, DONE]), tools: [keep] });
    const { identity } = await first.run.state();
    const model = scriptedModel([DONE]);
    const second = reactWorld({ model, journal: first.journal });
    await (await start(second, { identity: { ...identity, run: 'next' } })).result();
    const manifest = wordsOf(model.calls[0]?.prompt[1]);
    expect(manifest.match(/^- art_\S+ \| \d+\.txt \| text\/plain \| \d+ bytes \| tool: keep$/gm)).toHaveLength(20);
    expect(manifest).toContain('\n+5 more\n</session_artifacts>');
    expect(wordsOf(model.calls[0]?.prompt[2])).toBe('q');
  });

  it('MM-18 what a tool stores is named right after its step, and read with artifact_fetch', async () => {
    const keep = make('keep', async (_, { saveArtifact }) => {
      await saveArtifact('Oslo is north.', { mime: 'text/plain', fileName: 'notes.txt' });
      return 'kept';
    });
    let ref = '';
    const model = scriptedModel([
      { calls: [{ tool: 'keep' }] },
      ({ prompt }) => {
        ref =
          /- (art_\S+) \| notes\.txt \| text\/plain \| 14 bytes \| tool: keep/.exec(wordsOf(prompt.at(-1)))?.[1] ?? '';
        return { calls: [{ tool: 'artifact_fetch', args: { ref } }] };
      },
      DONE,
    ]);
    const { steps, result } = await play({ model, tools: [keep, read] });
    expect(ref).toMatch(/^art_/);
    expect(steps[1]?.calls[0]?.outcome).toMatchObject({ kind: 'value' });
    expect(wordsOf(model.calls[2]?.prompt.at(-1))).toContain('Oslo is north.');
    expect(result).toMatchObject({ reason: 'goal' });
    expect(chatFaults(model)).toEqual([]);
  });
});
