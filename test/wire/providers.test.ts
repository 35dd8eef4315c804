/**
 * Every provider package on replies by its provider's documentation: our agent beside the AI SDK's own loop on the same bytes, in one
 * piece and in a stream that is cut anywhere. The same calls, the same number of requests, the same history in the second request, the
 * same usage; what differs stands in `DIFFERENCES`, with the reason.
 */
import { describe, expect, it } from 'vitest';
import { asJson, isJsonObject, type Json, type JsonObject } from '#core';
import { askOurs, askTheirs, type Ours, type Theirs, withoutMadeIds } from './both.ts';
import type { WireRequest } from './kit.ts';
import { type Answer, answerOf, anywhere, byByte, type Cut, jsonAnswer, whole, wire } from './pieces.ts';
import { PROVIDERS } from './replies/providers.ts';
import { COUNTS, type Place, type Provider, type Said, type Saying } from './replies/saying.ts';
import { QUERY } from './weather.ts';

/** Where ours does otherwise, and why that is better. What is not here has to be the same. */
const DIFFERENCES = {
  nullArgs:
    'Cohere streams `null` for a call without arguments. The AI SDK gives it to the tool; for us it is no arguments, as in one piece.',
  tooLong:
    'The AI SDK ends with the error. Our run shortens its history, or pauses until there is room, and can go on.',
  brokenStream:
    'The AI SDK ends with the error in the middle of an answer, or with the result of a call for which nobody asked to the end. We make the same request again, and carry out nothing of the reply that broke off.',
  cutCall:
    'The AI SDK gives the model an error as the result of a call that the output limit cut off, or throws. We say what happened, and ask again.',
  cutText: 'The AI SDK gives half of a text as the text. Our run asks for the rest, and answers with the whole.',
  refused:
    'The AI SDK gives the words of a refusal, or none, as the text. Our run ends as refused, with what was said of it.',
  paused:
    'The AI SDK gives what came before a pause as the text, unless a call of the provider is open. Our run goes on with it.',
} as const;

interface Dialogue {
  readonly name: string;
  readonly needs: readonly Place[];
  readonly replies: readonly Saying[];
}

const END: Saying = { said: [{ text: 'In Zürich the sun ☀️ shines.' }], stop: 'end' };
const zurich = { call: 'call_abcdefghi', args: '{"city":"Zürich"}' };
const tokyo = { call: 'call_bcdefghij', args: '{"city":"東京 🗼"}' };
const I_LOOK = { text: 'Ich schaue nach. 👀' };
const THOUGHT = { thought: 'I må look it up.' };
const SEALED = { ...THOUGHT, sealed: 'c2lnbmF0dXJl' };

const STORY = { text: 'Once upon a time there was a cat.' };
const CALLING: Saying = { said: [I_LOOK, zurich], stop: 'calls' };

const thenEnd = (...said: readonly Said[]): readonly Saying[] => [{ said, stop: 'calls' }, END];

const DIALOGUES: readonly Dialogue[] = [
  { name: 'a text', needs: [], replies: [END] },
  { name: 'reasoning and a text', needs: ['thought'], replies: [{ said: [THOUGHT, ...END.said], stop: 'end' }] },
  { name: 'a call', needs: ['calls'], replies: thenEnd(zurich) },
  { name: 'a text and a call', needs: ['calls'], replies: thenEnd(I_LOOK, zurich) },
  { name: 'parallel calls', needs: ['calls'], replies: thenEnd(zurich, tokyo) },
  {
    name: 'reasoning, a text and calls',
    needs: ['calls', 'thought'],
    replies: thenEnd(THOUGHT, I_LOOK, zurich, tokyo),
  },
  { name: 'sealed reasoning and a call', needs: ['calls', 'sealed'], replies: thenEnd(SEALED, zurich) },
  {
    name: 'sealed reasoning at each of two steps',
    needs: ['calls', 'sealed'],
    replies: [{ said: [SEALED, zurich], stop: 'calls' }, ...thenEnd({ ...SEALED, sealed: 'c2Vjb25k' }, I_LOOK, tokyo)],
  },
  {
    name: 'texts between calls',
    needs: ['calls', 'between'],
    replies: thenEnd(I_LOOK, zurich, { text: 'Und dort?' }, tokyo),
  },
  {
    name: 'sealed reasoning between calls',
    needs: ['calls', 'between', 'sealed'],
    replies: thenEnd(SEALED, zurich, { thought: 'And there?', sealed: 'c2Vjb25k' }, I_LOOK, tokyo),
  },
];

/** A call without arguments, as the provider sends it. */
function withoutArgs({ noArgs }: Provider): Dialogue[] {
  return noArgs.map((args) => ({
    name: `a call without arguments (${args === '' ? 'nothing' : args})`,
    needs: [],
    replies: thenEnd({ call: 'call_cdefghijk', args }, zurich),
  }));
}

interface Played {
  readonly mine: Ours & { readonly requests: readonly WireRequest[] };
  readonly sdk: Theirs & { readonly requests: readonly WireRequest[] };
}

async function play(provider: Provider, answers: readonly Answer[], stream: boolean, cut: Cut): Promise<Played> {
  const baseURL = 'http://provider.test/v1';
  const [ourWire, theirWire] = [wire(answers, cut), wire(answers, cut)];
  const sdk = await askTheirs(provider.model({ baseURL, fetch: theirWire.fetch }), stream);
  const mine = await askOurs(provider.model({ baseURL, fetch: ourWire.fetch }), stream);
  return { mine: { ...mine, requests: ourWire.requests }, sdk: { ...sdk, requests: theirWire.requests } };
}

/** What a request holds behind the user's question, and the tools that it declares. */
function toldIn({ body }: WireRequest): Json {
  const items = (body['messages'] ?? body['contents'] ?? body['input']) as readonly Json[];
  const asked = items.findIndex((item) => JSON.stringify(item).includes(QUERY));
  return unmarked(
    asJson([
      items.slice(asked + 1),
      body['tools'] ?? (body['toolConfig'] as JsonObject | undefined)?.['tools'] ?? null,
    ]),
  );
}

/** Marks for the provider's cache are no part of what was said. */
function unmarked(value: Json): Json {
  if (Array.isArray(value)) return value.filter((each) => !isCachePoint(each)).map(unmarked);
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([key]) => key !== 'cache_control');
  return Object.fromEntries(kept.map(([key, each]) => [key, unmarked(each as Json)]));
}

function isCachePoint(value: Json): boolean {
  return isJsonObject(value) && value['cachePoint'] !== undefined;
}

const histories = (requests: readonly WireRequest[]): Json => withoutMadeIds(requests.map(toldIn));

function withoutNullArgs(value: Json): Json {
  return JSON.parse(JSON.stringify(value).replaceAll('"arguments":"null"', '"arguments":"{}"')) as Json;
}

function usageOfOurs({ result }: Ours): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens = 0 } = result.usage;
  return { inputTokens, outputTokens, cachedInputTokens, reasoningTokens };
}

function usageOfTheirs({ usage }: Theirs): Json {
  return asJson({
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    cachedInputTokens: usage?.inputTokenDetails.cacheReadTokens ?? 0,
    reasoningTokens: usage?.outputTokenDetails.reasoningTokens ?? 0,
  });
}

/** One piece, or a stream in pieces. */
const FORMS: readonly { readonly form: string; readonly stream: boolean; readonly cut: Cut }[] = [
  { form: 'in one piece', stream: false, cut: whole },
  { form: 'streamed', stream: true, cut: whole },
  { form: 'streamed, cut anywhere', stream: true, cut: anywhere(7) },
];

describe.each(PROVIDERS.map((provider) => [provider.name, provider] as const))('%s', (_, provider) => {
  const has = (needs: readonly Place[]) => needs.every((place) => provider.places.includes(place));
  const dialogues = [...DIALOGUES.filter(({ needs }) => has(needs)), ...withoutArgs(provider)];
  const cases = dialogues.flatMap(({ name, replies }) =>
    FORMS.map((form) => [`${name}, ${form.form}`, replies, form] as const),
  );

  it.each(cases)('%s', async (_name, replies, { stream, cut }) => {
    const answers = replies.map((reply) => answerOf(provider, reply, stream));
    expectSame(await play(provider, answers, stream, cut), replies);
  });

  it('a stream that comes byte by byte', async () => {
    const replies = DIALOGUES.findLast(({ needs }) => has(needs))?.replies ?? [];
    const answers = replies.map((reply) => answerOf(provider, reply, true));
    expectSame(await play(provider, answers, true, byByte), replies);
  });
});

/** What a provider gives in place of a reply, or in the middle of one. */
describe.each(PROVIDERS.map((provider) => [provider.name, provider] as const))('%s', (_, provider) => {
  const cut = anywhere(7);
  const calls = provider.places.includes('calls');
  const end = (stream: boolean) => answerOf(provider, END, stream);

  it.each([false, true])('a request that does not fit (streamed: %s)', async (stream) => {
    const { status, json } = provider.tooLong;
    const before = calls ? [answerOf(provider, CALLING, stream)] : [];
    const { mine, sdk } = await play(provider, [...before, jsonAnswer(json, status)], stream, cut);
    expect(sdk.error).toMatchObject({ statusCode: status });
    expect(mine.result, DIFFERENCES.tooLong).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'context_exhausted' }],
    });
    expect(mine.made).toEqual(calls ? [{ city: 'Zürich' }] : []);
    expect(mine.requests).toHaveLength(sdk.requests.length);
    expect(histories(mine.requests)).toEqual(histories(sdk.requests));
  });

  it.each(calls ? [STORY, zurich] : [STORY])('an error in the stream, in the middle of %j', async (said) => {
    const frames = [...begun(provider, said), provider.failure];
    const broken = { status: 200, mime: provider.mime, body: Buffer.concat(frames) };
    const { mine, sdk } = await play(provider, [broken, end(true)], true, cut);
    if (provider.name !== 'cohere') expect(sdk.error).toBeDefined();
    expect(mine.result, DIFFERENCES.brokenStream).toMatchObject({
      status: 'finished',
      reason: 'goal',
      answer: 'In Zürich the sun ☀️ shines.',
    });
    expect(mine.made).toEqual([]);
    // The tokens of both tries count, those of the first as they are estimated where the provider did not say.
    expect(mine.result.usage.inputTokens).toBeGreaterThan(COUNTS.input);
    const [first, second, ...more] = mine.requests.map(toldIn);
    expect(more).toEqual([]);
    // Cohere tells the failure as the end of a reply: the model is told so. Any other request is made again as it was.
    if (mine.state.steps.length === 0) expect(second).toEqual(first);
  });

  it.each(FORMS)('a text that the output limit cut off, $form', async ({ stream, cut }) => {
    const thought = provider.places.includes('sealed')
      ? [SEALED]
      : provider.places.includes('thought')
        ? [THOUGHT]
        : [];
    const answers = [answerOf(provider, { said: [...thought, STORY], stop: 'length' }, stream), end(stream)];
    const { mine, sdk } = await play(provider, answers, stream, cut);
    expect(sdk).toMatchObject({ text: STORY.text, requests: { length: 1 } });
    expect(mine.result, DIFFERENCES.cutText).toMatchObject({
      reason: 'goal',
      answer: 'Once upon a time there was a cat.In Zürich the sun ☀️ shines.',
    });
    expect(mine.state.steps).toMatchObject([{ partial: 'cut_off', text: STORY.text }]);
    const [first, second, ...more] = mine.requests.map(toldIn);
    expect(more).toEqual([]);
    expect(first).toEqual(sdk.requests[0] && toldIn(sdk.requests[0]));
    const told = JSON.stringify(second);
    // OpenAI keeps what it said, and is given the ids of it.
    const isKept = told.includes('item_reference');
    const said = isKept ? '"msg_1"' : STORY.text;
    expect(told).toContain(said);
    expect(told.indexOf('Your reply has reached the limit')).toBeGreaterThan(told.indexOf(said));
    if (provider.places.includes('sealed') && !isKept) expect(told).toContain(SEALED.sealed);
  });

  it('a text that is cut off again and again', async () => {
    const { mine } = await play(provider, [answerOf(provider, { said: [STORY], stop: 'length' }, false)], false, whole);
    expect(mine.result).toMatchObject({ reason: 'length', answer: STORY.text.repeat(4) });
    expect(mine.requests).toHaveLength(4);
  });

  const { refusal } = provider;
  it.skipIf(refusal === undefined).each(FORMS)('a refusal, $form', async ({ stream, cut }) => {
    const calls = provider.places.includes('calls') ? [zurich] : [];
    const answers = [answerOf(provider, { said: [STORY, ...calls], stop: 'refused' }, stream), end(stream)];
    const { mine } = await play(provider, answers, stream, cut);
    expect(mine.result, DIFFERENCES.refused).toMatchObject({
      status: 'finished',
      reason: 'refused',
      answer: STORY.text,
      metadata: { stop_reason: 'content-filter', refusal: { model: expect.any(String), ...refusal } },
    });
    expect(mine.made).toEqual([]);
    expect(mine.requests).toHaveLength(1);
  });

  it.skipIf(refusal === undefined).each([false, true])(
    'a refusal without a word, and another model (streamed: %s)',
    async (stream) => {
      const answers = [answerOf(provider, { said: [], stop: 'refused' }, stream), end(stream)];
      const { fetch, requests } = wire(answers, cut);
      const models = ['first', 'second'].map((name) => {
        return { name, model: provider.model({ baseURL: 'http://provider.test/v1', fetch }) };
      });
      const mine = await askOurs(models, stream);
      expect(mine.result).toMatchObject({ reason: 'goal', answer: 'In Zürich the sun ☀️ shines.' });
      expect(mine.state.steps).toMatchObject([
        { error: { code: 'reply_refused' }, provenance: { modelName: 'first' } },
      ]);
      const [first, second, ...more] = requests.map(({ body }) => body);
      expect(more).toEqual([]);
      expect(second).toEqual(first);
    },
  );

  it.skipIf(!provider.places.includes('paused')).each(FORMS)(
    'a reply that is paused, $form',
    async ({ stream, cut }) => {
      const found = { search: 'srvtoolu_1', found: 'https://sun.test/' };
      const pause: Saying = { said: [SEALED, STORY, found, { search: 'srvtoolu_2' }], stop: 'paused' };
      const answers = [answerOf(provider, pause, stream), end(stream)];
      const { mine } = await play(provider, answers, stream, cut);
      expect(mine.result, DIFFERENCES.paused).toMatchObject({
        reason: 'goal',
        answer: 'Once upon a time there was a cat.In Zürich the sun ☀️ shines.',
        sources: [{ type: 'url', url: 'https://sun.test/', title: 'Sun' }],
      });
      const [first, second, ...more] = mine.requests;
      expect(more).toEqual([]);
      const before = first?.body['messages'] as readonly Json[];
      const { content } = provider.whole(pause) as never;
      // Marks for the cache aside, the reply goes back as it came, and nothing stands behind it.
      expect(unmarked((second?.body['messages'] as readonly Json[]).slice(before.length))).toEqual([
        { role: 'assistant', content },
      ]);
    },
  );

  it.skipIf(!provider.places.includes('paused'))('a reply that is paused for ever', async () => {
    const pause: Saying = { said: [{ search: 'srvtoolu_1', found: 'https://sun.test/' }], stop: 'paused' };
    const { mine } = await play(provider, [answerOf(provider, pause, false)], false, cut);
    expect(mine.result).toMatchObject({ reason: 'length', metadata: { stop_reason: 'pause' } });
    expect(mine.requests).toHaveLength(17);
  });

  // Google sends a call in one piece, or not at all.
  it.skipIf(!calls || provider.name === 'google')('a call that the output limit cut off', async () => {
    const half: Saying = { said: [I_LOOK, { ...zurich, args: '{"city":"Zür' }], stop: 'length' };
    const { mine } = await play(provider, [answerOf(provider, half, true), end(true)], true, cut);
    expect(mine.result, DIFFERENCES.cutCall).toMatchObject({
      status: 'finished',
      reason: 'goal',
      answer: 'In Zürich the sun ☀️ shines.',
    });
    expect(mine.made).toEqual([]);
    expect(mine.requests).toHaveLength(2);
  });
});

/** The frames of a reply as far as the middle of what is said. */
function begun(provider: Provider, said: Said): readonly Uint8Array[] {
  const frames = provider.frames({ said: [said], stop: 'end' });
  const empty = provider.frames({ said: [], stop: 'end' });
  const before = frames.findIndex((frame, at) => Buffer.compare(frame, empty[at] ?? frame) !== 0);
  return frames.slice(0, before + Math.ceil((frames.length - empty.length) / 2));
}

function expectSame({ mine, sdk }: Played, replies: readonly Saying[]): void {
  expect(sdk.error).toBeUndefined();
  expect(mine.result).toMatchObject({ status: 'finished', reason: 'goal', answer: sdk.text });
  const calls = replies.flatMap(({ said }) => said.filter((part) => 'call' in part));
  expect(mine.made, DIFFERENCES.nullArgs).toEqual(sdk.made.map((args) => args ?? {}));
  expect(mine.made).toHaveLength(calls.length);
  expect(mine.requests).toHaveLength(sdk.requests.length);
  expect(histories(mine.requests), DIFFERENCES.nullArgs).toEqual(withoutNullArgs(histories(sdk.requests)));
  expect(usageOfOurs(mine)).toEqual(usageOfTheirs(sdk));
}
