/** What becomes of a question before anybody answers it: whoever answers it then is told that, and events say the same. */
import { expect, it, onTestFinished } from 'vitest';
import type { CallParallel, Decision, RunView } from '#core';
import { type Append, type Journal, memoryJournal } from '#journal';
import { agent, agentTool, createRuntime, type Run, type StartOptions } from '#pilotage';
import { VirtualClock } from '#testing';
import { OutcomeUnknown, type Tool, ToolFailure } from '#tools';
import { asks, call, named, parallel, script } from '../kit/decisions.ts';
import { entriesOf, observations, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, gate, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const ask = make('ask', async (_, context) => (await context.ask({ question: 'Well?' })) as string);
const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
const bell = make('bell', async (_, context) => (await context.event({ key: 'bell' })) as null);
const breaks = make('breaks', async (_, context) => {
  await context.event({ key: 'bell' });
  throw new Error('It broke.');
});
const held = (ends: () => Promise<never>, more: Partial<Tool>) =>
  make('held', (_, context) => Promise.race([context.ask({ question: 'Well?', hold: true }), ends()]), more);

const undone = make('undone', () => 'undone', { effect: 'once' });
const done = make('done', () => 'done', { effect: 'once', undo: () => ({ tool: 'undone', args: {} }) });

/** A person, and somebody who goes on when the bell rings. */
const beside = (other: string, how: Pick<CallParallel, 'join' | 'failFast'>): Decision => ({
  ...{ kind: 'call_parallel', ...how },
  branches: [
    { id: 'person', tool: 'ask', args: {} },
    { id: 'other', tool: other, args: {} },
  ],
});
const ring = async (_: Run, { runtime }: World): Promise<unknown> => {
  await until(async () => (await runtime.waiting()).length === 2);
  return runtime.signal('bell');
};

interface Scene extends Partial<Omit<StartOptions, 'identity'>> {
  readonly steps: readonly Decision[];
  readonly tools?: readonly Tool[];
  /** What closes the question. Absent: nobody does anything. */
  readonly act?: (run: Run, made: World) => Promise<unknown>;
}

const busy = (): Promise<never> => Promise.reject(new ToolFailure('busy', { retryAfterMs: 120_000 }));
const unknown = (): Promise<never> => Promise.reject(new OutcomeUnknown('lost'));

it.each<readonly [string, string, RegExp, Scene]>([
  [
    'a race that another branch has won',
    ...['superseded', /before anybody answered, since another branch of its step was faster \(other\); /],
    { steps: [beside('bell', { join: { kind: 'first_success' } }), asks], act: ring },
  ],
  [
    'a race that nobody can win any more',
    ...['superseded', /since too few branches of its step were left for what it needs; /],
    { steps: [beside('breaks', { join: { kind: 'n', n: 2 } }), asks], act: ring },
  ],
  [
    'a branch that fails fast',
    ...['superseded', /since another branch of its step had failed, which stops the others; /],
    { steps: [beside('breaks', { failFast: true }), asks], act: ring },
  ],
  [
    'a message of the user',
    ...['superseded', /was withdrawn by USER_MESSAGE before it was answered/],
    { steps: [call('pay'), asks], act: (run) => run.steer('USER_MESSAGE', { message: 'hey' }) },
  ],
  [
    'another goal',
    ...['superseded', /was withdrawn by REDIRECT before it was answered/],
    { steps: [call('ask'), asks], act: (run) => run.steer('REDIRECT', { goal: 'other' }) },
  ],
  [
    'a call that somebody cancels',
    ...['superseded', /since somebody cancelled its call; /],
    { steps: [call('ask'), asks], act: (run) => run.cancelCall({ step: 0, call: 0 }) },
  ],
  [
    'a call that is put off',
    ...['superseded', /since the attempt of its call that had asked it has failed, and the call is made again later/],
    { steps: [call('held')], tools: [held(busy, { effect: 'read', retries: 2 })] },
  ],
  [
    'a call in doubt',
    ...['superseded', /since its call is in doubt: somebody has to say first whether it has happened; /],
    { steps: [call('held')], tools: [held(unknown, { effect: 'once' })] },
  ],
  [
    'a call that fails',
    ...['superseded', /since its call failed; /],
    { steps: [call('held'), asks], tools: [held(() => Promise.reject(new Error('no')), { effect: 'read' })] },
  ],
  [
    'the time limit of the question',
    ...['pause_expired', /expired/],
    {
      steps: [call('brief'), asks],
      tools: [make('brief', async (_, context) => context.ask({ question: 'Well?', expiresInMs: 1_000 }))],
      act: (run, { clock }) => advanceUntil(clock, async () => (await run.state()).steps.length > 0),
    },
  ],
  [
    'a cancel of the run',
    ...['run_ended', /open still when the run ended, at .*: the run was cancelled; /],
    { steps: [call('ask')], act: (run) => run.cancel() },
  ],
  [
    'a cancel of the run, as a race was open',
    ...['run_ended', /open still when the run ended, at .*: the run was cancelled; /],
    { steps: [beside('bell', { join: { kind: 'first_success' } })], act: (run) => run.cancel() },
  ],
  [
    'a cancel of a run that undoes its calls',
    ...['superseded', /since the run was cancelled, and undoes what it has done; /],
    { steps: [call('done'), call('ask')], tools: [done, undone], onFail: 'undo', act: (run) => run.cancel() },
  ],
  [
    'the deadline of the run',
    ...['run_ended', /open still when the run ended, at .*: the run reached a limit \(deadline_exceeded\); /],
    {
      ...{ steps: [call('ask')], limits: { deadlineAt: new VirtualClock().now() + 1_000 } },
      act: (run, { clock }) => advanceUntil(clock, async () => (await run.state()).ending !== null),
    },
  ],
] as const)('whoever answers is told so when a question is closed by %s', async (_, code, message, scene) => {
  const { steps, tools = [], act, ...options } = scene;
  const made = world({ planner: script(...steps), tools: [ask, pay, bell, breaks, ...tools] });
  const tokens: string[] = [];
  const run = await start(made, options);
  const events = run.events();
  for await (const event of events) {
    if (event.type !== 'pause.requested') continue;
    tokens.push(event.token);
    break;
  }
  const [token = ''] = tokens;
  await act?.(run, made);
  await until(async () => {
    const { pauses, ending } = await run.state();
    return ending !== null || pauses.every((pause) => pause.token !== token);
  });
  const answer =
    steps[0]?.kind === 'call_tool' && steps[0].tool === 'pay'
      ? run.approve(token)
      : run.answer(token, { kind: 'answer', value: 'yes' });
  await expect(answer).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
});

it('whoever answers is told so when the run goes on in another one since', async () => {
  const planner = ({ context, trajectory: { count } }: RunView): Decision => {
    if (context.carried !== undefined) return asks;
    return count === 0 ? call('ask') : { kind: 'finish', reason: 'continued', continued: 1 };
  };
  const { runtime } = world({ planner, tools: [ask] });
  const run = await start({ runtime });
  await until(async () => (await pausesOf(run)).length === 1);
  const [question] = await pausesOf(run);
  await run.cancelCall({ step: 0, call: 0 });
  await until(async () => (await run.state()).context.carried === 1);
  await expect(run.answer(question?.token, { kind: 'answer', value: 'yes' })).rejects.toMatchObject({
    ...{
      code: 'superseded',
      message: expect.stringMatching(/since somebody cancelled its call; ANSWER comes too late/),
    },
  });
});

it('whoever answers what a branch asks that another agent carries out is told so when that branch has lost the race', async () => {
  const clerk = agent({ name: 'clerk', planner: script(call('ask')), tools: [ask] });
  const tool = agentTool(clerk, { description: 'Asks.' });
  const race = parallel(
    [
      { id: 'clerk', tool: 'clerk', args: { input: 'q' } },
      { id: 'other', tool: 'bell', args: {} },
    ],
    { join: { kind: 'first_success' } },
  );
  const { runtime } = world({
    agents: [agent({ name: 'main', planner: script(race, asks), tools: [tool, bell] }), clerk],
  });
  const run = await start({ runtime });
  const asked = async () => (await runtime.waiting({ for: 'answer' })).filter(({ token }) => token !== undefined);
  await until(async () => (await runtime.waiting()).length === 2);
  const [{ token = '' } = {}] = await asked();
  await runtime.signal('bell');
  await until(async () => (await run.state()).steps.length > 0);
  await expect(run.answer(token, { kind: 'answer', value: 'yes' })).rejects.toMatchObject({
    ...{ code: 'run_ended', message: expect.stringMatching(/the run above it needed it no more/) },
  });
});

/** Asks, waits for an event that does not come, and does something that never ends: it is in doubt, and what it has asked is open still. */
const asksAndActs = make(
  'asks',
  async (_, { ask: asking, event, once }) => {
    const answer = asking({ question: 'May I?' });
    await event({ key: 'order-17', timeoutMs: 0 }).catch(() => {});
    await once('act', () => new Promise<void>(() => {}));
    return (await answer) as string;
  },
  { effect: 'once' },
);

it('a question closes with its call that somebody settles, and an answer that comes with that is refused', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const options = { planner: script(call('asks'), asks), tools: [asksAndActs], journal, clock };
  const first = createRuntime(options);
  const run = await start({ runtime: first });
  await advanceUntil(clock, async () => (await journal.read(run.id)).some(({ kind }) => kind === 'wait_ended'));
  let isClosed = false;
  void first.close({ graceMs: 0 }).then(() => {
    isClosed = true;
  });
  await advanceUntil(clock, () => isClosed);
  const second = createRuntime(options);
  second.work();
  const again = second.run(run.id);
  await advanceUntil(clock, async () => (await pausesOf(again)).length === 2);
  const [question, doubt] = await pausesOf(again);
  await second.close();
  const away = createRuntime({ agents: [agent({ name: 'away', planner: script() })], journal, clock });
  await away.run(run.id).settle(doubt?.token, { happened: true, value: 'done' });
  await away.run(run.id).answer(question?.token, { kind: 'answer', value: 'yes' });
  await away.close();
  const third = createRuntime(options);
  const last = third.run(run.id);
  await last.resume().catch(() => {});
  expect(await last.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'await_input' }] });
  expect(observations(await last.state())).toEqual(['done']);
  const told = [];
  for await (const event of last.events({ follow: false })) {
    if (event.type === 'control.rejected') told.push(event.error.message);
    if (event.type === 'pause.resumed') told.push([event.token, event.verdict]);
  }
  expect(told).toEqual([
    [question?.token, 'superseded'],
    [doubt?.token, 'settle'],
    expect.stringMatching(/since its call came to its value without it; ANSWER comes too late/),
  ]);
  await third.close();
});

/** A journal whose appends with such an entry wait until `mayGo` is opened. */
function holdingBack(journal: Journal, isHeld: (entry: Append['entries'][number]) => boolean) {
  const [begun, mayGo] = [gate(), gate()];
  const append = async (request: Append): Promise<void> => {
    if (request.entries.some(isHeld)) {
      begun.open();
      await mayGo.opened;
    }
    await journal.append(request);
  };
  const held: Journal = new Proxy(journal, {
    get: (target, name) => {
      const member: unknown = name === 'append' ? append : Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return { held, begun, mayGo };
}

const race = beside('bell', { join: { kind: 'first_success' } });
const FASTER = expect.stringMatching(/since another branch of its step was faster \(other\); ANSWER comes too late/);

/** @returns the token of the question, once it is asked. */
async function asked(run: Run): Promise<string> {
  await until(async () => (await pausesOf(run)).length === 1);
  return (await pausesOf(run))[0]?.token ?? '';
}

/** A process that has not the agent of the run. */
function office(journal: Journal) {
  const runtime = createRuntime({ agents: [agent({ name: 'office', planner: script() })], journal });
  onTestFinished(() => runtime.close());
  return runtime;
}

it('an answer that is given when a race is won is refused, though the end of its branch is not stored yet', async () => {
  const journal = memoryJournal();
  const { held: far, begun, mayGo } = holdingBack(journal, (entry) => entry.kind === 'call_ended' && entry.call === 0);
  const made = world({ planner: script(race, asks), tools: [ask, bell], journal: far });
  const run = await start(made);
  const token = await asked(run);
  await ring(run, made);
  await begun.opened;
  await expect(office(journal).run(run.id).answer(token, { kind: 'answer', value: 'yes' })).rejects.toMatchObject({
    ...{ code: 'superseded', message: FASTER },
  });
  mayGo.open();
  await run.result();
});

it('an answer that was stored before a race was won, and is read behind that, is refused', async () => {
  const journal = memoryJournal();
  const { held: far, begun, mayGo } = holdingBack(journal, (entry) => entry.kind === 'call_ended' && entry.call === 1);
  const made = world({ planner: script(race, asks), tools: [ask, bell], journal: far });
  const run = await start(made);
  const token = await asked(run);
  await ring(run, made);
  await begun.opened;
  const said = office(journal).run(run.id).answer(token, { kind: 'answer', value: 'yes' });
  const refused = expect(said).rejects.toMatchObject({ code: 'superseded', message: FASTER });
  await until(async () => (await journal.inbox(run.id)).some(({ message }) => message.type === 'ANSWER'));
  mayGo.open();
  await refused;
  await run.result();
});

it('words of the user that come when a race is won are for the planner, and no answer to the question that has lost it', async () => {
  const journal = memoryJournal();
  const { held: far, begun, mayGo } = holdingBack(journal, (entry) => entry.kind === 'call_ended' && entry.call === 1);
  const made = world({ planner: script(race, asks), tools: [ask, bell], journal: far });
  const run = await start(made);
  await asked(run);
  await ring(run, made);
  await begun.opened;
  const said = run.steer('USER_MESSAGE', { message: 'And a chair.' });
  await until(async () => (await journal.inbox(run.id)).some(({ message }) => message.type === 'USER_MESSAGE'));
  mayGo.open();
  await said;
  await run.result();
  const [taken] = await entriesOf(journal, run, 'control');
  expect([taken?.applied, taken?.as]).toEqual([true, undefined]);
});

it('a signal that is read when another branch has won the race is for whoever waits for the key next', async () => {
  const journal = memoryJournal();
  const { held: far, begun, mayGo } = holdingBack(journal, (entry) => entry.kind === 'call_ended' && entry.call === 1);
  const won = gate();
  const other = make('other', () => won.opened.then(() => 'won'));
  const first = parallel(named('bell', 'other'), { join: { kind: 'first_success' } });
  const made = world({ planner: script(first, call('bell')), tools: [bell, other], journal: far });
  const run = await start(made);
  await until(async () => (await made.runtime.waiting()).length === 1);
  won.open();
  await begun.opened;
  await made.runtime.signal('bell', 'ding');
  mayGo.open();
  await run.result();
  expect(observations(await run.state()).at(-1)).toBe('ding');
});
