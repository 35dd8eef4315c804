/** What people say is content: it enters as large as arguments do, stands beside the journal, and everybody who hears it has it whole. */
import { expect, it } from 'vitest';
import { type ControlType, type Entry, type Json, type JsonObject, local, PilotageError } from '#core';
import { type ArtifactStore, type Journal, memoryJournal, wholeJournal } from '#journal';
import { react } from '#planners/react';
import type { Run, Runtime } from '#runtime';
import { foldEntries } from '#state';
import { scriptedModel } from '#testing';
import { OutcomeUnknown } from '#tools';
import { asks, call, parallel, pause, script, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { texts } from '../kit/messages.ts';
import { pausesOf } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { advanceUntil, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const identity = local('ana', { run: 'r' });
/** Large alone, and together with others by far. */
const large = (word: string): string => `${word} ${'é'.repeat(30_000)} the end of ${word}`;
const LARGEST_BYTES = 33_500;

/** Nothing large stands in the store's rows. */
async function assertSmallRows(journal: Journal, run = 'r'): Promise<void> {
  for (const entry of await journal.read(run)) expect(JSON.stringify(entry).length).toBeLessThan(LARGEST_BYTES);
}

/** A process that dies, and another one that goes on with the file. */
async function later(path: string, runtime: Runtime, planner: Parameters<typeof world>[0]['planner']) {
  await runtime.close();
  return world({ planner: planner as never, tools: [echo], journal: openJournal(path) });
}

it('a long message, a goal, context and an answer are read whole by the model, in order, also by another process', async () => {
  const path = temporaryFile();
  const model = scriptedModel(() => ({ text: 'And now?' }));
  const planner = react({ model, converse: true });
  const journal = openJournal(path);
  const made = world({ planner, journal });
  const run = await start(made, { identity });
  await run.result();
  await run.steer('INJECT_CONTEXT', { note: large('context') }, { until: 'applied' });
  await run.steer('REDIRECT', { goal: large('goal') }, { until: 'applied' });
  await run.steer('USER_MESSAGE', { message: large('message') });
  await run.result();
  await until(async () => (await journal.get('r'))?.lease === undefined);
  await run.resume({ payload: { message: large('answer') } });
  await run.result();
  await assertSmallRows(journal);
  expect((await run.state()).goal).toBe(large('goal'));

  const next = await later(path, made.runtime, planner);
  const again = next.runtime.run('r');
  await again.resume({ payload: { message: 'go on' } });
  expect(await again.result()).toMatchObject({ status: 'paused' });
  const said = texts(model.calls.at(-1)?.prompt ?? [], 'user');
  expect(said.filter((text) => text.includes('the end of') || text === 'go on')).toEqual([
    expect.stringContaining(large('context')),
    expect.stringContaining(large('goal')),
    large('message'),
    large('answer'),
    'go on',
  ]);
  const { steering, goal } = await again.trajectory();
  expect(steering.map(({ payload }) => payload)).toEqual([{ note: large('context') }, { goal: large('goal') }]);
  expect(goal).toBe(large('goal'));
  await next.runtime.close();
});

it('edited arguments reach their tool whole, in another process, a fork and a replay', async () => {
  const path = temporaryFile();
  const seen: Json[] = [];
  const write = make('write', (args) => seen.push(args as Json), { needsApproval: true });
  const planner = script(call('write', { text: 'short' }));
  const first = world({ planner, tools: [write], journal: openJournal(path) });
  const run = await start(first, { identity });
  const [asked] = await pausesOf(run);
  await first.runtime.close();

  const elsewhere = world({ planner, tools: [write], journal: openJournal(path) });
  const again = elsewhere.runtime.run('r');
  await expect(again.approve(asked?.token, { payload: { note: 'words' } })).rejects.toMatchObject({
    code: 'payload_invalid',
  });
  await again.approve(asked?.token, { args: { text: large('edited') }, reason: large('why') });
  expect(await again.result()).toMatchObject({ status: 'finished' });
  expect(seen).toEqual([{ text: large('edited') }]);
  const raw = openJournal(path);
  await assertSmallRows(raw);
  expect((await again.trajectory()).resume?.payload).toEqual({ reason: large('why') });
  expect(await again.replay()).not.toHaveProperty('divergence');
  const fork = await again.fork({ step: 1 });
  expect((await fork.state()).steps[0]).toEqual((await again.state()).steps[0]);
  await assertSmallRows(raw, fork.id);
  await elsewhere.runtime.close();
});

it('a result that a fork is given is kept as a tool’s own is, and read on like one', async () => {
  const journal = memoryJournal();
  const made = world({ planner: script(call('echo'), call('echo')), tools: [echo], journal });
  const run = await start(made, { identity });
  await run.result();
  const value = { text: large('given') };
  const fork = await run.fork({ step: 1, result: { value } });
  expect(await fork.result()).toMatchObject({ status: 'finished' });
  const outcome = (await fork.state()).steps[0]?.calls[0]?.outcome;
  const artifact = outcome?.kind === 'value' ? outcome.artifact : undefined;
  const kept = await journal.artifacts.get(identity, artifact?.artifactRef ?? '');
  expect(JSON.parse(Buffer.from(kept?.bytes ?? []).toString())).toEqual(value);
  expect((await journal.read(fork.id)).find(({ kind }) => kind === 'call_ended')).toMatchObject({
    discovered: ['artifact_fetch'],
    outcome: { value: { tool: 'echo', truncated: true } },
  });
  await assertSmallRows(journal, fork.id);
});

it('an edited node of a plan is made with the whole of its arguments', async () => {
  const journal = memoryJournal();
  const held = holding();
  const seen: Json[] = [];
  const write = make('write', (args) => seen.push(args as Json));
  const branches = [
    { id: 'first', tool: 'hold', args: {} },
    { id: 'last', tool: 'write', args: { text: 'short' }, after: ['first'] },
  ];
  const planner = script({ kind: 'call_parallel', plan: 'p', branches });
  const run = await start(world({ planner, tools: [held.tool, write], journal }), { identity });
  await held.entered;
  await run.pause();
  held.release();
  await run.result();
  await run.resume({ nodes: { last: { args: { text: large('edited') } } } });
  expect(await run.result()).toMatchObject({ status: 'finished' });
  expect(seen).toEqual([{ text: large('edited') }]);
  await assertSmallRows(journal);
});

it('a question is as large as its planner makes it, and whoever waits for it is shown it whole', async () => {
  const journal = memoryJournal();
  const payload = { document: large('document') };
  const run = await start(world({ planner: script({ ...pause, payload } as never), journal }), { identity });
  expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ payload }] });
  expect((await journal.read('r')).find(({ kind }) => kind === 'paused')).toMatchObject({
    stored: { artifactRef: expect.stringMatching(/^art_/) },
  });
});

it('the content is stored before the control is acknowledged, and the control has its reference', async () => {
  const journal = memoryJournal();
  const made = world({ planner: script(call('hold')), tools: [make('hold', () => new Promise(() => {}))], journal });
  const run = await start(made, { identity });
  await until(async () => (await run.state()).open !== null);
  await run.steer('USER_MESSAGE', { message: large('message') });
  const [received] = await journal.inbox('r');
  const message = received?.message as { stored?: { artifactRef: string }; payload?: JsonObject };
  expect(message.payload).toBeUndefined();
  const kept = await journal.artifacts.get(identity, message.stored?.artifactRef ?? '');
  expect(JSON.parse(Buffer.from(kept?.bytes ?? []).toString())).toEqual({ payload: { message: large('message') } });
  const [whole] = await wholeJournal(journal).inbox('r');
  expect(whole?.message).toMatchObject({ payload: { message: large('message') } });
});

it.each<[ControlType, JsonObject]>([
  ['USER_MESSAGE', { message: 'x'.repeat(4_000_000) }],
  ['REDIRECT', { goal: 'x'.repeat(4_000_000) }],
  ['INJECT_CONTEXT', { list: Array.from({ length: 100_000 }, () => 1) }],
])('SP-10 a %s beyond the limits of any value is refused by the limit’s name, and nothing is stored', async (type, payload) => {
  const journal = memoryJournal();
  const run = await start(world({ planner: script(pause), journal }), { identity });
  await run.result();
  const error = await run.steer(type, payload).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'unserializable', message: expect.stringMatching(/4000000 characters|100000/) });
  expect(await journal.inbox('r')).toEqual([]);
  expect((await journal.artifacts.list(identity, 10)).total).toBe(0);
});

it('a small payload stays where it is, and what is refused by the run’s end leaves nothing', async () => {
  const journal = memoryJournal();
  const run = await start(world({ planner: script(pause), journal }), { identity });
  await run.result();
  await run.resume({ payload: { message: 'x'.repeat(32_000) } });
  await run.result();
  await expect(run.steer('USER_MESSAGE', { message: large('late') })).rejects.toMatchObject({ code: 'run_ended' });
  expect((await journal.artifacts.list(identity, 10)).total).toBe(0);
});

/** The store as it is when somebody has deleted its artifacts. */
function emptied(journal: Journal): Journal {
  const { artifacts } = journal;
  const empty: ArtifactStore = {
    put: (...args) => artifacts.put(...args),
    get: async () => undefined,
    list: (...args) => artifacts.list(...args),
    erase: (...args) => artifacts.erase(...args),
  };
  return changed(journal, { artifacts: empty });
}

it('a control whose content is gone before the run has heard it is refused, and the run goes on', async () => {
  const journal = memoryJournal();
  const made = world({ planner: script(pause), journal });
  const run = await start(made, { identity });
  await run.result();
  await made.runtime.close();
  const message = { id: 'm', type: 'USER_MESSAGE', payload: { message: large('gone') } } as const;
  await wholeJournal(journal).signal('r', message);
  const next = world({ planner: script(pause), journal: emptied(journal) });
  await next.runtime.run('r').resume();
  await until(async () => (await journal.inbox('r')).length === 0);
  const taken = (await journal.read('r')).filter(({ kind }) => kind === 'control');
  expect(taken).toMatchObject([{ applied: false, error: { code: 'artifact_not_found' } }]);
  await next.runtime.run('r').resume({ payload: { message: 'again' } });
  expect(await next.runtime.run('r').result()).toMatchObject({ status: 'finished' });
});

it('what was heard and is gone later is missed by everybody, by name; the run can be repaired', async () => {
  const journal = memoryJournal();
  const planner = watched(script(asks, asks));
  const made = world({ planner, journal });
  const run = await start(made, { identity });
  await run.result();
  await run.steer('USER_MESSAGE', { message: large('gone') });
  await run.result();
  await made.runtime.close();
  const next = world({ planner, journal: emptied(journal) });
  const again: Run = next.runtime.run('r');
  const missed = { code: 'artifact_not_found', message: expect.stringContaining('art_') };
  for (const asks of [again.result(), again.state(), again.trajectory(), again.resume()]) {
    await expect(asks).rejects.toMatchObject(missed);
  }
  expect((await again.diagnose())?.refused[0]?.problem.message).toContain('wholeJournal');
  await again.repair({ by: 'ana' });
  expect(await again.result()).toMatchObject({ status: 'paused' });
  expect(planner.views).toHaveLength(2);
});

it('entries that were read without their content are not folded to another state', async () => {
  const journal = memoryJournal();
  const run = await start(world({ planner: script(pause, pause), journal }), { identity });
  await run.result();
  await run.resume({ payload: { message: large('answer') } });
  await run.result();
  expect(() => foldEntries([])).toThrow(PilotageError);
  const raw = await journal.read('r');
  expect(() => foldEntries(raw)).toThrow(
    expect.objectContaining({ code: 'journal_corrupt', message: expect.stringContaining('wholeJournal') }),
  );
  const { steps } = foldEntries(await wholeJournal(journal).read('r'));
  expect(steps[0]?.calls[0]?.outcome).toMatchObject({ payload: { message: large('answer') } });
});

it('an append that has landed although it failed is not made again', async () => {
  const base = memoryJournal();
  let fails = true;
  const flaky = changed(base, {
    append: async (request) => {
      await base.append(request);
      const isAnswer = request.entries.some((entry: Entry) => entry.kind === 'resumed');
      if (!isAnswer || !fails) return;
      fails = false;
      throw new PilotageError('journal_busy', 'The store did not say that it was done.');
    },
  });
  const made = world({ planner: script(pause, pause), journal: flaky });
  const run = await start(made, { identity });
  await run.result();
  const answered = run.resume({ payload: { size: 3, message: large('answer') } });
  await advanceUntil(
    made.clock,
    async () => (await base.read('r')).filter(({ kind }) => kind === 'paused').length === 2,
  );
  await answered;
  expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ step: 1 }] });
  expect(fails).toBe(false);
});

it('a call in doubt shows its arguments whole, and they stand beside the journal, also while others are under way', async () => {
  const held = holding();
  const lost = make('lost', () => Promise.reject(new OutcomeUnknown('the line went dead')), { effect: 'once' });
  const planner = script(
    parallel([
      { tool: 'lost', args: { body: large('mail') } },
      { tool: 'hold', args: {} },
    ]),
  );
  const journal = memoryJournal();
  const run = await start(world({ planner, tools: [lost, held.tool], journal }), { identity });
  await until(async () => (await run.state()).pauses.length === 1);
  const [paused] = (await journal.read('r')).filter(({ kind }) => kind === 'paused');
  expect(JSON.stringify(paused).length).toBeLessThan(1_000);
  held.release();
  expect(await pausesOf(run)).toMatchObject([{ reason: 'in_doubt', payload: { args: { body: large('mail') } } }]);
});
