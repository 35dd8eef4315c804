/** What people say to a run that asks its user: who comes first answers, and everybody is heard, once, in the order of acceptance. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Identity, local } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { react } from '#planners/react';
import { createRuntime, type Run, type Runtime } from '#runtime';
import { type ScriptedModel, scriptedModel } from '#testing';
import { asks, named, parallel, script, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { texts } from '../kit/messages.ts';
import { entriesOf, innerState, observations, pausesOf, send } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { PARENT, plays, spawns, thenTell } from '../kit/tasks.ts';
import { holding, make } from '../kit/tools.ts';
import { quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

interface Chat {
  readonly run: Run;
  readonly runtime: Runtime;
  readonly journal: Journal;
  readonly model: ScriptedModel;
}

/** A run that asks its user after each reply. */
async function chat(): Promise<Chat> {
  const model = scriptedModel(() => ({ text: 'And now?' }));
  const made = world({ planner: react({ model, converse: true }), journal: memoryJournal() });
  const run = await start(made, { query: 'hello' });
  expect(await run.result()).toMatchObject({ status: 'paused' });
  return { ...made, run, model };
}

/** What the user had said by the last request. */
function heard({ calls }: ScriptedModel): string[] {
  return texts(calls.at(-1)?.prompt ?? [], 'user');
}

async function isOver({ journal, run }: Pick<Chat, 'journal' | 'run'>): Promise<boolean> {
  const record = await journal.get(run.id);
  return record?.lease === undefined && (await journal.inbox(run.id)).length === 0;
}

it('a message to a run that asks its user is the answer, and wakes it', async () => {
  const { run, model, journal } = await chat();
  await run.steer('USER_MESSAGE', { message: 'one' });
  expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ step: 1 }] });
  expect(heard(model)).toEqual(['hello', 'one']);
  await run.resume({ payload: { message: 'two' } });
  await run.result();
  expect(heard(model)).toEqual(['hello', 'one', 'two']);
  expect((await innerState(journal, run)).steering).toEqual([]);
  expect((await entriesOf(journal, run, 'control')).map((entry) => [entry.control.type, entry.as])).toEqual([
    ['USER_MESSAGE', 'answer'],
    ['RESUME', undefined],
  ]);
});

it('what a message or an answer says beside its words is read with them', async () => {
  const { run, model } = await chat();
  await run.resume({ payload: { message: 'two of them', ids: [3, 4] } });
  await run.result();
  expect(heard(model)).toEqual(['hello', 'two of them\n{"ids":[3,4]}']);
  await run.steer('USER_MESSAGE', { message: 'and this', urgent: true });
  await run.result();
  expect(heard(model).at(-1)).toBe('and this\n{"urgent":true}');
});

it('an answer that is given again is refused, and the one that a dead process has stored is taken', async () => {
  const { run, model, journal, runtime } = await chat();
  const [open] = await pausesOf(run);
  const payload = { payload: { message: 'yes' }, token: open?.token ?? '' };
  // As a process does that dies before it drives the run.
  await send(journal, run, { id: 'first', type: 'RESUME', payload });
  const again = { ...payload, payload: { message: 'yes!' } };
  await expect(run.steer('RESUME', again)).rejects.toMatchObject({ code: 'pause_not_found' });
  await until(() => isOver({ journal, run }));
  expect(heard(model)).toEqual(['hello', 'yes']);
  await runtime.close();
});

it('three payloads at once are an answer and two messages', async () => {
  const { run, model } = await chat();
  await Promise.all(['one', 'two', 'three'].map((message) => run.resume({ payload: { message } })));
  await run.result();
  expect(heard(model)).toEqual(['hello', 'one', 'two', 'three']);
  expect(model.calls).toHaveLength(2);
});

it('messages, payloads and context of the time before somebody came are heard in the order in which they were stored', async () => {
  const { run, model, journal, runtime } = await chat();
  await runtime.close();
  await send(journal, run, { id: 'a', type: 'INJECT_CONTEXT', payload: { note: 'first' } });
  await send(journal, run, { id: 'b', type: 'USER_MESSAGE', payload: { message: 'two' } });
  await send(journal, run, { id: 'c', type: 'RESUME', payload: { payload: { message: 'three' } } });
  await send(journal, run, { id: 'd', type: 'USER_MESSAGE', payload: { message: 'four' } });
  await send(journal, run, { id: 'e', type: 'RESUME', payload: { payload: { size: 5 } } });
  const next = world({ planner: react({ model, converse: true }), journal });
  await next.runtime.run(run.id).resume();
  await until(() => isOver({ journal, run }));
  expect(heard(model)).toEqual(['hello', expect.stringContaining('first'), 'two', 'three', 'four', '{"size":5}']);
  expect(model.calls).toHaveLength(2);
});

it('an answer that names its pause, or has no words, is for that pause alone', async () => {
  const { run, model, journal, runtime } = await chat();
  const [{ token = '' } = {}] = await pausesOf(run);
  await runtime.close();
  await send(journal, run, { id: 'a', type: 'USER_MESSAGE', payload: { message: 'one' } });
  await send(journal, run, { id: 'b', type: 'RESUME', payload: { token, payload: { message: 'two' } } });
  await send(journal, run, { id: 'c', type: 'RESUME' });
  const next = world({ planner: react({ model, converse: true }), journal });
  await next.runtime.run(run.id).resume();
  await until(() => isOver({ journal, run }));
  expect(heard(model)).toEqual(['hello', 'one']);
  const taken = await entriesOf(journal, run, 'control');
  expect(taken.map(({ error }) => error?.code)).toEqual([undefined, 'pause_not_found', 'pause_not_found']);
});

it('a message does not answer what asks for an approval, for a login, or for nothing any more', async () => {
  const asked = watched(script({ ...asks, reason: 'external_event' } as never));
  const made = world({ planner: asked });
  const run = await start(made);
  await run.result();
  await run.steer('USER_MESSAGE', { message: 'one' }, { until: 'applied' });
  expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ step: 0 }] });
  await run.resume();
  await run.result();
  await expect(run.resume({ payload: { message: 'two' } })).rejects.toMatchObject({ code: 'run_ended' });

  const expired = world({ planner: script({ ...asks, expiresInMs: 50 } as never) });
  const late = await start(expired);
  await late.result();
  expired.clock.advance(60);
  await late.steer('USER_MESSAGE', { message: 'too late' });
  expect(await late.result()).toMatchObject({ status: 'finished' });
  expect(observations(await late.state())).toEqual([{ decision: 'timeout', payload: null }]);
});

it('a message to a run whose task asks the user is for the task, and so are those that come with it', async () => {
  const child = watched(script(asks, asks));
  const made = world({ planner: plays({ q: thenTell(spawns('child', { task: 'foreground' })), child }) });
  const run = await start(made, { identity: PARENT });
  await run.result();
  await Promise.all(['one', 'two'].map((message) => run.steer('USER_MESSAGE', { message })));
  await until(async () => (await made.runtime.run('p.0.0').state()).steps.length === 1);
  const task = await made.runtime.run('p.0.0').state();
  expect(observations(task)).toEqual([{ decision: 'resume', payload: { message: 'one' } }]);
  await until(async () => (await entriesOf(made.journal, made.runtime.run('p.0.0'), 'control')).length === 2);
  await quiet();
  await until(async () => (await run.result()).status === 'paused');
  const said = await Promise.allSettled(['three', 'four'].map((message) => run.resume({ payload: { message } })));
  expect(said.map(({ status }) => status)).toContain('fulfilled');
  expect(await run.result()).toMatchObject({ status: 'finished' });
  const accepted = await entriesOf(made.journal, made.runtime.run('p.0.0'), 'control');
  expect(accepted.filter(({ applied }) => applied).length).toBeGreaterThanOrEqual(3);
  expect((await innerState(made.journal, run)).steering).toEqual([]);
});

// Two processes that share a file, as far as the journal can tell.

interface Said {
  readonly by: 0 | 1;
  readonly how: 'message' | 'payload' | 'context';
  /** Waits until it was accepted before the next one is sent. */
  readonly waits: boolean;
}

const said = fc.record<Said>({
  by: fc.constantFrom(0, 1),
  how: fc.constantFrom('message', 'payload', 'context'),
  waits: fc.boolean(),
});

function say(run: Run, how: Said['how'], word: string): Promise<void> {
  if (how === 'message') return run.steer('USER_MESSAGE', { message: word });
  return how === 'payload' ? run.resume({ payload: { message: word } }) : run.steer('INJECT_CONTEXT', { note: word });
}

const WORD = /w\d+/;

/** The word of a control, as the model reads it. */
function wordIn(text: string): string[] {
  const found = WORD.exec(text);
  return found === null ? [] : [found[0]];
}

it('whoever says what, from two processes: the model reads what was accepted once and in order, and the rest was refused', async () => {
  const path = temporaryFile();
  const models = [scriptedModel(() => ({ text: 'And now?' })), scriptedModel(() => ({ text: 'And now?' }))] as const;
  const journals = [openJournal(path), openJournal(path)] as const;
  const runtimes = models.map((model, index) =>
    createRuntime({ planner: react({ model, converse: true }), journal: journals[index as 0 | 1] }),
  );
  for (const runtime of runtimes) runtime.work();
  let count = 0;
  const journal = journals[0];
  await fc.assert(
    fc.asyncProperty(fc.array(said, { minLength: 2, maxLength: 8 }), async (things) => {
      const identity: Identity = local('ana', { run: `r${count++}` });
      const run = (await runtimes[0]?.start('hello', { identity })) as Run;
      await run.result();
      const handles = runtimes.map((runtime) => runtime.run(identity.run));
      const sent: Promise<unknown>[] = [];
      for (const [index, { by, how, waits }] of things.entries()) {
        const saying = say(handles[by] as Run, how, `w${index}`).catch((error: { code: string }) => error.code);
        sent.push(saying);
        if (waits) await saying;
      }
      const refusals = await Promise.all(sent);
      await until(() => isOver({ journal, run }));
      await say(run, 'message', `w${things.length}`);
      await until(async () => (await isOver({ journal, run })) && (await run.result()).status === 'paused');
      const taken = await entriesOf(journal, run, 'control');
      const accepted = taken.flatMap(({ applied, control }) =>
        applied ? wordIn(JSON.stringify(control.payload)) : [],
      );
      const requests = models
        .flatMap(({ calls }) => calls)
        .filter(({ prompt }) => texts(prompt, 'user').at(-1) === `w${things.length}`);
      const read = requests.map(({ prompt }) => texts(prompt, 'user').flatMap(wordIn));
      expect(read.at(-1)).toEqual(accepted);
      const refused = refusals.flatMap((code, index) => (code === undefined ? [] : [[`w${index}`, code]]));
      for (const [, code] of refused) expect(code).toBe('pause_not_found');
      expect([...accepted, ...refused.map(([word]) => word)].toSorted()).toEqual(
        Array.from({ length: things.length + 1 }, (_, index) => `w${index}`).toSorted(),
      );
      await run.cancel();
      await run.result();
      for (const { calls } of models) (calls as unknown[]).length = 0;
    }),
    { numRuns: 12 },
  );
  await Promise.all(runtimes.map((runtime) => runtime.close()));
}, 60_000);

it('what was said before a message that is heard at once is heard before it, also while a call is under way', async () => {
  const held = holding();
  const gated = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
  const planner = watched(script(parallel(named('pay', 'hold'))));
  const made = world({ planner, tools: [gated, held.tool] });
  const run = await start(made);
  await held.entered;
  await until(async () => (await run.state()).pauses.length === 1);
  await run.steer('INJECT_CONTEXT', { fact: 'one' });
  await run.steer('USER_MESSAGE', { message: 'two' }, { until: 'applied' });
  held.release();
  await run.result();
  const said = planner.views.at(-1)?.trajectory.steering.map(({ control }) => control.payload);
  expect(said).toEqual([{ fact: 'one' }, { message: 'two' }]);
});
