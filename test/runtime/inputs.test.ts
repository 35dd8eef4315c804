/** What a run is given beside its query: recorded with its start, and the same again after a restart. */
import { describe, expect, it } from 'vitest';
import { type Identity, type InputArtifact, local, PilotageError, type RunContext } from '#core';
import { type ArtifactStore, type Journal, memoryJournal } from '#journal';
import { loadInputs, type StartOptions } from '#runtime';
import { call, script, watched } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, pausesOf } from '../kit/run-record.ts';
import { echo } from '../kit/tools.ts';
import { start, type World, world } from '../kit/world.ts';

const identity: Identity = local('ana', { session: 's', run: 'r' });
const png = new Uint8Array([137, 80, 78, 71, 0, 255]);
const photo = { bytes: png, mime: 'image/png', fileName: 'photo.png' } as const;
const note = { bytes: Buffer.from('a note'), mime: 'text/plain' } as const;

type Given = Pick<StartOptions, 'context' | 'inputs'> & { readonly identity?: Identity };

async function given(options: Given, journal: Journal = memoryJournal()) {
  const planner = watched(script(call('echo'), call('echo')));
  const made = world({ planner, tools: [echo], journal });
  const run = await start(made, { identity, ...options });
  await run.result();
  const [started] = await entriesOf(made.journal, run, 'started');
  return { ...made, run, planner, started, context: started?.context };
}

/** The same artifacts, some methods replaced. */
function artifactsWith(journal: Journal, changes: Partial<ArtifactStore>): Journal {
  const { artifacts } = journal;
  const own: ArtifactStore = {
    put: (...args) => artifacts.put(...args),
    get: (...args) => artifacts.get(...args),
    list: (...args) => artifacts.list(...args),
    erase: (...args) => artifacts.erase(...args),
    ...changes,
  };
  return changed(journal, { artifacts: own });
}

async function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'nothing was thrown',
    (error: unknown) => (PilotageError.is(error) ? error.code : error),
  );
}

describe('attachments', () => {
  it('PC-23 are stored once, recorded by reference, and there with their bytes at every step', async () => {
    const { planner, context, journal, started } = await given({ inputs: [photo, note] });
    expect(context?.inputs).toEqual([
      { artifactRef: expect.stringMatching(/^art_/), mime: 'image/png', sizeBytes: 6, fileName: 'photo.png' },
      { artifactRef: expect.stringMatching(/^art_/), mime: 'text/plain', sizeBytes: 6 },
    ]);
    expect(JSON.stringify(started)).not.toContain('bytes":');
    expect(planner.views).toHaveLength(3);
    for (const view of planner.views) {
      expect(view.inputs.map(({ bytes, ...rest }) => [rest, Buffer.from(bytes ?? [])])).toEqual([
        [context?.inputs?.[0], Buffer.from(png)],
        [context?.inputs?.[1], Buffer.from('a note')],
      ]);
      expect([Object.isFrozen(view.inputs), Object.isFrozen(view.inputs[0])]).toEqual([true, true]);
    }
    expect((await journal.artifacts.list(identity, 5)).rows.map(({ source }) => source)).toEqual(['user', 'user']);
  });

  it('MM-01 a run without any has none', async () => {
    const { planner, context } = await given({});
    expect(context).toBeUndefined();
    expect(planner.views[0]?.inputs).toEqual([]);
    expect(planner.views[0]?.context).toEqual({});
  });

  it('can be references of what the session has stored before', async () => {
    const journal = memoryJournal();
    const ref = await journal.artifacts.put(identity, png, { mime: 'image/png' });
    const { planner } = await given({ inputs: [{ ...ref, fileName: 'again.png' }] }, journal);
    expect(planner.views[0]?.inputs).toMatchObject([{ ...ref, fileName: 'again.png', bytes: png }]);
  });

  it('do not follow later changes of the bytes', async () => {
    const bytes = new Uint8Array([1, 2, 3]);
    const journal = memoryJournal();
    const made = world({ planner: watched(script()), journal });
    const starting = start(made, { identity, inputs: [{ bytes, mime: 'x/y' }] });
    await starting;
    bytes.fill(9);
    const { rows } = await journal.artifacts.list(identity, 1);
    const stored = await journal.artifacts.get(identity, rows[0]?.artifactRef ?? '');
    expect([...(stored?.bytes ?? [])]).toEqual([1, 2, 3]);
    await made.runtime.close();
  });

  const gone: InputArtifact = { artifactRef: 'art_gone', mime: 'image/png', sizeBytes: 7, fileName: 'gone.png' };

  it('MM-22 that cannot be read come without bytes, so that the turn can name them, and the run goes on', async () => {
    const { planner, run } = await given({ inputs: [gone, note] });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const [first, second] = planner.views[0]?.inputs ?? [];
    expect(first).toEqual(gone);
    expect(first).not.toHaveProperty('bytes');
    expect(second).toHaveProperty('bytes');
  });

  it.each(['tenant', 'user', 'session'] as const)('MM-13, MM-22 of another %s are not read', async (part) => {
    const journal = memoryJournal();
    const ref = await journal.artifacts.put({ ...identity, [part]: 'other' }, png, { mime: 'image/png' });
    const { planner } = await given({ inputs: [ref] }, journal);
    expect(planner.views[0]?.inputs).toEqual([ref]);
  });

  it('MM-22 that are damaged count as not readable; a store that is down does not', async () => {
    const { artifacts } = memoryJournal();
    const failing = (code: 'journal_corrupt' | 'journal_busy'): ArtifactStore => ({
      put: (...args) => artifacts.put(...args),
      list: (...args) => artifacts.list(...args),
      erase: (...args) => artifacts.erase(...args),
      get: () => Promise.reject(new PilotageError(code, 'no')),
    });
    expect(await loadInputs([gone], identity, failing('journal_corrupt'))).toEqual([gone]);
    expect(await codeOf(loadInputs([gone], identity, failing('journal_busy')))).toBe('journal_busy');
  });

  it('are read once a process, and a store that was down for a while changes nothing', async () => {
    let reads = 0;
    let down = true;
    const base = memoryJournal();
    const journal = artifactsWith(base, {
      get: (scope, ref) => {
        reads += 1;
        if (down) return Promise.reject(new PilotageError('journal_busy', 'busy'));
        return base.artifacts.get(scope, ref);
      },
    });
    const planner = watched(script(call('echo'), call('echo')));
    const { runtime } = world({ planner, tools: [echo], journal });
    const run = await runtime.start('q', { identity, inputs: [note] });
    expect(await codeOf(run.result())).toBe('journal_busy');
    expect(planner.views).toEqual([]);
    down = false;
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(planner.views[0]?.inputs[0]).toHaveProperty('bytes');
    expect(reads).toBe(2);
    await runtime.close();
  });

  it('that take until after the deadline to read: no move is made before somebody has given more time', async () => {
    const base = memoryJournal();
    const late: { world?: World } = {};
    const journal = artifactsWith(base, {
      get: (scope, ref) => {
        late.world?.clock.advance(2_000);
        return base.artifacts.get(scope, ref);
      },
    });
    const planner = watched(script());
    late.world = world({ planner, journal });
    const deadlineAt = late.world.clock.now() + 1_000;
    const run = await start(late.world, { identity, inputs: [note], limits: { deadlineAt, onCeiling: 'pause' } });
    expect(await pausesOf(run)).toMatchObject([{ reason: 'constraints_conflict', payload: { budget: 'deadline' } }]);
    expect(planner.views).toEqual([]);
    await run.resume({ limits: { deadlineAt: deadlineAt + 60_000 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });

  it.each<[string, unknown]>([
    ['nothing', null],
    ['bytes that are text', { bytes: 'x', mime: 'text/plain' }],
    ['bytes without a media type', { bytes: png }],
    ['a file name that is no text', { ...photo, fileName: 7 }],
    ['a reference without a size', { artifactRef: 'art_1', mime: 'text/plain' }],
    ['a reference that is empty', { artifactRef: '', mime: 'text/plain', sizeBytes: 1 }],
  ])('refuses %s as an attachment, and stores nothing', async (_, input) => {
    const { runtime, journal } = world({ planner: script() });
    const inputs = [note, input] as Given['inputs'];
    expect(await codeOf(runtime.start('q', { identity, ...(inputs && { inputs }) }))).toBe('invalid_config');
    expect(await journal.list({})).toEqual([]);
    expect((await journal.artifacts.list(identity, 1)).total).toBe(0);
    await runtime.close();
  });
});

describe('the context', () => {
  const context: NonNullable<StartOptions['context']> = {
    hints: { constraints: 'be quick', preferredOrder: ['a'] },
    externalMemory: { likes: 'tea' },
    conversationMemory: { recent_turns: [] },
    retrieved: ['a document'],
    skills: [{ name: 'brew', title: 'Brewing' }],
    reasoningReplay: 'text',
  };

  it('is recorded as it was given, frozen, and nothing but what a caller may say', async () => {
    for (const forged of [{ artifacts: { rows: [], more: 9 } }, { inputs: [] }, { odd: 1 }]) {
      expect(await codeOf(given({ context: { ...context, ...forged } }))).toBe('invalid_config');
    }
    const { context: recorded, planner } = await given({ context });
    expect(recorded).toEqual(context);
    expect(planner.views[0]?.context).toEqual(context);
    expect(Object.isFrozen(planner.views[0]?.context.hints?.preferredOrder)).toBe(true);
  });

  it.each([
    ['a function', () => 1],
    ['not a number', { a: Number.NaN }],
    ['a cycle', cycle()],
  ])('MS-05 a memory block that is %s is refused at the start', async (_, block) => {
    for (const name of ['externalMemory', 'conversationMemory', 'retrieved'] as const) {
      const { runtime, journal } = world({ planner: script() });
      const starting = runtime.start('q', { identity, context: { [name]: block as never } });
      expect(await codeOf(starting)).toBe('memory_block_unserializable');
      await expect(starting).rejects.toThrow(`context.${name}`);
      expect(await journal.list({})).toEqual([]);
      await runtime.close();
    }
  });

  it('MS-08 a memory block of another identity is refused', async () => {
    const own = { tenant: identity.tenant, user: 'ana', session: 's', run: 'an earlier one' };
    for (const name of ['externalMemory', 'conversationMemory', 'retrieved'] as const) {
      expect((await given({ context: { [name]: { identity: own, text: 'x' } } })).context).toHaveProperty(name);
      for (const part of ['tenant', 'user', 'session']) {
        const { runtime, journal } = world({ planner: script() });
        const block = { identity: { ...own, [part]: 'other' } };
        expect(await codeOf(runtime.start('q', { identity, context: { [name]: block } }))).toBe('scope_mismatch');
        expect(await journal.list({})).toEqual([]);
        await runtime.close();
      }
    }
  });
});

describe('what the session has stored', () => {
  const rowsOf = (context: RunContext | undefined) => context?.artifacts?.rows ?? [];

  it('MM-14, MM-15, MM-16 is told as rows, newest first, then by reference, without bytes', async () => {
    const made = world({ planner: script() });
    const { journal, clock } = made;
    const { artifacts } = journal;
    await artifacts.put(identity, Buffer.from('1'), { mime: 'text/plain', source: 'tool: a' });
    clock.advance(5);
    await artifacts.put(identity, Buffer.from('2'), { mime: 'text/csv', fileName: 'b.csv', source: 'user' });
    await artifacts.put(identity, Buffer.from('3'), { mime: 'text/plain' });
    const { context } = await given({ inputs: [photo] }, journal);
    const rows = rowsOf(context);
    expect(rows.map(({ source }) => source).sort()).toEqual(['tool: a', 'unknown', 'user']);
    expect(rows.map(({ createdAt }) => createdAt)).toEqual([...rows.map((row) => row.createdAt)].sort((a, b) => b - a));
    expect(rows[2]).toEqual({
      artifactRef: expect.stringMatching(/^art_/),
      mime: 'text/plain',
      sizeBytes: 1,
      source: 'tool: a',
      createdAt: expect.any(Number),
    });
    expect((rows[0]?.artifactRef ?? '') < (rows[1]?.artifactRef ?? '')).toBe(true);
    expect(context?.artifacts?.more).toBe(0);
  });

  it('MM-17 of 25 artifacts tells 20, and that there are 5 more', async () => {
    const journal = memoryJournal();
    for (let index = 0; index < 25; index += 1) {
      await journal.artifacts.put(identity, Buffer.from(`${index}`), { mime: 'text/plain' });
    }
    const { context } = await given({}, journal);
    expect(rowsOf(context)).toHaveLength(20);
    expect(context?.artifacts?.more).toBe(5);
  });

  it('MM-13, MM-14 has nothing of other sessions, and is left out when there is nothing', async () => {
    const journal = memoryJournal();
    for (const part of ['tenant', 'user', 'session']) {
      await journal.artifacts.put({ ...identity, [part]: 'other' }, png, { mime: 'image/png' });
    }
    expect((await given({}, journal)).context).toBeUndefined();
  });

  it('is what it was at the start, also when the run goes on later', async () => {
    const journal = memoryJournal();
    await journal.artifacts.put(identity, png, { mime: 'image/png' });
    const planner = watched(script({ kind: 'request_pause', reason: 'await_input' }));
    const { runtime } = world({ planner, journal });
    const run = await runtime.start('q', { identity });
    await run.result();
    await journal.artifacts.put(identity, Buffer.from('new'), { mime: 'text/plain' });
    await run.resume();
    await run.result();
    expect(planner.views.map((view) => view.context.artifacts?.rows.length)).toEqual([1, 1]);
    await runtime.close();
  });
});

function cycle(): object {
  const made: { self?: object } = {};
  made.self = made;
  return made;
}
