import type { LanguageModelV4Message } from '@ai-sdk/provider';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BackgroundResult,
  type Compaction,
  type Decision,
  local,
  type RunView,
  type SteeringTurn,
  type Step,
} from '#core';
import { systemPrompt, Transcript, type TranscriptOptions } from '#prompt';
import { type RunViewOptions, runView, toolView } from '#testing';
import { call } from '../kit/decisions.ts';
import { failure, group, says, stepOf, value } from '../kit/steps.ts';
import { DISCOVERY, TOOLS } from '../kit/tool-schemas.ts';

const schemas = [...TOOLS, ...DISCOVERY];
const RUN: RunViewOptions = { identity: local('ana'), history: [], context: { externalMemory: { a: 1 } } };
const SUMMARY = { goals: ['g'], facts: [], pending: [], lastOutputDigest: '', note: '' };

const branch = fc.record({
  tool: fc.constantFrom('read', 'search', '_finish', '_spawn_task', '_await_task', 'no tool'),
  args: fc.constantFrom({}, { q: '```' }, 'text', [1]),
  callId: fc.constantFrom('', 'a', 'b', 'react.callid.1', 'react.callid.1.0'),
});
const decision: fc.Arbitrary<Decision> = fc.oneof(
  branch.map((call) => ({ kind: 'call_tool' as const, ...call })),
  fc.array(branch, { minLength: 1, maxLength: 3 }).map((branches) => ({ kind: 'call_parallel' as const, branches })),
  fc.constant({ kind: 'request_pause' as const, reason: 'await_input' as const }),
  fc.constant({ kind: 'await_task' as const, taskId: 't', callId: 'a' }),
  fc.constant({ kind: 'spawn_task' as const, task: 'background' as const, spec: { description: 'd', query: 'q' } }),
);
const stepParts = fc.record({
  decision,
  outcome: fc.constantFrom(value('v'), failure('tool_failed', 'It broke.')),
  text: fc.constantFrom('', 'So.'),
  reasoning: fc.constantFrom('', 'hm'),
  signed: fc.boolean(),
  refused: fc.boolean(),
  discovers: fc.boolean(),
  stores: fc.boolean(),
  steered: fc.boolean(),
  woken: fc.boolean(),
  answered: fc.boolean(),
});
const options = fc.record({
  mode: fc.constantFrom('native' as const, 'text' as const),
  replay: fc.constantFrom('never' as const, 'text' as const),
  takes: fc.constant(() => true),
});

type StepParts = typeof stepParts extends fc.Arbitrary<infer Parts> ? Parts : never;

function stepFrom(index: number, parts: StepParts): Step {
  const { outcome, text, reasoning, signed, refused, discovers, stores, answered } = parts;
  const stored = { artifactRef: `art_${index}`, mime: '', sizeBytes: 1, source: '', createdAt: index };
  return stepOf(index, parts.decision, {
    ...{ text, reasoning, outcomes: [outcome, outcome, outcome] },
    ...(answered ? { provenance: { answered } } : {}),
    ...(signed
      ? {
          providerState: {
            parts: [
              { type: 'custom', kind: 'p.x' },
              { type: 'call', call: 0 },
            ],
          },
        }
      : {}),
    ...(refused ? { error: { code: 'invalid_decision', message: 'no' } } : {}),
    records: [{ ...(discovers ? { discovered: ['csv_read'] } : {}), ...(stores ? { artifacts: [stored] } : {}) }],
  });
}

function transcriptOf(view: RunView, how: TranscriptOptions): Transcript {
  return new Transcript(systemPrompt({ converse: false }, view, how.mode), view, how);
}

function pairFault(messages: readonly LanguageModelV4Message[]): string | undefined {
  const seen = new Set<string>();
  for (const [index, { role, content }] of messages.entries()) {
    const idsIn = (parts: LanguageModelV4Message['content'] | undefined) =>
      typeof parts === 'string' ? [] : (parts ?? []).flatMap((part) => ('toolCallId' in part ? [part.toolCallId] : []));
    if (typeof content !== 'string' && content.length === 0) return `empty at ${index}`;
    if (role === 'tool' && messages[index - 1]?.role !== 'assistant') return `orphan at ${index}`;
    if (role !== 'assistant') continue;
    const next = messages[index + 1];
    if (JSON.stringify(idsIn(content)) !== JSON.stringify(next?.role === 'tool' ? idsIn(next.content) : [])) {
      return `unpaired at ${index}`;
    }
    for (const id of idsIn(content)) {
      if (seen.has(id)) return `twice ${id}`;
      seen.add(id);
    }
  }
  return undefined;
}

describe('the transcript of a run', () => {
  it('RA-20, RA-36, RA-37, CP-18 only grows, pairs every call, is the same when made anew, and begins anew only with a summary', () => {
    fc.assert(
      fc.property(fc.array(stepParts, { minLength: 1, maxLength: 8 }), options, fc.nat(12), (made, how, cut) => {
        const steps: Step[] = [];
        let steering: SteeringTurn[] = [];
        let background: BackgroundResult[] = [];
        let compaction: Compaction | undefined;
        let found: string[] = [];
        let transcript: Transcript | undefined;
        let former: string[] = [];
        for (const [index, parts] of made.entries()) {
          if (parts.steered) steering = [...steering, says(index, `m${index}`)];
          if (parts.woken) background = [...background, group(`g${index}`, index)];
          if (index === cut && index > 0) compaction = { summary: SUMMARY, before: index - 1, tokenEstimate: 1 };
          const view = runView({
            ...RUN,
            ...{ steps: [...steps], steering, background, tools: toolView(schemas, found) },
            ...(compaction === undefined ? {} : { compaction }),
          });
          expect(transcript?.fits(view) ?? false).toBe(index > 0 && index !== cut);
          if (transcript?.fits(view) !== true) transcript = transcriptOf(view, how);
          const messages = transcript.upTo(view);
          const texts = messages.map((message) => JSON.stringify(message));
          if (index !== cut) expect(texts.slice(0, former.length)).toEqual(former);
          expect(transcriptOf(view, how).upTo(view)).toEqual(messages);
          expect(pairFault(messages)).toBeUndefined();
          expect(transcript.stepStarts).toHaveLength(steps.length - (compaction?.before ?? 0));
          former = texts;
          steps.push(stepFrom(index, parts));
          if (parts.discovers && !parts.refused) found = ['csv_read'];
        }
      }),
      { numRuns: 200 },
    );
  });

  it('begins anew when a message comes for a step whose results were told already: it has its place before them', () => {
    const background = [group('g', 1)];
    const view = { ...RUN, steps: [stepOf(0, call('read'))], background };
    const how: TranscriptOptions = { mode: 'native', replay: 'never', takes: () => false };
    const transcript = transcriptOf(runView(view), how);
    transcript.upTo(runView(view));
    expect(transcript.fits(runView({ ...view, background: [...background, group('h', 1)] }))).toBe(true);
    expect(transcript.fits(runView({ ...view, steering: [says(2, 'next')] }))).toBe(true);
    expect(transcript.fits(runView({ ...view, steering: [says(1, 'late')] }))).toBe(false);
    expect(transcript.fits(runView({ ...view, background: [group('other', 1)] }))).toBe(false);
  });

  it('gives away a copy, and says where each step begins', () => {
    const steps = [stepOf(0, call('read')), stepOf(1, call('search'))];
    const view = runView({ ...RUN, steps, steering: [says(1, 'hm')] });
    const transcript = transcriptOf(view, { mode: 'native', replay: 'never', takes: () => false });
    const first = transcript.upTo(view);
    expect(first.map(({ role }) => role)).toEqual([
      ...['system', 'user', 'user', 'assistant', 'tool'],
      ...['user', 'assistant', 'tool'],
    ]);
    expect(transcript.stepStarts).toEqual([3, 5]);
    first.length = 0;
    expect(transcript.upTo(view)).toHaveLength(8);
  });

  it('does not fit another run, other tools, another context or another past', () => {
    const tools = toolView(schemas);
    const steps = [stepOf(0, call('read'))];
    const view = { ...RUN, tools, steps };
    const transcript = transcriptOf(runView(view), { mode: 'native', replay: 'never', takes: () => false });
    transcript.upTo(runView(view));
    const fits = (more: RunViewOptions) => transcript.fits(runView({ ...view, ...more }));
    expect(fits({})).toBe(true);
    expect(fits({ tools: toolView(schemas, ['csv_read']) })).toBe(true);
    expect(fits({ steps: [...steps, stepOf(1, call('read'))] })).toBe(true);
    expect(fits({ tools: toolView(TOOLS) })).toBe(false);
    expect(fits({ query: 'else' })).toBe(false);
    expect(fits({ history: [] })).toBe(false);
    expect(fits({ context: {} })).toBe(false);
    expect(fits({ startedAt: 1 })).toBe(false);
    expect(fits({ steps: [stepOf(0, call('read'))] })).toBe(false);
    expect(fits({ steps: [] })).toBe(false);
    expect(fits({ compaction: { summary: SUMMARY, before: 1, tokenEstimate: 1 } })).toBe(false);
  });
});
