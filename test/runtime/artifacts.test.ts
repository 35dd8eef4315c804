/** What tools store beside their values. */
import { describe, expect, it } from 'vitest';
import { type Decision, type Identity, type Json, local, PilotageError } from '#core';
import { memoryJournal } from '#journal';
import { type Tool, type ToolContext, ToolFailure } from '#tools';
import { call, parallel, script, watched } from '../kit/decisions.ts';
import { changed, cutJournal } from '../kit/journals.ts';
import { entriesOf, innerState, observations } from '../kit/run-record.ts';
import { echo, make, type Runs } from '../kit/tools.ts';
import { advanceUntil, gate } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const identity: Identity = local('ana', { session: 's', run: 'r' });

async function play(tools: readonly Tool[], ...decisions: readonly Decision[]) {
  const planner = watched(script(...decisions));
  const made = world({ planner, tools });
  const run = await start(made, { identity });
  void run.result();
  await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
  const ended = await entriesOf(made.journal, run, 'call_ended');
  return { ...made, run, ended, planner, state: await innerState(made.journal, run) };
}

const saver = (name: string, run: Runs): Tool => make(name, run);
const csv = { mime: 'text/csv', fileName: 'table.csv' } as const;

describe('artifact', () => {
  const read = saver('read', async ({ ref }, { artifact }) => {
    const found = await artifact(String(ref));
    return found === undefined ? null : { mime: found.mime, chars: Buffer.from(found.bytes).toString().length };
  });

  it('gives a tool what the model names: an attachment, and the whole of a large value', async () => {
    const large = 'é'.repeat(40_000);
    const planner = watched((run) => {
      const [input] = run.inputs;
      const outcome = run.trajectory.step(0)?.calls[0]?.outcome;
      const stored = outcome?.kind === 'value' ? outcome.artifact?.artifactRef : undefined;
      const asked = [
        call('large'),
        call('read', { ref: input?.artifactRef ?? '' }),
        call('read', { ref: stored ?? '' }),
      ];
      return asked[run.trajectory.count] ?? { kind: 'finish', reason: 'goal' };
    });
    const made = world({ planner, tools: [read, make('large', () => large)] });
    const inputs = [{ bytes: Buffer.from('a,b'), mime: 'text/csv', fileName: 'a.csv' }];
    const run = await start(made, { identity, inputs });
    await run.result();
    expect(observations(await run.state()).slice(1)).toEqual([
      { mime: 'text/csv', chars: 3 },
      { mime: 'application/json', chars: 40_002 },
    ]);
  });

  it.each<[string, (context: ToolContext) => Promise<unknown>, RegExp]>([
    [
      'no description',
      ({ saveArtifact }) => saveArtifact('x', undefined as never),
      /saveArtifact takes an object of options/,
    ],
    [
      'a type for a description',
      ({ saveArtifact }) => saveArtifact('x', 'text/csv' as never),
      /saveArtifact takes an object/,
    ],
    ['no type', ({ saveArtifact }) => saveArtifact('x', {} as never), /option mime of saveArtifact is missing/],
    [
      'another word',
      ({ saveArtifact }) => saveArtifact('x', { mimeType: 'a/b' } as never),
      /no option "mimeType"\. Write mime/,
    ],
    ['no bytes', ({ saveArtifact }) => saveArtifact({ a: 1 } as never, csv), /stores a text or a Uint8Array/],
    [
      'a reference that is an object',
      ({ artifact }) => artifact({ artifactRef: 'r' } as never),
      /context\.artifact\(ref\.artifactRef\)/,
    ],
  ])('a tool is told what it has misread, and no store is blamed: %s', async (_, use, message) => {
    const tool = make('use', async (_args, context) => {
      await use(context);
      return 'done';
    });
    const run = await start(world({ planner: script(call('use')), tools: [tool] }), { identity });
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({
      error: { code: 'invalid_config', message: expect.stringMatching(message) },
    });
  });

  it('gives nothing of another session, and nothing for a word that names nothing', async () => {
    const journal = memoryJournal();
    const { artifactRef } = await journal.artifacts.put(local('bob', { session: 's' }), Buffer.from('secret'), csv);
    const planner = script(call('read', { ref: artifactRef }), call('read', { ref: '../x' }));
    const run = await start(world({ planner, tools: [read], journal }), { identity });
    await run.result();
    expect(observations(await run.state())).toEqual([null, null]);
  });
});

describe('saveArtifact', () => {
  it('MM-18 what a tool stored in step 2 can be named in step 3, and read with artifact_fetch', async () => {
    const save = saver('save', async (_, { saveArtifact }) => {
      const { artifactRef, ...rest } = await saveArtifact('a,b\n1,2\n', csv);
      return { artifactRef, ...rest };
    });
    const planner = watched((run) => {
      const row = run.trajectory.step(1)?.calls[0]?.artifacts?.[0];
      if (run.trajectory.count === 0) return call('echo');
      if (run.trajectory.count === 1) return call('save');
      if (run.trajectory.count === 2) return call('artifact_fetch', { ref: row?.artifactRef ?? '' });
      return { kind: 'finish', reason: 'goal' };
    });
    const made = world({ planner, tools: [echo, save] });
    const run = await start(made, { identity });
    await run.result();
    const state = await run.state();
    const row = {
      artifactRef: expect.stringMatching(/^art_[0-9a-f]{32}$/),
      mime: 'text/csv',
      fileName: 'table.csv',
      sizeBytes: 8,
      source: 'tool: save',
      createdAt: made.clock.now(),
    };
    expect(state.steps[1]?.calls[0]?.artifacts).toEqual([row]);
    expect(planner.views[2]?.trajectory.step(1)?.calls[0]?.artifacts).toEqual([row]);
    expect(planner.views.map((view) => view.tools.list().map(({ name }) => name))).toEqual([
      ['echo', 'save'],
      ['echo', 'save'],
      ['echo', 'save', 'artifact_fetch'],
      ['echo', 'save', 'artifact_fetch'],
    ]);
    expect(observations(state)[2]).toMatchObject({ found: true, text: 'a,b\n1,2\n' });
    expect((await made.journal.artifacts.list(identity, 5)).rows).toEqual([row]);
  });

  it('takes bytes, and artifact_fetch says of what is no text that it is none', async () => {
    const save = saver('save', (_, { saveArtifact }) =>
      saveArtifact(new Uint8Array([137, 80, 78, 71, 255]), { mime: 'image/png' }),
    );
    const { state } = await play([save], call('save'));
    const ref = String((observations(state)[0] as Record<string, Json>)['artifactRef']);
    const read = await play([save], call('save'), call('artifact_fetch', { ref }));
    expect(observations(read.state)[1]).toEqual({
      found: true,
      ref,
      mime: 'image/png',
      size_bytes: 5,
      error: expect.any(String),
    });
  });

  it('costs a call that does not use it nothing: its record has no more than before', async () => {
    const { ended } = await play([echo], call('echo'));
    expect(Object.keys(ended[0] ?? {}).sort()).toEqual(
      ['at', 'attempts', 'call', 'kind', 'outcome', 'seq', 'startedAt', 'step'].sort(),
    );
  });

  it('keeps the order in which it was asked for, and waits for what the tool did not', async () => {
    const save = saver('save', (_, { saveArtifact }) => {
      void saveArtifact('one', { mime: 'text/plain' });
      void saveArtifact('two', { mime: 'text/plain', fileName: '2' });
      return 'done';
    });
    const { ended } = await play([save], call('save'));
    expect(ended[0]?.artifacts?.map(({ sizeBytes, fileName }) => [sizeBytes, fileName])).toEqual([
      [3, undefined],
      [3, '2'],
    ]);
    expect([Object.isFrozen(ended[0]?.artifacts), Object.isFrozen(ended[0]?.artifacts?.[0])]).toEqual([true, true]);
  });

  it('its record cannot be changed, also where a program has secrets to leave out', async () => {
    const save = saver('save', async (_, { saveArtifact }) => {
      await saveArtifact('one', { mime: 'text/plain', fileName: 'correct horse.txt' });
      return 'done';
    });
    const planner = script(call('save'));
    const made = world({ planner, tools: [save], redact: { rules: ['correct horse'] } });
    const run = await start(made, { identity });
    await run.result();
    const [{ artifacts = [] } = {}] = await entriesOf(made.journal, run, 'call_ended');
    expect(artifacts).toMatchObject([{ fileName: '[redacted:secret].txt' }]);
    expect([Object.isFrozen(artifacts), Object.isFrozen(artifacts[0])]).toEqual([true, true]);
  });

  it('counts for the attempt that ended with a value, and for no other', async () => {
    const flaky = saver('flaky', async (_, { attempt, saveArtifact }) => {
      await saveArtifact(`attempt ${attempt}`, { mime: 'text/plain', fileName: `${attempt}` });
      if (attempt < 3) throw new ToolFailure('not yet', { retryable: true });
      return attempt;
    });
    const failing = saver('failing', async (_, { saveArtifact }) => {
      await saveArtifact('lost', csv);
      throw new ToolFailure('never');
    });
    const { ended, state } = await play([flaky, failing], call('flaky'), call('failing'));
    expect(ended.map(({ artifacts }) => artifacts?.map(({ fileName }) => fileName))).toEqual([['3'], undefined]);
    expect(state.found).toEqual(['artifact_fetch']);
  });

  it('stands beside a value that is too large for the journal', async () => {
    const both = saver('both', async (_, { saveArtifact }) => {
      await saveArtifact('small', csv);
      return 'x'.repeat(40_000);
    });
    const { ended, journal } = await play([both], call('both'));
    expect(ended[0]).toMatchObject({
      outcome: { artifact: { sizeBytes: 40_002 } },
      artifacts: [{ fileName: 'table.csv' }],
      discovered: ['artifact_fetch'],
    });
    const { rows } = await journal.artifacts.list(identity, 5);
    expect(rows.map(({ fileName, source }) => [fileName, source]).sort()).toEqual([
      ['table.csv', 'tool: both'],
      ['tool-result-both.json', 'tool: both'],
    ]);
  });

  it('works in parallel calls, each with its own', async () => {
    const save = saver('save', async ({ text }, { saveArtifact }) => {
      await saveArtifact(String(text), { mime: 'text/plain', fileName: String(text) });
      return text;
    });
    const branches = ['a', 'b', 'c'].map((text) => ({ tool: 'save', args: { text } }));
    const { state } = await play([save], parallel(branches));
    const calls = state.steps[0]?.calls ?? [];
    expect(calls.map(({ artifacts }) => artifacts?.map(({ fileName }) => fileName))).toEqual([['a'], ['b'], ['c']]);
  });

  it('a refusal of the store reaches the tool, which may go on without', async () => {
    const base = memoryJournal();
    const full = changed(base, {
      artifacts: {
        put: () => Promise.reject(new PilotageError('journal_read_only', 'read only')),
        get: (...args) => base.artifacts.get(...args),
        list: (...args) => base.artifacts.list(...args),
        erase: (...args) => base.artifacts.erase(...args),
      },
    });
    const careful = saver('careful', (_, { saveArtifact }) =>
      saveArtifact('x', csv).then(
        () => 'stored',
        (error: PilotageError) => error.code,
      ),
    );
    const careless = saver('careless', (_, { saveArtifact }) => saveArtifact('x', csv));
    const made = world({
      planner: script(call('careful'), call('careless')),
      tools: [careful, careless],
      journal: full,
    });
    const run = await start(made, { identity });
    await run.result();
    const state = await run.state();
    expect(observations(state)).toEqual([
      'journal_read_only',
      { error: { code: 'journal_read_only', message: 'read only' } },
    ]);
    expect(state.steps[0]?.calls[0]).not.toHaveProperty('artifacts');
  });

  it('what `reconcile` stores for a call that had happened is told, too', async () => {
    const journal = memoryJournal();
    const dying = cutJournal(journal);
    const entered = gate();
    const once = (run: Runs): Tool =>
      make('once', run, {
        effect: 'once',
        reconcile: async (_, { saveArtifact, discover }) => {
          await saveArtifact('receipt', { mime: 'text/plain', fileName: 'receipt' });
          discover(['later']);
          return { status: 'done', value: 'paid' };
        },
      });
    const later = make('later', () => 1, { loading: 'deferred' });
    const stuck = once(() => {
      entered.open();
      return new Promise(() => {});
    });
    const first = world({ planner: script(call('once')), tools: [stuck, later], journal: dying.journal });
    await start(first, { identity });
    await entered.opened;
    dying.cut();
    const second = world({ planner: script(call('once')), tools: [once(() => 'never'), later], journal });
    second.clock.advance(60_000);
    second.runtime.work();
    const run = second.runtime.run('r');
    await advanceUntil(second.clock, async () => (await run.state()).ending !== null);
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({
      outcome: { kind: 'value', value: 'paid' },
      artifacts: [{ fileName: 'receipt', source: 'tool: once' }],
      discovered: ['later', 'artifact_fetch'],
    });
    await second.runtime.close();
  });
});

describe('artifact_fetch', () => {
  it('MM-10 an empty reference is a soft error, as an unknown one is', async () => {
    const { state } = await play([], call('artifact_fetch', { ref: '' }));
    expect(observations(state)).toEqual([{ found: false, ref: '' }]);
  });
});

describe('MM-07 a heavy result', () => {
  it('is stored under a name that tells its tool, and that is told again in the manifest', async () => {
    const { journal, ended } = await play([make('big', () => 'x'.repeat(40_000))], call('big'));
    expect(ended[0]).toMatchObject({ discovered: ['artifact_fetch'] });
    expect((await journal.artifacts.list(identity, 5)).rows).toMatchObject([
      { fileName: 'tool-result-big.json', source: 'tool: big', mime: 'application/json', sizeBytes: 40_002 },
    ]);
  });

  it('lists the reader once, however many there are', async () => {
    const { ended, planner } = await play(
      [make('big', ({ of }) => String(of).repeat(40_000))],
      call('big', { of: 'a' }),
      call('big', { of: 'b' }),
    );
    expect(ended.map(({ discovered }) => discovered)).toEqual([['artifact_fetch'], undefined]);
    expect(planner.views.at(-1)?.tools.list()).toHaveLength(2);
  });
});
