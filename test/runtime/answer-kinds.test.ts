/** Answers have kinds, and each question takes those that fit it. */
import { describe, expect, it } from 'vitest';
import { type Journal, memoryJournal } from '#journal';
import type { PauseAnswer, Run } from '#runtime';
import { LoginRequired } from '#tools';
import { asks, call, named, parallel, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, observations, pausesOf } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { PARENT, plays, spawns, thenTell } from '../kit/tasks.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const made: unknown[] = [];
const pay = make('pay', (args) => void made.push(args), {
  effect: 'once',
  needsApproval: true,
  outputSchema: { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] },
});

async function tokensOf(run: Run): Promise<string[]> {
  return (await pausesOf(run)).map(({ token }) => token);
}

describe('a value in place of a call', () => {
  it('is the outcome of the call, which is not made; it fits the output schema, or is refused', async () => {
    made.length = 0;
    const planner = watched(script(call('pay', { sum: 5 })));
    const base = world({ planner, tools: [pay] });
    const run = await start(base);
    const [token] = await tokensOf(run);
    await expect(run.answer(token, { kind: 'answer', value: 'seven' })).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringContaining('output schema'),
    });
    await run.answer(token, { kind: 'answer', value: { number: 7 }, reason: 'by hand' });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', usage: { calls: 0 } });
    expect(made).toEqual([]);
    expect(observations(await run.state())).toEqual([{ number: 7 }]);
    expect(await entriesOf(base.journal, run, 'resumed')).toMatchObject([
      { verdict: 'answer', payload: { reason: 'by hand' }, outcome: { kind: 'value', value: { number: 7 } } },
    ]);
    expect(only(await collect(run), 'tool.rejected')).toEqual([]);
    expect(planner.views).toHaveLength(2);
  });

  it('stands also for a call that waits for a login, and for one of a task, given through its owner', async () => {
    const door = make('door', () => Promise.reject(new LoginRequired('https://login.example/')));
    const planner = plays({ q: thenTell(spawns('child', { task: 'foreground' })), child: thenTell(call('door')) });
    const run = await start(world({ planner, tools: [door] }), { identity: PARENT });
    const [token] = await tokensOf(run);
    await run.answer(token, { kind: 'answer', value: 'opened' });
    expect(await run.result()).toMatchObject({ status: 'finished', payload: { result: 'opened' } });
  });

  it('four eyes: nobody gives the value of a call for which another person is to be asked', async () => {
    const tool = { ...pay, needsApproval: { approver: 'another' as const } };
    const base = world({ planner: script(call('pay')), tools: [tool] });
    const run = await start(base);
    const [token] = await tokensOf(run);
    const as = { tenant: 'local', user: 'ana', session: 'default', scope: 'owner_user' } as const;
    const mine = base.runtime.run(run.id, { as });
    await expect(mine.answer(token, { kind: 'answer', value: { number: 1 } })).rejects.toMatchObject({
      code: 'approver_refused',
    });
  });
});

describe('a kind that does not fit', () => {
  const GATE = ['approve', 'reject', 'answer'];

  it.each<[string, PauseAnswer, 'gate' | 'words', readonly string[]]>([
    ['a settlement of a gate', { kind: 'settle', happened: false }, 'gate', GATE],
    ['words with an approval', { kind: 'approve', payload: { note: 1 } }, 'gate', GATE],
    ['words with a rejection', { kind: 'reject', payload: { note: 1 } }, 'gate', GATE],
    ['yes where words are asked for', { kind: 'approve' }, 'words', ['payload']],
    ['no where words are asked for', { kind: 'reject' }, 'words', ['payload']],
    ['the value of no call', { kind: 'answer', value: 7 }, 'words', ['payload']],
  ])('%s is refused, naming those that do, and nothing is stored', async (_, answer, what, fits) => {
    const base = world({ planner: script(what === 'gate' ? call('pay') : asks), tools: [pay] });
    const run = await start(base);
    const [token] = await tokensOf(run);
    await expect(run.answer(token, answer)).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringContaining(fits.join(', ')),
      data: { token, fits },
    });
    expect(await base.journal.inbox(run.id)).toEqual([]);
    expect(await tokensOf(run)).toEqual([token]);
  });

  it('is named when it is no kind at all', async () => {
    const run = await start(world({ planner: script(asks) }));
    const [token] = await tokensOf(run);
    await expect(run.answer(token, { kind: 'maybe' } as never)).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringContaining('approve, reject, answer, payload, settle'),
    });
    await run.answer(token, { kind: 'payload', payload: { colour: 'blue' } });
    await run.result();
    expect(observations(await run.state())).toEqual([{ decision: 'resume', payload: { colour: 'blue' } }]);
  });
});

it('answers that are none are refused by name, and so is a wait that does not exist', async () => {
  const run = await start(world({ planner: script(asks) }));
  const [token = ''] = await tokensOf(run);
  const attempts = [
    () => run.answer(token, null as never),
    () => run.answerAll(null as never),
    () => run.answerAll({ [token]: null } as never),
    () => run.answerAll({}),
    () => run.steer('USER_MESSAGE', { message: 'hello' }, { until: 'done' } as never),
    () => run.cancel({ until: 'done' } as never),
  ];
  for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: 'invalid_config' });
  expect(await tokensOf(run)).toEqual([token]);
  await run.answerAll({ [token]: { kind: 'payload', payload: {} } });
});

describe('several answers at once', () => {
  it('close several questions of a run; one that is refused keeps back no other', async () => {
    made.length = 0;
    const base = world({ planner: script(parallel(named('pay', 'pay', 'pay'))), tools: [pay] });
    const run = await start(base);
    const [one = '', two = '', three = ''] = await tokensOf(run);
    const answers: Record<string, PauseAnswer> = {
      [one]: { kind: 'approve', args: { sum: 1 } },
      [two]: { kind: 'payload', payload: {} },
      [three]: { kind: 'answer', value: { number: 3 } },
    };
    await expect(run.answerAll(answers)).rejects.toMatchObject({
      code: 'payload_invalid',
      data: { refused: { [two]: 'payload_invalid' } },
    });
    expect(await tokensOf(run)).toEqual([two]);
    await run.answerAll({ [two]: { kind: 'reject', reason: 'no' } });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made).toEqual([{ sum: 1 }]);
    const [step] = (await run.state()).steps;
    expect(step?.calls.map(({ outcome }) => outcome.kind)).toEqual(['error', 'error', 'value']);
  });

  it('are waited for together: what comes of them is read once, and not once for each', async () => {
    let read = 0;
    const stored = openJournal(temporaryFile());
    const journal = changed<Journal>(stored, {
      read: async (...given) => {
        const entries = await stored.read(...given);
        read += entries.length;
        return entries;
      },
    });
    const base = world({ planner: script(parallel(named(...Array<string>(50).fill('pay')))), tools: [pay], journal });
    const run = await start(base);
    const tokens = await tokensOf(run);
    expect(tokens).toHaveLength(50);
    read = 0;
    await run.answerAll(Object.fromEntries(tokens.map((token) => [token, { kind: 'reject' } as const])));
    const { status } = await run.result();
    // Each answer looks at the last entries of the run before it is stored.
    expect(status).toBe('finished');
    expect(read).toBeLessThan(1_500);
  });
});

it('arguments that the store has no more are not approved unseen; with other arguments, or the digest of what was seen, they are', async () => {
  made.length = 0;
  const journal = memoryJournal();
  const { artifacts } = journal;
  const gone = changed(journal, {
    artifacts: {
      ...artifacts,
      put: artifacts.put.bind(artifacts),
      list: artifacts.list.bind(artifacts),
      get: () => Promise.resolve(undefined),
    },
  });
  const planner = script(call('pay', { body: 'x'.repeat(40_000) }));
  const run = await start(world({ planner, tools: [pay], journal: gone }));
  const [asked] = await pausesOf(run);
  await expect(run.approve(asked?.token)).rejects.toMatchObject({ code: 'artifact_not_found' });
  expect(await tokensOf(run)).toEqual([asked?.token]);
  await run.approve(asked?.token, { digest: String(asked?.payload?.['digest']) });
  expect(await run.result()).toMatchObject({ status: 'finished' });
  expect(made).toHaveLength(1);
});
