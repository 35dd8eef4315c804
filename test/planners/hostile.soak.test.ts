import { describe, expect, it } from 'vitest';
import { branchesOf, type Clock, type EntryBody, local } from '#core';
import { memoryJournal } from '#journal';
import { finish } from '#planners/finish';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { scriptedModel, seededRandom } from '#testing';
import { tool } from '#tools';
import { hostileModel } from './hostile-model.ts';
import { chatFault } from './well-formed.ts';

/** Waits between tries pass at once; a model that stays silent does not occur here. */
function hastyClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    after(delayMs, wake) {
      if (delayMs > 30_000) return () => {};
      const timer = setImmediate(() => {
        now += delayMs;
        wake();
      });
      return () => clearImmediate(timer);
    },
  };
}

const input = {
  type: 'object',
  properties: { q: { type: 'string' }, limit: { type: 'integer' } },
  required: ['q'],
  additionalProperties: false,
};
const STEPS = 12;

interface Outcome {
  readonly status: string;
  readonly why: string;
  readonly steps: number;
  readonly requests: number;
  readonly faults: readonly string[];
  /** What happened on the way: remarks, and how the run ended. */
  readonly seen: readonly string[];
  /** What was paid, outside of the run. */
  readonly paid: readonly string[];
}

async function play(seed: number): Promise<Outcome> {
  const random = seededRandom(seed);
  const journal = memoryJournal();
  const models = [scriptedModel(hostileModel(random), { modelId: 'first' })];
  if (random() < 0.3) models.push(scriptedModel(hostileModel(random), { modelId: 'second' }));
  const textMode = random() < 0.4;
  const paid: string[] = [];
  const runtime = createRuntime({
    planner: react({
      model: models.map((model) => ({ model, toolCalls: textMode ? ('text' as const) : ('native' as const) })),
      clock: hastyClock(),
      ...(random() < 0.3 ? { fallback: finish({ payload: 'by the fallback' }) } : {}),
      ...(random() < 0.3 ? { parallelToolCalls: false } : {}),
      ...(random() < 0.3 ? { continuations: 0 } : {}),
    }),
    tools: [
      ...['search', 'read'].map((name) =>
        tool({ name, description: name, effect: 'read', inputSchema: input, execute: ({ q }) => `${String(q)}!` }),
      ),
      tool({
        name: 'pay',
        description: 'Pays.',
        effect: 'once',
        inputSchema: input,
        execute: ({ q }) => void paid.push(String(q)),
      }),
    ],
    journal,
    limits: { steps: STEPS },
    onFault: () => {},
  });
  const run = await runtime.start('go', { identity: local('ana') });
  if (random() < 0.5) for await (const _ of run.events()); // streams
  const result = await run.result();
  const entries = (await journal.read(run.id)) as readonly EntryBody[];
  await runtime.close();
  const isPaused = entries.some((entry) => entry.kind === 'moved' && entry.partial === 'paused');
  const requests = models.flatMap((model) => model.calls);
  return {
    status: result.status,
    why: result.status === 'failed' ? result.error.message : '',
    steps: entries.filter((entry) => entry.kind === 'moved').length,
    requests: requests.length,
    faults: requests.flatMap(({ prompt }) => chatFault(prompt) ?? []).filter((fault) => !isPaused || fault !== PAUSED),
    seen: [...entries.flatMap(seenIn), ...paid.map((q) => `paid ${q}`)],
    paid,
  };
}

/** Nothing stands behind a turn with which its provider is to go on. */
const PAUSED = 'it ends with assistant';

function seenIn(entry: EntryBody): readonly string[] {
  if (entry.kind === 'finished') {
    const { via, budget } = entry.metadata ?? {};
    return [`${entry.reason} by ${String(via ?? budget ?? 'the fallback')}`];
  }
  if (entry.kind !== 'moved') return [];
  const refusals = branchesOf(entry.decision).flatMap(({ refusal }) => refusal?.code ?? []);
  return [
    ...refusals,
    ...(entry.remarks ?? []).map(({ type }) => type),
    ...(entry.fault === undefined ? [] : [entry.fault.code]),
    ...(entry.partial === undefined ? [] : [entry.partial]),
  ];
}

/** All of it has to happen in ten thousand runs, or they prove little. */
const MUST_BE_SEEN = [
  'goal by react.reply',
  'goal by react.finish',
  'goal by the fallback',
  'length by react.reply',
  'refused by react.reply',
  'no_path by react.ladder',
  'max_steps by steps',
  'planner.repair_guidance_injected',
  'planner.repair_exhausted',
  'planner.reply_repaired',
  'model.fallback',
  'reply_empty',
  'reply_truncated',
  'reply_interrupted',
  'reply_unreadable',
  'reply_refused',
  'cut_off',
  'paused',
  'too_many_calls',
  'call_unsure',
  'call_repeated',
  'paid x',
  'paid once',
];

describe('a hostile model', () => {
  it('PC-27 10,000 runs end in a valid decision, every request is a well-formed chat, and nothing is paid that no model asked for', async () => {
    const wrong: unknown[] = [];
    const seen = new Set<string>();
    for (let seed = 1; seed <= Number(process.env['SEEDS'] ?? 10_000); seed += 1) {
      const { status, why, steps, requests, faults, paid, ...run } = await play(seed);
      for (const what of run.seen) seen.add(what);
      // Each move asks at most two models three times each, and one more move may be the end.
      const isBounded = steps <= STEPS + 1 && requests <= (STEPS + 1) * 6;
      const isAsked = !paid.includes('never') && paid.filter((q) => q === 'once').length <= 1;
      if (status !== 'finished' || !isBounded || !isAsked || faults.length > 0) {
        wrong.push({ seed, status, why, steps, requests, faults, paid });
      }
    }
    expect(wrong.slice(0, 5)).toEqual([]);
    expect(MUST_BE_SEEN.filter((what) => !seen.has(what))).toEqual([]);
  }, 300_000);
});
