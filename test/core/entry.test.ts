import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Decision, decodeEntry, type Entry, encodeEntry, type Json, PilotageError } from '#core';
import { react } from '#planners/react';
import { foldEntries, viewOf } from '#state';
import { scriptedModel, toolView } from '#testing';
import { tool } from '#tools';
import { ask } from '../kit/ask.ts';
import { record } from '../kit/recorded.ts';

const NO_TOOLS = toolView([]);
const echo = tool({
  name: 't',
  description: 'd',
  inputSchema: { type: 'object' },
  effect: 'pure',
  execute: (args) => args,
});

const SIX: Decision[] = [
  { kind: 'call_tool', tool: 't', args: { a: ['ü', null, 1.5] }, callId: 'c1' },
  {
    kind: 'call_parallel',
    branches: [
      { id: 'a', tool: 't', args: { y: 1 } },
      { tool: 't', args: { x: { $from: 'a', path: '/y' } }, after: ['a'], when: { branch: 'a', equals: { y: 1 } } },
    ],
    join: { kind: 'keyed', keys: ['one', 'two'] },
    onInvalid: 'per_branch',
  },
  { kind: 'spawn_task', task: 'foreground', spec: { description: 'd', query: 'q', priority: 5 }, callId: 'c2' },
  { kind: 'await_task', taskId: 't1', timeoutMs: 1000 },
  { kind: 'request_pause', reason: 'await_input', payload: { question: 'which?' }, expiresInMs: 0 },
  { kind: 'finish', reason: 'goal', payload: { answer: 'a' }, metadata: { k: 'v' } },
];

const moved = (decision: unknown, more: object = {}): string =>
  JSON.stringify({ v: 1, kind: 'moved', step: 0, decision, startedAt: 0, at: 0, ...more });

function refusal(text: string): PilotageError {
  try {
    decodeEntry(text, 7);
  } catch (error) {
    if (PilotageError.is(error)) return error;
    throw error;
  }
  throw new Error('it was read');
}

describe('the stored text of an entry', () => {
  it.each(SIX)('TJ-16 DV-20 keeps the decision $kind', (decision) => {
    const entry: Entry = {
      seq: 3,
      at: 5,
      kind: 'moved',
      step: 0,
      decision,
      startedAt: 4,
      text: 't',
      usage: { inputTokens: 1 },
    };
    expect(decodeEntry(encodeEntry(entry), 3)).toEqual(entry);
  });

  it('TJ-16 after a trajectory with all six decisions the view read back, and the next prompt, equal those before storing', async () => {
    const { entries, result } = await record(SIX, { tools: [echo] });
    expect(result.status).toBe('finished');
    const kinds = entries.flatMap((entry) => (entry.kind === 'moved' ? entry.decision.kind : []));
    expect(kinds).toEqual(SIX.map(({ kind }) => kind));
    const back = entries.map((entry) => decodeEntry(encodeEntry(entry), entry.seq));
    const text = (all: readonly Entry[]): string =>
      JSON.stringify(viewOf(foldEntries(all), NO_TOOLS, false).trajectory.steps);
    expect(back).toEqual(entries);
    expect(text(back)).toBe(text(entries));
    const promptFor = async (all: readonly Entry[]): Promise<string> => {
      const model = scriptedModel([{ text: 'x' }]);
      await ask(react({ model }), viewOf(foldEntries(all), NO_TOOLS, false));
      return JSON.stringify(model.calls[0]?.prompt);
    };
    const prompt = await promptFor(entries);
    expect(await promptFor(back)).toBe(prompt);
    for (const said of ['"toolName":"t"', 'start_of_task', 'wait_for_task', 'No answer came'])
      expect(prompt).toContain(said);
  });

  it('TJ-01 written, read and written again gives the same bytes, for any JSON in it', () => {
    const value = fc.jsonValue({ maxDepth: 4 }).map((made) => JSON.parse(JSON.stringify(made)) as Json);
    fc.assert(
      fc.property(value, fc.string(), fc.nat(), (json, text, at) => {
        const ended: Entry = {
          seq: 9,
          at,
          kind: 'call_ended',
          step: 1,
          call: 0,
          outcome: { kind: 'value', value: json },
          attempts: 1,
        };
        const called: Entry = {
          seq: 9,
          at,
          kind: 'moved',
          step: 1,
          decision: { kind: 'call_tool', tool: text || 't', args: json },
          startedAt: at,
        };
        for (const entry of [ended, called]) {
          const bytes = encodeEntry(entry);
          const back = decodeEntry(bytes, 9);
          expect(back).toStrictEqual(entry);
          expect(encodeEntry(back)).toBe(bytes);
        }
      }),
    );
  });

  it('TJ-01 keeps what it says of a call that a task carries out, and of a result that is stored', () => {
    const result = { artifactRef: 'art_0', mime: 'application/json', sizeBytes: 40_000 };
    const about = { group: 'g', taskKind: 'foreground', description: 'd', onCancel: 'cascade', reserved: {} } as const;
    const usage = { steps: 1, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };
    const entries: Entry[] = [
      {
        seq: 7,
        at: 1,
        kind: 'spawned',
        step: 0,
        call: 1,
        task: 't',
        ...about,
        retained: true,
        agentCall: true,
        atOnce: 2,
        seal: true,
      },
      { seq: 7, at: 1, kind: 'task_ended', task: 't', status: 'complete', result, stored: true, usage },
      { seq: 7, at: 1, kind: 'finished', reason: 'goal', payload: result, stored: true },
    ];
    for (const entry of entries) expect(decodeEntry(encodeEntry(entry), 7)).toStrictEqual(entry);
  });

  it('TJ-01 has these bytes: the version first, the position in its own column', () => {
    const entry: Entry = { kind: 'call_began', step: 2, call: 0, seq: 12, at: 99 };
    expect(encodeEntry(entry)).toBe('{"v":2,"kind":"call_began","step":2,"call":0,"at":99}');
  });

  it('older code does not read what it would misread: references in the place of files', () => {
    const artifact = { artifactRef: 'art_1', mime: 'image/png', sizeBytes: 3 };
    const ended = { kind: 'call_ended', step: 0, call: 0, attempts: 1, seq: 3, at: 1 } as const;
    const plain: Entry = { ...ended, outcome: { kind: 'value', value: 1, modelOutput: { type: 'json', value: 2 } } };
    const taken: Entry = { ...ended, outcome: { kind: 'value', value: {}, media: [{ at: '/a', artifact }] } };
    const moved = {
      kind: 'moved',
      step: 0,
      startedAt: 1,
      seq: 2,
      at: 1,
      decision: { kind: 'finish', reason: 'goal' },
    } as const;
    const versions = [plain, taken, moved, { ...moved, files: [artifact] }].map(
      (entry) => JSON.parse(encodeEntry(entry)).v,
    );
    expect(versions).toEqual([2, 4, 2, 4]);
    expect(decodeEntry(encodeEntry(taken), 3)).toStrictEqual(taken);
  });

  it('TJ-03 the smallest entry is a valid object', () => {
    expect(decodeEntry('{"v":1,"kind":"failed","error":{"code":"c","message":""},"at":0}', 1)).toMatchObject({
      kind: 'failed',
    });
  });

  it('is read back frozen to the last leaf', () => {
    const entry = decodeEntry(moved({ kind: 'call_tool', tool: 't', args: { a: [{ b: 1 }] } }), 1);
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen));
    expect(frozen(entry)).toBe(true);
  });

  it('an own "__proto__" key stays data', () => {
    const entry = decodeEntry(
      moved({ kind: 'call_tool', tool: 't', args: 0 }).replace('"args":0', '"args":{"__proto__":{"a":1}}'),
      1,
    );
    expect(encodeEntry(entry)).toContain('"args":{"__proto__":{"a":1}}');
  });
});

describe('text that is no entry', () => {
  it.each([
    '',
    '{',
    '{"v":1',
    'null',
    '[]',
    '"moved"',
    '5',
  ])('TJ-08 %j is journal_corrupt and names the entry', (text) => {
    const { code, message } = refusal(text);
    expect({ code, message }).toEqual({ code: 'journal_corrupt', message: expect.stringContaining('Entry 7') });
  });

  it('of another format says that it is newer', () => {
    expect(refusal('{"v":6,"kind":"moved"}')).toMatchObject({
      code: 'journal_newer',
      message: expect.stringContaining('format 6'),
    });
  });

  it.each(['"dreamt"', '"toString"', '5', 'null'])('of the unknown kind %s names it', (kind) => {
    const { code, data } = refusal(`{"v":1,"kind":${kind},"at":1}`);
    expect({ code, data }).toEqual({ code: 'journal_entry_unknown', data: { seq: 7, kind: String(JSON.parse(kind)) } });
  });

  it.each([{ kind: 'teleport' }, {}, null])('DV-21 of a decision %j names its kind', (decision) => {
    expect(refusal(moved(decision))).toMatchObject({
      code: 'unknown_decision_kind',
      message: expect.stringContaining(String(JSON.stringify(decision?.kind))),
    });
  });

  it('but a decision that did not pass is a record of what was said: it can be read, whatever its kind', () => {
    const rejected = { code: 'invalid_decision', message: 'm' };
    expect(decodeEntry(moved({ kind: 'teleport' }, { rejected }), 1)).toMatchObject({
      rejected,
      decision: { kind: 'teleport' },
    });
  });
});
