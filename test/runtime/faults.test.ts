/** What a model got wrong: calls that its planner refuses, moves at fault, and what is remarked on the way. */
import { describe, expect, it } from 'vitest';
import {
  type Delta,
  ERROR_CONSEQUENCES,
  type ErrorCode,
  type ErrorData,
  type Move,
  observe,
  PilotageError,
  type Planner,
  type Remark,
  type RunEvent,
} from '#core';
import { call, finish, named, parallel, pause, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { answersOf, entriesOf, innerState, kindsOf, observations, outcomes } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, type WorldOptions, world } from '../kit/world.ts';

const refusal: ErrorData = { code: 'tool_invalid_args', message: 'The arguments are no JSON.', data: { at: 7 } };
const fault: ErrorData = { code: 'empty_reply', message: 'The model said nothing.' };

/** A tool of which it is known how often it ran. */
function counted(more: Parameters<typeof make>[2] = {}) {
  const seen = { runs: 0 };
  const tool = make(
    'counted',
    () => {
      seen.runs += 1;
      return 'ran';
    },
    more,
  );
  return { tool, seen };
}

/** Gives the moves in order, whatever became of them; then it finishes. */
const moves = (...list: readonly (Move | Move['decision'])[]) =>
  watched((run) => list[run.trajectory.count] ?? finish('done'));

async function played(planner: NonNullable<WorldOptions['planner']>, options: Omit<WorldOptions, 'planner'> = {}) {
  const made = world({ tools: [echo], planner, ...options });
  const run = await start(made);
  const events = await collect(run);
  return { ...made, run, events, result: await run.result(), state: await run.state() };
}

describe('a call that its planner refuses', () => {
  it.each([
    'pure',
    'once',
  ] as const)('RA-17 is not run (%s): why is its outcome, and the run goes on', async (effect) => {
    const { tool, seen } = counted({ effect, costUsd: 0.000005 });
    const planner = moves({ kind: 'call_tool', tool: 'counted', args: 'not { JSON', callId: 'c1', refusal });
    const { run, journal, result, state, events } = await played(planner, { tools: [tool] });
    expect(seen.runs).toBe(0);
    expect(result).toMatchObject({ status: 'finished', answer: 'done' });
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended', 'moved', 'finished']);
    const [ended] = await entriesOf(journal, run, 'call_ended');
    expect(ended).toEqual({
      kind: 'call_ended',
      seq: 3,
      at: expect.any(Number),
      step: 0,
      call: 0,
      outcome: { kind: 'error', error: refusal },
      attempts: 0,
    });
    expect(state.totals).toMatchObject({ calls: 0, costMicroUsd: 0, steps: 1 });
    expect(planner.views[1]?.trajectory.step(0)?.calls[0]?.outcome).toEqual({ kind: 'error', error: refusal });
    expect(only(events, 'tool.failed')).toMatchObject([{ step: 0, call: 0, outcome: { error: refusal }, attempts: 0 }]);
  });

  it('RA-17 in a parallel call, a reserved name beside others: it is answered with its error, and the others run', async () => {
    const reserved = { code: 'reserved_beside_others', message: '_finish stands alone.' };
    const planner = moves(
      parallel(
        [
          { tool: 'echo', args: { n: 1 }, callId: 'a' },
          { tool: '_finish', args: { answer: 'early' }, callId: 'b', refusal: reserved },
          { tool: '_spawn_task', args: {}, callId: 'c', refusal: reserved },
          { tool: 'echo', args: { n: 2 }, callId: 'd' },
        ],
        { onInvalid: 'per_branch' },
      ),
    );
    const { state, result } = await played(planner);
    expect(result).toMatchObject({ status: 'finished', answer: 'done' });
    expect(outcomes(state)).toEqual(['value', 'error', 'error', 'value']);
    expect(answersOf(state.steps[0])).toEqual({ a: 'value', b: reserved.code, c: reserved.code, d: 'value' });
    expect(state.steps[0]?.error).toBeUndefined();
    expect(state.totals).toMatchObject({ steps: 1, calls: 2 });
    expect(state.open).toBeNull();
  });

  it('RL-28 with fail_all it stops the whole call: nothing is started, and the step says why', async () => {
    const { tool, seen } = counted({ effect: 'once' });
    const branches = [...named('counted', 'counted'), { tool: 'echo', args: {}, refusal }];
    for (const onInvalid of ['fail_all', undefined] as const) {
      const decision = parallel(branches, onInvalid === undefined ? {} : { onInvalid });
      const { state, run, journal } = await played(moves(decision), { tools: [tool, echo] });
      expect(seen.runs).toBe(0);
      expect(outcomes(state)).toEqual(['skipped', 'skipped', 'error']);
      expect(state.steps[0]?.error).toMatchObject({
        code: refusal.code,
        message: refusal.message,
        data: { branch: 2 },
      });
      expect(state.totals.calls).toBe(0);
      expect(await entriesOf(journal, run, 'call_began')).toEqual([]);
    }
  });

  it('the words are the planner’s, whatever the tool is: unknown, foreign, or known with arguments that fit', async () => {
    const tools = [echo, make('hidden', () => 1, { scopes: ['admin'] })];
    const names = ['nobody', 'hidden', 'echo'];
    const { state } = await played(moves(...names.map((tool) => ({ ...call(tool), refusal }) as Move['decision'])), {
      tools,
    });
    expect(observations(state)).toEqual(names.map(() => ({ error: { code: refusal.code, message: refusal.message } })));
  });

  it('is no success for a join, and what needs it is skipped', async () => {
    const refused = { tool: 'echo', args: {}, refusal };
    const { state } = await played(
      moves(
        parallel([refused, refused], { join: { kind: 'first_success' }, onInvalid: 'per_branch' }),
        parallel(
          [
            { ...refused, id: 'a' },
            { tool: 'echo', args: {}, after: ['a'] },
          ],
          { onInvalid: 'per_branch' },
        ),
      ),
    );
    expect(state.steps[0]?.error).toMatchObject({
      code: 'parallel_all_failed',
      data: { failures: [{ code: refusal.code }, { code: refusal.code }] },
    });
    expect(outcomes(state, 1)).toEqual(['error', 'skipped']);
  });
});

describe('a move at fault', () => {
  const decisions: Move['decision'][] = [
    call('counted'),
    parallel(named('counted', 'counted')),
    pause,
    { kind: 'await_task', taskId: 't' },
    { kind: 'finish', reason: 'no_path', payload: 'sorry' },
  ];
  it.each(
    decisions,
  )('RL-28 is recorded with its $kind, of which nothing is carried out; the planner is asked again', async (decision) => {
    const { tool, seen } = counted();
    const planner = moves({ decision, fault, text: 'erm', usage: { inputTokens: 4, outputTokens: 1 } });
    const { run, journal, result, events } = await played(planner, { tools: [tool] });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal', answer: 'done' });
    expect(seen.runs).toBe(0);
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'moved', 'finished']);
    const [moved] = await entriesOf(journal, run, 'moved');
    expect(moved).toMatchObject({ step: 0, decision, fault, text: 'erm' });
    expect(moved).not.toHaveProperty('rejected');
    expect(await innerState(journal, run)).toMatchObject({
      rejections: 0,
      totals: { steps: 1, calls: 0, inputTokens: 4, outputTokens: 1 },
    });

    const [, again] = planner.views;
    expect(again).toMatchObject({ rejections: 0, trajectory: { count: 1 }, budget: { stepsLeft: 63 } });
    const step = again?.trajectory.step(0);
    expect(step).toMatchObject({ decision, calls: [], error: fault, text: 'erm' });
    expect(step === undefined ? undefined : observe(step)).toEqual({ error: fault });

    expect(only(events, 'planner.decision').map(({ rejected }) => rejected)).toEqual([fault, undefined]);
    expect(events.map(({ type }) => type)).toEqual([
      'run.started',
      'planner.decision',
      'planner.decision',
      'planner.finish',
    ]);
  });

  it('RL-28 does not count as rejected, however often; the step limit still binds', async () => {
    const planner = watched(() => ({ decision: { kind: 'finish', reason: 'no_path' }, fault }));
    const { result, state, events } = await played(
      { name: 'p', modelDriven: true, next: planner },
      { limits: { steps: 7 } },
    );
    expect(planner.views.map(({ rejections }) => rejections)).toEqual(Array(7).fill(0));
    expect(result).toMatchObject({ status: 'finished', reason: 'max_steps' });
    expect(state.ending).toMatchObject({ metadata: { max_steps_exceeded: true } });
    expect(only(events, 'planner.max_steps_exceeded')).toMatchObject([{ maxSteps: 7, stepsObserved: 7 }]);
  });

  it('what it used counts: the tokens bind too', async () => {
    const usage = { inputTokens: 40, outputTokens: 10 };
    const planner = watched(() => ({ decision: finish(), fault, usage }));
    const { result, state } = await played(planner, { limits: { tokens: 100 } });
    expect(result).toMatchObject({ reason: 'max_tokens', metadata: { budget: 'tokens' } });
    expect(state.totals).toMatchObject({ steps: 2, inputTokens: 80, outputTokens: 20 });
  });

  it('RL-28 whose decision does not pass either is rejected like any other', async () => {
    const bad: Move = { decision: call(''), fault };
    const next = moves(bad, bad);
    const { run, journal, result, state } = await played({ name: 'p', modelDriven: true, next });
    expect(result.status).toBe('finished');
    expect(next.views.map(({ rejections }) => rejections)).toEqual([0, 1, 2]);
    expect((await entriesOf(journal, run, 'moved'))[0]).toMatchObject({ rejected: { code: 'invalid_decision' } });
    expect(state.steps[0]?.error?.code).toBe('invalid_decision');
    const program = await played(moves(bad));
    expect(program.result).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
  });

  it('RL-28 a decision that no journal can hold is given back to the model that made it', async () => {
    const large: Move = { decision: { kind: 'call_tool', tool: 'x', args: { list: new Array(100_001).fill(1) } } };
    const next = moves(large);
    const { result, state } = await played({ name: 'p', modelDriven: true, next });
    expect(result.status).toBe('finished');
    expect(next.views.map(({ rejections }) => rejections)).toEqual([0, 1]);
    expect(state.steps[0]?.error).toMatchObject({
      code: 'invalid_decision',
      message: expect.stringContaining('100000 is the most'),
    });
    const program = await played(moves(large));
    expect(program.result).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
  });

  it('a pause by an operator, and an answer, find the run between steps as ever', async () => {
    const made = world({ planner: moves({ decision: pause, fault }, pause), tools: [echo] });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'external_event' }] });
    expect((await entriesOf(made.journal, run, 'paused')).map(({ step }) => step)).toEqual([1]);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'done' });
  });
});

describe('what a planner remarks', () => {
  const remarks: readonly Remark[] = [
    { type: 'model.fallback', from: 'a', to: 'b', error: { code: 'http_503', message: 'busy' } },
    { type: 'planner.repair_guidance_injected', tier: 'reminder', counter: 'args', count: 1 },
    { type: 'planner.action_extra_field_dropped', field: 'thought' },
    { type: 'planner.repair_exhausted', attempts: 3, consecutiveArgFailures: 2, reasons: ['r'] },
  ];

  it.each<[string, Move, Partial<Planner>]>([
    ['a call', { decision: call('echo'), remarks }, {}],
    ['a fault', { decision: finish(), fault, remarks }, {}],
    ['the end', { decision: finish(), remarks }, {}],
    ['a decision that does not pass', { decision: call(''), remarks }, { modelDriven: true }],
  ])('EV-01 EV-14 is recorded with %s, and read back as events of that move, whenever they are read', async (_, move, more) => {
    const made = await played({ name: 'p', next: moves(move), ...more });
    const { run, journal, events } = made;
    const [moved] = await entriesOf(journal, run, 'moved');
    expect(moved?.remarks).toEqual(remarks);
    const told = events.filter(({ seq }) => seq === moved?.seq);
    expect(told.slice(0, 5)).toMatchObject([...remarks, { type: 'planner.decision', step: 0 }]);
    for (const event of told) expect(event).toMatchObject({ identity: { user: 'ana' }, occurredAt: moved?.at });
    expect(await collect(run)).toEqual(events);
    const elsewhere = world({ planner: moves(), journal, clock: made.clock });
    expect(await collect(elsewhere.runtime.run(run.id))).toEqual(events);
    expect(await collect(run, { from: moved?.seq ?? 0 })).toEqual(events.filter(({ seq }) => seq >= (moved?.seq ?? 0)));
  });

  it('is in the step that the planner sees, and nothing is when there was nothing', async () => {
    const planner = moves({ decision: call('echo'), remarks }, { decision: call('echo'), remarks: [] });
    const { state } = await played(planner);
    expect(planner.views[1]?.trajectory.step(0)?.remarks).toEqual(remarks);
    expect(state.steps[1]).not.toHaveProperty('remarks');
  });

  it.each<[string, unknown]>([
    ['an event of another type', [{ type: 'planner.finish', reason: 'goal' }]],
    ['one with a position of its own', [{ type: 'planner.action_extra_field_dropped', field: 'f', seq: 99 }]],
    ['nothing', [null]],
    ['a type that is no text', [{ type: 7 }]],
    ['a list of texts', ['oops']],
    ['a text', 'oops'],
  ])('EV-04 EV-14 that is no remark makes up no event, and spoils no reader: %s', async (_, made) => {
    const next = moves({ decision: call('echo'), remarks: made as never });
    const { result, events } = await played({ name: 'p', modelDriven: true, next });
    expect(result).toMatchObject({ status: 'finished', answer: 'done' });
    expect(only(events, 'planner.finish')).toHaveLength(1);
    const positions = events.map(({ seq }) => seq);
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
    for (const { type } of events) expect(type).toMatch(/^[a-z]+\.[a-z_]+$/);
  });
});

describe('what a planner throws', () => {
  const codes = Object.keys(ERROR_CONSEQUENCES) as ErrorCode[];
  const thrown = (code: ErrorCode) => new PilotageError(code, 'No way on.', { data: { share: 97 } });
  // A model that refuses is how a run ends, and no failure of it.
  const endings = codes.filter((code) => ERROR_CONSEQUENCES[code] === 'run' && code !== 'model_refused');

  it('ends a run with the code of context_window_exceeded among others', () => {
    expect(endings).toContain('context_window_exceeded');
  });

  it.each(endings)('ER-03 ends the run under its own code when it is one that ends runs: %s', async (code) => {
    const next = watched((run) => {
      if (run.trajectory.count === 0) return call('echo');
      throw thrown(code);
    });
    const { result, events } = await played(next);
    const error = { code, message: 'No way on.', data: { share: 97, step: 1 } };
    expect(result).toMatchObject({ status: 'failed', error });
    expect(only(events, 'planner.error')).toMatchObject([{ error }]);
  });

  it('ER-03 so it does from inside a stream', async () => {
    const planner: Planner = {
      name: 'streams',
      async *next() {
        yield { type: 'text', text: 'Wai' };
        throw thrown('context_window_exceeded');
      },
    };
    expect((await played(planner)).result).toMatchObject({ error: { code: 'context_window_exceeded' } });
  });

  it.each(
    codes.filter((code) => !endings.includes(code) && code !== 'model_unavailable' && code !== 'model_refused'),
  )('ER-03 %s is no way to end a run: the planner has failed, because of it', async (code) => {
    const { result } = await played(() => {
      throw thrown(code);
    });
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'planner_failed', data: { step: 0, cause: { code, message: 'No way on.', data: { share: 97 } } } },
    });
  });
});

describe('a stream that begins anew', () => {
  const tries = [
    [
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'It is ' },
      { type: 'text', text: 'Os' },
    ],
    [{ type: 'text', text: 'I think' }],
    [
      { type: 'text', text: 'Ber' },
      { type: 'reasoning', text: 'sure' },
      { type: 'text', text: 'gen' },
    ],
  ] satisfies Delta[][];
  const startsOver: Planner = {
    name: 'starts over',
    async *next() {
      for (const [index, deltas] of tries.entries()) {
        if (index > 0) yield { type: 'reset' };
        yield* deltas;
      }
      return { decision: finish('Bergen'), text: 'Bergen', reasoning: 'sure' };
    },
  };
  const passing = (events: readonly RunEvent[]): unknown[] =>
    events.flatMap((event): unknown[] => {
      if (event.type === 'token') return [[event.channel, event.offset, event.text]];
      return event.type === 'token.reset' ? ['reset'] : [];
    });

  it('EV-15 is told as token.reset, and the offsets of both channels begin at 0 again', async () => {
    const { events } = await played(startsOver);
    expect(passing(events)).toEqual([
      ['reasoning', 0, 'hm'],
      ['text', 0, 'It is '],
      ['text', 6, 'Os'],
      'reset',
      ['text', 0, 'I think'],
      'reset',
      ['text', 0, 'Ber'],
      ['reasoning', 0, 'sure'],
      ['text', 3, 'gen'],
    ]);
    expect(only(events, 'token.reset')).toMatchObject([
      { step: 0, seq: 1, identity: { user: 'ana' }, occurredAt: expect.any(Number) },
      { step: 0, seq: 1 },
    ]);
  });

  it('EV-15 who joins later reads the whole text in the step, and nothing of what did not count', async () => {
    const { run, events, journal } = await played(startsOver);
    const later = await collect(run);
    expect(passing(later)).toEqual([]);
    expect(only(later, 'planner.decision')).toMatchObject([{ text: 'Bergen', reasoningTrace: 'sure' }]);
    expect(later).toEqual(events.filter(({ type }) => !type.startsWith('token')));
    expect(JSON.stringify(await journal.read(run.id))).not.toContain('I think');
  });

  it('PC-11 comes to the same when nobody listens', async () => {
    const made = world({ planner: startsOver });
    const unread = await start(made);
    expect(await unread.result()).toMatchObject({ answer: 'Bergen' });
    expect((await unread.state()).steps).toEqual([]);
    expect((await entriesOf(made.journal, unread, 'moved'))[0]).toMatchObject({ text: 'Bergen' });
  });

  it('EV-15 a slow reader that loses chunks does not lose the reset', async () => {
    const long = Array.from({ length: 6_000 }, (_, index): Delta => ({ type: 'text', text: `${index} ` }));
    const planner: Planner = {
      name: 'long',
      async *next() {
        yield { type: 'text', text: 'not this' };
        yield { type: 'reset' };
        yield* long;
        return finish();
      },
    };
    const run = await start(world({ planner }));
    const seen: RunEvent[] = [];
    for await (const event of run.events()) {
      seen.push(event);
      // It looks away while all of it streams by.
      if (event.type === 'run.started') await until(async () => (await run.state()).ending !== null);
    }
    expect(only(seen, 'token').length).toBeLessThan(long.length);
    expect(only(seen, 'token.reset')).toHaveLength(1);
  });
});
