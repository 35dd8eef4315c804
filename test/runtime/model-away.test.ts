/** No model can be asked: the run waits, and then asks somebody. It does not end. */
import { describe, expect, it } from 'vitest';
import { PilotageError, type PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { openaiCompatible } from '#model/openai-compatible';
import { finish as finishPlanner } from '#planners/finish';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { type ScriptedReply, scriptedModel, VirtualClock } from '#testing';
import { call, finish } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { httpError } from '../kit/model.ts';
import { entriesOf, kindsOf, pausesOf } from '../kit/run-record.ts';
import { echo } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

const MINUTE = 60_000;
const busy = (headers: Record<string, string> = {}): ScriptedReply => ({
  error: httpError(503, headers),
  errorAt: 'call',
});
const refused = (): ScriptedReply => ({
  error: Object.assign(new Error('fetch failed'), {
    isRetryable: true,
    url: 'http://user:pass@127.0.0.1:9/v1/chat/completions?key=sk-123',
    cause: Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
  }),
  errorAt: 'call',
});

function sdkError(statusCode: number, isRetryable: boolean): Error {
  return Object.assign(new Error(`HTTP ${statusCode}`), { name: 'AI_APICallError', statusCode, isRetryable });
}

interface Played extends World {
  readonly model: ReturnType<typeof scriptedModel>;
}

/** One try of the model for each time that the run is driven. */
function away(replies: Parameters<typeof scriptedModel>[0], more: Omit<WorldOptions, 'planner'> = {}): Played {
  const model = scriptedModel(replies);
  const planner = react({ model, retries: 0, clock: new ImpatientClock() });
  return { ...world({ tools: [echo], random: () => 1, ...more, planner }), model };
}

async function awaysOf(made: World, run: Awaited<ReturnType<typeof start>>): Promise<readonly number[]> {
  const aways = await entriesOf(made.journal, run, 'model_away');
  return aways.map(({ at, retryAt = at }) => retryAt - at);
}

describe('a model that is away', () => {
  it('is waited for: the run goes on when it is back, and gives its answer', async () => {
    const made = away([busy(), busy(), { text: 'Back again.' }]);
    const run = await start(made);
    const result = run.result();
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'finished');
    expect(await result).toMatchObject({ status: 'finished', reason: 'goal', answer: 'Back again.' });
    expect(await kindsOf(made.journal, run)).toEqual(['started', 'model_away', 'model_away', 'moved', 'finished']);
    const events = (await collect(run)).filter(({ type }) => type === 'model.away');
    expect(events).toMatchObject([
      { step: 0, error: { code: 'model_unavailable', message: expect.stringContaining('http_503') } },
      { step: 0 },
    ]);
  });

  it('is tried again after longer and longer waits, of which half is jitter, for 15 minutes in all', async () => {
    const made = away(() => busy());
    const run = await start(made);
    const startedAt = made.clock.now();
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'paused');
    const waits = await awaysOf(made, run);
    expect(waits.slice(0, 9)).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1_000));
    expect(waits.reduce((sum, wait) => sum + wait, 0)).toBe(15 * MINUTE);
    expect(made.clock.now() - startedAt).toBeLessThan(15 * MINUTE + 1_000);
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'model_unavailable', payload: { why: 'away', message: expect.stringContaining('503') } }],
    });
    const halved = away(() => busy(), { random: () => 0 });
    const other = await start(halved);
    await until(async () => (await awaysOf(halved, other)).length === 1);
    expect(await awaysOf(halved, other)).toEqual([500]);
  });

  it.each<[string, Record<string, string>, number]>([
    ['seconds', { 'retry-after': '37' }, 37_000],
    ['a date', { 'retry-after': 'Thu, 01 Jan 2026 00:02:09 GMT' }, 129_000],
    ['more than is left of the patience', { 'retry-after': '86400' }, 15 * MINUTE],
    ['for ever', { 'retry-after': '1e999' }, 1_000],
    ['less than the wait of its own', { 'retry-after': '0' }, 1_000],
    ['a time that is over', { 'retry-after': 'Thu, 01 Jan 1970 00:00:09 GMT' }, 1_000],
  ])('is left alone for as long as it asks for: %s', async (_, headers, waited) => {
    const made = away(() => busy(headers));
    const run = await start(made);
    await until(async () => (await awaysOf(made, run)).length === 1);
    expect(await awaysOf(made, run)).toEqual([waited]);
  });

  it('a run waits as long as the program says, and not at all with a patience of 0', async () => {
    const brief = away(() => busy(), { patienceMs: 10_000 });
    const run = await start(brief);
    await advanceUntil(brief.clock, async () => (await brief.journal.get(run.id))?.status === 'paused');
    expect((await awaysOf(brief, run)).reduce((sum, wait) => sum + wait, 0)).toBe(10_000);
    const none = away(() => busy(), { patienceMs: 0 });
    const other = await start(none);
    expect(await other.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'model_unavailable' }] });
    expect(none.model.calls).toHaveLength(1);
    for (const patienceMs of [-1, 1.5, Number.NaN]) {
      expect(() => away([], { patienceMs })).toThrow('patienceMs');
    }
  });

  it('the pause is answered by resume, which tries again with a fresh patience', async () => {
    let isUp = false;
    const made = away(() => (isUp ? { text: 'up' } : busy()), { patienceMs: 3_000 });
    const run = await start(made);
    const paused = async () => (await made.journal.get(run.id))?.status === 'paused';
    await advanceUntil(made.clock, paused);
    const tries = made.model.calls.length;
    made.clock.advance(MINUTE);
    await run.resume();
    await until(() => made.model.calls.length === tries + 1);
    await until(async () => (await made.journal.get(run.id))?.status === 'waiting');
    await advanceUntil(made.clock, paused);
    isUp = true;
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'up' });
  });

  it('holds no slot while it is waited for: another run goes through', async () => {
    const model = scriptedModel(() => busy());
    const planner = react({ model, retries: 0, clock: new ImpatientClock() });
    const clock = new VirtualClock();
    const other = { name: 'finish', planner: finishPlanner({ payload: 'through' }), tools: [] };
    const made = world({ planner, agents: [other], clock, maxLiveRuns: 8, maxLiveRunsPerTenant: 8 });
    const runs = await Promise.all(Array.from({ length: 100 }, () => start(made)));
    await until(() => model.calls.length === 100);
    for (const { id } of runs) await until(async () => (await made.journal.get(id))?.status === 'waiting');
    const run = await start(made, { agent: 'finish' });
    expect(await run.result()).toMatchObject({ answer: 'through' });
    expect(model.calls).toHaveLength(100);
  });

  it('a program that does not listen is told that its run waits, once', async () => {
    const made = away(() => busy());
    const run = await start(made);
    await until(async () => (await awaysOf(made, run)).length === 1);
    made.clock.advance(1_000);
    await until(async () => (await awaysOf(made, run)).length === 2);
    expect(made.faults).toHaveLength(1);
    expect(made.faults[0]).toMatchObject({ code: 'model_unavailable', message: expect.stringContaining('in 1 s') });
  });
});

describe('while a run waits for its model', () => {
  async function waiting(more: Omit<WorldOptions, 'planner'> = {}) {
    let isUp = false;
    const made = away((request) => (isUp ? { text: JSON.stringify(request.prompt) } : busy()), more);
    const run = await start(made);
    await until(async () => (await made.journal.get(run.id))?.status === 'waiting');
    const up = (): void => {
      isUp = true;
    };
    return { ...made, run, up };
  }

  it('a cancel ends it', async () => {
    const { run } = await waiting();
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
  });

  it('a redirect and a message are heard, and reach the model when it is back', async () => {
    const { run, clock, up, journal } = await waiting();
    await run.steer('REDIRECT', { goal: 'the other goal' });
    await run.steer('USER_MESSAGE', { message: 'and hurry' }, { until: 'applied' });
    expect((await run.state()).goal).toBe('the other goal');
    up();
    await advanceUntil(clock, async () => (await journal.get(run.id))?.status === 'finished');
    const result = await run.result();
    expect(result).toMatchObject({ answer: expect.stringContaining('the other goal') });
    expect(result).toMatchObject({ answer: expect.stringContaining('and hurry') });
  });

  it('a pause holds it, and its resume begins the patience anew', async () => {
    const { run, clock, up, journal } = await waiting();
    await run.pause();
    expect(await run.result()).toMatchObject({ pauses: [{ reason: 'external_event' }] });
    clock.advance(60 * MINUTE);
    await quiet();
    expect((await journal.get(run.id))?.status).toBe('paused');
    await run.resume();
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    up();
    await advanceUntil(clock, async () => (await journal.get(run.id))?.status === 'finished');
  });

  it.each([
    ['ends it', 'finish', { status: 'finished', reason: 'deadline_exceeded' }],
    ['asks for a raise', 'pause', { status: 'paused', pauses: [{ payload: { budget: 'deadline' } }] }],
  ] as const)('its deadline %s, at its time', async (_, onCeiling, came) => {
    const clock = new VirtualClock();
    const deadlineAt = clock.now() + 1_500;
    const made = away(() => busy({ 'retry-after': '600' }), { clock, limits: { deadlineAt, onCeiling } });
    const run = await start(made);
    await until(async () => (await made.journal.get(run.id))?.status === 'waiting');
    clock.advance(1_500);
    expect(await run.result()).toMatchObject(came);
    expect(made.model.calls).toHaveLength(1);
  });

  it('the runtime closes at once, and another process waits on and goes on', async () => {
    const { run, clock, journal, runtime, up } = await waiting();
    await runtime.close();
    expect(clock.pending).toBe(0);
    up();
    const model = scriptedModel([{ text: 'from the other' }]);
    const planner = react({ model, retries: 0, clock: new ImpatientClock() });
    const other = world({ planner, tools: [echo], journal, clock });
    const taken = other.runtime.run(run.id);
    await taken.resume();
    await quiet();
    expect(model.calls).toHaveLength(0);
    await advanceUntil(clock, async () => (await journal.get(run.id))?.status === 'finished');
    expect(await taken.result()).toMatchObject({ answer: 'from the other' });
  });
});

/** As OpenAI says it: a rate limit has the same status, and does pass. */
function quota(error: object): object {
  return { statusCode: 429, isRetryable: true, data: { error } };
}

describe('a model that will not be there by waiting', () => {
  it.each<[string, object, string, string]>([
    ['a refused key', { statusCode: 401 }, 'key_refused', 'key'],
    ['a forbidden model', { statusCode: 403 }, 'key_refused', 'key'],
    ['an empty account', { statusCode: 402 }, 'key_refused', 'credit'],
    ['an empty account of which the server says 429', quota({ code: 'insufficient_quota' }), 'key_refused', 'credit'],
    ['the same as a type', quota({ code: null, type: 'insufficient_quota' }), 'key_refused', 'credit'],
    ['no key', { name: 'AI_LoadAPIKeyError' }, 'key_refused', 'key'],
    ['an unknown model', { statusCode: 404 }, 'model_unknown', 'Name a model'],
    ['a model_not_found', { statusCode: 400, data: { error: { code: 'model_not_found' } } }, 'model_unknown', 'Name a'],
    ['no such model', { name: 'AI_NoSuchModelError' }, 'model_unknown', 'Name a model'],
  ])('pauses at once, and says what to do, without the words of the server: %s', async (_, fields, why, remedy) => {
    const error = Object.assign(
      new Error('Incorrect API key provided: sk-secret-1234'),
      { isRetryable: false },
      fields,
    );
    const made = away([{ error, errorAt: 'call' }, { text: 'mended' }]);
    const run = await start(made);
    const result = await run.result();
    expect(result).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'model_unavailable', payload: { why, message: expect.stringContaining(remedy) } }],
    });
    if (why === 'key_refused' && 'statusCode' in fields) {
      expect(JSON.stringify(await made.journal.read(run.id))).not.toContain('sk-secret');
    }
    expect(made.model.calls).toHaveLength(1);
    await run.resume();
    expect(await run.result()).toMatchObject({ answer: 'mended' });
  });

  it('the next model of the list is asked first', async () => {
    const first = scriptedModel([{ error: httpError(401), errorAt: 'call' }], { modelId: 'first' });
    const second = scriptedModel([{ text: 'from the second' }], { modelId: 'second' });
    const made = world({ planner: react({ model: [first, second] }) });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ answer: 'from the second' });
  });

  it('while another model of the list may come back, the run waits for that', async () => {
    const first = scriptedModel(() => ({ error: httpError(401), errorAt: 'call' }), { modelId: 'first' });
    const second = scriptedModel([busy(), { text: 'back' }], { modelId: 'second' });
    const made = world({ planner: react({ model: [first, second], retries: 0 }) });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'finished');
    expect(await run.result()).toMatchObject({ answer: 'back' });
  });

  it('a request that is at fault itself fails the run as before, which can be resumed', async () => {
    const made = away([{ error: httpError(400), errorAt: 'call' }, { text: 'mended' }]);
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'planner_failed' } });
    await run.resume();
    expect(await run.result()).toMatchObject({ answer: 'mended' });
  });
});

describe('a model at whose address nobody has ever listened', () => {
  it('is waited for 5 seconds by a run without a step: then the pause says what is not there', async () => {
    const made = away(() => refused());
    const run = await start(made);
    const startedAt = made.clock.now();
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'paused');
    expect(made.clock.now() - startedAt).toBeLessThanOrEqual(6_000);
    const message =
      'Nothing listens at http://127.0.0.1:9/v1/chat/completions (ECONNREFUSED): the server of the model scripted is not there. Start it, or set the right address.';
    expect(await run.result()).toMatchObject({ pauses: [{ payload: { why: 'unreachable', message } }] });
  });

  it('is not waited for at a port to which fetch sends nothing: the run is paused at once, and told so', async () => {
    const planner = react({ model: openaiCompatible({ baseUrl: 'http://127.0.0.1:6666/v1', model: 'm' }), retries: 0 });
    const made = world({ planner });
    const run = await start(made);
    const message =
      'Nothing is sent to the port 6666: fetch refuses it, because it belongs to another protocol. Set the right address of the model m.';
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'model_unavailable', payload: { why: 'misdirected', message } }],
    });
    expect(await awaysOf(made, run)).toEqual([0]);
  });

  it('that speaks no TLS, or that nobody trusts, is waited for no longer, and told so', async () => {
    const cause = Object.assign(new Error('wrong version number'), { code: 'ERR_SSL_WRONG_VERSION_NUMBER' });
    const url = 'https://127.0.0.1:11434/v1/chat/completions';
    const error = Object.assign(new Error('fetch failed'), { isRetryable: true, url, cause });
    const made = away(() => ({ error, errorAt: 'call' }));
    const run = await start(made);
    const startedAt = made.clock.now();
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'paused');
    expect(made.clock.now() - startedAt).toBeLessThanOrEqual(6_000);
    const message = expect.stringContaining('it speaks no TLS, or its certificate is not trusted');
    expect(await run.result()).toMatchObject({ pauses: [{ payload: { why: 'unreachable', message } }] });
  });

  it('is waited for in full by a run that has got somewhere, and where the program says for how long', async () => {
    const step = { calls: [{ tool: 'echo', args: {} }] };
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const first = away([step, { stall: true }], { journal, clock });
    const run = await start(first);
    await until(async () => (await run.state()).steps.length === 1);
    await first.runtime.close();
    const second = away(() => refused(), { journal, clock });
    await second.runtime.run(run.id).resume();
    await advanceUntil(clock, async () => (await journal.get(run.id))?.status === 'paused');
    const waits = await awaysOf(second, run);
    expect(waits.reduce((sum, wait) => sum + wait, 0)).toBeGreaterThan(14 * MINUTE);
    const told = away(() => refused(), { patienceMs: MINUTE });
    const other = await start(told);
    await advanceUntil(told.clock, async () => (await told.journal.get(other.id))?.status === 'paused');
    expect((await awaysOf(told, other)).reduce((sum, wait) => sum + wait, 0)).toBe(MINUTE);
  });

  it('one that has given an answer of any kind is away, and waited for in full', async () => {
    const made = away([busy(), refused(), refused(), refused(), refused(), { text: 'up' }]);
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'finished');
    expect(await run.result()).toMatchObject({ answer: 'up' });
  });
});

describe('any planner', () => {
  it('is asked again when it throws model_unavailable, and what the tries used counts', async () => {
    let asked = 0;
    const planner: PlannerFunction = () => {
      asked += 1;
      if (asked < 3) throw new PilotageError('model_unavailable', 'busy', { data: { usage: { costMicroUsd: 7 } } });
      return finish('done');
    };
    const made = world({ planner });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'finished');
    expect(await run.result()).toMatchObject({ answer: 'done', usage: { costMicroUsd: 14 } });
  });

  it.each<[string, () => Error]>([
    ['an error of the AI SDK that may pass', () => sdkError(503, true)],
    [
      'the last of its tries',
      () =>
        Object.assign(new Error('Failed after 3 attempts'), { name: 'AI_RetryError', lastError: sdkError(429, true) }),
    ],
  ])('is asked again when it lets out %s', async (_, thrown) => {
    let asked = 0;
    const planner: PlannerFunction = () => {
      asked += 1;
      if (asked < 3) throw thrown();
      return finish('done');
    };
    const made = world({ planner });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'finished');
    expect([await run.result(), asked]).toMatchObject([{ answer: 'done' }, 3]);
  });

  it.each<[string, Error]>([
    ['that is the fault of the request', sdkError(400, false)],
    ['of which nobody knows whose it is', Object.assign(new Error('fetch failed'), { code: 'ECONNREFUSED' })],
    ['that calls itself retryable', Object.assign(new Error('no'), { isRetryable: true })],
  ])('has failed with an error %s', async (_, error) => {
    const made = world({
      planner: () => {
        throw error;
      },
    });
    expect(await (await start(made)).result()).toMatchObject({ status: 'failed', error: { code: 'planner_failed' } });
  });

  it('cannot lift a limit by what its error says was used', async () => {
    const planner: PlannerFunction = () => {
      throw new PilotageError('model_unavailable', 'busy', { data: { usage: { costMicroUsd: -1e9, inputTokens: 5 } } });
    };
    const made = world({ planner, patienceMs: 0 });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'paused', usage: { costMicroUsd: 0, inputTokens: 5 } });
  });

  it('what the tries used reaches a limit while the run waits', async () => {
    const planner: PlannerFunction = () => {
      throw new PilotageError('model_unavailable', 'busy', { data: { usage: { inputTokens: 60 } } });
    };
    const made = world({ planner, limits: { tokens: 100 } });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'finished');
    expect(await run.result()).toMatchObject({ status: 'finished', metadata: { budget: 'tokens' } });
    expect(await kindsOf(made.journal, run)).toEqual(['started', 'model_away', 'model_away', 'finished']);
  });

  it('a tool whose model is away comes to that outcome, under its code', async () => {
    const tool = {
      ...echo,
      name: 'asks',
      execute: () => {
        throw new PilotageError('model_unavailable', 'busy');
      },
    };
    const planner: PlannerFunction = ({ trajectory }) => (trajectory.count === 0 ? call('asks') : finish('told'));
    const made = world({ planner, tools: [tool] });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ answer: 'told' });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'model_unavailable' } });
  });

  it.each([
    true,
    false,
  ])('a task that waits for its model is not seen from above; its pause is, and is answered there, by its token: %s', async (byToken) => {
    let isUp = false;
    const planner: PlannerFunction = ({ task, trajectory }) => {
      if (task === undefined && trajectory.count === 0) {
        return { kind: 'spawn_task', task: 'foreground', spec: { description: 'd', query: 'below' } };
      }
      if (task === undefined) return finish('above');
      if (!isUp) throw new PilotageError('model_unavailable', 'busy');
      return finish('below');
    };
    const made = world({ planner, patienceMs: 2_000 });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'paused');
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({ reason: 'model_unavailable' });
    isUp = true;
    await run.resume(byToken ? { token: pause?.token ?? '' } : {});
    expect(await run.result()).toMatchObject({ answer: 'above' });
  });

  it('a fork does not inherit the wait of the run', async () => {
    const made = away([{ calls: [{ tool: 'echo', args: {} }] }, busy(), { text: 'of the fork' }]);
    const run = await start(made);
    await until(async () => (await made.journal.get(run.id))?.status === 'waiting');
    const fork = await run.fork();
    expect(await fork.result()).toMatchObject({ answer: 'of the fork' });
  });

  it('a runtime of its own takes no other', () => {
    expect(() => createRuntime({ planner: () => finish(), patienceMs: '5' as never })).toThrow('patienceMs');
  });
});
