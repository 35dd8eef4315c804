/** Answers that come too late: whoever gives one is told what became of the question, also when two give theirs at once. */
import { expect, it, onTestFinished } from 'vitest';
import { flow, node, race } from '#flow';
import { type Journal, memoryJournal } from '#journal';
import { agent, createRuntime, local, type Run } from '#pilotage';
import { call, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { type World, type WorldOptions, world } from '../kit/world.ts';

const ask = make('ask', async (_, context) => (await context.ask({ question: 'Well?' })) as string);
const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
const as = (user: string) => ({ as: { tenant: 'local', user, session: 'default', scope: 'admin' } }) as const;

async function asking(options: WorldOptions, then: (run: Run, token: string, made: World) => Promise<unknown>) {
  const made = world({ tools: [ask, pay], ...options });
  const run = await made.runtime.start('q', { identity: local('ana') });
  await until(async () => (await made.runtime.waiting({ for: 'answer' })).length > 0);
  const [{ token = '' } = {}] = await made.runtime.waiting({ for: 'answer' });
  await then(run, token, made);
  return run.approve(token).then(
    () => ['taken'],
    ({ code, message }) => [code, message],
  );
}

it('says who has answered, also when the run has ended since', async () => {
  const approve = async ({ id }: Run, token: string, { runtime }: World) => {
    await runtime.run(id, as('bea')).approve(token);
    await runtime.run(id).result();
  };
  const words = expect.stringMatching(/was answered with approve by bea at .*; APPROVE comes too late/);
  expect(await asking({ planner: script(call('pay'), call('ask')) }, approve)).toEqual(['pause_not_found', words]);
  expect(await asking({ planner: script(call('pay')) }, approve)).toEqual(['run_ended', words]);
});

it('says that the call was cancelled, or that the run ended', async () => {
  const planner = script(call('ask'), call('ask'));
  const cancelled = await asking({ planner }, (run) => run.cancelCall({ step: 0, call: 0 }));
  expect(cancelled).toEqual(['superseded', expect.stringMatching(/since somebody cancelled its call; APPROVE comes/)]);
  const ended = await asking({ planner }, (run) => run.cancel().then(() => run.result()));
  expect(ended).toEqual(['run_ended', expect.stringMatching(/open still when the run ended, at .*; APPROVE comes/)]);
});

it('says which branch of a flow has won, to whoever answers through the run above', async () => {
  const person = node('person', { ask: { question: 'Is it to be paid?' } });
  const insurer = node('insurer', { event: { key: 'insurer' } });
  const first = race('first', { of: [person, insurer] });
  const claims = flow({ name: 'claims', inputSchema: {}, entry: first, exit: first });
  const { runtime } = world({ agents: [claims], journal: memoryJournal() });
  const run = await claims.start(runtime, {} as never, { identity: local('ana') });
  await until(async () => (await runtime.waiting()).length === 2);
  const [{ token = '' } = {}] = await runtime.waiting({ for: 'answer' });
  await runtime.signal('insurer');
  await until(async () => (await run.state()).ending !== null);
  await expect(run.answer(token, { kind: 'answer', value: true })).rejects.toMatchObject({
    ...{ code: 'superseded', message: expect.stringMatching(/another branch of its step was faster \(insurer\)/) },
  });
});

it('of two answers that are given at once where nobody can go on with the run, one is told that it does not count', async () => {
  const journal = memoryJournal();
  const planner = script(call('pay'));
  await asking({ journal, planner }, async (run, token, { runtime }) => {
    await runtime.close();
    const [one, two] = [apart(journal), apart(journal)];
    const both = Promise.withResolvers<void>();
    let here = 0;
    for (const each of [one, two]) {
      each.onInbox = async () => {
        here += 1;
        if (here === 2) both.resolve();
        await both.promise;
      };
    }
    const said = await Promise.allSettled([
      one.runtime.run(run.id, as('bea')).approve(token),
      two.runtime.run(run.id, as('cem')).reject(token),
    ]);
    expect(said.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const refused = said.find((each) => each.status === 'rejected')?.reason;
    expect(refused).toMatchObject({
      code: 'pause_not_found',
      message: expect.stringMatching(/is stored already \((APPROVE of bea|REJECT of cem)\)/),
    });
    const next = world({ journal, planner, tools: [ask, pay] }).runtime.run(run.id);
    await next.resume();
    await next.result();
    const told = [];
    for await (const event of next.events({ follow: false }))
      if (event.type === 'control.rejected') told.push(event.error.message);
    expect(told).toEqual([expect.stringMatching(/was answered with (approve by bea|reject by cem) at/)]);
  });
});

/** A process that has not the agent of the run. */
function apart(journal: Journal) {
  const made = { onInbox: async (): Promise<void> => {} };
  const seen = new Proxy(journal, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (name !== 'inbox') return typeof value === 'function' ? value.bind(target) : value;
      return async (run: string) => {
        const stored = await target.inbox(run);
        await made.onInbox();
        return stored;
      };
    },
  });
  const runtime = createRuntime({
    agents: [agent({ name: 'other', planner: script() })],
    journal: seen,
    onFault: () => {},
  });
  onTestFinished(() => runtime.close());
  return Object.assign(made, { runtime });
}
