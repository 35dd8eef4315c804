/** Long runs: the first steps become a summary, and nothing else changes. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { local, type Summary } from '#core';
import { estimateTokens } from '#model';
import type { CompactionOptions, ReactOptions } from '#planners/react';
import type { ReplyFunction, ScriptedModel, ScriptedReply } from '#testing';
import { type Tool, tool } from '#tools';
import { collect, only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { httpError } from '../kit/model.ts';
import { entriesOf } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start } from '../kit/world.ts';
import {
  chatFaults,
  input,
  named,
  type PlayOptions,
  play,
  type Replies,
  reactWorld,
  shownTexts,
  system,
  wordsOf,
} from './played.ts';

/** About a thousand tokens, and which page it is. */
const page: Tool = tool({
  name: 'page',
  description: 'Reads a page.',
  effect: 'read',
  inputSchema: input,
  execute: ({ q }) => `page ${String(q)} ${'word '.repeat(800)}`,
});
const DONE: ScriptedReply = { text: 'done' };
const pages = (...numbers: readonly number[]): ScriptedReply => ({
  calls: numbers.map((number) => ({ tool: 'page', args: { q: `${number}` } })),
});
/** Reads so many pages, one a step, and is done. */
const reader =
  (count: number): ReplyFunction =>
  (_, index) =>
    index < count ? pages(index) : DONE;

function summaryOf(index: number): Summary {
  return {
    goals: ['read'],
    facts: [`fact ${index}`],
    pending: ['more'],
    lastOutputDigest: `digest ${index}`,
    note: '',
  };
}
const summariserOf = (
  reply: ReplyFunction = (_, index) => ({ text: JSON.stringify(summaryOf(index)) }),
): ScriptedModel => named('summariser', reply);

interface Given extends Partial<Omit<PlayOptions, 'model'>> {
  readonly script: ReplyFunction | Replies;
  readonly compaction?: Partial<CompactionOptions>;
  readonly toolCalls?: 'native' | 'text';
  readonly contextTokens?: number;
}

function setUp({ script, compaction, toolCalls = 'native', contextTokens, ...more }: Given) {
  const model = named('worker', script);
  const summariser = summariserOf();
  const entry = { model, toolCalls, ...(contextTokens === undefined ? {} : { contextTokens }) };
  const react: Omit<ReactOptions, 'model'> = {
    compaction: { budgetTokens: 3_600, summariser, ...compaction },
    retries: 0,
    ...more.react,
  };
  return {
    model,
    summariser,
    options: { tools: [page], patienceMs: 0, ...more, model: entry, react } satisfies PlayOptions,
  };
}

async function played(given: Given) {
  const { model, summariser, options } = setUp(given);
  const made = await play(options);
  expect(chatFaults(model, summariser)).toEqual([]);
  const compacted = await entriesOf(made.journal, made.run, 'compacted');
  return { ...made, model, summariser, compacted, requests: model.calls };
}

/** The pages whose text is in a request, in order. */
function pagesIn({ prompt }: Pick<LanguageModelV4CallOptions, 'prompt'>): number[] {
  const words = prompt.map(wordsOf).join('\n');
  return [...words.matchAll(/page (\d+) word/g)].map((match) => Number(match[1]));
}
const from = (first: number, end: number): number[] => Array.from({ length: end - first }, (_, index) => first + index);
const summariesIn = (request: LanguageModelV4CallOptions): string[] =>
  request.prompt.map(wordsOf).filter((words) => words.includes('<summary_of_earlier_steps>'));

describe('when the request is short enough', () => {
  it('CP-02 nothing is summed up, and nothing is told', async () => {
    const { summariser, events, requests } = await played({ script: reader(2) });
    expect(summariser.calls).toHaveLength(0);
    expect(events.filter(({ type }) => type.startsWith('trajectory.'))).toEqual([]);
    expect(pagesIn(requests[2] ?? { prompt: [] })).toEqual([0, 1]);
  });

  it('CP-02 nor without a budget, however long it is', async () => {
    const model = named('worker', reader(12));
    const { events } = await play({ model, tools: [page] });
    expect(pagesIn(model.calls.at(-1) ?? { prompt: [] })).toEqual(from(0, 12));
    expect(events.filter(({ type }) => type.startsWith('trajectory.'))).toEqual([]);
  });

  it('CP-16 a result of 1 MB counts as its stub', async () => {
    const huge = make('page', () => ['x'.repeat(1_000_000)]);
    const { summariser, requests, events } = await played({
      script: reader(2),
      tools: [huge],
      compaction: { budgetTokens: 20_000 },
    });
    expect(summariser.calls).toHaveLength(0);
    expect(requests).toHaveLength(3);
    expect(only(events, 'planner.finish')).toMatchObject([{ reason: 'goal' }]);
  });

  it('CP-16 the system prompt and the tools count', async () => {
    const { compacted } = await played({ script: reader(2), react: { guidance: 'word '.repeat(1_500) } });
    expect(compacted).toHaveLength(1);
    const described = { ...page, description: 'word '.repeat(1_500) };
    expect((await played({ script: reader(2), tools: [described] })).compacted).toHaveLength(1);
  });
});

describe.each(['native', 'text'] as const)('when it is too long, with %s calls', (toolCalls) => {
  const written = (script: ReplyFunction): ReplyFunction => {
    if (toolCalls === 'native') return script;
    return (request, index) => {
      const { calls, ...reply } = script(request, index);
      return calls === undefined ? reply : { text: `\`\`\`json\n${JSON.stringify(calls)}\n\`\`\`` };
    };
  };

  it('CP-03, CP-11, CP-12, CP-14 the summary stands after the request, and the steps after it in full', async () => {
    const { requests, compacted, events, summariser } = await played({ script: written(reader(10)), toolCalls });
    expect(compacted.length).toBeGreaterThan(1);
    for (const [index, request] of requests.entries()) {
      const last = compacted.findLast(({ step }) => step <= index);
      expect(pagesIn(request)).toEqual(from(last?.before ?? 0, index));
      const [shown, ...more] = summariesIn(request);
      expect(more).toEqual([]);
      expect(shown === undefined).toBe(last === undefined);
      if (last === undefined) continue;
      expect(wordsOf(request.prompt[1])).toBe(toolCalls === 'text' ? '<user_message>\nq\n</user_message>' : 'q');
      expect(wordsOf(request.prompt[2])).toBe(shown);
      for (const part of Object.values(last.summary).flat()) expect(shown).toContain(part);
    }
    for (const [index, event] of only(events, 'trajectory.compressed').entries()) {
      const { step, tokenEstimate } = compacted[index] ?? { step: -1, tokenEstimate: -1 };
      expect(event).toMatchObject({ stepsBefore: step, stepsAfter: step, tokenEstimate });
      expect(tokenEstimate).toBeGreaterThan(3_500);
    }
    expect(summariser.calls).toHaveLength(compacted.length);
  });

  it('CP-15 three times: each time the older summary is folded in, and each covers more', async () => {
    const { compacted, summariser, requests } = await played({ script: written(reader(9)), toolCalls });
    expect(compacted.length).toBeGreaterThanOrEqual(3);
    for (const [index, { before, summary }] of compacted.entries()) {
      expect(summary).toEqual(summaryOf(index));
      const asked = summariser.calls[index] ?? { prompt: [] };
      // Only what the older one does not cover.
      expect(pagesIn(asked)).toEqual(from(compacted[index - 1]?.before ?? 0, before));
      const words = asked.prompt.map(wordsOf).join('\n');
      expect(words.includes('<earlier_summary>')).toBe(index > 0);
      if (index > 0) expect(words).toContain(JSON.stringify(summaryOf(index - 1)));
    }
    expect(summariesIn(requests.at(-1) ?? { prompt: [] })[0]).toContain(`fact ${compacted.length - 1}`);
    expect(summariesIn(requests.at(-1) ?? { prompt: [] })[0]).not.toContain('fact 0"');
  });

  it('CP-18 (bug 2) calls cut off by a stop, then two compactions: no call and no result is left alone', async () => {
    const path = temporaryFile();
    let isHanging = true;
    const hang: Tool = make('hang', () => (isHanging ? new Promise(() => {}) : 'came back'), {
      effect: 'once',
      inDoubt: 'tell',
      timeoutMs: 60_000,
    });
    const script = written((_, index) => {
      if (index === 1)
        return { calls: [...(pages(1).calls ?? []), { tool: 'hang', args: {} }, ...(pages(101).calls ?? [])] };
      return index < 9 ? pages(index) : DONE;
    });
    const first = setUp({ script, toolCalls, tools: [page, hang], journal: openJournal(path) });
    const before = reactWorld(first.options);
    const run = await start(before);
    await until(async () => (await entriesOf(before.journal, run, 'call_ended')).length === 3);
    isHanging = false;
    const closed = before.runtime.close();
    await until(() => before.clock.pending > 0);
    before.clock.advance(60_000);
    await closed;

    const rest = setUp({
      script: (request, index) => script(request, index + 2),
      toolCalls,
      tools: [page, hang],
      journal: openJournal(path),
    });
    const after = reactWorld(rest.options);
    const resumed = after.runtime.run(run.id);
    await resumed.resume();
    expect(await resumed.result()).toMatchObject({ reason: 'goal' });
    const state = await resumed.state();
    expect(state.steps[1]?.calls.map(({ outcome }) => outcome.kind)).toEqual(['value', 'unknown', 'value']);
    expect((await entriesOf(after.journal, resumed, 'compacted')).length).toBeGreaterThanOrEqual(2);
    expect(chatFaults(first.model, rest.model, first.summariser, rest.summariser)).toEqual([]);
    expect(rest.model.calls).toHaveLength(8);
  });
});

describe('what a compaction leaves as it is', () => {
  it('the ids of the calls that are summed up: a model that uses them again does not make two calls of one id', async () => {
    const calls = (index: number): ScriptedReply => ({
      calls: [{ id: 'call_1', tool: 'page', args: { q: `${index}` } }],
    });
    const { events, compacted } = await played({ script: (_, index) => (index < 12 ? calls(index) : DONE) });
    expect(compacted.length).toBeGreaterThan(0);
    const ids = only(events, 'tool.invoked').map(({ callId }) => callId);
    expect([ids.length, new Set(ids).size]).toEqual([12, 12]);
  });

  it('CP-19 the raw steps: the journal has them all', async () => {
    const { steps, compacted } = await played({ script: reader(8) });
    expect(compacted.length).toBeGreaterThan(0);
    expect(steps).toHaveLength(8);
    for (const [index, step] of steps.entries()) {
      expect(step.calls[0]?.outcome).toMatchObject({
        kind: 'value',
        value: expect.stringContaining(`page ${index} word`),
      });
    }
  });

  it('the words of the user, and the system prompt', async () => {
    const { model, options } = setUp({ script: reader(9) });
    const gate = Promise.withResolvers<void>();
    const held = {
      ...page,
      execute: async (args: never, context: never) => {
        await gate.promise;
        return page.execute(args, context);
      },
    };
    const made = reactWorld({ ...options, tools: [held] });
    const run = await start(made);
    await until(() => model.calls.length === 1);
    const told = run.steer('USER_MESSAGE', { message: 'Only even pages.' });
    const moved = run.steer('REDIRECT', { goal: 'Find the index.' });
    gate.resolve();
    await Promise.all([told, moved, run.result()]);
    const last = model.calls.at(-1) ?? { prompt: [] };
    const words = last.prompt.map(wordsOf);
    expect(words).toContain('Only even pages.');
    expect(words).toContain('The goal has changed. From now on it is:\n<goal>\nFind the index.\n</goal>');
    expect(summariesIn(last as LanguageModelV4CallOptions)).toHaveLength(1);
    expect(system(last)).toBe(system(model.calls[0] ?? { prompt: [] }));
  });

  it('the next request after a restart is the same', async () => {
    const path = temporaryFile();
    const stalls: ReplyFunction = (_, index) => (index < 6 ? pages(index) : { stall: true });
    const first = setUp({ script: stalls, journal: openJournal(path) });
    const before = reactWorld(first.options);
    const run = await start(before);
    await until(() => first.model.calls.length === 7);
    await before.runtime.close();
    const second = setUp({ script: [DONE], journal: openJournal(path) });
    const after = reactWorld(second.options);
    await after.runtime.run(run.id).resume();
    await after.runtime.run(run.id).result();
    expect(second.summariser.calls).toHaveLength(0);
    expect(second.model.calls[0]?.prompt).toEqual(first.model.calls[6]?.prompt);
  });

  it('CP-10 the estimate is that of the real request: a quarter of its characters', async () => {
    const { compacted } = await played({ script: reader(5) });
    const whole = named('worker', reader(5));
    await play({ model: whole, tools: [page] });
    const [first] = compacted;
    const request = whole.calls[first?.step ?? -1] ?? { prompt: [] };
    expect(first?.tokenEstimate).toBe(estimateTokens(request));
    const characters = JSON.stringify(request.prompt).length / 4;
    expect(Math.abs((first?.tokenEstimate ?? 0) - characters) / characters).toBeLessThan(0.25);
  });

  it('CP-13 128 runs on one planner do not mix', async () => {
    // Each page names its run and its place, so that a reply depends on nothing but its request.
    const model = named('worker', ({ prompt }) => {
      const query = wordsOf(prompt[1]);
      const read = [
        ...prompt
          .map(wordsOf)
          .join('\n')
          .matchAll(/page (\d+) of/g),
      ].map((match) => Number(match[1]));
      const next = Math.max(-1, ...read) + 1;
      return next > 6 ? { text: query } : { calls: [{ tool: 'page', args: { q: `${next} of ${query}` } }] };
    });
    const summariser = named('summariser', ({ prompt }) => {
      const runs = new Set(
        [
          ...prompt
            .map(wordsOf)
            .join('\n')
            .matchAll(/run (\d+)/g),
        ].map((match) => match[1]),
      );
      return { text: JSON.stringify({ ...summaryOf(0), facts: [...runs].map((run) => `run ${run}`) }) };
    });
    const made = reactWorld({ model, tools: [page], react: { compaction: { budgetTokens: 3_500, summariser } } });
    const runs = await Promise.all(
      from(0, 128).map((index) => start(made, { query: `run ${index}`, identity: local('ana') })),
    );
    for (const [index, run] of runs.entries()) {
      expect(await run.result()).toMatchObject({ reason: 'goal', answer: `run ${index}` });
      const compacted = await entriesOf(made.journal, run, 'compacted');
      expect(compacted.length).toBeGreaterThan(0);
      for (const { summary } of compacted) expect(summary.facts).toEqual([`run ${index}`]);
    }
  });

  it('what the summariser used counts', async () => {
    const usage = { inputTokens: 100, outputTokens: 10 };
    const summariser = summariserOf((_, index) => ({ text: JSON.stringify(summaryOf(index)), usage }));
    const { result, compacted } = await played({ script: reader(6), compaction: { summariser } });
    expect(compacted.map((entry) => entry.usage)).toEqual(compacted.map(() => usage));
    expect(compacted.length).toBeGreaterThan(0);
    expect(result.usage.inputTokens).toBeGreaterThan(100 * compacted.length);
  });

  it('without a summariser the first model makes the summary, in a call of its own that declares no tools', async () => {
    const model = named('worker', (request, index) => {
      if (request.prompt.some((message) => wordsOf(message).includes('Sum up these steps'))) {
        return { text: JSON.stringify(summaryOf(index)) };
      }
      return pagesIn(request).at(-1) === 4 ? DONE : pages((pagesIn(request).at(-1) ?? -1) + 1);
    });
    const { result } = await play({ model, tools: [page], react: { compaction: { budgetTokens: 3_500 } } });
    expect(result).toMatchObject({ reason: 'goal' });
    const asked = model.calls.filter((call) => call.responseFormat !== undefined);
    expect(asked.length).toBeGreaterThan(0);
    for (const call of asked) expect(call).not.toHaveProperty('tools');
  });
});

describe('a summary that cannot be made', () => {
  const failures = (events: Awaited<ReturnType<typeof played>>['events']) =>
    only(events, 'trajectory.compression_failed');

  it('CP-05, CP-17 a summariser that is down: the run goes on in full, and it is tried again at a later step', async () => {
    let isDown = true;
    const summariser = summariserOf((_, index) =>
      isDown ? { error: httpError(500) } : { text: JSON.stringify(summaryOf(index)) },
    );
    const script: ReplyFunction = (_, index) => {
      if (index === 11) isDown = false;
      return index < 20 ? pages(index) : DONE;
    };
    const { events, requests, compacted, result } = await played({ script, compaction: { summariser } });
    expect(result).toMatchObject({ reason: 'goal' });
    expect(failures(events).map(({ errorCode, stepsObserved }) => [errorCode, stepsObserved])).toEqual([
      ['summariser_error', 4],
      ['summariser_error', 6],
      ['summariser_error', 10],
    ]);
    expect(pagesIn(requests[17] ?? { prompt: [] })).toEqual(from(0, 17));
    expect(compacted[0]).toMatchObject({ step: 18 });
  });

  it('CP-06 one that says nothing: empty_summary', async () => {
    for (const reply of [
      {},
      { text: '{}' },
      { text: JSON.stringify({ ...summaryOf(0), goals: [], facts: [], pending: [''], lastOutputDigest: ' ' }) },
    ]) {
      const { events, compacted } = await played({
        script: reader(4),
        compaction: { summariser: summariserOf(() => reply) },
      });
      expect(compacted).toEqual([]);
      expect(failures(events)).toMatchObject([{ errorCode: 'empty_summary' }]);
      expect(failures(events)[0]?.tokenEstimate).toBeGreaterThan(3_500);
    }
  });

  it('CP-07 a request that cannot be counted: estimator_error, with 0, and the run goes on', async () => {
    const odd = { toolCallId: 'c', toolName: 't', input: { big: 1n } };
    const buildPrompt: ReactOptions['buildPrompt'] = (_, ours) => [
      ...ours(),
      { role: 'assistant', content: [{ type: 'tool-call', ...odd }] },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'c', toolName: 't', output: { type: 'text', value: '' } }],
      },
    ];
    const { model, options, summariser } = setUp({ script: [DONE], react: { buildPrompt } });
    const { events, result } = await play(options);
    expect(failures(events)).toMatchObject([{ errorCode: 'estimator_error', tokenEstimate: 0 }]);
    expect(result).toMatchObject({ reason: 'goal' });
    expect([model.calls.length, summariser.calls.length]).toEqual([1, 0]);
  });

  it('CP-08 the message is at most 256 characters long', async () => {
    const error = Object.assign(new Error('e'.repeat(1_024)), { isRetryable: false });
    const { events } = await played({ script: reader(4), compaction: { summariser: summariserOf(() => ({ error })) } });
    const [failure] = failures(events);
    expect(failure?.errorMessage).toHaveLength(256);
    expect(failure?.errorMessage).toMatch(/e\.\.\.$/);
  });

  it('CP-01, CP-09 an abort while it is made ends the run without one; without an identity nothing is asked', async () => {
    const { model, options, summariser } = setUp({
      script: reader(9),
      compaction: { summariser: summariserOf(() => ({ stall: true })) },
    });
    const stalled = options.react?.compaction?.summariser as ScriptedModel;
    const made = reactWorld(options);
    const run = await start(made);
    await until(() => stalled.calls.length === 1);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect((await collect(run)).filter(({ type }) => type.startsWith('trajectory.'))).toEqual([]);
    const asked = model.calls.length;
    const nobody = { ...local('ana'), user: '' };
    await expect(made.runtime.start('q', { identity: nobody })).rejects.toMatchObject({ code: 'identity_required' });
    expect([model.calls.length, summariser.calls.length]).toEqual([asked, 0]);
  });
});

describe('a budget that nothing fits (bug 12)', () => {
  it.each([
    ['smaller than any message', 1],
    ['smaller than the newest result', 900],
  ])('%s: the newest step is never dropped, and the run goes on', async (_, budgetTokens) => {
    const { requests, result, steps } = await played({ script: reader(6), compaction: { budgetTokens } });
    expect(result).toMatchObject({ reason: 'goal' });
    expect(steps).toHaveLength(6);
    for (const [index, request] of requests.entries()) {
      expect(pagesIn(request)).toEqual(index === 0 ? [] : [index - 1]);
      expect(wordsOf(request.prompt[1])).toBe('q');
    }
  });

  it('a parallel step is kept as a whole', async () => {
    const script: Replies = [pages(1, 2, 3), pages(4, 5, 6), DONE];
    const { requests } = await played({ script, compaction: { budgetTokens: 1_000 } });
    expect(requests.map(pagesIn)).toEqual([[], [1, 2, 3], [4, 5, 6]]);
  });

  it('a prompt builder of one’s own loses no step either, whether it asks for our messages or not', async () => {
    for (const asks of [true, false]) {
      const buildPrompt: ReactOptions['buildPrompt'] = ({ trajectory }, ours) => [
        { role: 'system', content: 'mine' },
        {
          role: 'user',
          content: [{ type: 'text', text: `${asks ? JSON.stringify(ours()) : ''} ${'word '.repeat(6_000)}` }],
        },
        { role: 'user', content: [{ type: 'text', text: `${trajectory.count}` }] },
      ];
      const { compacted } = await played({ script: reader(5), react: { buildPrompt } });
      expect(compacted.map(({ step, before }) => [step, before])).toEqual([2, 3, 4, 5].map((step) => [step, step - 1]));
    }
  });
});

describe('the window of a model', () => {
  it('MM-20, CP-17 a request that does not fit even so is not sent, and the run waits for somebody', async () => {
    const { result, requests } = await played({
      script: reader(9),
      contextTokens: 500,
      compaction: { budgetTokens: 1_000 },
    });
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'context_exhausted' }] });
    expect(requests).toHaveLength(0);
  });

  it('CP-17 in a small window a run goes on by summaries, and by previews of results that are too large', async () => {
    const { result, events } = await played({
      script: reader(9),
      contextTokens: 1_500,
      compaction: { budgetTokens: 1_000 },
    });
    expect(result).toMatchObject({ reason: 'goal', answer: 'done', usage: { steps: 9 } });
    expect(only(events, 'trajectory.shortened').length).toBeGreaterThan(0);
  });

  it('CP-17 with the summariser down the run goes on up to the window, and waits there', async () => {
    const { result, requests } = await played({
      script: reader(20),
      contextTokens: 8_000,
      compaction: { summariser: summariserOf(() => ({ error: httpError(500) })) },
    });
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'model_unavailable' }] });
    expect(requests.length).toBeGreaterThan(4);
    for (const request of requests) expect(estimateTokens(request)).toBeLessThan(8_000 * 0.95);
  });

  it('with compaction a run of any length stays inside the window', async () => {
    const { result, requests } = await played({ script: reader(20), contextTokens: 5_000 });
    expect(result).toMatchObject({ reason: 'goal' });
    for (const request of requests) expect(estimateTokens(request)).toBeLessThan(5_000 * 0.95);
  });

  it('MM-20 the estimate is of the whole request: at 95 % of the window it is not sent', async () => {
    const probe = named('worker', [DONE]);
    await play({ model: probe });
    const size = estimateTokens(probe.calls[0] ?? { prompt: [] });
    for (const [window, calls] of [
      [Math.floor(size / 0.95) - 1, 0],
      [Math.ceil(size / 0.95) + 1, 1],
    ] as const) {
      const model = named('worker', [DONE]);
      await play({ model: { model, contextTokens: window } });
      expect(model.calls).toHaveLength(calls);
    }
  });

  it('a model of the pool whose window is large enough is asked in place of one that is too small', async () => {
    const small = named('small', []);
    const large = named('large', [DONE]);
    const { result } = await play({
      model: [
        { model: small, contextTokens: 100 },
        { model: large, contextTokens: 100_000 },
      ],
    });
    expect(result).toMatchObject({ reason: 'goal' });
    expect(small.calls).toHaveLength(0);
  });

  it('MM-21 a message of 40 KiB goes whole when the window allows, and waits when not', async () => {
    const query = 'word '.repeat(8_192);
    const model = named('worker', [DONE]);
    const { result, events } = await play({ model: { model, contextTokens: 32_000 }, start: { query } });
    expect(result).toMatchObject({ reason: 'goal' });
    expect(wordsOf(model.calls[0]?.prompt[1])).toBe(query);
    expect(shownTexts(events)).toEqual([]);
    const small = named('worker', []);
    const refused = await play({ model: { model: small, contextTokens: 8_000 }, start: { query } });
    expect(refused.result).toMatchObject({ status: 'paused', pauses: [{ reason: 'context_exhausted' }] });
    expect(small.calls).toEqual([]);
  });
});
