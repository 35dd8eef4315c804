/** Replies that are not whole: what the output limit cut off, and what a provider paused, goes on, as steps of their own. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { encodeEntry, local } from '#core';
import { createModelRegistry } from '#model';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import {
  assertCrashProof,
  crashEverywhere,
  type ReplyFunction,
  type ScriptedModel,
  type ScriptedReply,
  scriptedModel,
} from '#testing';
import { tool } from '#tools';
import { collect, only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { httpError } from '../kit/model.ts';
import { entriesOf } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { start } from '../kit/world.ts';
import { chatFaults, good, input, named, play, playStreamed, reactWorld, shownTexts, wordsOf } from './played.ts';

const cut = (text: string): ScriptedReply => ({ text, finish: 'length' });
const said = (text: string): ScriptedReply => ({ text });
const roles = (prompt: LanguageModelV4Prompt | undefined) => prompt?.map(({ role }) => role).slice(1) ?? [];
const LIMIT = /^<runtime_note>\nYour reply has reached the limit of its length/;

/** Its first reply comes when `go` is called. */
function heldAtFirst(model: ScriptedModel): { readonly asked: Promise<void>; readonly go: () => void } {
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const doGenerate = model.doGenerate.bind(model);
  model.doGenerate = async (request) => {
    const given = await doGenerate(request);
    asked.resolve();
    await gate.promise;
    return given;
  };
  return { asked: asked.promise, go: gate.resolve };
}

describe('an answer that the output limit cut off', () => {
  it('goes on where it ended, and is one answer', async () => {
    const model = named('m', [cut('The answer is for'), cut('ty-'), said('two.')]);
    const { result, steps, events } = await play({ model });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal', answer: 'The answer is forty-two.' });
    expect(steps).toMatchObject([
      { partial: 'cut_off', text: 'The answer is for' },
      { partial: 'cut_off', text: 'ty-' },
    ]);
    expect(steps.every((step) => step.error === undefined)).toBe(true);
    const [first, second, third] = model.calls;
    const added = second?.prompt.slice(first?.prompt.length) ?? [];
    expect(added.map(({ role }) => role)).toEqual(['assistant', 'user']);
    expect(wordsOf(added[0])).toBe('The answer is for');
    expect(wordsOf(added[1])).toMatch(LIMIT);
    expect(third?.prompt.slice(0, second?.prompt.length)).toEqual(second?.prompt);
    expect(chatFaults(model)).toEqual([]);
    const [one, two, end] = only(events, 'planner.decision');
    expect([one?.partial, two?.partial, end?.partial]).toEqual(['cut_off', 'cut_off', undefined]);
    expect([one, two, end].some((event) => event?.rejected !== undefined)).toBe(false);
    expect(result.usage).toMatchObject({ steps: 2 });
  });

  it('is streamed piece by piece, with nothing taken back', async () => {
    const { events, result } = await playStreamed({ model: named('m', [cut('One, '), cut('two, '), said('three.')]) });
    expect(shownTexts(events)).toEqual(['One, ', 'two, ', 'three.']);
    expect(only(events, 'token.reset')).toEqual([]);
    expect(result).toMatchObject({ answer: 'One, two, three.' });
  });

  it.each([
    [undefined, 4],
    [0, 1],
    [1, 2],
  ])('is given up after as many continuations as are wanted: %s', async (continuations, requests) => {
    const model = named('m', (_, index) => cut(`${index} `));
    const { result, steps } = await play({
      model,
      react: { ...(continuations === undefined ? {} : { continuations }) },
    });
    expect(model.calls).toHaveLength(requests);
    expect(steps).toHaveLength(requests - 1);
    const payload = Array.from({ length: requests }, (_, index) => `${index} `).join('');
    expect(result).toMatchObject({ reason: 'length', answer: payload, metadata: { stop_reason: 'length' } });
  });

  it('that the model begins anew is put behind what there is, as it is: nobody guesses', async () => {
    const { result } = await play({ model: named('m', [cut('Once upon'), said('Once upon a time')]) });
    expect(result).toMatchObject({ answer: 'Once uponOnce upon a time' });
  });

  it('was whole after all when nothing more comes', async () => {
    const { result } = await play({ model: named('m', [cut('All of it.'), said('')]) });
    expect(result).toMatchObject({ reason: 'goal', answer: 'All of it.' });
  });

  it('of thoughts alone is a fault as before, and comes to an end', async () => {
    const model = named('m', () => ({ reasoning: 'I think and think', finish: 'length' as const }));
    const { result, steps } = await play({ model });
    expect(result).toMatchObject({ reason: 'no_path' });
    expect(model.calls).toHaveLength(3);
    expect(steps.map(({ error }) => error?.code)).toEqual(Array(3).fill('reply_interrupted'));
  });

  it('of which a rest comes to nothing is asked for as a whole again', async () => {
    const thinking: ScriptedReply = { reasoning: 'Hm.', finish: 'length' };
    const model = named('m', [cut('One, '), thinking, said('One, two.')]);
    const { result } = await play({ model });
    expect(wordsOf(model.calls[2]?.prompt.at(-2))).toContain('Give the whole answer again, from its beginning.');
    expect(result).toMatchObject({ reason: 'goal', answer: 'One, two.' });
  });

  it('keeps what its provider noted, and its thoughts, as they came', async () => {
    const content: ScriptedReply['content'] = [
      { type: 'reasoning', text: 'Hm.', providerMetadata: { scripted: { signature: 's' } } },
      { type: 'text', text: 'One, ' },
    ];
    const model = named('m', [{ content, finish: 'length' }, said('two.')]);
    expect((await play({ model })).result).toMatchObject({ answer: 'One, two.' });
    expect(model.calls[1]?.prompt.at(-2)).toEqual({
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.', providerOptions: { scripted: { signature: 's' } } },
        { type: 'text', text: 'One, ' },
      ],
    });
  });

  it('with calls behind it is said beside them, and not in the answer', async () => {
    const model = named('m', [cut('I look in'), { text: ' the files.', ...good() }, said('It is there.')]);
    const { result, steps } = await play({ model });
    expect(result).toMatchObject({ answer: 'It is there.' });
    expect(steps).toMatchObject([{ text: 'I look in' }, { text: ' the files.', decision: { tool: 'search' } }]);
    expect(chatFaults(model)).toEqual([]);
  });

  it('half of a call is no text that goes on', async () => {
    const half: ScriptedReply = { calls: [{ tool: 'search', input: '{"q": "x' }], text: 'I look.', finish: 'length' };
    const { steps } = await play({ model: named('m', [half, said('done')]) });
    expect(steps).toMatchObject([{ error: { code: 'reply_truncated' } }]);
    expect(steps[0]?.partial).toBeUndefined();
  });
});

describe('in text mode', () => {
  const model = (script: readonly ScriptedReply[]) => ({ model: named('m', script), toolCalls: 'text' as const });

  it('goes on without the thoughts that it began with', async () => {
    const { result, steps } = await play({ model: model([cut('<think>Hm.</think>\nThe answer '), said('is two.')]) });
    expect(result).toMatchObject({ reason: 'goal', answer: 'The answer is two.' });
    expect(steps).toMatchObject([{ text: 'The answer ' }]);
  });

  it('a call in the rest is made once, with the words of the rest beside it', async () => {
    const call = 'in the files.\n```json\n{"tool":"search","args":{"q":"x"}}\n```';
    const { steps, result } = await play({ model: model([cut('I look '), said(call), said('There.')]) });
    expect(steps).toMatchObject([{ text: 'I look ' }, { decision: { kind: 'call_tool' }, text: 'in the files.' }]);
    expect(result).toMatchObject({ answer: 'There.' });
  });
});

describe('with an answerSchema', () => {
  const answerSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

  it('JSON that comes in pieces is one value', async () => {
    const { result } = await play({
      model: named('m', [cut('{"city": "Zür'), said('ich"}')]),
      react: { answerSchema },
    });
    expect(result).toMatchObject({ reason: 'goal', payload: { city: 'Zürich' } });
  });

  it('JSON that is whole and fits is the answer, though the limit was reached', async () => {
    const model = named('m', [cut('{"city": "Oslo"}\n')]);
    expect((await play({ model, react: { answerSchema } })).result).toMatchObject({ payload: { city: 'Oslo' } });
    expect(model.calls).toHaveLength(1);
  });

  it('is never taken from half of a JSON text, however well it could be mended', async () => {
    const { result } = await play({
      model: named('m', () => cut('{"city": "Os')),
      react: { answerSchema, continuations: 0 },
    });
    expect(result).toMatchObject({ reason: 'length', payload: '{"city": "Os' });
  });

  it('what does not fit when it is whole goes back to the model, and the repair is read alone', async () => {
    const model = named('m', [cut('{"town": '), said('"Oslo"}'), said('{"city": "Oslo"}')]);
    const { result, steps } = await play({ model, react: { answerSchema } });
    expect(steps[1]).toMatchObject({ error: { code: 'answer_invalid' }, text: '"Oslo"}' });
    expect(result).toMatchObject({ reason: 'goal', payload: { city: 'Oslo' } });
  });
});

describe('a text that does not end the run', () => {
  it('that asks the user is shown whole, and stands in the history in its pieces', async () => {
    const model = named('m', [cut('Which '), said('city?'), said('Fine.')]);
    const made = reactWorld({ model, react: { converse: true } });
    const run = await start(made);
    const asked = await run.result();
    expect(asked).toMatchObject({ status: 'paused', pauses: [{ text: 'Which city?' }] });
    await run.resume({ payload: { message: 'Oslo' } });
    expect(await run.result()).toMatchObject({ pauses: [{ text: 'Fine.' }] });
    expect(roles(model.calls[2]?.prompt)).toEqual(['user', 'assistant', 'user', 'assistant', 'user']);
  });

  it('is told whole to the next run of the session', async () => {
    const model = named('m', [cut('Which '), said('city?'), said('Hello again.')]);
    const made = reactWorld({ model, react: { converse: true }, memory: { strategy: 'window' } });
    const identity = (run: string) => local('ana', { session: 's', run });
    const first = await start(made, { identity: identity('one') });
    await first.result();
    await first.resume({ payload: { message: 'Oslo' } });
    await first.result();
    await first.cancel({ until: 'applied' });
    await (await start(made, { identity: identity('two'), query: 'and?' })).result();
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toMatch(/Which .*city\?/);
  });

  it('that waits for a task goes on first', async () => {
    const model = named('m', [
      { calls: [{ tool: '_spawn_task', args: { kind: 'background', spec: { description: 'd', query: 'sub' } } }] },
      cut('It is '),
      said('done.'),
      said('All is done.'),
    ]);
    const sub = named('sub', [said('result')]);
    const planner = react({ model, tasks: true });
    const tasks = react({ model: sub });
    const made = reactWorld({ model });
    const runtime = createRuntime({
      planner: { ...planner, next: (view, signal) => (view.task === undefined ? planner : tasks).next(view, signal) },
      journal: made.journal,
    });
    const run = await start({ runtime });
    expect(await run.result()).toMatchObject({ reason: 'goal', answer: 'All is done.' });
    const { steps } = await run.state();
    expect(steps.slice(1)).toMatchObject([
      { partial: 'cut_off', text: 'It is ' },
      { decision: { kind: 'await_task' }, text: 'done.', provenance: { answered: true } },
    ]);
    await runtime.close();
  });
});

describe('who goes on', () => {
  it('is the model that began, and no failure is measured', async () => {
    const first = named('first', [cut('One, '), said('two.')]);
    const second = named('second', []);
    const registry = createModelRegistry([first, second]);
    const { result } = await play({ model: registry });
    expect(result).toMatchObject({ answer: 'One, two.' });
    expect(registry.measures('first')).toMatchObject({ calls: 2, successRate: expect.closeTo(1, 1) });
  });

  it('is the next one while the first is away', async () => {
    const first = named('first', [cut('One, '), { error: httpError(503) }]);
    const second = named('second', [said('two.')]);
    const { result } = await play({ model: [first, second], react: { retries: 0 } });
    expect(result).toMatchObject({ answer: 'One, two.' });
    expect(wordsOf(second.calls[0]?.prompt.at(-1))).toMatch(LIMIT);
  });

  it('faults on the way are still counted, and a rest is no fault', async () => {
    const torn: ScriptedReply = { text: 'half', finish: 'error' };
    const { result, steps } = await play({ model: named('m', [{}, cut('One, '), torn, torn]) });
    expect(steps.map(({ error, partial }) => error?.code ?? partial)).toEqual([
      'reply_empty',
      'cut_off',
      'reply_interrupted',
      'reply_interrupted',
    ]);
    expect(result).toMatchObject({ reason: 'no_path', metadata: { repair_exhausted: true } });
  });
});

describe('what comes in between', () => {
  it('a message of the user is answered anew: what was said before is no part of the answer', async () => {
    const model = named('m', [cut('The weather in Oslo is'), said('In Rome the sun shines.')]);
    const { asked, go } = heldAtFirst(model);
    const run = await start(reactWorld({ model }));
    await asked;
    await run.steer('USER_MESSAGE', { message: 'In Rome, I mean.' });
    go();
    expect(await run.result()).toMatchObject({ reason: 'goal', answer: 'In Rome the sun shines.' });
    const second = model.calls[1]?.prompt ?? [];
    expect(second.slice(-3).map(wordsOf)).toEqual([
      expect.stringMatching(LIMIT),
      'In Rome, I mean.',
      expect.stringContaining('Do not go on with that reply'),
    ]);
  });

  it('a compaction never parts the pieces', async () => {
    const page = tool({
      name: 'page',
      description: 'Reads a page.',
      effect: 'read',
      inputSchema: input,
      execute: ({ q }) => `page ${String(q)} ${'word '.repeat(800)}`,
    });
    const call = (q: string): ScriptedReply => ({ calls: [{ tool: 'page', args: { q } }] });
    const piece = (name: string): ScriptedReply => cut(`${name} ${'long '.repeat(1_500)}`);
    const summary = { goals: ['g'], facts: ['f'], pending: ['p'], lastOutputDigest: 'd', note: '' };
    const summariser = named('summariser', () => said(JSON.stringify(summary)));
    const model = named('m', [call('1'), call('2'), piece('A'), piece('B'), piece('C'), said('end')]);
    const made = await play({ model, tools: [page], react: { compaction: { budgetTokens: 3_000, summariser } } });
    expect(made.result).toMatchObject({ reason: 'goal', answer: expect.stringMatching(/^A .*B .*C .*end$/s) });
    const cuts = (await entriesOf(made.journal, made.run, 'compacted')).map(({ before }) => before);
    expect(cuts.length).toBeGreaterThan(0);
    // Steps 2, 3 and 4 are the pieces.
    expect(cuts.every((before) => before <= 2)).toBe(true);
    const texts = model.calls.at(-1)?.prompt.map(wordsOf).join('\n') ?? '';
    for (const name of ['A', 'B', 'C']) expect(texts).toContain(`${name} long`);
  });
});

describe('crashes, forks and replays', () => {
  const answers: ReplyFunction = ({ prompt }) => {
    const before = prompt.filter(({ role }) => role === 'assistant').length;
    return before < 2 ? cut(`part ${before}, `) : said('end.');
  };

  it('another process goes on with the next piece, and makes the same request', async () => {
    const path = temporaryFile();
    const gate = Promise.withResolvers<void>();
    const stuck = scriptedModel(answers);
    const doGenerate = stuck.doGenerate.bind(stuck);
    stuck.doGenerate = async (request) => {
      const given = await doGenerate(request);
      // The second request is never answered in this life.
      if (stuck.calls.length === 2) {
        gate.resolve();
        return new Promise(() => {});
      }
      return given;
    };
    const identity = local('ana', { run: 'r1' });
    const first = createRuntime({ planner: react({ model: stuck }), journal: openJournal(path) });
    await first.start('q', { identity });
    await gate.promise;
    await first.close();
    const model = scriptedModel(answers);
    const second = createRuntime({ planner: react({ model }), journal: openJournal(path) });
    const run = second.run('r1');
    await run.resume();
    expect(await run.result()).toMatchObject({ reason: 'goal', answer: 'part 0, part 1, end.' });
    expect(model.calls).toHaveLength(2);
    expect(model.calls[0]?.prompt).toEqual(stuck.calls[1]?.prompt);
    await second.close();
  });

  it('a crash at any write leaves no piece out, and none twice', async () => {
    const report = await crashEverywhere({
      name: 'a reply in pieces',
      tools: () => [],
      query: 'q',
      planner: react({ model: scriptedModel(answers, { record: false }) }),
    });
    assertCrashProof(report);
    expect(report.points.filter((point) => point.includes('append moved'))).toHaveLength(6);
  });

  it('a replay decides the same, and a fork goes on from between two pieces', async () => {
    const { run, runtime } = await play({ model: scriptedModel(answers) });
    expect(await run.replay()).toMatchObject({ compared: 3 });
    expect((await run.replay()).divergence).toBeUndefined();
    const fork = await run.fork({ step: 1 });
    expect(await fork.result()).toMatchObject({ answer: 'part 0, part 1, end.' });
    await runtime.close();
  });

  it('an entry of a part says that older code cannot read it', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run } = await play({ model: scriptedModel(answers), journal });
    const moved = (await journal.read(run.id)).filter(({ kind }) => kind === 'moved');
    expect(moved.map((entry) => JSON.parse(encodeEntry(entry)) as unknown)).toMatchObject([
      { v: 4, partial: 'cut_off' },
      { v: 4, partial: 'cut_off' },
      { v: 2 },
    ]);
  });
});

describe('a reply that its provider paused', () => {
  const search = { type: 'tool-call', toolCallId: 's1', toolName: 'web_search', input: '{"q":"x"}' } as const;
  const paused = (text = 'I search. '): ScriptedReply => ({
    content: [
      { type: 'text', text },
      { ...search, providerExecuted: true },
    ],
    finish: 'pause',
  });
  const found: ScriptedReply = {
    content: [
      { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', result: { hits: 1 } },
      { type: 'text', text: 'There is one.' },
    ],
  };

  it('goes back as the last turn, unchanged, with nothing behind it', async () => {
    const model = named('m', [paused(), found]);
    const { result, steps } = await play({ model });
    expect(result).toMatchObject({ reason: 'goal', answer: 'I search. There is one.' });
    expect(steps).toMatchObject([{ partial: 'paused', provenance: { finish: 'pause', providerFinish: 'pause_turn' } }]);
    const [first, second] = model.calls;
    expect(second?.prompt.slice(first?.prompt.length)).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I search. ' },
          { ...search, input: { q: 'x' }, providerExecuted: true },
        ],
      },
    ]);
  });

  it('is paused 16 times in a row at most', async () => {
    const model = named('m', (_, index) => paused(`${index} `));
    const { result } = await play({ model, limits: { steps: 100 } });
    expect(model.calls).toHaveLength(17);
    expect(result).toMatchObject({ reason: 'length', metadata: { stop_reason: 'pause' } });
  });

  it('with nothing in it is no pause', async () => {
    const { steps, result } = await play({ model: named('m', [{ finish: 'pause' }, said('done')]) });
    expect(steps).toMatchObject([{ error: { code: 'reply_empty' } }]);
    expect(result).toMatchObject({ answer: 'done' });
  });

  it('with calls of ours has them made', async () => {
    const model = named('m', [{ ...good(), finish: 'pause' }, said('done')]);
    const { steps } = await play({ model });
    expect(steps).toMatchObject([{ decision: { kind: 'call_tool' }, calls: [{ outcome: { kind: 'value' } }] }]);
    expect(steps[0]?.partial).toBeUndefined();
  });

  it('is told to another provider in words, with a turn that asks for the rest', async () => {
    const first = named('first', [paused(), { error: httpError(503) }]);
    const second = { ...named('second', [said('Found.')]), provider: 'another' };
    const { result } = await play({ model: [first, second], react: { retries: 0 } });
    expect(result).toMatchObject({ answer: 'I search. Found.' });
    expect(roles(second.calls[0]?.prompt)).toEqual(['user', 'assistant', 'user', 'user']);
    expect(wordsOf(second.calls[0]?.prompt.at(-1))).toContain('Go on with it');
  });

  it('is told no reminder on the way', async () => {
    const model = named('m', [{}, paused(), found]);
    await play({ model });
    expect(model.calls[2]?.prompt.at(-1)?.role).toBe('assistant');
  });

  it('that a message interrupts goes back without its open call', async () => {
    const model = named('m', [paused(), said('Very well.')]);
    const { asked, go } = heldAtFirst(model);
    const run = await start(reactWorld({ model }));
    await asked;
    await run.steer('USER_MESSAGE', { message: 'Stop that.' });
    go();
    expect(await run.result()).toMatchObject({ answer: 'Very well.' });
    const last = model.calls[1]?.prompt.slice(-3) ?? [];
    expect(last[0]).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'I search. ' }] });
    expect(last.slice(1).map(({ role }) => role)).toEqual(['user', 'user']);
  });
});

it('sources of all parts are the sources of the run, each once', async () => {
  const source = (url: string) => ({ type: 'source', sourceType: 'url', id: url, url, title: `About ${url}` }) as const;
  const model = named('m', [
    {
      content: [{ type: 'text', text: 'One, ' }, source('https://a.test/'), source('https://b.test/')],
      finish: 'length',
    },
    { content: [{ type: 'text', text: 'two.' }, source('https://b.test/'), source('https://c.test/')] },
  ]);
  const made = reactWorld({ model });
  const run = await start(made);
  const events = await collect(run);
  expect(await run.result()).toMatchObject({
    sources: ['a', 'b', 'c'].map((name) => ({ type: 'url', url: `https://${name}.test/` })),
  });
  expect(only(events, 'model.sources').map(({ sources }) => sources.length)).toEqual([2, 2]);
});
