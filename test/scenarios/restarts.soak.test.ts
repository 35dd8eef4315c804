/** Runs that go on in another process: each life of the agent is a process of its own, on one SQLite file. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEffects } from './agent.ts';
import { type Place, pausesIn, place } from './processes.ts';

let at: Place;
beforeAll(() => {
  at = place('restarts');
});
afterAll(() => at.remove());

const effectsOf = (run: string): string[] =>
  readEffects(at.folder)
    .filter((effect) => effect.run.startsWith(run))
    .map(({ args }) => String(Object.values(args as object).join(' ')));

describe('killed inside a tool', () => {
  it('a call that must not happen twice is not made again: it is in doubt, and the run is held until somebody settles it', async () => {
    await at.killInside({ do: 'start', run: 'once', plan: 'once', hangs: 'append' });
    expect((await at.state('once')).open?.began).toMatchObject([{ call: 0, once: true }]);
    const [doubt] = pausesIn(await at.run({ do: 'drive', run: 'once' }));
    const [effect] = readEffects(at.folder).filter(({ run }) => run === 'once');
    expect(doubt).toMatchObject({
      reason: 'in_doubt',
      payload: { tool: 'append', args: { text: 'a line' }, key: effect?.key, can_look_up: false },
    });
    expect(pausesIn(await at.run({ do: 'start', run: 'once', plan: 'once' }))).toEqual([doubt]);
    const settled = await at.run({ do: 'settle', run: 'once', token: doubt?.token ?? '', happened: true });
    expect(settled).toMatchObject({ status: 'finished', payload: ['settled'] });
    expect(effectsOf('once')).toEqual(['a line']);
  });

  it('one that somebody says did not happen is made, under the same key', async () => {
    await at.killInside({ do: 'start', run: 'not', plan: 'once', hangs: 'append' });
    const [doubt] = pausesIn(await at.run({ do: 'drive', run: 'not' }));
    const settled = await at.run({ do: 'settle', run: 'not', token: doubt?.token ?? '', happened: false });
    expect(settled).toMatchObject({ status: 'finished', payload: ['append a line'] });
    const effects = readEffects(at.folder).filter(({ run }) => run === 'not');
    expect(effects.map(({ key }) => key)).toEqual([doubt?.payload?.['key'], doubt?.payload?.['key']]);
  });

  it('one that can be looked up is looked up', async () => {
    await at.killInside({ do: 'start', run: 'known', plan: 'known', hangs: 'append_known' });
    expect(await at.run({ do: 'drive', run: 'known' })).toMatchObject({ status: 'finished', payload: ['looked up'] });
    expect(effectsOf('known')).toEqual(['a line']);
  });

  it('one that declares itself repeatable is made again, under the same key', async () => {
    await at.killInside({ do: 'start', run: 'again', plan: 'again', hangs: 'append_again' });
    expect(await at.run({ do: 'drive', run: 'again' })).toMatchObject({
      status: 'finished',
      payload: ['append_again a line'],
    });
    const effects = readEffects(at.folder).filter(({ run }) => run === 'again');
    expect(effects).toHaveLength(2);
    expect(new Set(effects.map(({ key }) => key)).size).toBe(1);
  });

  it('also when it had been approved: what was approved is in doubt, and nobody is asked again', async () => {
    const [pause] = pausesIn(await at.run({ do: 'start', run: 'child', plan: 'child' }));
    await at.killInside({ do: 'approve', run: 'child', token: pause?.token ?? '', hangs: 'pay' });
    const [doubt] = pausesIn(await at.run({ do: 'drive', run: 'child' }));
    expect(doubt?.reason).toBe('in_doubt');
    expect(await at.run({ do: 'settle', run: 'child', token: doubt?.token ?? '', happened: true })).toMatchObject({
      status: 'finished',
      payload: ['append child 1', 'settled'],
    });
    expect(effectsOf('child')).toEqual(['child 1', 'child 2']);
  });
});

describe('three calls, two to the same tool, answered C, A, restart, B, A again', () => {
  it('each is made once with its own answer, the second answer is refused, and what is open is always told', async () => {
    const run = 'three';
    const paused = pausesIn(await at.run({ do: 'start', run, plan: 'three' }));
    const tokens = await at.open(run);
    expect(Object.keys(tokens).toSorted()).toEqual(['A', 'B', 'C']);
    expect(paused.map(({ token }) => token).toSorted()).toEqual(Object.values(tokens).toSorted());
    const { A = '', B = '', C = '' } = tokens;

    expect(pausesIn(await at.run({ do: 'approve', run, token: C, args: { what: 'C, edited' } }))).toHaveLength(2);
    expect(Object.keys(await at.open(run)).toSorted()).toEqual(['A', 'B']);
    // Killed in the middle of A, with B still open.
    await at.killInside({ do: 'approve', run, token: A, hangs: 'book' });
    expect(Object.keys(await at.open(run))).toEqual(['B']);

    // The restart: a process that knows nothing of all that.
    const [doubt, other] = pausesIn(await at.run({ do: 'drive', run })).toSorted((a) => (a.token === B ? 1 : -1));
    expect([doubt?.reason, doubt?.payload?.['args'], other?.token]).toEqual(['in_doubt', { what: 'A' }, B]);
    expect(await at.run({ do: 'approve', run, token: A })).toMatchObject({
      status: 'refused',
      code: 'pause_not_found',
    });
    expect(pausesIn(await at.run({ do: 'approve', run, token: B }))).toEqual([doubt]);
    const finished = await at.run({ do: 'settle', run, token: doubt?.token ?? '', happened: true });
    expect(finished).toMatchObject({ status: 'finished', payload: ['settled', 'book B', 'pay C, edited'] });
    expect(await at.run({ do: 'approve', run, token: A })).toMatchObject({ status: 'refused', code: 'run_ended' });
    expect(effectsOf(run).toSorted()).toEqual(['A', 'B', 'C, edited']);
    expect(await at.open(run)).toEqual({});
  });
});

describe('"create" and "ask a human" in one batch, then resume', () => {
  it('what was made before the answer is not made again', async () => {
    const run = 'batch';
    const [pause, ...more] = pausesIn(await at.run({ do: 'start', run, plan: 'batch' }));
    expect([pause?.payload, more]).toMatchObject([{ tool: 'pay', args: { what: 'ask a human' } }, []]);
    expect(effectsOf(run)).toEqual(['before', 'create']);
    const finished = await at.run({ do: 'approve', run, token: pause?.token ?? '' });
    expect(finished).toMatchObject({
      status: 'finished',
      payload: ['append before', 'append create', 'pay ask a human'],
    });
    expect(effectsOf(run)).toEqual(['before', 'create', 'ask a human']);
  });
});

describe('cold resume in a new process holding only store and code', () => {
  it('by the id of the run: its whole history is there, and so is the answer', async () => {
    const run = 'cold';
    const [pause] = pausesIn(await at.run({ do: 'start', run, plan: 'batch' }));
    expect(await at.journal((journal) => journal.get(run))).toMatchObject({ status: 'paused', wakeAt: null });
    const finished = await at.run({ do: 'approve', run, token: pause?.token ?? '', args: { what: 'other words' } });
    expect(finished).toMatchObject({ status: 'finished', usage: { steps: 2, calls: 3 } });
    expect((await at.state(run)).steps).toHaveLength(2);
    expect(effectsOf(run)).toEqual(['before', 'create', 'other words']);
  });

  it('of a run that nobody knows, or that has ended, is a typed refusal', async () => {
    expect(await at.run({ do: 'drive', run: 'nobody' })).toMatchObject({ status: 'refused', code: 'run_not_found' });
    expect(await at.run({ do: 'approve', run: 'cold' })).toMatchObject({ status: 'refused', code: 'run_ended' });
  });
});

describe('a delegated child that pauses at its second step', () => {
  it('its first step ran once; the answer reaches it through the parent, also after restarts', async () => {
    const run = 'parent';
    const [pause, ...more] = pausesIn(await at.run({ do: 'start', run, plan: 'parent' }));
    expect(more).toEqual([]);
    expect(pause).toMatchObject({ payload: { tool: 'pay', args: { what: 'child 2' } } });
    expect(pause?.run).not.toBe(run);
    expect(await at.journal((journal) => journal.get(run))).toMatchObject({ status: 'paused' });
    // Killed in the middle of the child's second step, after it was approved through the parent.
    await at.killInside({ do: 'approve', run, token: pause?.token ?? '', hangs: 'pay' });
    const [doubt] = pausesIn(await at.run({ do: 'drive', run }));
    expect(doubt).toMatchObject({ reason: 'in_doubt', run: pause?.run, payload: { args: { what: 'child 2' } } });
    const finished = await at.run({ do: 'settle', run, token: doubt?.token ?? '', happened: true });
    expect(finished).toMatchObject({
      status: 'finished',
      payload: ['append parent 1', { status: 'complete', result: ['append child 1', 'settled'] }],
    });
    expect(effectsOf(run)).toEqual(['parent 1', 'child 1', 'child 2']);
  });

  it('a rejection reaches it just so', async () => {
    const run = 'parent-no';
    const [pause] = pausesIn(await at.run({ do: 'start', run, plan: 'parent' }));
    const finished = await at.run({ do: 'reject', run, token: pause?.token ?? '' });
    expect(finished).toMatchObject({
      status: 'finished',
      payload: ['append parent 1', { result: ['append child 1', 'error'] }],
    });
    expect(effectsOf(run)).toEqual(['parent 1', 'child 1']);
  });
});
