/** What a model reads of a value (`toModelOutput`): found out once, recorded with the outcome, and never in place of the value. */
import { describe, expect, it } from 'vitest';
import type { Decision, Json, Outcome, Planner } from '#core';
import { memoryJournal } from '#journal';
import { graph } from '#planners/graph';
import { agent, agentTool, type Tool, tool } from '#tools';
import { call, finish, parallel, script } from '../kit/decisions.ts';
import { start, world } from '../kit/world.ts';
import { base64, mcpTool, png } from '../wire/pictures.ts';

const ANY = { type: 'object' } as const;
const PICTURE = base64(png());

/** A planner whose decisions are those of a model. */
function modelled(...decisions: readonly Decision[]): Planner {
  return { name: 'function', modelDriven: true, next: script(...decisions) };
}

interface Looked {
  readonly outcome: Outcome | undefined;
  readonly entries: string;
}

async function outcomeOf(given: Tool, planner: Planner = modelled(call(given.name))): Promise<Looked> {
  const { runtime, journal } = world({ planner, tools: [given] });
  const run = await start({ runtime });
  await run.result();
  const state = await run.state();
  return { outcome: state.steps[0]?.calls[0]?.outcome, entries: JSON.stringify(await journal.read(run.id)) };
}

/** A tool with this value, of which a model is to read that output. */
function gives(value: unknown, output: unknown, more: Partial<Tool> = {}): Tool {
  return {
    ...{ name: 'look', description: 'd', effect: 'read', inputSchema: ANY },
    execute: () => value,
    toModelOutput: () => output as never,
    ...more,
  };
}

const file = (data: unknown, mediaType = 'image/png') => ({
  type: 'content',
  value: [{ type: 'file', mediaType, data }],
});
const seen = { type: 'content', value: [{ type: 'file', mime: 'image/png', sizeBytes: png().length }] };

describe('the forms of the AI SDK', () => {
  it.each<[string, unknown]>([
    ['file: base64', file({ type: 'data', data: PICTURE })],
    ['file: bytes', file({ type: 'data', data: png() })],
    ['file: in part of a media type', file({ type: 'data', data: PICTURE }, 'image')],
    ['file: a URL with the data', file({ type: 'url', url: new URL(`data:image/png;base64,${PICTURE}`) })],
    ['media', { type: 'content', value: [{ type: 'media', data: PICTURE, mediaType: 'image/png' }] }],
    ['file-data', { type: 'content', value: [{ type: 'file-data', data: PICTURE, mediaType: 'image/png' }] }],
    ['image-data', { type: 'content', value: [{ type: 'image-data', data: PICTURE, mediaType: 'image/png' }] }],
    ['image-url', { type: 'content', value: [{ type: 'image-url', url: `data:image/png;base64,${PICTURE}` }] }],
  ])('%s is an artifact', async (_, output) => {
    const { outcome, entries } = await outcomeOf(gives({ ok: true }, output));
    expect(outcome).toMatchObject({ kind: 'value', value: { ok: true }, modelOutput: seen });
    expect(entries).not.toContain(PICTURE);
  });

  it.each<[string, unknown, object]>([
    ['text', { type: 'text', value: 'short' }, { type: 'content', value: [{ type: 'text', text: 'short' }] }],
    ['json', { type: 'json', value: [1] }, { type: 'json', value: [1] }],
    ['error-text', { type: 'error-text', value: 'no' }, { type: 'error-text', value: 'no' }],
    ['error-json', { type: 'error-json', value: { a: 1 } }, { type: 'error-json', value: { a: 1 } }],
    ['execution-denied', { type: 'execution-denied', reason: 'r' }, { type: 'execution-denied', reason: 'r' }],
    [
      'a URL',
      file({ type: 'url', url: new URL('https://example.test/a.png') }),
      { type: 'content', value: [{ type: 'file', url: 'https://example.test/a.png', mediaType: 'image/png' }] },
    ],
    [
      'a reference of a provider',
      file({ type: 'reference', reference: { anthropic: 'file_1' } }),
      { type: 'content', value: [{ type: 'file', reference: { anthropic: 'file_1' }, mediaType: 'image/png' }] },
    ],
    [
      'a text as a file',
      file({ type: 'text', text: 'words' }),
      { type: 'content', value: [{ type: 'text', text: 'words' }] },
    ],
  ])('%s is recorded', async (_, output, modelOutput) => {
    const { outcome } = await outcomeOf(gives({ ok: true }, output));
    expect(outcome).toEqual({ kind: 'value', value: { ok: true }, modelOutput });
  });
});

describe('nothing is recorded twice', () => {
  it.each<[string, unknown, unknown]>([
    ['the text that the value is', 'words', { type: 'text', value: 'words' }],
    ['the JSON that the value is', { a: [1] }, { type: 'json', value: { a: [1] } }],
  ])('%s', async (_, value, output) => {
    expect((await outcomeOf(gives(value, output))).outcome).toEqual({ kind: 'value', value });
  });

  it('a text that stands in the value is a pointer into it', async () => {
    const text = 'long '.repeat(40);
    const { outcome } = await outcomeOf(gives({ 'a/b': [{ text }] }, { type: 'text', value: text }));
    expect(outcome).toMatchObject({ modelOutput: { type: 'content', value: [{ type: 'text', at: '/a~1b/0/text' }] } });
  });

  it('of texts that are too large the model reads the preview of the value, beside the files', async () => {
    const text = 'long '.repeat(20_000);
    const parts = [{ type: 'text', text }, ...file({ type: 'data', data: PICTURE }).value];
    const { outcome, entries } = await outcomeOf(gives({ text }, { type: 'content', value: parts }));
    expect(outcome).toMatchObject({
      value: { truncated: true },
      modelOutput: { type: 'content', value: [{ type: 'value' }, { type: 'file' }] },
    });
    expect(entries.length).toBeLessThan(60_000);
    const alone = await outcomeOf(gives({ text }, { type: 'text', value: text }));
    expect(alone.outcome).not.toHaveProperty('modelOutput');
  });
});

it('a large picture leaves the value, which is no preview then', async () => {
  const large = Buffer.concat([png(), Buffer.alloc(5_000_000, 7)]);
  const value = { url: 'u', picture: base64(large) };
  const { outcome } = await outcomeOf(gives(value, file({ type: 'data', data: value.picture })));
  expect(outcome).toMatchObject({
    value: { url: 'u', picture: { mime: 'image/png', size_bytes: large.length } },
    media: [{ at: '/picture' }],
  });
  expect(outcome).not.toHaveProperty('artifact');
});

it('later calls get the value as the tool gave it', async () => {
  const heard: unknown[] = [];
  const echo = tool({
    name: 'echo',
    description: 'd',
    effect: 'read',
    inputSchema: ANY,
    execute: (args) => heard.push(args),
  });
  const value = { url: 'u', picture: `data:image/png;base64,${PICTURE}` };
  const from = { $from: 'look', step: 0 } as unknown as Json;
  const looks = parallel([{ tool: 'look', args: {}, id: 'look' }]);
  const planner = modelled(looks, parallel([{ tool: 'echo', args: { whole: from } as Json }]));
  const { runtime } = world({ planner, tools: [gives(value, file({ type: 'url', url: value.picture })), echo] });
  const run = await start({ runtime });
  await run.result();
  expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ media: [{ at: '/picture' }] });
  expect(heard).toEqual([{ whole: value }]);
});

it('what is short stays in the value, where it may stand for something else', async () => {
  const { outcome } = await outcomeOf(gives({ a: '', b: 'QQ==' }, file({ type: 'data', data: 'QQ==' })));
  expect(outcome).toMatchObject({
    value: { a: '', b: 'QQ==' },
    modelOutput: { value: [{ type: 'file', sizeBytes: 1 }] },
  });
  expect(outcome).not.toHaveProperty('media');
});

it('secrets are redacted in what a model reads, too', async () => {
  const secret = `ghp_${'a1B2c3D4'.repeat(5)}`;
  const parts = [{ type: 'text', text: `The token is ${secret}.` }, ...file({ type: 'data', data: PICTURE }).value];
  const { runtime, journal } = world({
    planner: modelled(call('look')),
    tools: [gives({ ok: true }, { type: 'content', value: parts })],
    redact: { also: ['results'] } as never,
  });
  const run = await start({ runtime });
  await run.result();
  const entries = JSON.stringify(await journal.read(run.id));
  expect(entries).toContain('The token is [redacted');
  expect(entries).not.toContain(secret);
  expect(entries).toMatch(/"artifactRef":"art_[0-9a-f]{32}"/);
});

describe('when it is asked', () => {
  it('once, with the arguments of the call and the value as it was given', async () => {
    const asked: unknown[] = [];
    const looks = gives(new Date(0), undefined, {
      toModelOutput: (about) => {
        asked.push(about);
        return { type: 'text', value: 'a day' };
      },
    });
    const { outcome } = await outcomeOf(looks, modelled(call('look', { n: 1 })));
    expect(asked).toEqual([{ toolCallId: expect.any(String), input: { n: 1 }, output: new Date(0) }]);
    expect(outcome).toMatchObject({ value: '1970-01-01T00:00:00.000Z', modelOutput: { type: 'content' } });
  });

  const never = gives({ picture: PICTURE }, undefined, {
    toModelOutput: () => {
      throw new Error('nobody reads it');
    },
  });
  const plain = { kind: 'value', value: { picture: PICTURE } };

  it('not where no model reads it: for a planner that is a program, as that of a flow, and in a plan', async () => {
    expect((await outcomeOf(never, { name: 'function', next: script(call('look')) })).outcome).toEqual(plain);
    const plan = { kind: 'call_parallel' as const, plan: 'p', branches: [{ tool: 'look', args: {} }] };
    expect((await outcomeOf(never, modelled(plan))).outcome).toEqual(plain);
  });

  it('not for a call that failed', async () => {
    const fails = gives(undefined, undefined, {
      execute: () => {
        throw new Error('no');
      },
      toModelOutput: () => {
        throw new Error('asked');
      },
    });
    expect((await outcomeOf(fails)).outcome).toMatchObject({ kind: 'error', error: { message: 'no' } });
  });

  it('of MCP its files leave the value also there', async () => {
    const content = [{ type: 'image', data: PICTURE, mimeType: 'image/png' }];
    const { execute, toModelOutput } = mcpTool({ content }) as unknown as Tool;
    const { outcome, entries } = await outcomeOf(gives(0, 0, { execute, toModelOutput } as Partial<Tool>), {
      name: 'function',
      next: script(call('look')),
    });
    expect(outcome).toMatchObject({
      value: { content: [{ type: 'image', data: { mime: 'image/png' } }] },
      media: [{ at: '/content/0/data' }],
    });
    expect(outcome).not.toHaveProperty('modelOutput');
    expect(entries).not.toContain(PICTURE);
  });
});

describe('a function that fails does not fail the call, which was made', () => {
  it.each<[string, Partial<Tool>, RegExp]>([
    [
      'throws',
      {
        toModelOutput: () => {
          throw new Error('broken');
        },
      },
      /broken/,
    ],
    ['rejects', { toModelOutput: async () => Promise.reject(new Error('later')) }, /later/],
    ['gives nothing', { toModelOutput: () => undefined as never }, /an object with a type/],
    ['gives another type', { toModelOutput: () => ({ type: 'picture' }) as never }, /"picture" cannot be the type/],
    [
      'gives parts that are none',
      { toModelOutput: () => ({ type: 'content', value: [5] }) as never },
      /a part of the output/,
    ],
    ['gives what is no JSON', { toModelOutput: () => ({ type: 'json', value: () => 1 }) as never }, /no JSON/],
  ])('that %s', async (_, more, message) => {
    const { outcome } = await outcomeOf(gives({ ok: true }, undefined, { effect: 'once', ...more }));
    const error = { code: 'model_output_failed', message: expect.stringMatching(message) };
    expect(outcome).toMatchObject({ kind: 'value', value: { ok: true }, modelOutput: { type: 'failed', error } });
  });
});

it('a fork has what was recorded, under its own code', async () => {
  const journal = memoryJournal();
  const looks = gives({ ok: true }, file({ type: 'data', data: PICTURE }));
  const first = world({ planner: modelled(call('look')), tools: [looks], journal });
  const run = await start(first);
  await run.result();
  const second = world({
    planner: modelled(call('look')),
    tools: [gives({ ok: true }, { type: 'text', value: 'other words' })],
    journal,
  });
  const forked = await second.runtime.run(run.id).fork({ step: 1 });
  expect((await forked.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ modelOutput: seen });
});

it('files that the model of an agent tool has made are shown to the model that called it', async () => {
  const painter = agent({
    name: 'painter',
    planner: () => ({ decision: finish(), made: [{ bytes: png(), mime: 'image/png' }] }),
  });
  const { runtime } = world({
    planner: modelled(call('painter', { input: 'a sky' })),
    tools: [agentTool(painter, { description: 'Paints.' })],
  });
  const run = await start({ runtime });
  await run.result();
  expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'value', modelOutput: seen });
});

it('a plan gets the files of an agent that has given nothing else', async () => {
  const painter = agent({
    name: 'painter',
    planner: () => ({
      decision: { kind: 'finish', reason: 'goal' },
      made: [{ bytes: png(), mime: 'image/png' }],
    }),
  });
  const look = tool({ name: 'look', description: 'd', effect: 'read', inputSchema: ANY, execute: (args) => args });
  const steps = [
    { id: 'paint', type: 'tool', toolId: 'painter', input: { input: 'a sky' }, after: [] },
    { id: 'look', type: 'tool', toolId: 'look', input: { at: { $from: 'paint', path: '/files/0/artifactRef' } } },
    { id: 'end', type: 'finish', input: { $from: 'look' } },
  ];
  const planner = graph({ plan: { planId: 'p', steps } as never });
  const { runtime } = world({ planner, tools: [agentTool(painter, { description: 'Paints.' }), look] });
  expect(await (await start({ runtime })).result()).toMatchObject({
    reason: 'goal',
    payload: { at: expect.stringMatching(/^art_/) },
  });
});

it('files of a move that are none fail the planner', async () => {
  const { runtime } = world({ planner: () => ({ decision: finish(), made: ['x'] }) as never });
  expect(await (await start({ runtime })).result()).toMatchObject({
    status: 'failed',
    error: { code: 'planner_failed' },
  });
});
