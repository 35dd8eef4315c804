/** Results that are too large for the journal: stored, previewed, and read on page by page. */
import { describe, expect, it } from 'vitest';
import { encodedBytes, type Identity, type Json, local, skillView } from '#core';
import { artifactFetch } from '#runtime';
import { toolView } from '#testing';
import type { ToolContext } from '#tools';
import { call, script, watched } from '../kit/decisions.ts';
import { entriesOf, observations } from '../kit/run-record.ts';
import { make, noStore, noStream, noWaits } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

async function heavy(value: Json) {
  const planner = watched(script(call('big')));
  const made = world({ planner, tools: [make('big', () => value)] });
  const run = await start(made);
  await run.result();
  const [observed] = observations(await run.state()) as [Record<string, Json>];
  const [ended] = await entriesOf(made.journal, run, 'call_ended');
  return { observed, outcome: ended?.outcome, planner, run, ...made };
}

/** What a tool is given when it is called by hand. */
const contextOf = (identity: Identity): ToolContext => ({
  identity,
  idempotencyKey: 'k',
  attempt: 1,
  signal: new AbortController().signal,
  tools: toolView([]),
  meta: {},
  skills: skillView(),
  handles: {},
  emit: () => {},
  discover: () => {},
  saveArtifact: () => Promise.reject(new Error('nothing is stored here')),
  artifact: async () => undefined,
  store: noStore,
  stream: () => noStream,
  model: () => {
    throw new Error('no model is here');
  },
  spent: async () => {},
  ...noWaits,
});

/** A JSON string of so many encoded bytes. */
const text = (bytes: number): string => 'x'.repeat(bytes - 2);

describe('the threshold', () => {
  it('MM-07 keeps 32,767 bytes where they are', async () => {
    const { observed, outcome, planner } = await heavy(text(32_767));
    expect(observed).toBe(text(32_767));
    expect(outcome).not.toHaveProperty('artifact');
    expect(planner.views[1]?.tools.list().map((tool) => tool.name)).toEqual(['big']);
  });

  it('MM-07 stores 32,768 bytes, and lists the tool that reads them from then on', async () => {
    const { observed, outcome, planner, journal, run } = await heavy(text(32_768));
    expect(observed).toMatchObject({
      tool: 'big',
      size_bytes: 32_768,
      truncated: true,
      artifact_ref: expect.any(String),
    });
    expect(outcome).toMatchObject({ artifact: { mime: 'application/json', sizeBytes: 32_768 } });
    const stored = await journal.artifacts.get((await run.state()).identity, String(observed['artifact_ref']));
    expect(Buffer.from(stored?.bytes ?? []).toString()).toBe(JSON.stringify(text(32_768)));
    expect(planner.views.map((view) => view.tools.list().map((tool) => tool.name))).toEqual([
      ['big'],
      ['big', 'artifact_fetch'],
    ]);
  });

  it('counts bytes, not characters', async () => {
    const { outcome } = await heavy('é'.repeat(16_384));
    expect(outcome).toHaveProperty('artifact.sizeBytes', 32_770);
  });
});

describe('the preview', () => {
  it('MM-08 shows small fields whole, notes the size of large ones, and MM-09 says how to read on', async () => {
    const { observed } = await heavy({ id: 7, note: 'n'.repeat(1_022), list: 'y'.repeat(40_000) });
    expect(observed['preview']).toEqual({ id: 7, note: 'n'.repeat(1_022), list: '(40002 bytes)' });
    expect(observed['read_on']).toBe(
      `Call artifact_fetch with ref ${observed['artifact_ref']} to read the whole. Do not call big again for the rest.`,
    );
  });

  it('MM-08 cuts the fields at 16,384 bytes in all, with a mark', async () => {
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`k${index}`, 'v'.repeat(900)]));
    const { observed } = await heavy(many);
    const preview = observed['preview'] as Record<string, Json>;
    expect(encodedBytes(preview)).toBeLessThan(16_384 + 100);
    expect(Object.keys(preview).length).toBeLessThan(60);
    expect(Object.keys(preview).at(-1)).toBe('…');
  });

  it('MM-08 opens an object of a single key', async () => {
    const { observed } = await heavy({ data: { id: 1, rest: 'z'.repeat(40_000) } });
    expect(observed['preview']).toEqual({ id: 1, rest: '(40002 bytes)' });
  });

  it.each([
    ['a text', 'a'.repeat(50_000), 'a'.repeat(16_384)],
    ['a list', Array(20_000).fill(1) as Json[], JSON.stringify(Array(20_000).fill(1)).slice(0, 16_384)],
  ])('MM-08 cuts %s at the byte limit', async (_, value, shown) => {
    const { observed } = await heavy(value);
    expect(observed['preview']).toBe(`${shown}…`);
  });

  it('cuts on a whole code point', async () => {
    const { observed } = await heavy(`x${'😀'.repeat(20_000)}`);
    expect(observed['preview']).toMatch(/^x(😀)+…$/u);
  });

  it('stays small when the text needs much escaping', async () => {
    const { observed } = await heavy('\u0001'.repeat(60_000));
    expect(encodedBytes(observed)).toBeLessThan(32_768 + 1_024);
  });
});

describe('artifact_fetch', () => {
  const identity: Identity = local('ana', { session: 's', run: 'r' });

  async function pages(value: Json, args: Record<string, Json> = {}) {
    const made = world({ planner: script() });
    const bytes = Buffer.from(JSON.stringify(value));
    const { artifactRef } = await made.journal.artifacts.put(identity, bytes, { mime: 'application/json' });
    const fetch = artifactFetch(() => made.journal.artifacts);
    const context = contextOf(identity);
    const found: Record<string, Json>[] = [];
    for (let offset: Json | undefined = 0; offset !== undefined; offset = found.at(-1)?.['next_offset']) {
      found.push((await fetch.execute({ ref: artifactRef, offset, ...args }, context)) as Record<string, Json>);
    }
    return { found, whole: found.map((page) => page['text']).join(''), text: bytes.toString() };
  }

  it.each([
    ['plain text', 'abc '.repeat(25_600), {}],
    ['code points of several bytes', 'é😀漢 '.repeat(9_000), {}],
    ['text that needs much escaping', '\u0002"\\'.repeat(20_000), { length: 28_672 }],
    ['odd page lengths', 'é😀漢'.repeat(4_000), { length: 1_021 }],
  ])('MM-11 reads %s to the end: the pages make up the whole, and each stays below the threshold', async (_, value, args) => {
    const { found, whole, text: expected } = await pages(value, args);
    expect(whole).toBe(expected);
    expect(found.length).toBeGreaterThan(1);
    for (const page of found) expect(encodedBytes(page)).toBeLessThan(32_768);
  });

  it('MM-11 gets on by a code point at a time when the page is smaller than one', async () => {
    const { whole, text: expected } = await pages('é😀漢a', { length: 1 });
    expect(whole).toBe(expected);
  });

  it('MM-11 is called by the planner like any tool, and its pages are not stored again', async () => {
    const value = { rows: Array.from({ length: 5_000 }, (_, index) => ({ index, name: `naïve ${index}` })) };
    let read = '';
    const made = world({
      planner: ({ trajectory }) => {
        const step = trajectory.step(trajectory.count - 1);
        const outcome = step?.calls[0]?.outcome;
        if (outcome?.kind !== 'value') return call('big');
        const { artifact_ref, ref, next_offset, text: page = '' } = outcome.value as Record<string, Json>;
        read += page;
        if (ref !== undefined && next_offset === undefined) return { kind: 'finish', reason: 'goal' };
        return call('artifact_fetch', { ref: (artifact_ref ?? ref) as Json, offset: next_offset ?? 0 });
      },
      tools: [make('big', () => value)],
    });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(JSON.parse(read)).toEqual(value);
    const ended = await entriesOf(made.journal, run, 'call_ended');
    expect(ended.length).toBeGreaterThan(10);
    expect(ended.filter(({ outcome }) => 'artifact' in outcome)).toHaveLength(1);
  });

  it('MM-10, MM-13 gives the same soft answer for a foreign reference as for an unknown one', async () => {
    const made = world({ planner: script() });
    const { artifacts } = made.journal;
    const { artifactRef: ref } = await artifacts.put(identity, Buffer.from('"secret"'), { mime: 'application/json' });
    const fetch = artifactFetch(() => artifacts);
    const ask = (who: Identity, which: string) => fetch.execute({ ref: which }, contextOf(who));
    for (const part of ['tenant', 'user', 'session'] as const) {
      expect(await ask({ ...identity, [part]: 'other' }, ref)).toEqual({ found: false, ref });
    }
    expect(await ask(identity, 'art_0')).toEqual({ found: false, ref: 'art_0' });
    // Another run of the same session may.
    expect(await ask({ ...identity, run: 'other' }, ref)).toMatchObject({ found: true, text: '"secret"' });
  });

  it('refuses arguments that are no page', async () => {
    const made = world({
      planner: script(call('artifact_fetch', { ref: 'x', offset: -1 }), call('artifact_fetch', {})),
    });
    const run = await start(made);
    await run.result();
    expect(observations(await run.state())).toMatchObject([
      { error: { code: 'tool_invalid_args' } },
      { error: { code: 'tool_invalid_args' } },
    ]);
  });

  it('gives way to a tool of the program of its name, and is told under its own', async () => {
    const planner = watched(({ trajectory }) => {
      const [outcome] = trajectory.step(0)?.calls.map((made) => made.outcome) ?? [];
      if (trajectory.count > 1) return { kind: 'finish', reason: 'goal' };
      if (outcome?.kind !== 'value') return call('big');
      return call('pilotage_artifact_fetch', { ref: outcome.artifact?.artifactRef ?? '' });
    });
    const tools = [make('artifact_fetch', () => 'own'), make('big', () => 'x'.repeat(40_000))];
    const run = await start(world({ planner, tools }));
    await run.result();
    const [preview, page] = observations(await run.state());
    expect(preview).toMatchObject({ read_on: expect.stringContaining('Call pilotage_artifact_fetch with ref') });
    expect(page).toMatchObject({ found: true, text: expect.stringContaining('xxx') });
    const own = ['artifact_fetch', 'big'];
    const listed = planner.views.map(({ tools: view }) => view.list().map(({ name }) => name));
    expect(listed).toEqual([own, [...own, 'pilotage_artifact_fetch'], [...own, 'pilotage_artifact_fetch']]);
  });
});

describe('references', () => {
  it('MM-12 gives equal bytes one reference of 128 bits, and others another', async () => {
    const made = world({
      planner: script(call('big', { of: 'a' }), call('big', { of: 'a' }), call('big', { of: 'b' })),
      tools: [make('big', ({ of }) => String(of).repeat(40_000))],
    });
    const run = await start(made);
    await run.result();
    const refs = observations(await run.state()).map((value) => (value as Record<string, Json>)['artifact_ref']);
    expect(refs[0]).toMatch(/^art_[0-9a-f]{32}$/);
    expect(refs[1]).toBe(refs[0]);
    expect(refs[2]).not.toBe(refs[0]);
  });

  it('stores a heavy answer, and gives the reference as the payload', async () => {
    const made = world({ planner: () => ({ kind: 'finish', reason: 'goal', payload: 'y'.repeat(40_000) }) });
    const run = await start(made);
    expect(await run.result()).toMatchObject({
      status: 'finished',
      payload: { artifactRef: expect.stringMatching(/^art_/), mime: 'application/json', sizeBytes: 40_002 },
      answer: 'y'.repeat(40_000),
    });
    expect(await made.runtime.run(run.id).result()).toMatchObject({ answer: 'y'.repeat(40_000) });
  });

  it('ends also when a planner answers with an artifact that is no JSON, which has no words', async () => {
    const planner = watched((view) => {
      const image = view.trajectory.step(0)?.calls[0]?.artifacts?.[0];
      if (view.query === 'second') return { kind: 'finish', reason: 'goal' };
      if (image === undefined) return call('draw');
      return { kind: 'finish', reason: 'goal', payload: { ...image }, stored: true };
    });
    const draw = make('draw', async (_, { saveArtifact }) => {
      await saveArtifact(new Uint8Array([137, 80, 78, 71, 255]), { mime: 'image/png' });
      return null;
    });
    const made = world({ planner, tools: [draw], memory: { strategy: 'window' } });
    const first = await start(made, { identity: local('ana', { session: 's' }) });
    const result = await first.result();
    expect(result).toMatchObject({ status: 'finished', stored: true, payload: { mime: 'image/png' } });
    expect(result).not.toHaveProperty('answer');
    await (await start(made, { query: 'second', identity: local('ana', { session: 's' }) })).result();
    expect(planner.views.at(-1)?.history.at(-1)).toEqual({ role: 'assistant', text: '(There is no answer.)' });
  });

  it.each<[string, Json, string | undefined]>([
    ['a text', 'y'.repeat(40_000), 'y'.repeat(40_000)],
    ['an object with a text', { answer: 'y'.repeat(40_000), n: 1 }, 'y'.repeat(40_000)],
    ['anything else', { n: 'y'.repeat(40_000) }, `{"n":"${'y'.repeat(40_000)}"}`],
  ])('tells the next turn of the session a heavy answer in words: %s', async (_, payload, words) => {
    const planner = watched((view) => ({
      kind: 'finish',
      reason: 'goal',
      payload: view.query === 'first' ? payload : 'ok',
    }));
    const made = world({ planner, memory: { strategy: 'window' } });
    const first = await start(made, { query: 'first', identity: local('ana', { session: 's' }) });
    expect(await first.result()).toMatchObject({ answer: words });
    await (await start(made, { query: 'second', identity: local('ana', { session: 's' }) })).result();
    const [, told] = planner.views.at(-1)?.history ?? [];
    expect(told?.text.slice(0, 1_000)).toBe(words?.slice(0, 1_000));
    expect(told?.text).not.toContain('artifact');
  });
});
