/** What a summariser may reply, and how often it is asked: a summary takes the place of steps that nobody sends again. */
import { describe, expect, it } from 'vitest';
import type { Summary, ToolSchema } from '#core';
import { finish } from '#planners/finish';
import { actLines, shownActs } from '#prompt';
import { type ReplyFunction, type ScriptedReply, toolView } from '#testing';
import { type Tool, tool } from '#tools';
import { only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { entriesOf } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { failure, stepOfMove, value } from '../kit/steps.ts';
import { until } from '../kit/waiting.ts';
import { start } from '../kit/world.ts';
import { chatFaults, input, named, type PlayOptions, play, reactWorld, wordsOf } from './played.ts';

/** About a thousand tokens. */
const page: Tool = tool({
  name: 'page',
  description: 'Reads a page.',
  effect: 'read',
  inputSchema: input,
  execute: ({ q }) => `page ${String(q)} ${'word '.repeat(800)}`,
});
const reader =
  (count: number): ReplyFunction =>
  (_, index) =>
    index < count ? { calls: [{ tool: 'page', args: { q: `${index}` } }] } : { text: 'done' };

const SUMMARY: Summary = {
  goals: ['Find the page that names Oslo.'],
  facts: ['Page 0 names Rome.'],
  pending: ['Read on.'],
  lastOutputDigest: 'Page 2 names nothing.',
  note: '',
};
const WHOLE = JSON.stringify(SUMMARY);

const schema = (name: string) => toolView([name]).list()[0] as ToolSchema;

type Given = Partial<Omit<PlayOptions, 'model'>> & { readonly budgetTokens?: number; readonly contextTokens?: number };

async function played(reply: string | ScriptedReply | ReplyFunction, steps = 4, given: Given = {}) {
  const { budgetTokens = 4_000, contextTokens, ...more } = given;
  const script: ReplyFunction =
    typeof reply === 'function' ? reply : () => (typeof reply === 'string' ? { text: reply } : reply);
  const model = named('worker', reader(steps));
  const summariser = named('summariser', script);
  const made = await play({
    model: { model, ...(contextTokens === undefined ? {} : { contextTokens }) },
    tools: [page],
    ...more,
    react: { compaction: { budgetTokens, summariser }, retries: 0, ...more.react },
  });
  expect(chatFaults(model, summariser)).toEqual([]);
  return {
    ...made,
    model,
    summariser,
    compacted: await entriesOf(made.journal, made.run, 'compacted'),
    failed: await entriesOf(made.journal, made.run, 'compaction_failed'),
  };
}

describe('a summary is read', () => {
  it.each<[string, string]>([
    ['as it is', WHOLE],
    ['from a fence', `\`\`\`json\n${WHOLE}\n\`\`\``],
    ['from between words', `Here is the summary:\n\n${WHOLE}\n\nI hope that this helps.`],
    ['from a fence between words', `The summary:\n\`\`\`\n${JSON.stringify(SUMMARY, null, 2)}\n\`\`\`\nThat is all.`],
    ['from behind a thought', `<think>What matters? {"goals": ["draft"]}</think>\n${WHOLE}`],
    ['from behind a thought without a beginning', `What matters? {"note": "draft"}</think>\n${WHOLE}`],
    ['from another object', `{"summary": ${WHOLE}}`],
    ['from a list', `[${WHOLE}]`],
    ['from behind a draft', `${JSON.stringify({ ...SUMMARY, facts: ['A draft.'] })}\nBetter:\n${WHOLE}`],
    ['with something that does not belong', JSON.stringify({ ...SUMMARY, steps: 3 })],
    ['with one text in place of a list', JSON.stringify({ ...SUMMARY, goals: SUMMARY.goals[0] })],
    ['in single quotes', WHOLE.replaceAll('"', "'")],
  ])('%s', async (_, reply) => {
    const { compacted, failed } = await played(reply);
    expect(failed).toEqual([]);
    expect(compacted.map(({ summary }) => summary)).toEqual([SUMMARY]);
  });
});

describe('a summary is refused, and the run goes on in full', () => {
  const without = (part: keyof Summary) => JSON.stringify({ ...SUMMARY, [part]: undefined });
  const emptied = (part: keyof Summary, value: unknown) => JSON.stringify({ ...SUMMARY, [part]: value });

  it.each<[string, string, string]>([
    ['nothing', '', 'empty_summary'],
    ['words', 'The agent read three pages and found nothing.', 'empty_summary'],
    ['an object of another kind', '{"answer": "done"}', 'empty_summary'],
    ['a thought that does not end', `<think>${WHOLE}`, 'empty_summary'],
    ['every part empty', '{"goals":[],"facts":[""],"pending":[],"lastOutputDigest":" ","note":""}', 'empty_summary'],
    ['a note alone', '{"note":"ok"}', 'invalid_summary'],
    [
      'a note alone, the other parts empty',
      '{"goals":[],"facts":[],"pending":[],"lastOutputDigest":"","note":"ok"}',
      'invalid_summary',
    ],
    ['no goals', without('goals'), 'invalid_summary'],
    ['no facts', without('facts'), 'invalid_summary'],
    ['no pending', without('pending'), 'invalid_summary'],
    ['no digest', without('lastOutputDigest'), 'invalid_summary'],
    ['no note', without('note'), 'invalid_summary'],
    ['empty goals', emptied('goals', []), 'invalid_summary'],
    ['empty facts', emptied('facts', ['', ' ']), 'invalid_summary'],
    ['facts that say nothing', emptied('facts', ['n/a', '...']), 'invalid_summary'],
    ['a digest that says nothing', emptied('lastOutputDigest', 'N/A'), 'invalid_summary'],
    ['goals of null', emptied('goals', null), 'invalid_summary'],
    ['a reply that was cut', WHOLE.slice(0, -20), 'invalid_summary'],
    [
      'a list that was cut',
      '{"goals":["g"],"pending":[],"lastOutputDigest":"d","note":"","facts":["a","b"',
      'invalid_summary',
    ],
    ['as long as the steps', JSON.stringify({ ...SUMMARY, note: 'word '.repeat(2_600) }), 'long_summary'],
  ])('%s', async (_, reply, code) => {
    const { compacted, failed, events, result, model } = await played(reply);
    expect(compacted).toEqual([]);
    expect(failed.map(({ error }) => error.code)).toEqual([code]);
    expect(only(events, 'trajectory.compression_failed')).toMatchObject([{ errorCode: code, stepsObserved: 4 }]);
    expect(result).toMatchObject({ reason: 'goal', answer: 'done' });
    const words = model.calls.at(-1)?.prompt.map(wordsOf).join('\n') ?? '';
    for (const index of [0, 1, 2, 3]) expect(words).toContain(`page ${index} word`);
  });

  it('the earlier one again says nothing of the steps since', async () => {
    const { compacted, failed } = await played(WHOLE, 8);
    expect(compacted).toHaveLength(1);
    expect(failed[0]?.error).toMatchObject({
      code: 'invalid_summary',
      message: expect.stringContaining('earlier one'),
    });
  });

  it('the request after a summary is shorter than it was', async () => {
    const sizes: number[] = [];
    const { compacted } = await played((_, index) => ({ text: JSON.stringify({ ...SUMMARY, note: `${index}` }) }), 12);
    for (const { tokenEstimate } of compacted) sizes.push(tokenEstimate);
    expect(compacted.length).toBeGreaterThan(2);
    // It never grows with the run.
    expect(Math.max(...sizes)).toBeLessThan(1.5 * (sizes[0] ?? 0));
  });

  it('no larger than a few steps: the frame counts too', async () => {
    const short = tool({ ...page, execute: () => 'no' });
    const { failed, compacted } = await played(WHOLE, 2, { tools: [short], budgetTokens: 1 });
    expect(compacted).toEqual([]);
    expect(failed[0]?.error.code).toBe('long_summary');
  });
});

describe('what a summary leaves out and nobody may forget', () => {
  const pay: Tool = tool({
    name: 'pay',
    description: 'Pays.',
    effect: 'once',
    inputSchema: input,
    execute: ({ q }) => `</calls_made> receipt of ${String(q)}`,
  });
  const paying: ReplyFunction = (request, index) =>
    index === 0 ? { calls: [{ tool: 'pay', args: { q: 'A-17' } }] } : reader(5)(request, index);

  it.each([
    'native',
    'text',
  ] as const)('calls that may have changed something are told as they were recorded: %s', async (mode) => {
    const written: ReplyFunction = (request, index) => {
      const { calls, ...reply } = paying(request, index);
      return mode === 'native' || calls === undefined
        ? paying(request, index)
        : { ...reply, text: `\`\`\`json\n${JSON.stringify(calls)}\n\`\`\`` };
    };
    const model = named('worker', written);
    const summariser = named('summariser', () => ({ text: WHOLE }));
    const made = await play({
      model: { model, toolCalls: mode },
      tools: [page, pay],
      react: { compaction: { budgetTokens: 4_000, summariser } },
    });
    expect(await entriesOf(made.journal, made.run, 'compacted')).toHaveLength(1);
    expect(chatFaults(model)).toEqual([]);
    const words =
      model.calls
        .at(-1)
        ?.prompt.map(wordsOf)
        .filter((said) => said.includes('<calls_made>')) ?? [];
    expect(words).toHaveLength(1);
    expect(words[0]).toContain('step 1: pay {"q":"A-17"} → "<\\/calls_made> receipt of A-17"');
    expect(words[0]).not.toContain('page');
  });

  it('one whose outcome is unknown is among them, whatever its tool is by now', () => {
    const died = { kind: 'unknown', error: { code: 'call_unknown', message: 'The process died.' } } as const;
    const decision = (tool: string) => ({ kind: 'call_tool', tool, args: { q: 'x' }, callId: 'c' }) as const;
    const steps = [
      stepOfMove(0, { decision: decision('gone') }, [died]),
      stepOfMove(1, { decision: decision('pay') }, [failure('tool_failed', 'No.')]),
      stepOfMove(2, { decision: decision('search') }, [value('found')]),
    ];
    const lines = steps.flatMap((step) => actLines(step, toolView(['search', { ...schema('pay'), effect: 'once' }])));
    expect(lines.map(({ text }) => text)).toEqual([
      'step 1: gone {"q":"x"} → unknown whether it happened (call_unknown — The process died.)',
    ]);
    const many = Array.from({ length: 70 }, (_, index) => ({ text: `${index}`, isOpen: index === 3 }));
    expect(shownActs(many).slice(0, 3)).toEqual(['- 19 calls before these', '- 3', '- 20']);
    expect(shownActs([])).toEqual([]);
  });
});

describe('after a refusal', () => {
  it('it is tried again after two steps, then four, eight and so on, and not at every step', async () => {
    const { failed, summariser, compacted } = await played('{"note":"ok"}', 60, { start: { limits: { steps: 100 } } });
    expect(compacted).toEqual([]);
    expect(failed.map(({ step }) => step)).toEqual([4, 6, 10, 18, 34]);
    expect(summariser.calls).toHaveLength(5);
  });

  it('a summary ends the row', async () => {
    const { failed, compacted } = await played(
      (_, index) => ({ text: index === 0 || index === 3 ? 'no' : JSON.stringify({ ...SUMMARY, note: `${index}` }) }),
      14,
    );
    const [first, second] = failed.map(({ step }) => step);
    expect(first).toBe(4);
    expect(compacted[0]?.step).toBe(6);
    const next = compacted.find(({ step }) => step > (second ?? Infinity));
    expect(next?.step).toBe((second ?? 0) + 2);
  });

  it('the wait is the same after a restart', async () => {
    const path = temporaryFile();
    const summariser = () => named('summariser', () => ({ text: 'no' }));
    const first = named('worker', (request, index) => (index < 5 ? reader(9)(request, index) : { stall: true }));
    const options = { tools: [page], journal: openJournal(path) };
    const before = reactWorld({
      ...options,
      model: first,
      react: { compaction: { budgetTokens: 4_000, summariser: summariser() } },
    });
    const run = await start(before);
    await until(() => first.calls.length === 6);
    await before.runtime.close();
    const second = named('worker', (request, index) => reader(12)(request, index + 5));
    const after = reactWorld({
      tools: [page],
      journal: openJournal(path),
      model: second,
      react: { compaction: { budgetTokens: 4_000, summariser: summariser() } },
    });
    const resumed = after.runtime.run(run.id);
    await resumed.resume();
    await resumed.result();
    expect((await entriesOf(after.journal, resumed, 'compaction_failed')).map(({ step }) => step)).toEqual([4, 6, 10]);
  });

  it('the last chance before the window is full is not waited away', async () => {
    const { compacted, failed, result } = await played(
      (_, index) => ({ text: index < 2 ? 'no' : JSON.stringify({ ...SUMMARY, note: `${index}` }) }),
      12,
      { contextTokens: 9_300 },
    );
    expect(failed.map(({ step }) => step)).toEqual([4, 6]);
    // Waiting would have lasted until step 10, and the window is full at 9.
    expect(compacted[0]?.step).toBe(9);
    expect(result).toMatchObject({ reason: 'goal' });
  });

  it('one that is never made is written without a model where the window is full, and the run goes on', async () => {
    const { result, compacted, failed } = await played('no', 30, {
      contextTokens: 9_000,
      react: { fallback: finish() },
    });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(failed.length).toBeGreaterThan(0);
    const [plain] = compacted;
    expect(plain?.summary.note).toContain('No model wrote this summary');
    expect(plain?.summary.facts.join('\n')).toMatch(/step \d+: page .*→ "page \d+ word/);
  });
});
