/** Whatever a program's code throws or gives, a run ends or goes on with it as an outcome: its driver never breaks. */
import { describe, expect, it } from 'vitest';
import type { Decision, Delta, Move, Planner } from '#core';
import { handle, type Tool } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { counter, hostile, liar, ODD_THROWS, revoked } from '../kit/odd-throws.ts';
import { echo, make } from '../kit/tools.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

const odd: readonly (readonly [string, () => unknown])[] = ODD_THROWS;

/** Runs it under a worker, and gives how it ended and how its first call did. */
async function play(options: WorldOptions): Promise<{ made: World; status: string; outcome: unknown; error: unknown }> {
  const made = world(options);
  const run = await start(made);
  const result = await run.result();
  const { seq: _, ...ending } = (await made.journal.read(run.id)).at(-1) ?? { seq: 0, kind: 'none' };
  const outcome = (await made.journal.read(run.id)).find((entry) => entry.kind === 'call_ended');
  // It can be told from beginning to end.
  for await (const event of run.events()) JSON.stringify(event);
  await made.runtime.close();
  expect(['finished', 'failed']).toContain(result.status);
  return {
    made,
    status: result.status,
    outcome: outcome?.kind === 'call_ended' ? outcome.outcome : undefined,
    error: ending,
  };
}

const called = (tool: Tool, more: Partial<WorldOptions> = {}): WorldOptions => ({
  planner: script(call(tool.name)),
  tools: [tool],
  ...more,
});
const throws = (make: () => unknown) => (): never => {
  throw make();
};

describe('what is thrown by', () => {
  it.each(odd)('a tool is an outcome: %s', async (_, thrown) => {
    for (const effect of ['pure', 'keyed', 'once'] as const) {
      for (const run of [throws(thrown), async () => throws(thrown)()]) {
        const { status, outcome } = await play(called(make('odd', run, { effect, retries: 0 })));
        expect(status).toBe('finished');
        expect(outcome).toMatchObject({
          kind: 'error',
          error: { code: expect.any(String), message: expect.any(String) },
        });
      }
    }
  });

  it.each(odd)('a planner ends the run as failed: %s', async (_, thrown) => {
    for (const planner of [throws(thrown), async () => throws(thrown)()]) {
      const { status, error } = await play({ planner, tools: [echo] });
      expect(status).toBe('failed');
      expect(error).toMatchObject({ error: { code: 'planner_failed' } });
    }
  });

  it.each(odd)('a planner while it streams: %s', async (_, thrown) => {
    async function* next(): AsyncGenerator<Delta, Decision> {
      yield { type: 'text', text: 'I think' };
      throw thrown();
    }
    expect((await play({ planner: next, tools: [echo] })).status).toBe('failed');
  });

  it.each(odd)('a planner while it goes on with a plan: %s', async (_, thrown) => {
    async function* next(run: { trajectory: { count: number } }): AsyncGenerator<Delta, Decision> {
      if (run.trajectory.count > 0) return finish('done');
      yield { type: 'branches', plan: 'p', branches: [{ tool: 'echo', args: {} }] };
      throw thrown();
    }
    expect((await play({ planner: next, tools: [echo] })).status).toBe('finished');
  });

  it.each(odd)('a policy refuses the call: %s', async (_, thrown) => {
    const { outcome } = await play(called(echo, { policy: throws(thrown) }));
    expect(outcome).toMatchObject({ kind: 'error', error: { code: 'policy_refused' } });
    const told = await play(called(echo, { policy: (() => thrown()) as never }));
    expect(told.outcome).toMatchObject({ kind: 'error', error: { code: 'policy_refused' } });
  });

  it.each(odd)('the rule of a gate refuses the call: %s', async (_, thrown) => {
    const { outcome } = await play(called(make('odd', () => 1, { needsApproval: throws(thrown) } as Partial<Tool>)));
    expect(outcome).toMatchObject({ kind: 'error', error: { code: 'approval_failed' } });
  });

  it.each(odd)('the opening or the closing of a handle: %s', async (_, thrown) => {
    const page = handle({ name: 'page', open: throws(thrown), close: () => {} });
    const opened = await play(called(make('odd', () => 1, { handles: { page } } as Partial<Tool>)));
    expect(opened.outcome).toMatchObject({ kind: 'error' });
    const closed = handle({ name: 'page', open: () => 1, close: throws(thrown) });
    const { status } = await play(called(make('odd', () => 1, { handles: { page: closed } } as Partial<Tool>)));
    expect(status).toBe('finished');
  });

  it.each(odd)('compaction fails the run as its planner does: %s', async (_, thrown) => {
    const planner: Planner = { name: 'shortening', next: script(call('echo')), compact: throws(thrown) };
    expect((await play({ planner, tools: [echo] })).status).toBe('failed');
  });

  it.each(odd)('the redaction of a reader is the reader’s alone: %s', async (_, thrown) => {
    const made = world(called(echo));
    const run = await start(made);
    const reading = (async () => {
      for await (const event of run.events({ redact: throws(thrown) })) JSON.stringify(event);
    })();
    await expect(
      reading.then(
        () => 'read',
        () => 'thrown',
      ),
    ).resolves.toBe('thrown');
    expect(await run.result()).toMatchObject({ status: 'finished' });
    await made.runtime.close();
  });

  it.each(odd)('a reconcile leaves the doubt: %s', async (_, thrown) => {
    for (const reconcile of [throws(thrown), () => thrown()]) {
      const made = world({
        ...called(
          make('odd', () => new Promise(() => {}), {
            effect: 'once',
            timeoutMs: 10,
            reconcile,
            inDoubt: 'tell',
          } as Partial<Tool>),
        ),
      });
      const run = await start(made);
      const ended = run.result();
      let over = false;
      void ended.then(() => {
        over = true;
      });
      while (!over) {
        await new Promise((resolve) => setImmediate(resolve));
        made.clock.advance(1_000);
      }
      expect(await ended).toMatchObject({ status: 'finished' });
      const outcome = (await made.journal.read(run.id)).find((entry) => entry.kind === 'call_ended');
      expect(outcome).toMatchObject({ outcome: { kind: 'unknown' } });
      await made.runtime.close();
    }
  });
});

// Written so because a literal `then` is taken for a mistake.
const THEN = 'then';

/** What may be given in place of a value, a decision or a move. */
const GIVEN: readonly (readonly [string, () => unknown])[] = [
  ['a hostile proxy', () => hostile()],
  ['a hostile proxy of a list', () => hostile([])],
  ['a revoked proxy', () => revoked()],
  ['a proxy that lies', () => liar({ kind: 'finish', reason: 'goal' }, 3)],
  ['a then that cannot be read', () => Object.defineProperty({}, 'then', { get: throws(() => hostile()) })],
  ['a then that throws', () => ({ [THEN]: throws(() => hostile()) })],
  [
    'a then that is one only when it is first asked',
    () => {
      const asked = counter();
      return Object.defineProperty({}, 'then', {
        get: () => (asked() === 1 ? (tell: (value: number) => void) => tell(1) : 5n),
      });
    },
  ],
  [
    'a then that gives a hostile value at once',
    () => ({ [THEN]: (tell: (value: unknown) => void) => tell(hostile()) }),
  ],
  [
    'a then that fails with one at once',
    () => ({ [THEN]: (_: unknown, fail: (why: unknown) => void) => fail(hostile()) }),
  ],
  ['a promise whose own then throws', () => Object.assign(Promise.resolve(1), { [THEN]: throws(() => hostile()) })],
];

describe('what is given by', () => {
  it.each(GIVEN)('a tool is a value or an error: %s', async (_, give) => {
    for (const effect of ['pure', 'once'] as const) {
      const { status, outcome } = await play(called(make('odd', () => give(), { effect })));
      expect(status).toBe('finished');
      expect(outcome).toMatchObject({ kind: expect.stringMatching(/^(value|error)$/) });
    }
  });

  it('a once tool has happened when its value cannot be asked for a then', async () => {
    const { outcome } = await play(called(make('odd', () => hostile(), { effect: 'once' })));
    expect(outcome).toMatchObject({
      error: { code: 'unserializable', message: expect.stringContaining('has happened') },
    });
  });

  it.each(GIVEN)('a planner ends its run: %s', async (_, give) => {
    for (const modelDriven of [true, false]) {
      const asked = counter();
      const next = (): Decision => (asked() === 1 ? (give() as Decision) : finish('done'));
      await play({ planner: { name: 'odd', modelDriven, next }, tools: [echo] });
    }
  });

  it.each(GIVEN)('a planner as part of its move: %s', async (_, give) => {
    for (const name of ['decision', 'text', 'usage', 'remarks', 'provenance', 'providerState', 'fault']) {
      for (const modelDriven of [true, false]) {
        const asked = counter();
        const next = (): Move =>
          asked() === 1 ? ({ decision: finish('done'), [name]: give() } as Move) : { decision: finish('done') };
        await play({ planner: { name: 'odd', modelDriven, next }, tools: [echo] });
      }
    }
  });

  it.each(GIVEN)('a planner as a delta, as branches and at the end of its plan: %s', async (_, give) => {
    for (const at of ['delta', 'text', 'branches', 'end']) {
      const next = async function* (run: { trajectory: { count: number } }): AsyncGenerator<Delta, Decision> {
        if (run.trajectory.count > 0) return finish('done');
        if (at === 'delta') yield give() as Delta;
        if (at === 'text') yield { type: 'text', text: give() } as Delta;
        const branches = at === 'branches' ? give() : [{ tool: 'echo', args: {} }];
        yield { type: 'branches', plan: 'p', branches } as Delta;
        return at === 'end' ? ({ kind: 'call_parallel', plan: 'p', branches: give() } as Decision) : finish();
      };
      await play({ planner: next as never, tools: [echo] });
    }
  });

  it('a proxy that says goal when it is checked is recorded as what was checked', async () => {
    const asked = counter();
    const decision = new Proxy(finish('done'), {
      get: (target, name) => (name === 'reason' && asked() > 1 ? 'no_path' : Reflect.get(target, name)),
    });
    const { error } = await play({ planner: () => decision, tools: [echo] });
    expect(error).toMatchObject({ kind: 'finished', reason: 'goal' });
  });
});
