/** The repair ladder, from a model's faulty replies to a decision, through a runtime. */
import { describe, expect, it } from 'vitest';
import type { FinishReason, Planner } from '#core';
import { react } from '#planners/react';
import { GUIDANCE } from '#prompt';
import { runView, type ScriptedReply, scriptedModel } from '#testing';
import { tool } from '#tools';
import { ask } from '../kit/ask.ts';
import { call, finish, script } from '../kit/decisions.ts';
import { only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { httpError } from '../kit/model.ts';
import { entriesOf, outcomes } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';
import {
  bad,
  chat,
  chatFaults,
  good,
  named,
  type PlayOptions,
  play,
  playStreamed,
  type Replies,
  reactWorld,
  reminder,
  search,
  shownTexts,
  system,
  tiers,
  wordsOf,
} from './played.ts';

const EMPTY: ScriptedReply = {};
const DONE: ScriptedReply = { text: 'done' };
const text = (words: string): ScriptedReply => ({ text: words });

/** A run of one model, which is asked for nothing that the script does not have. */
async function played(
  replies: Replies,
  more: Omit<PlayOptions, 'model'> = {},
  toolCalls: 'native' | 'text' = 'native',
) {
  const model = scriptedModel(replies);
  const made = await play({ model: { model, toolCalls }, ...more });
  model.assertConsumed();
  expect(chatFaults(model)).toEqual([]);
  return { ...made, model, requests: model.calls };
}

const exhaustedOf = (events: Awaited<ReturnType<typeof play>>['events']) => only(events, 'planner.repair_exhausted');

describe('reading a reply', () => {
  it('RP-05 fields beside tool and arguments are left out, each told once, and the step goes on', async () => {
    const reply = text('{"thought":"hm","reasoning":"so","tool":"search","args":{"q":"x"}}');
    const { events, steps } = await played([reply, DONE], {}, 'text');
    const fields = only(events, 'planner.action_extra_field_dropped').map(({ field }) => field);
    expect(fields.sort()).toEqual(['reasoning', 'thought']);
    expect(steps[0]?.decision).toMatchObject({ kind: 'call_tool', tool: 'search', args: { q: 'x' } });
    expect(outcomes({ steps })).toEqual(['value']);
  });

  it('RP-06 one action is a call; three are a parallel call that needs all of them, in the order written', async () => {
    const three = ['c', 'a', 'b'].map((q) => ({ tool: 'search', args: { q } }));
    const { steps } = await played([text(JSON.stringify(three[0])), text(JSON.stringify(three)), DONE], {}, 'text');
    expect(steps[0]?.decision).toMatchObject({ kind: 'call_tool', ...three[0] });
    const decision = steps[1]?.decision;
    expect(decision).toMatchObject({ kind: 'call_parallel', branches: three });
    expect(decision).not.toHaveProperty('join');
  });

  it('RP-14 the reasoning of a step is that of the reply that made it', async () => {
    const broken = { reasoning: 'first', text: 'half', error: httpError(503), errorAt: 'read' } as const;
    const model = scriptedModel([broken, { reasoning: 'second', ...good() }, { reasoning: 'third', text: 'done' }]);
    const { steps } = await playStreamed({ model });
    expect(steps.map(({ reasoning }) => reasoning)).toEqual(['second']);
  });

  it('RP-24 a fenced example of a tool that is not there is passed over for the call of one that is', async () => {
    const reply = text(
      'It looks like this:\n```json\n{"tool": "example", "args": {}}\n```\nSo:\n```json\n{"tool": "search", "args": {"q": "x"}}\n```',
    );
    const { steps } = await played([reply, DONE], {}, 'text');
    expect(steps[0]?.decision).toMatchObject({ kind: 'call_tool', tool: 'search', args: { q: 'x' } });
  });
});

describe('asking again', () => {
  it('RP-07 the second request is the first, the bad call and its error, and no second system message', async () => {
    const { requests, steps, result } = await played([bad(), good(), DONE]);
    const [first, second, third] = requests;
    expect(second?.prompt.slice(0, first?.prompt.length)).toEqual(first?.prompt);
    const added = second?.prompt.slice(first?.prompt.length) ?? [];
    expect(added.map(({ role }) => role)).toEqual(['assistant', 'tool']);
    expect(wordsOf(added[0])).toBe('search {"limit":0}');
    expect(wordsOf(added[1])).toMatch(/^<call_error>\ntool_invalid_args — .*search.*q/s);
    // What was corrected stays in the history, and nothing else is added.
    expect(third?.prompt.slice(0, second?.prompt.length)).toEqual(second?.prompt);
    expect(third?.prompt).toHaveLength((second?.prompt.length ?? 0) + 2);
    expect(outcomes({ steps }, 1)).toEqual(['value']);
    expect(result).toMatchObject({ reason: 'goal', answer: 'done' });
  });

  it('RP-07 with calls in text: the bad reply as it was, and a user turn that names the tool and what is wrong', async () => {
    const wrong = text('{"tool":"search","args":{"limit":2}}');
    const { requests } = await played([wrong, DONE], {}, 'text');
    const [first, second] = requests;
    const added = second?.prompt.slice(first?.prompt.length) ?? [];
    expect(added.map(({ role }) => role)).toEqual(['assistant', 'user']);
    expect(wordsOf(added[0])).toContain('{"tool":"search","args":{"limit":2}}');
    expect(wordsOf(added[1])).toMatch(/^<tool_result tool="search" call="1">\n<call_error>\ntool_invalid_args — .*q/s);
  });

  it('RP-07, RA-09 a reply that is nothing is told as what was said, the error and one reminder', async () => {
    const { requests, events } = await played([EMPTY, DONE]);
    const added = requests[1]?.prompt.slice(requests[0]?.prompt.length) ?? [];
    expect(added.map(({ role }) => role)).toEqual(['user', 'user']);
    expect(wordsOf(added[0])).toMatch(/^Your last reply was not accepted:\n<reply_error>\nreply_empty/);
    expect(wordsOf(added[1])).toBe(`<runtime_note>\n${GUIDANCE.reply.reminder}\n</runtime_note>`);
    expect(events.at(-1)).toMatchObject({ type: 'planner.finish', reason: 'goal' });
  });

  it('RP-10, W108 reasks is one number: two by default, three calls in all', async () => {
    const { result, events, requests } = await played([bad(1), bad(2), bad(3)]);
    expect(requests).toHaveLength(3);
    expect(result).toMatchObject({ reason: 'no_path' });
    expect(exhaustedOf(events)).toHaveLength(1);
    expect((await played([bad(1)], { react: { reasks: 0 } })).requests).toHaveLength(1);
    expect((await played([1, 2, 3, 4, 5].map(bad), { react: { reasks: 4 } })).requests).toHaveLength(5);
  });

  it('RP-08 the end is no path, with what went wrong, in short', async () => {
    const names = Array.from({ length: 9 }, (_, index) => `${'parameter'.repeat(4)}_${index}`);
    const wide = tool({ ...search, inputSchema: { type: 'object', required: ['q', ...names], properties: {} } });
    const { result, events } = await played([1, 2, 3, 4, 5, 6].map(bad), { tools: [wide], react: { reasks: 5 } });
    const metadata = result.status === 'finished' ? result.metadata : undefined;
    expect(metadata).toMatchObject({
      repair_exhausted: true,
      followup: true,
      repair_attempts: 6,
      repair_consecutive_arg_failures: 6,
      repair_error: expect.stringMatching(/q/),
    });
    expect(String(metadata?.['repair_chain'])).toHaveLength(1_024);
    const [exhausted, ...more] = exhaustedOf(events);
    expect(more).toEqual([]);
    expect(exhausted).toMatchObject({ attempts: 6, consecutiveArgFailures: 6 });
    expect(exhausted?.reasons).toHaveLength(6);
    for (const reason of exhausted?.reasons ?? []) expect(reason).toHaveLength(256);
  });

  const SAME: readonly [string, ScriptedReply, 'native' | 'text', readonly string[]][] = [
    ['an empty reply', EMPTY, 'native', ['none', 'reminder', 'warning', 'critical']],
    ['an empty reply in text mode', EMPTY, 'text', ['none', 'reminder', 'warning', 'critical']],
    ['blanks', text(' \n'), 'native', ['none', 'reminder', 'warning', 'critical']],
    [
      'a reply that was torn off',
      { text: 'half', finish: 'error' },
      'native',
      ['none', 'reminder', 'warning', 'critical'],
    ],
    ['half a template', text('<tool_call>{"name":'), 'native', ['none', 'reminder', 'warning', 'critical']],
    [
      'a bad _finish',
      { calls: [{ tool: '_finish', args: {} }] },
      'native',
      ['none', 'reminder', 'warning', 'critical'],
    ],
    // The first bad call is answered by its error alone.
    ['a bad call', bad(), 'native', ['none', 'none', 'reminder', 'warning', 'critical']],
    [
      'a bad call in text',
      text('{"tool":"search","args":{}}'),
      'text',
      ['none', 'none', 'reminder', 'warning', 'critical'],
    ],
  ];

  it.each(
    SAME,
  )('RP-08, RP-10, RP-20 the very same fault has all its tries and reaches every tier: %s', async (_, reply, mode, order) => {
    for (const reasks of [0, 1, 2, 3, 4, 10]) {
      const replies = Array.from({ length: reasks + 1 }, () => reply);
      const { requests, result, events } = await played(replies, { react: { reasks } }, mode);
      expect(result).toMatchObject({ reason: 'no_path', metadata: { repair_attempts: reasks + 1 } });
      expect(exhaustedOf(events)).toMatchObject([{ attempts: reasks + 1 }]);
      expect(requests.map((request) => tiers(request).at(-1) ?? 'none')).toEqual(
        replies.map((_, index) => order[index] ?? 'critical'),
      );
      // One good reply in time is enough.
      const saved = await played([...replies.slice(1), DONE], { react: { reasks } }, mode);
      expect(saved.result).toMatchObject({ reason: 'goal', answer: 'done' });
    }
  });

  it('RP-09 kinds of fault are counted apart', async () => {
    const replies = [bad(1), EMPTY, bad(2), EMPTY, bad(3)];
    const { requests, result, events } = await played(replies);
    expect(requests).toHaveLength(5);
    expect(result).toMatchObject({
      reason: 'no_path',
      metadata: { repair_attempts: 5, repair_consecutive_arg_failures: 3 },
    });
    expect(exhaustedOf(events)[0]).toMatchObject({ attempts: 5, consecutiveArgFailures: 3 });
  });

  it('RP-18 a clean step ends the count', async () => {
    const replies = [bad(1), bad(2), good(), bad(3), bad(4), good(), bad(5), DONE];
    const { result, requests } = await played(replies);
    expect(result).toMatchObject({ reason: 'goal' });
    expect(requests.map(tiers)).toEqual([[], [], ['reminder'], [], [], ['reminder'], [], []]);
  });

  it('a parallel step of which a part was carried out does not use up tries', async () => {
    const partly = (limit: number): ScriptedReply => ({
      calls: [
        { tool: 'read', args: { q: 'a' } },
        { tool: 'search', args: { limit } },
      ],
    });
    const { result, steps } = await played([...[1, 2, 3, 4, 5, 6].map(partly), DONE], { react: { reasks: 1 } });
    expect(result).toMatchObject({ reason: 'goal' });
    expect(steps.slice(0, 6).map((_, index) => outcomes({ steps }, index))).toEqual(Array(6).fill(['value', 'error']));
  });

  it('RP-22 the call id is answered with each failing path, the reminder comes after two, and the end after the tries', async () => {
    const wrong = (limit: string): ScriptedReply => ({
      calls: [{ id: `c${limit}`, tool: 'search', args: { limit } }],
    });
    const { steps, requests, result, events } = await played([wrong('one'), wrong('two'), wrong('three')]);
    const [call] = steps[0]?.calls ?? [];
    expect(call?.outcome).toMatchObject({ kind: 'error', error: { code: 'tool_invalid_args' } });
    const answer = wordsOf(requests[1]?.prompt.at(-1));
    for (const path of ['q', 'limit']) expect(answer).toContain(path);
    expect(requests[1]?.prompt.at(-1)?.content[0]).toMatchObject({ toolCallId: 'cone' });
    expect(requests.map(tiers)).toEqual([[], [], ['reminder']]);
    expect(result).toMatchObject({ reason: 'no_path', metadata: { repair_exhausted: true, followup: true } });
    expect(exhaustedOf(events)).toHaveLength(1);
  });
});

describe('reminders', () => {
  it('RP-20 four faulty calls of one tool: none, none, reminder, warning, critical, and none after a clean one', async () => {
    const { requests } = await played([bad(1), bad(2), bad(3), bad(4), good(), DONE], { react: { reasks: 5 } });
    expect(requests.map(tiers)).toEqual([[], [], ['reminder'], ['warning'], ['critical'], []]);
  });

  it.each<[string, 'native' | 'text', (limit: number) => ScriptedReply]>([
    ['a native call', 'native', bad],
    ['a call in text', 'text', (limit) => text(`{"tool":"search","args":{"limit":${limit}}}`)],
    ['arguments that are no JSON', 'native', (limit) => ({ calls: [{ tool: 'search', input: `no ${limit}` }] })],
    ['a tool that is not there', 'native', (limit) => ({ calls: [{ tool: 'nothing', args: { limit } }] })],
    [
      'branches of a parallel call',
      'native',
      (limit) => ({
        calls: [
          { tool: 'search', args: { limit } },
          { tool: 'search', args: { limit } },
        ],
      }),
    ],
  ])('RP-19 every rejected argument counts: %s', async (_, mode, reply) => {
    const { requests, result } = await played([reply(1), reply(2), reply(3)], {}, mode);
    expect(requests.map(tiers)).toEqual([[], [], ['reminder']]);
    expect(reminder(requests[2] ?? { prompt: [] })).toEqual([GUIDANCE.args.reminder]);
    expect(result).toMatchObject({ metadata: { repair_consecutive_arg_failures: expect.any(Number) } });
  });

  it('RP-15, RP-16 several counters at once: their blocks in order, an event each, with the request they were in', async () => {
    const finishBadly: ScriptedReply = { calls: [{ tool: '_finish', args: {} }] };
    const both = (limit: number): ScriptedReply => ({
      calls: [
        { tool: 'search', args: { limit } },
        { tool: '_finish', args: { answer: 'x' } },
      ],
    });
    const { requests, events, run } = await played([finishBadly, both(1), both(2), DONE], { react: { reasks: 9 } });
    const { finish: ends, args, multi_action: several } = GUIDANCE;
    expect(requests.map(reminder)).toEqual([
      [],
      [ends.reminder],
      [ends.reminder, several.reminder],
      [ends.reminder, args.reminder, several.warning],
    ]);
    const told = only(events, 'planner.repair_guidance_injected');
    expect(told.map(({ tier, counter, count }) => [tier, counter, count])).toEqual([
      ['reminder', 'finish', 1],
      ['reminder', 'finish', 1],
      ['reminder', 'multi_action', 1],
      ['reminder', 'finish', 1],
      ['reminder', 'args', 1],
      ['warning', 'multi_action', 2],
    ]);
    for (const event of told) {
      expect(event.identity.run).toBe(run.id);
      expect(event.occurredAt).toEqual(expect.any(Number));
    }
  });

  it('RP-21 a reminder is the last turn of one request, and the system prompt stays as it was', async () => {
    const { requests } = await played([EMPTY, bad(1), good(), DONE]);
    const [first, second, third, fourth] = requests;
    expect([first, second, third, fourth].map((request) => system(request ?? { prompt: [] }))).toEqual(
      Array(4).fill(system(first ?? { prompt: [] })),
    );
    expect(tiers(second ?? { prompt: [] })).toEqual(['reminder']);
    const kept = second?.prompt.slice(0, -1);
    expect(third?.prompt.slice(0, kept?.length)).toEqual(kept);
    expect(JSON.stringify(fourth?.prompt)).not.toContain('reminder:');
  });
});

describe('errors of a model', () => {
  it('RP-12 one that is the fault of the request ends the run with it, after one call', async () => {
    const error = httpError(400);
    const model = scriptedModel([{ error }]);
    const { result } = await play({ model });
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'planner_failed', message: expect.stringContaining('status 400') },
    });
    expect(model.calls).toHaveLength(1);
  });

  it('RP-12 a cancelled run is not asked for again while it waits for the next try', async () => {
    const model = scriptedModel(() => ({ error: httpError(503, { 'retry-after': '20' }) }));
    const made = reactWorld({ model, react: {} });
    const slow = world({ planner: react({ model, clock: made.clock }), clock: made.clock });
    const run = await start(slow);
    await until(() => model.calls.length === 1);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    slow.clock.advance(60_000);
    expect(model.calls).toHaveLength(1);
  });

  it('models that cannot be reached: the run is paused when its patience is over, and says why', async () => {
    const models = ['first', 'second'].map((id) => named(id, () => ({ error: httpError(503) })));
    const { result, events } = await play({ model: models, react: { retries: 1 }, patienceMs: 0 });
    expect(models.map(({ calls }) => calls.length)).toEqual([2, 2]);
    expect(result).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'model_unavailable', payload: { message: expect.stringContaining('503') } }],
    });
    expect(exhaustedOf(events)).toEqual([]);
  });

  it('models that cannot be reached: the fallback planner takes over', async () => {
    const model = scriptedModel(() => ({ error: httpError(503) }));
    const { result, steps, events } = await play({
      model,
      react: { retries: 0, fallback: script(call('read', { q: 'a' })) },
    });
    expect(result).toMatchObject({ reason: 'goal', answer: 'done' });
    expect(model.calls).toHaveLength(1);
    expect(steps.map(({ provenance }) => provenance?.['fallback'])).toEqual(['function']);
    expect(exhaustedOf(events)).toHaveLength(1);
  });

  it('what was streamed of a model that then failed for good is taken back before the fallback planner speaks', async () => {
    const model = scriptedModel([{ text: 'a half ans', error: httpError(503), errorAt: 'read' }]);
    const fallback: Planner = {
      name: 'second',
      async *next() {
        yield { type: 'text', text: 'all of it' };
        return finish('all of it');
      },
    };
    const { events, result } = await playStreamed({ model, react: { retries: 0, fallback } });
    expect(result).toMatchObject({ answer: 'all of it' });
    expect(shownTexts(events)).toEqual(['all of it']);
  });

  it('what was streamed of a reply that its model then refused is taken back before the fallback planner speaks', async () => {
    const model = scriptedModel([{ text: 'I would say', finish: 'content-filter' }]);
    const { events, result } = await playStreamed({ model, react: { fallback: script(finish('all of it')) } });
    expect(result).toMatchObject({ answer: 'all of it' });
    expect(shownTexts(events)).toEqual(['']);
  });

  it('what was streamed of a model that then failed for good is taken back before the run waits', async () => {
    const model = scriptedModel([{ text: 'a half ans', error: httpError(503), errorAt: 'read' }]);
    const { events, result } = await playStreamed({ model, react: { retries: 0 }, patienceMs: 0 });
    expect(result).toMatchObject({ status: 'paused' });
    expect(shownTexts(events)).toEqual(['']);
  });
});

describe('replies that are no answer', () => {
  it.each<[string, FinishReason, Replies]>([
    ['nothing, over and over', 'no_path', [EMPTY, EMPTY, EMPTY]],
    ['blanks, over and over', 'no_path', [text(' \n'), text('\n '), EMPTY]],
    [
      'cut by length, over and over',
      'length',
      [1, 2, 3, 4].map(() => ({ text: 'The answer is forty', finish: 'length' as const })),
    ],
    ['filtered', 'refused', [{ text: 'The ans', finish: 'content-filter' }]],
    ['filtered, with a call', 'refused', [{ ...good(), finish: 'content-filter' }]],
    ['torn off, over and over', 'no_path', [1, 2, 3].map((n) => ({ text: `part ${n}`, finish: 'error' as const }))],
    ['a cut _finish', 'length', [{ calls: [{ tool: '_finish', args: { answer: 'forty' } }], finish: 'length' }]],
    [
      'a cut call, over and over',
      'no_path',
      [1, 2, 3].map((n) => ({ calls: [{ tool: 'search', input: `{"q": "${n}` }], finish: 'length' as const })),
    ],
  ])('RA-09, RA-18 is never the goal: %s', async (_, reason, replies) => {
    const { result } = await played(replies);
    expect(result).toMatchObject({ status: 'finished', reason });
  });

  it('RA-18 a refusal says so', async () => {
    const { result } = await played([{ text: 'I cannot', finish: 'content-filter' }]);
    expect(result).toMatchObject({ reason: 'refused', metadata: { stop_reason: 'content-filter' } });
  });

  it('RA-18 a cut reply: whole calls are made, the half one is not, and the step says so', async () => {
    const cut: ScriptedReply = {
      calls: [
        { tool: 'search', args: { q: 'a' } },
        { tool: 'read', input: '{"q": "b' },
      ],
      finish: 'length',
    };
    const { steps } = await played([cut, DONE]);
    expect(steps[0]?.decision).toMatchObject({ kind: 'call_tool', tool: 'search' });
    expect(steps[0]?.provenance).toMatchObject({ droppedCall: 'read' });
  });

  it('RA-13, RA-14 _finish ends with its answer; a malformed one is answered with an error and asked again', async () => {
    const wrong: ScriptedReply = { calls: [{ id: 'f', tool: '_finish', args: { result: 'x' } }] };
    const { result, requests } = await played([wrong, { calls: [{ tool: '_finish', args: { answer: 'done' } }] }]);
    expect(result).toMatchObject({ reason: 'goal', payload: 'done' });
    expect(wordsOf(requests[1]?.prompt.at(-2))).toMatch(/^<call_error>\nfinish_invalid — /);
    expect(reminder(requests[1] ?? { prompt: [] })).toEqual([GUIDANCE.finish.reminder]);
  });

  it('RA-17 _finish beside tools is answered with an error, and the tools are run', async () => {
    const reply: ScriptedReply = {
      calls: [
        { tool: '_finish', args: { answer: 'x' } },
        { tool: 'search', args: { q: 'a' } },
      ],
    };
    const { steps, result } = await played([reply, DONE]);
    expect(outcomes({ steps })).toEqual(['error', 'value']);
    expect(result).toMatchObject({ reason: 'goal', answer: 'done' });
  });

  it('RA-15, RA-16 spawning and awaiting are decisions of their own; a malformed one is answered with its error', async () => {
    const view = runView({ tasks: true });
    const decisionOf = async (tool: string, args: object) => {
      const model = scriptedModel([{ calls: [{ id: 'c', tool, input: JSON.stringify(args) }] }]);
      return (await ask(react({ model, tasks: true }), view)).decision;
    };
    const spec = { description: 'd', query: 'q', priority: 3, retain_turn: true, fail_fast: false };
    expect(await decisionOf('_spawn_task', { kind: 'foreground', group_id: 'g', spec })).toEqual({
      kind: 'spawn_task',
      task: 'foreground',
      groupId: 'g',
      spec: { description: 'd', query: 'q', priority: 3, retainTurn: true, failFast: false },
      callId: 'c',
    });
    expect(await decisionOf('_spawn_task', { spec: { description: 'd', query: 'q' } })).toMatchObject({
      task: 'background',
    });
    expect(await decisionOf('_await_task', { task_id: 't' })).toEqual({ kind: 'await_task', taskId: 't', callId: 'c' });
    for (const [tool, args] of [
      ['_await_task', {}],
      ['_await_task', { task_id: '' }],
      ['_spawn_task', { spec: {} }],
      ['_spawn_task', { spec: { ...spec, priority: 1_001 } }],
      ['_spawn_task', { kind: 'sideways', spec }],
    ] as const) {
      expect(await decisionOf(tool, args)).toMatchObject({
        kind: 'call_tool',
        tool,
        refusal: { code: 'tool_invalid_args' },
      });
    }
  });
});

describe('RA-19 one malformed call beside others (bug 3)', () => {
  const reply: ScriptedReply = {
    calls: [
      { id: 'a', tool: 'search', args: { q: 'x' } },
      { id: 'b', tool: 'read', input: 'not json at all' },
      { id: 'c', tool: 'read', args: { q: 'y' } },
    ],
  };

  it.each([
    'whole',
    'streamed',
  ])('is answered with its error, its siblings run, and the history is well formed: %s', async (how) => {
    const model = scriptedModel([reply, DONE]);
    const { steps } = await (how === 'whole' ? play : playStreamed)({ model });
    expect(outcomes({ steps })).toEqual(['value', 'error', 'value']);
    const [assistant, results] = model.calls[1]?.prompt.slice(-2) ?? [];
    expect(assistant?.content).toMatchObject([
      { toolCallId: 'a', input: { q: 'x' } },
      { toolCallId: 'b', input: {} },
      { toolCallId: 'c', input: { q: 'y' } },
    ]);
    expect(results?.content).toMatchObject([
      { toolCallId: 'a', output: { value: 'found x' } },
      {
        toolCallId: 'b',
        output: { type: 'error-text', value: expect.stringMatching(/^<call_error>\ntool_invalid_args/) },
      },
      { toolCallId: 'c', output: { value: 'text of y' } },
    ]);
    expect(chatFaults(model)).toEqual([]);
  });
});

describe('the next rung', () => {
  it('the second model is asked after the first has had its tries, from the same history and without its reminders', async () => {
    const first = named('first', [bad(1), bad(2), bad(3), DONE]);
    const second = named('second', [good()]);
    const { steps, result, events } = await play({ model: [first, second] });
    expect(steps.map(({ provenance }) => provenance?.['model'])).toEqual(['first', 'first', 'first', 'second']);
    // After a clean step the first is asked again.
    first.assertConsumed();
    expect(result).toMatchObject({ reason: 'goal' });
    expect(exhaustedOf(events)).toEqual([]);
    expect(chat(second.calls[0] ?? { prompt: [] })).toHaveLength(1 + 3 * 2);
    expect(tiers(second.calls[0] ?? { prompt: [] })).toEqual([]);
  });

  it('each model has tries of its own, and the end tells of all of them', async () => {
    const models = [named('first', [EMPTY, EMPTY, EMPTY]), named('second', [1, 2, 3].map(bad))];
    const { result, events } = await play({ model: models });
    for (const model of models) model.assertConsumed();
    expect(result).toMatchObject({
      reason: 'no_path',
      metadata: { repair_attempts: 6, repair_consecutive_arg_failures: 3 },
    });
    expect(exhaustedOf(events)).toMatchObject([{ attempts: 6 }]);
  });

  it('a model whose window is too small for the run is no rung', async () => {
    const large = named('large', [EMPTY, EMPTY, EMPTY]);
    const small = named('small', []);
    const pool = [large, { model: small, contextTokens: 100 }];
    const { result } = await play({ model: pool, react: { fallback: script() } });
    expect(result).toMatchObject({ reason: 'goal', answer: 'done' });
    const alone = await play({ model: [named('large', [EMPTY, EMPTY, EMPTY]), { model: small, contextTokens: 100 }] });
    expect(alone.result).toMatchObject({ reason: 'no_path', metadata: { repair_exhausted: true } });
    expect(small.calls).toHaveLength(0);
  });

  it('the fallback planner takes over when every model has had its tries, and keeps the rest of the run', async () => {
    const models = [named('first', [EMPTY, EMPTY, EMPTY]), named('second', [EMPTY, EMPTY, EMPTY])];
    const decisions = [call('read', { q: 'a' }), call('search', { q: 'b' }), finish('by plan b')];
    const planner: Planner = {
      name: 'plan b',
      next: ({ trajectory }) => decisions[trajectory.count - 6] ?? finish('too many'),
    };
    const { steps, result, events } = await play({ model: models, react: { fallback: planner } });
    expect(result).toMatchObject({ reason: 'goal', answer: 'by plan b' });
    expect(steps.map(({ provenance }) => provenance?.['model'] ?? provenance?.['fallback'])).toEqual([
      'first',
      'first',
      'first',
      'second',
      'second',
      'second',
      'plan b',
      'plan b',
    ]);
    expect(exhaustedOf(events)).toHaveLength(1);
  });

  it('the fallback planner stays, whatever becomes of its own steps, also after a restart', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const model = scriptedModel([EMPTY, EMPTY, EMPTY]);
    const planner = (): Planner => ({
      name: 'plan b',
      next: ({ trajectory }) => {
        if (trajectory.count === 3) return call('nothing', {});
        return trajectory.count === 4 ? { kind: 'request_pause', reason: 'await_input' } : finish('by plan b');
      },
    });
    const before = reactWorld({ model, react: { fallback: planner() }, journal });
    const run = await start(before);
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await before.runtime.close();
    const unused = scriptedModel([]);
    const after = reactWorld({ model: unused, react: { fallback: planner() }, journal });
    const resumed = after.runtime.run(run.id);
    await resumed.resume();
    expect(await resumed.result()).toMatchObject({ answer: 'by plan b' });
    expect(unused.calls).toHaveLength(0);
  });

  it('the ladder goes on over a compaction', async () => {
    const long = tool({ ...search, execute: () => 'word '.repeat(400) });
    const summariser = scriptedModel((_, index) =>
      text(JSON.stringify({ goals: ['go'], facts: [`${index} of it`], pending: [], lastOutputDigest: 'it', note: '' })),
    );
    const react = { compaction: { budgetTokens: 1, summariser } };
    const { requests, result, run, journal } = await played([good(), bad(1), bad(2), bad(3)], {
      react,
      tools: [long],
    });
    expect((await entriesOf(journal, run, 'compacted')).length).toBeGreaterThan(0);
    expect(requests.map(tiers)).toEqual([[], [], [], ['reminder']]);
    expect(result).toMatchObject({ reason: 'no_path', metadata: { repair_attempts: 3 } });
  });

  it('the ladder goes on after a restart: the same next request, and as many tries as were left', async () => {
    const path = temporaryFile();
    const asked: Replies = [bad(1), bad(2), { stall: true }];
    const model = scriptedModel(asked);
    const journal = openJournal(path);
    const before = reactWorld({ model, journal });
    const run = await start(before);
    await until(() => model.calls.length === 3);
    await before.runtime.close();
    const again = scriptedModel([bad(3)]);
    const after = reactWorld({ model: again, journal: openJournal(path) });
    const resumed = after.runtime.run(run.id);
    await resumed.resume();
    expect(await resumed.result()).toMatchObject({ reason: 'no_path', metadata: { repair_attempts: 3 } });
    expect(again.calls).toHaveLength(1);
    expect(again.calls[0]?.prompt).toEqual(model.calls[2]?.prompt);
    expect(again.calls[0]?.tools).toEqual(model.calls[2]?.tools);
    expect(tiers(again.calls[0] ?? { prompt: [] })).toEqual(['reminder']);
  });
});
