/** What the journal cases are written with. */
import assert from 'node:assert/strict';
import {
  type Control,
  type Entry,
  type EntryBody,
  type ErrorCode,
  type Identity,
  type Message,
  PilotageError,
  type Started,
  type TaskMessage,
  type WaitRow,
  waitId,
} from '#core';
import type {
  Append,
  Claim,
  ClaimedRun,
  DueRequest,
  Journal,
  LeaseRequest,
  NewRun,
  NewSignal,
  Renewal,
} from '#journal';
import type { VirtualClock } from '../time-and-chance.ts';

interface JournalBench {
  readonly journal: Journal;
  readonly clock: VirtualClock;
  /** Another journal on the same storage. */
  open(): Promise<Journal>;
}

export interface JournalCase {
  readonly name: string;
  run(bench: JournalBench): Promise<void>;
}

export const LEASE_MS = 1_000;
export const ana: LeaseRequest = { owner: 'ana', leaseMs: LEASE_MS };
export const ben: LeaseRequest = { owner: 'ben', leaseMs: LEASE_MS };

export function identity(run: string, parts: Partial<Identity> = {}): Identity {
  return { tenant: 'acme', user: 'ana', session: 's1', run, ...parts };
}

export function startedEntry(id: Identity, more: Partial<Started> = {}): Entry {
  const query = `query of ${id.run}`;
  const body = { kind: 'started', identity: id, query, agent: 'finish', limits: {}, scopes: [] } as const;
  return Object.freeze({ ...body, ...more, seq: 1, at: 1 });
}

/** An entry that is easy to tell from others: an ended call of that step. */
export function stepEntry(seq: number, value: string = `value ${seq}`): Entry {
  const body: EntryBody = { kind: 'call_ended', step: seq, call: 0, outcome: { kind: 'value', value }, attempts: 1 };
  return Object.freeze({ ...body, seq, at: seq });
}

export function newRun(run: string, more: Partial<NewRun> = {}): NewRun {
  const id = more.identity ?? identity(run);
  return { priority: 0, entries: [startedEntry(id)], ...more, identity: id };
}

/** A run that is a task of `parent`, under `root`. */
export function newTask(run: string, parent: string, root: string = parent): NewRun {
  const description = `task ${run}`;
  const task = { parent, root, depth: 1, kind: 'foreground', description, group: run, onCancel: 'cascade' } as const;
  return newRun(run, { entries: [startedEntry(identity(run), { task, agent: 'worker', conversation: false })] });
}

/** Stores a run with one entry and claims it. */
export async function createClaimed(journal: Journal, run: string, lease: LeaseRequest = ana): Promise<Claim> {
  return present(await journal.create(newRun(run, { claim: lease })));
}

/** Claims the due run that comes first. */
export async function claimFirst(journal: Journal, request: Omit<DueRequest, 'limit'>): Promise<Claim | undefined> {
  const [first] = await journal.claimDue({ ...request, limit: 1 });
  return first?.claim;
}

export const runsOf = (claimed: readonly ClaimedRun[]): string[] => claimed.map(({ claim }) => claim.run);

/** Two owners claim two of these runs each, and one of them the last. @param claim up to so many. */
export async function assertShared(
  runs: readonly [string, string, string, string, string],
  claim: (lease: LeaseRequest, limit: number) => Promise<ClaimedRun[]>,
): Promise<void> {
  const [mine, others] = await Promise.all([claim(ben, 2), claim(ana, 2)]);
  assert.equal(mine.length, 2);
  assert.equal(others.length, 2);
  const rest = await claim(ben, 10);
  assert.deepEqual([...runsOf(mine), ...runsOf(others), ...runsOf(rest)].sort(), runs);
}

/** One step behind `expected`. */
export function step(claim: Renewal, expected: number, more: Partial<Append> = {}): Append {
  const { run, fence } = claim;
  return { run, fence, expected, entries: [stepEntry(expected + 1)], ...more };
}

export function control(id: string): Control {
  return Object.freeze({ id, type: 'USER_MESSAGE', payload: Object.freeze({ text: `message ${id}` }) });
}

/** What a run tells another: that it waits for it. */
export function watchMessage(id: string): TaskMessage {
  return Object.freeze({ id, type: 'WATCH', by: `sender of ${id}` });
}

/** What waits in the inbox of a run, without when it came. */
export async function messagesOf(journal: Journal, run: string): Promise<Message[]> {
  return (await journal.inbox(run)).map(({ message }) => message);
}

/** The ids of the messages that wait. */
export async function waiting(journal: Journal, run: string): Promise<string[]> {
  return (await messagesOf(journal, run)).map(({ id }) => id);
}

/** Counts the wakes of a watcher of the run. */
export function countWakes(journal: Journal, run: string): { readonly wakes: number } {
  const counter = { wakes: 0 };
  journal.watch(run, () => {
    counter.wakes += 1;
  });
  return counter;
}

export function present<T>(value: T | undefined): T {
  assert.notEqual(value, undefined, 'expected a value');
  return value as T;
}

export async function expectCode(done: unknown, code: ErrorCode): Promise<PilotageError> {
  const error = await Promise.resolve(done).then(
    () => assert.fail(`expected the error ${code}, but it worked`),
    (thrown: unknown) => thrown,
  );
  assert.ok(PilotageError.is(error), `expected the error ${code}, but got ${String(error)}`);
  assert.equal(error.code, code);
  return error;
}

export async function sequence(journal: Journal, run: string): Promise<number[]> {
  return (await journal.read(run)).map((entry) => entry.seq);
}

/** A wait of the first call of step 1 for an event. */
export function eventWait(wait: number, key: string, more: Partial<WaitRow> = {}): WaitRow {
  return { id: `1.0.${wait}`, for: 'event', requestedAt: 1, step: 1, call: 0, wait, key, ...more };
}

/** Stores a run that waits for an event, and claims it. */
export async function createWaiting(journal: Journal, run: string, ...adds: readonly WaitRow[]): Promise<Claim> {
  const claim = await createClaimed(journal, run);
  await journal.append(step(claim, 1, { waits: { adds } }));
  return claim;
}

/** What the whole index has, as run and id. */
export async function indexed(journal: Journal): Promise<string[]> {
  return (await journal.waits.list({})).map(({ run, id }) => `${run} ${id}`);
}

export function newSignal(key: string, id: string, more: Partial<NewSignal> = {}): NewSignal {
  return { tenant: 'acme', key, id, payload: { said: id }, keepMs: 60_000, ...more };
}

/** The signals that wait in the inbox of a run, as wait and id. */
export async function delivered(journal: Journal, run: string): Promise<string[]> {
  return (await messagesOf(journal, run)).flatMap((message) =>
    message.type === 'EVENT' ? [`${waitId(message.at)} ${message.signal}`] : [],
  );
}

/** The run has looked at its inbox: the entry that takes these messages. */
export async function takeAll(
  journal: Journal,
  claim: Renewal,
  expected: number,
  more: Partial<Append> = {},
): Promise<void> {
  await journal.append(step(claim, expected, { takes: await waiting(journal, claim.run), ...more }));
}
