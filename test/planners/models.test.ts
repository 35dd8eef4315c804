/** Several models for one planner: their order, what becomes of a failure inside a stream, and what is measured. */
import { afterEach, describe, expect, it } from 'vitest';
import type { RunEvent } from '#core';
import { createModelRegistry } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import {
  type OpenAIServer,
  openaiServer,
  type ServerHandler,
  type ServerReply,
  scriptedModel,
  VirtualClock,
} from '#testing';
import { only } from '../kit/events.ts';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { httpError } from '../kit/model.ts';
import { quiet } from '../kit/waiting.ts';
import { start } from '../kit/world.ts';
import {
  bad,
  good,
  named,
  type Played,
  type PlayOptions,
  play,
  playStreamed,
  reactWorld,
  shownTexts,
} from './played.ts';

const DONE = { text: 'done' };
const answer = 'The whole answer, in more than one piece of text.';
/** The server sends twelve characters at a time. */
const SECOND_PIECE = answer.slice(12, 24);
const open: OpenAIServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function served(model: string, script: readonly ServerReply[] | ServerHandler) {
  const server = await openaiServer(script);
  open.push(server);
  return Object.assign(server, { model: openaiCompatible({ baseUrl: server.url, model }) });
}

/** Waits between tries are over at once; a limit of over a minute only when `pass` says so. */
class StallClock extends ImpatientClock {
  readonly #limits = new Set<() => void>();
  #passedMs = 0;

  override now(): number {
    return super.now() + this.#passedMs;
  }

  override after(delayMs: number, wake: () => void): () => void {
    if (delayMs <= 60_000) return super.after(delayMs, wake);
    this.#limits.add(wake);
    return () => this.#limits.delete(wake);
  }

  pass(ms: number): void {
    this.#passedMs += ms;
    for (const wake of [...this.#limits]) wake();
  }
}

/** Streams a run; a server that has gone silent after the second piece of an answer is given up then. */
async function streamed(options: PlayOptions & { readonly stalls: boolean }) {
  const clock = new StallClock();
  const { stalls, ...rest } = options;
  const made = reactWorld({ ...rest, react: { ...rest.react, clock } });
  const run = await start(made);
  const events: RunEvent[] = [];
  for await (const event of run.events()) {
    events.push(event);
    if (!stalls || event.type !== 'token' || event.text !== SECOND_PIECE) continue;
    await quiet();
    clock.pass(200_000);
  }
  return { ...made, run, result: await run.result(), events };
}

/** Model by model, with those that failed and what came of it. */
const fallbacks = (events: readonly RunEvent[]) =>
  only(events, 'model.fallback').map(({ from, to, error }) => [from, to, error.code]);
const modelsOf = ({ steps }: Played) => steps.map(({ provenance }) => provenance?.['model']);

describe('a list of models', () => {
  it('is tried in its order: the second is not asked while the first replies', async () => {
    const first = named('first', [good(), DONE]);
    const second = named('second', []);
    const made = await play({ model: [first, second] });
    expect(made.result).toMatchObject({ reason: 'goal' });
    expect(modelsOf(made)).toEqual(['first']);
    expect(second.calls).toHaveLength(0);
  });

  it('a model that is down is tried as often as asked for, then the next; the next step begins with the first', async () => {
    const first = named('first', [{ error: httpError(503) }, { error: httpError(503) }, DONE]);
    const second = named('second', [good()]);
    const { events, ...made } = await play({ model: [first, second], react: { retries: 1 } });
    first.assertConsumed();
    expect(modelsOf({ events, ...made })).toEqual(['second']);
    expect(fallbacks(events)).toEqual([
      ['first', 'first', 'http_503'],
      ['first', 'second', 'http_503'],
    ]);
    // Both are sent the same.
    expect(second.calls[0]?.prompt).toEqual(first.calls[0]?.prompt);
  });

  it('an error that may not pass is not tried again, nor with the next model', async () => {
    const first = named('first', [{ error: httpError(400) }]);
    const second = named('second', []);
    const { result } = await play({ model: [first, second] });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'planner_failed' } });
    expect([first.calls.length, second.calls.length]).toEqual([1, 0]);
  });

  it('the name of a model is recorded where it is not its id', async () => {
    const model = scriptedModel([good(), DONE]);
    const { steps } = await play({ model: { model, name: 'house' } });
    expect(steps[0]?.provenance).toMatchObject({ model: 'scripted', modelName: 'house' });
  });
});

describe('what a provider warns of', () => {
  const warnings = [
    { type: 'unsupported', feature: 'topK', details: 'It is ignored.' },
    { type: 'deprecated', setting: 'seed', message: 'Leave it out.' },
    { type: 'other', message: 'x'.repeat(600) },
  ] as const;

  it.each([
    ['whole', play],
    ['streamed', playStreamed],
  ] as const)('is told with the step: %s', async (_, run) => {
    const model = scriptedModel([{ ...good(), warnings }, DONE]);
    const { events } = await run({ model });
    expect(only(events, 'model.warned')).toMatchObject([
      {
        model: 'scripted',
        warnings: ['unsupported: topK: It is ignored.', 'deprecated: seed: Leave it out.', 'x'.repeat(500)],
      },
    ]);
  });

  it('is told whatever its form, and fails no reply', async () => {
    const odd = [null, 'a word', { type: 'later', why: 5 }, ...Array.from({ length: 20 }, () => warnings[0])];
    const { result, events } = await play({ model: scriptedModel([{ ...DONE, warnings: odd as never }]) });
    expect(result).toMatchObject({ status: 'finished', answer: 'done' });
    expect(only(events, 'model.warned')[0]?.warnings).toHaveLength(10);
  });
});

describe('a failure inside a stream, over HTTP (bug 14)', () => {
  const failures: readonly [string, ServerReply][] = [
    ['an error first', { errorEvent: { afterEvents: 0, message: 'overloaded' } }],
    ['an error after three pieces', { text: answer, errorEvent: { afterEvents: 4, message: 'overloaded', code: 529 } }],
    ['a connection that breaks', { text: answer, breakAfterEvents: 3 }],
    ['a stall', { text: answer, stallAfterEvents: 3 }],
  ];

  it.each(failures)('the same model again: %s', async (_, failure) => {
    const server = await served('only', [failure, { text: answer }]);
    const { events, result } = await streamed({ model: server.model, stalls: failure.stallAfterEvents !== undefined });
    expect(result).toMatchObject({ reason: 'goal', answer });
    expect(shownTexts(events)).toEqual([answer]);
    const resets = failure.text === undefined ? 0 : 1;
    expect(only(events, 'token.reset')).toHaveLength(resets);
    expect(fallbacks(events).map(([from, to]) => [from, to])).toEqual([['only', 'only']]);
  });

  it.each(failures)('the next model, in the middle of a run: %s', async (_how, failure) => {
    const call = { text: 'I look.', calls: [{ tool: 'search', args: { q: 'x' } }] };
    const first = await served('first', (_, index) => (index === 0 ? call : failure));
    const second = await served('second', [{ text: answer }]);
    const { events, result } = await streamed({
      model: [first.model, second.model],
      react: { retries: 0 },
      stalls: failure.stallAfterEvents !== undefined,
    });
    expect(result).toMatchObject({ reason: 'goal', answer });
    expect(shownTexts(events)).toEqual(['I look.', answer]);
    expect(second.requests[0]?.body.messages).toEqual(first.requests[1]?.body.messages);
    expect(first.openStreams).toBe(0);
  });

  it('an error that may not pass takes back what was shown, and pauses the run after one request', async () => {
    const server = await served('only', [
      { text: answer, errorEvent: { afterEvents: 3, message: 'no credit', code: 402 } },
    ]);
    const { events, result } = await playStreamed({ model: server.model });
    expect(result).toMatchObject({ status: 'paused', pauses: [{ payload: { why: 'key_refused' } }] });
    expect(shownTexts(events)).toEqual(['']);
    expect(server.requests).toHaveLength(1);
  });

  it('offsets begin anew after a reset, so that a reader sees gaps', async () => {
    const server = await served('only', [{ text: answer, breakAfterEvents: 3 }, { text: answer }]);
    const { events } = await playStreamed({ model: server.model });
    let length = 0;
    for (const event of events) {
      if (event.type === 'token.reset') length = 0;
      if (event.type !== 'token') continue;
      expect(event.offset).toBe(length);
      length += event.text.length;
    }
    expect(length).toBe(answer.length);
  });
});

describe('a registry', () => {
  const clock = new VirtualClock();

  it('AG-15 is asked in the order of its measures, and each call is recorded', async () => {
    const first = named('first', [good(), DONE]);
    const second = named('second', [good(), DONE]);
    const registry = createModelRegistry([first, second], { clock });
    for (let count = 0; count < 5; count += 1) registry.record('first', { succeeded: false });
    const { result } = await play({ model: registry });
    expect(result).toMatchObject({ reason: 'goal' });
    expect([first.calls.length, second.calls.length]).toEqual([0, 2]);
    expect(registry.measures('second')).toMatchObject({ calls: 2 });
    expect(registry.export()['second']).toMatchObject([
      { parsed: true, valid: true, succeeded: true },
      { parsed: true, valid: true, succeeded: true },
    ]);
  });

  it('what a reply was worth is recorded: read, valid, or neither', async () => {
    const model = named('only', [{}, { calls: [{ tool: 'search', input: 'no json' }] }, DONE]);
    const registry = createModelRegistry([model], { clock });
    await play({ model: registry });
    expect(registry.export()['only']?.map(({ parsed, valid, succeeded }) => [parsed, valid, succeeded])).toEqual([
      [false, undefined, false],
      [true, false, false],
      [true, true, true],
    ]);
  });

  it('each model has its tries, although their ranks change with every faulty reply', async () => {
    const first = named('first', [1, 2, 3].map(bad));
    const second = named('second', [4, 5, 6].map(bad));
    const made = await play({ model: createModelRegistry([first, second], { clock }) });
    expect(made.result).toMatchObject({ reason: 'no_path', metadata: { repair_attempts: 6 } });
    expect(modelsOf(made)).toEqual(['first', 'first', 'first', 'second', 'second', 'second']);
  });

  it('the second model of a registry saves a run that the first has given up', async () => {
    const first = named('first', () => ({}));
    const second = named('second', [DONE]);
    const made = await play({ model: createModelRegistry([first, second], { clock }) });
    expect(made.result).toMatchObject({ reason: 'goal' });
    expect(first.calls).toHaveLength(3);
  });

  it('a model that was down is recorded as such, and comes later in the next run', async () => {
    const first = named('first', () => ({ error: httpError(503) }));
    const second = named('second', () => DONE);
    const registry = createModelRegistry([first, second], { clock });
    await play({ model: registry, react: { retries: 0 } });
    expect(registry.measures('first').calls).toBe(1);
    await play({ model: registry, react: { retries: 0 } });
    expect([first.calls.length, second.calls.length]).toEqual([1, 2]);
  });
});
