/**
 * Several processes speak to one run and its tasks, and answer what they ask, while others drive them and are killed. What is accepted
 * is heard once, in the order of acceptance; what is not is refused with a reason; nothing is paid whose question was withdrawn.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { type ControlTaken, type Entry, isJsonObject, local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import type { Runtime } from '#runtime';
import { foldEntries } from '#state';
import { builtFile } from '../kit/built.ts';
import { type Born, bear } from '../kit/lives.ts';
import { turn } from '../kit/waiting.ts';
import { crowdRuntime, paidIn } from './crowd-agents.ts';
import type { Act } from './crowd-child.ts';

const PROGRAM = builtFile('test/runtime/crowd-child.ts');
const ROUNDS = 4;
const VOICES = 3;
const ACTS = 60;
const MINUTE_MS = 60_000;

/** What a refusal may be called. */
const REASONS = ['pause_not_found', 'run_ended', 'superseded', 'payload_invalid', 'journal_busy'];

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

it.each(Array.from({ length: ROUNDS }, (_, round) => round))(
  'round %i: what is accepted is heard once and in order, and nothing runs whose question was withdrawn',
  async (round) => {
    const folder = mkdtempSync(join(tmpdir(), 'pilotage-crowd-'));
    folders.push(folder);
    const runtime = crowdRuntime(folder);
    const root = await runtime.start('pay', { identity: local('ana', { run: 'root' }) });
    const acts = await crowd(folder, round);
    await untilEnded(runtime, root.id);
    const journals = await journalsOf(folder, runtime);
    await runtime.close();
    for (const act of acts) assertHeard(act, journals);
    for (const entries of journals.values()) {
      assertInOrder(acts, entries);
      assertPlannerHeard(entries);
    }
    for (const key of paidIn(folder)) assertAsked(key, journals);
    expect(new Set(paidIn(folder)).size).toBe(paidIn(folder).length);
    // Otherwise nothing was tried. How much is accepted before the run has ended is a matter of the machine.
    expect(paidIn(folder)).not.toEqual([]);
    expect(acts.filter(({ refused }) => refused === undefined).length).toBeGreaterThan(ACTS / 6);
  },
  3 * MINUTE_MS,
);

/** Two processes drive, one of which is killed and replaced; the others speak until they have said all. */
async function crowd(folder: string, round: number): Promise<readonly Act[]> {
  const acts: Act[] = [];
  const workers: Born[] = [0, 1].map(() => worker(folder));
  const voices = Array.from({ length: VOICES }, (_, voice) =>
    bear({ program: PROGRAM, folder, args: ['speak', String(round * VOICES + voice), String(ACTS)] }, (line) => {
      acts.push(JSON.parse(line) as Act);
      if (acts.length % ACTS !== ACTS - 1) return;
      workers.shift()?.child.kill('SIGKILL');
      workers.push(worker(folder));
    }),
  );
  await Promise.all(voices.map(({ end }) => end));
  for (const { child } of workers) child.kill('SIGKILL');
  return acts;
}

function worker(folder: string): Born {
  return bear({ program: PROGRAM, folder, args: ['work'] }, () => {});
}

/** Answers whatever is still asked. */
async function untilEnded(runtime: Runtime, id: string): Promise<void> {
  const stop = runtime.work();
  const run = runtime.run(id);
  for (;;) {
    const result = await run.result();
    if (result.status !== 'paused') break;
    for (const { token, reason } of result.pauses) {
      const answered = reason === 'await_input' ? run.resume({ token, payload: {} }) : run.approve(token);
      await answered.catch(() => turn());
    }
  }
  stop();
}

async function journalsOf(folder: string, runtime: Runtime): Promise<ReadonlyMap<string, readonly Entry[]>> {
  const journal = sqliteJournal({ path: join(folder, 'runs.db'), readOnly: true });
  const runs = await runtime.list({ limit: 200 });
  const read = await Promise.all(runs.map(async ({ identity: { run } }) => [run, await journal.read(run)] as const));
  await journal.close();
  return new Map(read);
}

type Taken = ControlTaken & Pick<Entry, 'seq'>;

/** What was said to the run itself, and not passed on to it by the run above. */
function controlsIn(entries: readonly Entry[]): readonly Taken[] {
  return entries.flatMap((entry) => (entry.kind === 'control' && entry.control.withdraws === undefined ? [entry] : []));
}

/** Whether the words of the act stand in the control. */
function isOf({ words }: Act, { control: { payload = {} } }: Taken): boolean {
  const own = payload['payload'];
  const all = [...Object.values(payload), ...(isJsonObject(own) ? Object.values(own) : [])];
  return all.includes(words);
}

function assertHeard(act: Act, journals: ReadonlyMap<string, readonly Entry[]>): void {
  const taken = [...journals.values()].flatMap(controlsIn).filter((control) => isOf(act, control));
  const applied = taken.filter((control) => control.applied);
  if (act.refused !== undefined) {
    expect(REASONS, act.words).toContain(act.refused);
    expect(applied, act.words).toEqual([]);
    return;
  }
  expect(taken, act.words).toHaveLength(1);
  for (const { applied: isApplied, error } of taken) if (!isApplied) expect(error?.code, act.words).toBe('run_ended');
}

/** What was accepted before something else was sent stands before it. */
function assertInOrder(acts: readonly Act[], entries: readonly Entry[]): void {
  const controls = controlsIn(entries);
  const placed = acts.flatMap((act) => {
    const place = act.refused === undefined ? controls.findIndex((control) => isOf(act, control)) : -1;
    return place === -1 ? [] : [{ act, place }];
  });
  for (const one of placed) {
    for (const other of placed) {
      if (one.act.endedAt < other.act.begunAt)
        expect([one.act.words, one.place < other.place]).toEqual([one.act.words, true]);
    }
  }
}

/** What the planner was shown is what the journal had before its move. */
function assertPlannerHeard(entries: readonly Entry[]): void {
  entries.forEach((entry, index) => {
    if (entry.kind !== 'moved') return;
    const { steering } = foldEntries(entries.slice(0, index));
    const text = JSON.stringify(entry.decision);
    const heard = /"heard":(\d+)/.exec(text)?.[1];
    if (heard !== undefined) expect([entry.seq, Number(heard)]).toEqual([entry.seq, steering.length]);
  });
}

/** A payment was approved, and nothing was said between the question and the approval that withdraws it. */
function assertAsked(key: string, journals: ReadonlyMap<string, readonly Entry[]>): void {
  const [, run = '', step, call] = /([^/]+)\/(\d+)\.(\d+)$/.exec(key) ?? [];
  const entries = journals.get(run) ?? [];
  const asked = entries.find(
    (entry) =>
      entry.kind === 'paused' &&
      entry.reason === 'approval_required' &&
      entry.step === Number(step) &&
      (entry.call ?? 0) === Number(call),
  );
  if (asked?.kind !== 'paused') throw new Error(`Nobody was asked about ${key}.`);
  const answer = entries.find((entry) => entry.kind === 'resumed' && entry.token === asked.token);
  expect(answer, key).toMatchObject({ verdict: 'approve' });
  const between = controlsIn(entries).filter(
    ({ seq, applied, control: { type } }) =>
      applied && (type === 'REDIRECT' || type === 'USER_MESSAGE') && seq > asked.seq && seq < (answer?.seq ?? 0),
  );
  expect(between, key).toEqual([]);
}
