import { getEventListeners } from 'node:events';
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { MockLanguageModelV4 } from 'ai/test';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Clock, PilotageError } from '#core';
import { askModel, streamModel } from '#model';
import { type ScriptedReply, scriptedModel, VirtualClock } from '#testing';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { askOptions, drain, httpError, request, shown } from '../kit/model.ts';
import { quiet } from '../kit/waiting.ts';

const TEXT = 'a reply that is longer than one piece of twelve';
const busy: ScriptedReply = { error: httpError(503), errorAt: 'call' };
const reset = { type: 'reset' };

/** Both ways to ask give the same. */
const WAYS: Record<string, (options: Parameters<typeof askModel>[0]) => ReturnType<typeof askModel>> = {
  plain: askModel,
  streamed: async (options) => (await drain(streamModel(options))).value,
};

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.fail('It did not fail.'),
    (error: unknown) => error,
  );
}

describe.each(Object.entries(WAYS))('asking a model, %s', (_, ask) => {
  it('gives the reply, its model, what it cost and how long it took', async () => {
    const model = scriptedModel([{ text: TEXT, usage: { inputTokens: 1000, outputTokens: 10 } }]);
    const entry = { model, name: 'cheap', prices: { input: 1, output: 2 } };
    const asked = await ask(askOptions([entry], new VirtualClock()));
    expect(asked).toMatchObject({
      reply: { text: TEXT, finish: 'stop' },
      model: { name: 'cheap' },
      remarks: [],
      usage: { inputTokens: 1000, outputTokens: 10, costMicroUsd: 1020 },
      latencyMs: 0,
    });
  });

  it('RA-02 throws a plain error as it is, after one call', async () => {
    const error = new Error('503 overloaded, rate limit, try again later, ECONNRESET');
    const model = scriptedModel([{ error, errorAt: 'call' }]);
    const other = scriptedModel([]);
    const clock = new VirtualClock();
    expect(await failureOf(ask(askOptions([model, { model: other, name: 'other' }], clock)))).toBe(error);
    expect([model.calls.length, other.calls.length, clock.pending]).toEqual([1, 0, 0]);
  });

  it('throws an error that is the fault of the request as it is, after one call', async () => {
    const error = httpError(400);
    const model = scriptedModel([{ error, errorAt: 'call' }]);
    expect(await failureOf(ask(askOptions([model], new ImpatientClock())))).toBe(error);
    expect(model.calls.length).toBe(1);
  });

  it('tries one model again, then the next, and tells of each failed try', async () => {
    const first = scriptedModel([busy, busy]);
    const second = scriptedModel([{ error: httpError(429), errorAt: 'call' }, { text: TEXT }]);
    const clock = new ImpatientClock();
    const models = [
      { model: first, name: 'first' },
      { model: second, name: 'second' },
    ];
    const asked = await ask(askOptions(models, clock, { retries: 1, random: () => 0.5 }));
    expect(asked.reply.text).toBe(TEXT);
    expect(asked.model.name).toBe('second');
    const down = { code: 'http_503', message: 'status 503' };
    expect(asked.remarks).toEqual([
      { type: 'model.fallback', from: 'first', to: 'first', error: down },
      { type: 'model.fallback', from: 'first', to: 'second', error: down },
      { type: 'model.fallback', from: 'second', to: 'second', error: { code: 'http_429', message: 'status 429' } },
    ]);
    expect([first.calls.length, second.calls.length]).toEqual([2, 2]);
  });

  it('makes the request once for each model', async () => {
    const made: string[] = [];
    const native = scriptedModel([busy, busy, busy], { modelId: 'native' });
    const text = scriptedModel([{ text: TEXT }], { modelId: 'text' });
    const models = [native, { model: text, toolCalls: 'text' as const }];
    await ask(
      askOptions(models, new ImpatientClock(), {
        requestFor: ({ name, toolCalls }) => {
          made.push(`${name} ${toolCalls}`);
          return toolCalls === 'text' ? request : { ...request, temperature: 1 };
        },
      }),
    );
    expect(made).toEqual(['native native', 'text text']);
    expect(native.calls.map((call) => call.temperature)).toEqual([1, 1, 1]);
    expect(text.calls[0]?.temperature).toBeUndefined();
  });

  it('waits with full jitter below 500 ms, doubled each time up to 8 s, and not before another model', async () => {
    const broken = scriptedModel(() => busy);
    const clock = new ImpatientClock();
    const models = [broken, { model: scriptedModel([{ text: TEXT }]), name: 'other' }];
    await ask(askOptions(models, clock, { retries: 6, random: () => 0.5 }));
    expect(clock.waits).toEqual([250, 500, 1000, 2000, 4000, 4000]);
  });

  it.each([
    ['seconds', { 'retry-after': '2' }, 2000],
    ['a date', { 'Retry-After': 'Thu, 01 Jan 2026 00:00:01 GMT' }, 1000],
    ['milliseconds', { 'retry-after-ms': '1234', 'retry-after': '7' }, 1234],
    ['less than its own wait', { 'retry-after': '0' }, 250],
    ['nonsense', { 'retry-after': 'soon' }, 250],
  ])('waits as long as the provider asks for: %s', async (_name, headers, waited) => {
    const model = scriptedModel([{ error: httpError(429, headers), errorAt: 'call' }, { text: TEXT }]);
    const clock = new ImpatientClock();
    await ask(askOptions([model], clock, { random: () => 0.5 }));
    expect(clock.waits).toEqual([waited]);
  });

  it('leaves a longer wait to whoever asks: the next model is asked, or the error says how long', async () => {
    const slow = (seconds: string) =>
      scriptedModel([{ error: httpError(429, { 'retry-after': seconds }), errorAt: 'call' }]);
    const clock = new ImpatientClock();
    const models = [
      { model: slow('3600'), name: 'first' },
      { model: slow('7'), name: 'second' },
    ];
    expect(await failureOf(ask(askOptions(models, clock)))).toMatchObject({
      data: { why: 'away', retryAfterMs: 7000 },
    });
    expect(clock.waits).toEqual([]);
  });

  it.each([
    [401, 'key_refused'],
    [404, 'model_unknown'],
    [405, 'model_unknown'],
    [304, 'model_unknown'],
  ])('of a refusal that no wait mends, says why after one call of each model: %i', async (status, why) => {
    const models = ['first', 'second'].map((name) => {
      return { model: scriptedModel([{ error: httpError(status), errorAt: 'call' }]), name };
    });
    const error = await failureOf(ask(askOptions(models, new ImpatientClock())));
    expect(error).toMatchObject({ code: 'model_unavailable', data: { why } });
    expect(models.map(({ model }) => model.calls.length)).toEqual([1, 1]);
  });

  it('throws model_unavailable when every try has failed, with all of them and the last as its cause', async () => {
    const last = Object.assign(new Error('fetch failed'), {
      cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }),
    });
    const models = [
      { model: scriptedModel([busy]), name: 'first' },
      { model: scriptedModel([{ error: last, errorAt: 'call' }]), name: 'second' },
    ];
    const error = await failureOf(ask(askOptions(models, new ImpatientClock(), { retries: 0 })));
    expect(PilotageError.is(error, 'model_unavailable') && error.cause).toBe(last);
    expect(error).toMatchObject({
      message: 'No model replied in 2 tries; the last failure, of second, was ECONNRESET: fetch failed',
      data: {
        tries: [
          { model: 'first', code: 'http_503', message: 'status 503' },
          { model: 'second', code: 'ECONNRESET', message: 'fetch failed' },
        ],
      },
    });
  });

  it('throws the reason of a signal that is aborted already, without a call', async () => {
    const reason = new Error('stop');
    const model = scriptedModel([]);
    const options = askOptions([model], new VirtualClock(), { signal: AbortSignal.abort(reason) });
    expect(await failureOf(ask(options))).toBe(reason);
    expect(model.calls.length).toBe(0);
  });

  it('RP-12 an abort between tries ends the asking at once and leaves no timer behind', async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const model = scriptedModel([busy]);
    const failed = failureOf(ask(askOptions([model], clock, { signal: controller.signal, random: () => 0.5 })));
    await quiet();
    expect([model.calls.length, clock.pending]).toEqual([1, 1]);
    const reason = new Error('stop');
    controller.abort(reason);
    expect(await failed).toBe(reason);
    expect([model.calls.length, clock.pending]).toEqual([1, 0]);
  });

  it('the next try begins when the wait is over, and not before', async () => {
    const clock = new VirtualClock();
    const model = scriptedModel([busy, { text: TEXT }]);
    const asked = ask(askOptions([model], clock, { random: () => 0.5 }));
    await quiet();
    clock.advance(249);
    expect([model.calls.length, clock.pending]).toEqual([1, 1]);
    clock.advance(1);
    expect((await asked).reply.text).toBe(TEXT);
    expect(clock.pending).toBe(0);
  });

  it('the throw of an abort that the provider makes an error of its own is the reason of the signal', async () => {
    const controller = new AbortController();
    const reason = new Error('stop');
    const model = scriptedModel(() => {
      controller.abort(reason);
      return { error: new Error('socket closed'), errorAt: 'call' };
    });
    expect(await failureOf(ask(askOptions([model], new VirtualClock(), { signal: controller.signal })))).toBe(reason);
  });

  it.each([undefined, 5000])('leaves no listener and no timer behind, with a limit of %s ms', async (stallMs) => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    const limit = stallMs === undefined ? {} : { stallMs };
    const model = scriptedModel([busy, { text: TEXT }]);
    await ask(askOptions([model], clock, { signal, random: () => 0, ...limit }));
    expect([getEventListeners(signal, 'abort').length, clock.pending]).toEqual([0, 0]);
    expect(model.calls.at(-1)?.abortSignal?.aborted).toBe(false);
  });

  it('refuses an empty list of models', async () => {
    expect(await failureOf(ask(askOptions([], new VirtualClock())))).toMatchObject({ code: 'invalid_config' });
  });
});

describe.each([-3_600_000, 3_600_000])('while somebody sets the clock by %i ms', (setMs) => {
  function settable(): { readonly clock: Clock; readonly timers: VirtualClock; set(): void } {
    const timers = new VirtualClock();
    let aheadMs = 0;
    const after = (delayMs: number, wake: () => void): (() => void) => timers.after(delayMs, wake);
    const clock = { now: () => timers.now() + aheadMs, steady: () => timers.now(), after };
    return { clock, timers, set: () => (aheadMs = setMs) };
  }

  it('the wait before the next try is as long as it was to be, and so is the latency', async () => {
    const { clock, timers, set } = settable();
    const model = scriptedModel([{ error: httpError(503, { 'retry-after': '2' }), errorAt: 'call' }, { text: TEXT }]);
    const asked = askModel(askOptions([model], clock, { random: () => 0 }));
    await quiet();
    set();
    timers.advance(1_999);
    await quiet();
    expect(model.calls).toHaveLength(1);
    timers.advance(1);
    expect(await asked).toMatchObject({ reply: { text: TEXT }, latencyMs: 0 });
    expect(timers.pending).toBe(0);
  });

  it('a model may be silent for as long as it may, and no longer', async () => {
    const { clock, timers, set } = settable();
    const model = scriptedModel([{ stall: true }]);
    const failed = failureOf(askModel(askOptions([model], clock, { stallMs: 5_000, retries: 0 })));
    await quiet();
    timers.advance(1_000);
    set();
    timers.advance(3_999);
    await quiet();
    expect(model.calls[0]?.abortSignal?.aborted).toBe(false);
    timers.advance(1);
    expect(await failed).toMatchObject({ data: { tries: [{ code: 'model_stalled' }] } });
  });
});

describe('a plain call', () => {
  it('may be silent as long as its model may take, and ends with its signal', async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const silent = scriptedModel([{ stall: true }]);
    const failed = failureOf(askModel(askOptions([silent], clock, { signal: controller.signal })));
    await quiet();
    expect([silent.calls.length, clock.pending]).toEqual([1, 1]);
    controller.abort(new Error('stop'));
    expect(await failed).toMatchObject({ message: 'stop' });
  });

  it('that takes longer than stallMs is aborted and tried again', async () => {
    const clock = new VirtualClock();
    const model = scriptedModel([{ stall: true }, { text: TEXT }]);
    const asked = askModel(askOptions([model], clock, { stallMs: 5000, random: () => 0 }));
    await quiet();
    clock.advance(5000);
    expect(await asked).toMatchObject({
      reply: { text: TEXT },
      remarks: [{ error: { code: 'model_stalled', message: 'The model said nothing for 5000 ms.' } }],
    });
    expect(model.calls.map((call) => call.abortSignal?.aborted)).toEqual([true, false]);
    expect(clock.pending).toBe(0);
  });

  it('that heeds no signal is left at once when stallMs is given', async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const deaf = new MockLanguageModelV4({ doGenerate: () => new Promise(() => {}) });
    const failed = failureOf(askModel(askOptions([deaf], clock, { stallMs: 5000, signal: controller.signal })));
    await quiet();
    const reason = new Error('stop');
    controller.abort(reason);
    expect(await failed).toBe(reason);
    expect(clock.pending).toBe(0);
  });
});

describe('bug 14: a failure inside a 200 stream', () => {
  const good: ScriptedReply = { text: TEXT };
  const overloaded = { message: 'Overloaded', type: 'overloaded_error' };

  it.each<[string, ScriptedReply, number]>([
    ['an error first', { error: overloaded }, 0],
    ['an error after three tokens', { text: TEXT, error: overloaded, afterDeltas: 3 }, 3],
    ['reading throws first', { error: new TypeError('terminated'), errorAt: 'read' }, 0],
    ['reading throws after three tokens', { text: TEXT, error: new Error('x'), errorAt: 'read', afterDeltas: 3 }, 3],
    ['it ends with nothing said', { cutOff: true }, 0],
    ['it ends after a thought', { reasoning: 'hm', cutOff: true }, 1],
  ])('%s: a clean reset, never doubled text', async (_, failing, told) => {
    const model = scriptedModel([failing, failing, good]);
    const { deltas, value } = await drain(streamModel(askOptions([model], new ImpatientClock())));
    expect(value.reply.text).toBe(TEXT);
    expect(value.remarks.length).toBe(2);
    expect(shown(deltas)).toBe(TEXT);
    const tail = (await drain(streamModel(askOptions([scriptedModel([good])], new VirtualClock())))).deltas;
    expect(deltas.length).toBe(2 * (told === 0 ? 0 : told + 1) + tail.length);
    expect(deltas.slice(-tail.length - (told === 0 ? 0 : 1))).toEqual(told === 0 ? tail : [reset, ...tail]);
  });

  it.each([0, 3])('a stall after %i tokens is given up and tried again', async (afterDeltas) => {
    const clock = new VirtualClock();
    const model = scriptedModel([{ text: TEXT, stall: true, afterDeltas }, good]);
    const drained = drain(streamModel(askOptions([model], clock, { random: () => 0 })));
    await quiet();
    clock.advance(119_999);
    await quiet();
    expect(model.calls.length).toBe(1);
    clock.advance(1);
    const { deltas, value } = await drained;
    expect(value.reply.text).toBe(TEXT);
    expect(value.remarks).toMatchObject([{ type: 'model.fallback', error: { code: 'model_stalled' } }]);
    expect(shown(deltas)).toBe(TEXT);
    expect(deltas.filter((delta) => delta.type === 'reset').length).toBe(afterDeltas === 0 ? 0 : 1);
    expect(model.calls.map((call) => call.abortSignal?.aborted)).toEqual([true, false]);
    expect(clock.pending).toBe(0);
  });

  it('the silence is counted from the last part, not from the first', async () => {
    const clock = new VirtualClock();
    let say: ((part: LanguageModelV4StreamPart) => void) | undefined;
    const model = new MockLanguageModelV4({
      doStream: async () => ({
        stream: new ReadableStream({
          start(controller) {
            say = (part) => controller.enqueue(part);
          },
        }),
      }),
    });
    const stream = streamModel(askOptions([model], clock, { stallMs: 1000, retries: 0 }));
    for (const delta of ['one', 'two', 'three']) {
      const next = stream.next();
      await quiet();
      clock.advance(900);
      say?.({ type: 'text-delta', id: '0', delta });
      expect(await next).toEqual({ done: false, value: { type: 'text', text: delta } });
    }
    const failed = failureOf(stream.next());
    clock.advance(1000);
    expect(await failed).toMatchObject({ code: 'model_unavailable', data: { tries: [{ code: 'model_stalled' }] } });
    expect(clock.pending).toBe(0);
  });

  it('the time that the consumer takes is no stall', async () => {
    const clock = new VirtualClock();
    const model = scriptedModel([good]);
    const stream = streamModel(askOptions([model], clock));
    const deltas = [];
    for (;;) {
      const next = await stream.next();
      if (next.done === true) {
        expect(next.value.remarks).toEqual([]);
        break;
      }
      deltas.push(next.value);
      clock.advance(500_000);
    }
    expect(shown(deltas)).toBe(TEXT);
  });

  it('a model that heeds no signal is left all the same, and a stream that it opens later is cancelled', async () => {
    const clock = new VirtualClock();
    let open: ((result: { stream: ReadableStream<LanguageModelV4StreamPart> }) => void) | undefined;
    const deaf = new MockLanguageModelV4({
      doStream: () =>
        new Promise((resolve) => {
          open = resolve;
        }),
    });
    const models = [deaf, { model: scriptedModel([good]), name: 'other' }];
    const drained = drain(streamModel(askOptions(models, clock, { retries: 0, stallMs: 1000 })));
    await quiet();
    clock.advance(1000);
    expect((await drained).value.model.name).toBe('other');
    let cancelled = false;
    open?.({
      stream: new ReadableStream({
        cancel() {
          cancelled = true;
        },
      }),
    });
    await quiet();
    expect(cancelled).toBe(true);
  });

  it.each([
    ['a flag', { message: 'no', isRetryable: false }],
    ['a status', { message: 'no', statusCode: 400 }],
    ["a gateway's code", { message: 'no', code: 422 }],
  ])('an error that says otherwise, by %s, is thrown without a reset, with what was used', async (_, error) => {
    const model = scriptedModel([{ text: TEXT, error, afterDeltas: 2 }]);
    const stream = streamModel(askOptions([model], new VirtualClock()));
    const first = [await stream.next(), await stream.next()].map((next) => next.value);
    expect(first.map((delta) => 'type' in delta && delta.type)).toEqual(['text', 'text']);
    const failure = await failureOf(stream.next());
    expect(failure).toMatchObject({ message: 'no', data: { usage: { inputTokens: 6, estimated: true } } });
    expect(failure).toMatchObject({ cause: { cause: error } });
    expect(model.calls.length).toBe(1);
  });

  it('the flag of an error with the status of the stream itself says nothing', async () => {
    const error = Object.assign(new Error('Failed to process successful response'), {
      statusCode: 200,
      isRetryable: false,
    });
    const model = scriptedModel([{ error, errorAt: 'read' }, good]);
    const { value } = await drain(streamModel(askOptions([model], new ImpatientClock())));
    expect(value.remarks).toMatchObject([{ error: { code: 'model_error' } }]);
  });

  it('a reply that was cut off after something was said stays one, interrupted', async () => {
    const model = scriptedModel([{ text: TEXT, cutOff: true, afterDeltas: 2 }]);
    const { deltas, value } = await drain(streamModel(askOptions([model], new VirtualClock())));
    expect(value.reply).toMatchObject({ finish: 'interrupted', text: shown(deltas) });
    expect(value.remarks).toEqual([]);
  });

  it('what fails after the finish part does not undo the reply', async () => {
    const finish: LanguageModelV4StreamPart = {
      type: 'finish',
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: {
        inputTokens: { total: 7, noCache: 7, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 3, text: 3, reasoning: 0 },
      },
    };
    const parts: LanguageModelV4StreamPart[] = [{ type: 'text-delta', id: '0', delta: TEXT }, finish];
    const model = new MockLanguageModelV4({
      doStream: async () => ({
        stream: new ReadableStream({
          pull(controller) {
            const part = parts.shift();
            if (part === undefined) throw new Error('reset by peer');
            controller.enqueue(part);
          },
        }),
      }),
    });
    const { deltas, value } = await drain(streamModel(askOptions([model], new VirtualClock())));
    expect(value).toMatchObject({ reply: { text: TEXT, finish: 'stop' }, usage: { inputTokens: 7 }, remarks: [] });
    expect(shown(deltas)).toBe(TEXT);
  });

  it('what a failed try used counts, priced by its own model', async () => {
    const nothing: ScriptedReply = { finish: 'interrupted', usage: { inputTokens: 100 } };
    const models = [
      { model: scriptedModel([nothing]), name: 'dear', prices: { input: 10, output: 0 } },
      { model: scriptedModel([{ ...good, usage: { inputTokens: 100, outputTokens: 1 } }]), name: 'unpriced' },
    ];
    const { value } = await drain(streamModel(askOptions(models, new VirtualClock(), { retries: 0 })));
    expect(value.usage).toEqual({ inputTokens: 200, outputTokens: 1, costMicroUsd: 1000 });
    expect(value.reply.usage).toEqual({ inputTokens: 100, outputTokens: 1 });
  });
});

describe('leaving a stream', () => {
  function endless(): { model: LanguageModelV4; state: { cancelled: boolean; signal: AbortSignal | undefined } } {
    const state: { cancelled: boolean; signal: AbortSignal | undefined } = { cancelled: false, signal: undefined };
    const model = new MockLanguageModelV4({
      doStream: async ({ abortSignal }) => {
        state.signal = abortSignal;
        let count = 0;
        return {
          stream: new ReadableStream({
            pull(controller) {
              count += 1;
              if (count < 3) controller.enqueue({ type: 'text-delta', id: '0', delta: 'on ' });
            },
            cancel() {
              state.cancelled = true;
            },
          }),
        };
      },
    });
    return { model, state };
  }

  it('an abort ends a wait at once: the reason is thrown, with what was used, the stream cancelled, its signal fired', async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const { model, state } = endless();
    const failed = failureOf(drain(streamModel(askOptions([model], clock, { signal: controller.signal }))));
    await quiet();
    const reason = new Error('stop');
    controller.abort(reason);
    expect(await failed).toMatchObject({ code: 'cancelled', cause: reason, data: { usage: { estimated: true } } });
    expect([state.cancelled, state.signal?.reason, clock.pending]).toEqual([true, reason, 0]);
  });

  it('a consumer that stops cancels the stream and fires its signal', async () => {
    const clock = new VirtualClock();
    const { model, state } = endless();
    for await (const delta of streamModel(askOptions([model], clock))) {
      expect(delta).toEqual({ type: 'text', text: 'on ' });
      break;
    }
    expect([state.cancelled, state.signal?.aborted, clock.pending]).toEqual([true, true, 0]);
  });

  it('what the consumer throws in is no failure of the model', async () => {
    const model = scriptedModel([{ text: TEXT }]);
    const stream = streamModel(askOptions([model], new VirtualClock()));
    await stream.next();
    const error = httpError(503);
    expect(await failureOf(stream.throw(error))).toBe(error);
    expect(model.calls.length).toBe(1);
  });
});

describe('any row of failures', () => {
  const failing = fc.record({
    text: fc.string({ maxLength: 60 }),
    afterDeltas: fc.nat(6),
    how: fc.constantFrom('part' as const, 'read' as const, 'call' as const),
  });

  it('shows exactly the text of the reply, with one reset for each try that had shown something', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(failing, { maxLength: 6 }),
        fc.string({ minLength: 1, maxLength: 60 }),
        async (row, text) => {
          const script = row.map(
            ({ how, ...rest }): ScriptedReply => ({ ...rest, error: httpError(500), errorAt: how }),
          );
          const model = scriptedModel([...script, { text }]);
          const { deltas, value } = await drain(
            streamModel(askOptions([model], new ImpatientClock(), { retries: row.length })),
          );
          const showing = row.filter((each) => each.how !== 'call' && each.afterDeltas > 0 && each.text !== '').length;
          expect(shown(deltas)).toBe(text);
          expect(value.reply.text).toBe(text);
          expect(value.remarks.length).toBe(row.length);
          expect(deltas.filter((delta) => delta.type === 'reset').length).toBe(showing);
        },
      ),
      { numRuns: 200 },
    );
  });
});
