/** Of an answer and the time limit of its pause: what the store had taken before the limit wins, and nothing else. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Decision, PlannerFunction } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { type Run, sendControl } from '#runtime';
import { VirtualClock } from '#testing';
import { call, pause, script } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, pausesOf, send } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-answers-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LIMIT_MS = 1_000;
const gated = make('gated', () => 'made', { needsApproval: { expiresInMs: LIMIT_MS } });
const asking = { ...pause, expiresInMs: LIMIT_MS } as Decision;

const STORES: Readonly<Record<string, (clock: VirtualClock) => Journal>> = {
  memory: (clock) => memoryJournal({ clock }),
  SQLite: (clock) => sqliteJournal({ path: join(folder, `${crypto.randomUUID()}.db`), clock }),
};
const PAUSES: Readonly<Record<string, Decision>> = { 'a planner’s question': asking, 'a gate': call('gated') };
const ways = Object.keys(STORES).flatMap((store) => Object.keys(PAUSES).map((what) => [store, what] as const));

interface Left extends World {
  readonly planner: PlannerFunction;
  readonly run: Run;
  readonly token: string;
}

/** A run that waits for an answer, and whose process has ended. */
async function left(store: string, what: string): Promise<Left> {
  const clock = new VirtualClock();
  const journal = STORES[store]?.(clock) as Journal;
  const planner = script(PAUSES[what] as Decision);
  const made = world({ planner, tools: [gated], journal, clock });
  const run = await start(made);
  const [asked] = await pausesOf(run);
  await made.runtime.close();
  return { ...made, planner, run, token: asked?.token ?? '' };
}

/** Another process looks at it. */
async function goOn({ planner, journal, clock, run: { id } }: Left): Promise<Run> {
  const { runtime } = world({ planner, tools: [gated], journal, clock });
  const run = runtime.run(id);
  await run.steer('INJECT_CONTEXT', { note: 'somebody looks at it' });
  await until(async () => (await run.state()).ending !== null);
  return run;
}

describe('an answer that was stored', () => {
  it.each(ways)('SP-44 in time wins however late it is read: %s, %s', async (store, what) => {
    const made = await left(store, what);
    made.clock.advance(LIMIT_MS - 1);
    await send(made.journal, made.run, { id: 'a', type: 'APPROVE', payload: { token: made.token } });
    made.clock.advance(3_600_000);
    const run = await goOn(made);
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([{ verdict: 'approve' }]);
    expect(await entriesOf(made.journal, run, 'control')).toMatchObject([{ applied: true }, { applied: true }]);
  });

  it.each(
    ways,
  )('SP-44 after the time limit never wins, although nobody has noticed yet: %s, %s', async (store, what) => {
    const made = await left(store, what);
    made.clock.advance(LIMIT_MS);
    await send(made.journal, made.run, { id: 'a', type: 'APPROVE', payload: { token: made.token } });
    const run = await goOn(made);
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([{ verdict: 'timeout' }]);
    expect(await entriesOf(made.journal, run, 'control')).toMatchObject([
      {
        applied: false,
        error: { code: 'pause_expired', message: expect.stringContaining('2026-01-01T00:00:01.000Z') },
      },
      { applied: true },
    ]);
  });

  it.each(ways)('SP-44 while its expiry is being recorded wins: %s, %s', async (store, what) => {
    // The clock of the process that reads is ahead of the store's.
    const ahead = new VirtualClock(Date.UTC(2026, 0, 1) + 600);
    const made = await left(store, what);
    made.clock.advance(LIMIT_MS - 100);
    ahead.advance(LIMIT_MS);
    const { journal, token } = made;
    let tries = 0;
    const racing = changed(journal, {
      append: async (request) => {
        const isExpiry = request.entries.some((entry) => entry.kind === 'resumed' && entry.verdict === 'timeout');
        if (isExpiry) tries += 1;
        if (tries === 1) await send(journal, made.run, { id: 'a', type: 'REJECT', payload: { token } });
        return journal.append(request);
      },
    });
    const run = await goOn({ ...made, clock: ahead, journal: racing });
    expect(await entriesOf(journal, run, 'resumed')).toMatchObject([{ verdict: 'reject' }]);
    expect(tries).toBe(1);
  });

  it('SP-44 beside others: each is judged by its own time, and one without a token is for what was open then', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const tools = [gated, make('patient', () => 'made', { needsApproval: { expiresInMs: 5_000 } })];
    const branches = ['gated', 'patient'].map((tool) => ({ tool, args: {} }));
    const planner = script({ kind: 'call_parallel', branches });
    const made = world({ planner, tools, journal, clock });
    const run = await start(made);
    await pausesOf(run);
    await made.runtime.close();
    clock.advance(2_000);
    // Only one of the two was open by then.
    await send(journal, run, { id: 'a', type: 'APPROVE' });
    clock.advance(10_000);
    const again = world({ planner, tools, journal, clock });
    await again.runtime.run(run.id).resume();
    await again.runtime.run(run.id).result();
    const [step] = (await again.runtime.run(run.id).state()).steps;
    expect(step?.calls.map(({ outcome }) => outcome)).toMatchObject([
      { kind: 'error', error: { code: 'approval_timeout' } },
      { kind: 'value', value: 'made' },
    ]);
  });
});

const ANSWERS: Readonly<Record<string, (run: Run, token?: string) => Promise<void>>> = {
  approve: (run, token) => run.approve(token),
  reject: (run, token) => run.reject(token),
  resume: (run, token) => (token === undefined ? run.resume({ payload: { by: 'ana' } }) : run.resume({ token })),
  settle: (run, token) => run.settle(token, { happened: false }),
};

describe('an answer is refused when it is given', () => {
  const EXPIRED = { code: 'pause_expired', message: expect.stringContaining('expired at 2026-01-01T00:00:01.000Z') };

  it.each(
    Object.keys(ANSWERS),
  )('%s, by the store’s clock, when the time limit has passed and nobody has noticed', async (way) => {
    const {
      journal,
      clock,
      run: { id },
      token,
    } = await left('memory', 'a gate');
    clock.advance(LIMIT_MS);
    // Nobody who could go on with it: a process of another planner, whose clock stands still.
    const { runtime } = world({ planner: { name: 'other', next: script() }, journal, clock: new VirtualClock() });
    const answer = ANSWERS[way] as (run: Run, token?: string) => Promise<void>;
    await expect(answer(runtime.run(id), token)).rejects.toMatchObject(EXPIRED);
    expect(await journal.inbox(id)).toEqual([]);
  });

  it.each(Object.keys(ANSWERS))('%s, when its expiry was recorded, before it is read', async (way) => {
    const made = world({ planner: script(asking, pause), tools: [gated] });
    const run = await start(made);
    const [first] = await pausesOf(run);
    made.clock.advance(LIMIT_MS);
    await run.steer('INJECT_CONTEXT', { note: 'somebody looks at it' });
    await until(async () => (await run.state()).pauses[0]?.step === 1);
    const answer = ANSWERS[way] as (run: Run, token?: string) => Promise<void>;
    await expect(answer(run, first?.token)).rejects.toMatchObject({ ...EXPIRED, data: { token: first?.token } });
    expect(await entriesOf(made.journal, run, 'control')).toHaveLength(1);
  });

  it('and when the pause was answered, with how and when', async () => {
    const made = world({ planner: script(pause, pause) });
    const run = await start(made);
    const [asked] = await pausesOf(run);
    made.clock.advance(250);
    await run.approve(asked?.token);
    await until(async () => (await run.state()).pauses[0]?.step === 1);
    await expect(run.reject(asked?.token)).rejects.toMatchObject({
      code: 'pause_not_found',
      message: expect.stringMatching(/was answered with approve at 2026-01-01T00:00:00.250Z; REJECT comes too late/),
    });
    expect(await entriesOf(made.journal, run, 'control')).toHaveLength(1);
  });

  it('but the same control again, after it was taken, is no second answer', async () => {
    const made = world({ planner: script(pause, pause) });
    const run = await start(made);
    const [asked] = await pausesOf(run);
    const control = { id: 'mine', type: 'APPROVE', payload: { token: asked?.token ?? '' } } as const;
    await sendControl(made.journal, run.id, control);
    await run.steer('INJECT_CONTEXT', { note: 'so that it looks' });
    await pausesOf(run);
    await sendControl(made.journal, run.id, control);
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([{ verdict: 'approve' }]);
  });
});
