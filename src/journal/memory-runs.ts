/** A run of a journal in memory: what is kept of it, which runs are asked for, and what a claim and a record say. */
import {
  type Entry,
  type ErrorData,
  type EventMessage,
  type Identity,
  isCapped,
  type Message,
  type Started,
} from '#core';
import type { StoredTurn } from './memory-turns.ts';
import type {
  Claim,
  Claimant,
  ClaimedRun,
  DueRequest,
  NewRun,
  Park,
  ParkedRequest,
  Received,
  RunQuery,
  RunRecord,
  RunStatus,
} from './port.ts';
import { beginningOf, hasEnded, MOST_ENTRIES_ALONG, mayLive, wholeMs } from './rules.ts';
import { firstWake, indexedLabels, SCHEDULE_LABEL } from './start-rules.ts';

export interface StoredRun extends StoredTurn {
  readonly identity: Identity;
  first: Started;
  agent: string;
  /** Counts runs in the order of their creation. */
  readonly age: number;
  readonly createdAt: number;
  readonly entries: Entry[];
  /** Most runs are never told anything: `NO_INBOX` and `NOT_TOLD` are theirs until they are. */
  inbox: Map<string, Received>;
  /** Ids of all messages that the run has ever had. */
  told: Set<string>;
  priority: number;
  status: RunStatus;
  updatedAt: number;
  signals: number;
  fence: number;
  /** 0: due now. `null`: only a signal wakes it. */
  wakeAt: number | null;
  owner: string | undefined;
  leaseUntil: number;
  workLeftAt: number | undefined;
  problem: ErrorData | undefined;
}

/** Nothing is added to these. */
const NO_INBOX: StoredRun['inbox'] = new Map();
const NOT_TOLD: StoredRun['told'] = new Set();

export function storedRun(
  { identity, priority, entries }: NewRun,
  first: Started,
  age: number,
  now: number,
): StoredRun {
  return {
    identity,
    first,
    agent: first.agent,
    age,
    createdAt: now,
    entries: [...entries],
    inbox: NO_INBOX,
    told: NOT_TOLD,
    priority,
    status: 'pending',
    updatedAt: now,
    signals: 0,
    fence: 0,
    wakeAt: firstWake(first, now),
    owner: undefined,
    leaseUntil: 0,
    workLeftAt: undefined,
    problem: undefined,
    turn: 0,
    waits: undefined,
    isNext: false,
  };
}

export function putMessage(run: StoredRun, message: Message, now: number): void {
  if (run.told === NOT_TOLD) {
    run.told = new Set();
    run.inbox = new Map();
  }
  run.told.add(message.id);
  run.inbox.set(message.id, { message, storedAt: now });
  run.signals += 1;
  run.wakeAt = 0;
  run.updatedAt = now;
}

export function eventsAmong(received: Iterable<Received>): EventMessage[] {
  return [...received].flatMap(({ message }) => (message.type === 'EVENT' ? [message] : []));
}

export function countCapped(inbox: ReadonlyMap<string, Received>): number {
  return [...inbox.values()].filter(({ message }) => isCapped(message)).length;
}

/** Gives the lease of a run up. @returns false when a signal came in between. */
export function letGo(
  run: StoredRun,
  park: Park,
  { wakeAt, now }: { readonly wakeAt: number | null; readonly now: number },
): boolean {
  const news = run.signals > park.seenSignals;
  run.owner = undefined;
  if (park.leavesWork === true) run.workLeftAt = now;
  run.problem = park.problem;
  run.wakeAt = news ? 0 : wakeAt;
  if (hasEnded(run.status)) return true;
  if (run.waits === true) run.status = 'pending';
  else if (!news) run.status = park.asBefore?.status ?? park.status ?? run.status;
  return !news;
}

/** Its turn has not come, and nobody has claimed it by its name. */
function isWaitingTurn({ waits, owner, status }: StoredRun): boolean {
  return waits === true && owner === undefined && !hasEnded(status);
}

function isParked({ owner, status }: StoredRun): boolean {
  return owner === undefined && (status === 'waiting' || status === 'paused');
}

function isWanted({ agent, identity }: StoredRun, { agents, exceptTenants }: DueRequest): boolean {
  return agents?.includes(agent) !== false && exceptTenants?.includes(identity.tenant) !== true;
}

/** A claimed run is due again when its lease is over, until `release` parks it. */
export function grant(run: StoredRun, lease: Claimant, now: number): Claim {
  if (run.owner !== undefined && mayLive(run.owner, lease)) run.workLeftAt = now;
  const before = { status: run.status, wakeAt: run.wakeAt };
  run.owner = lease.owner;
  run.leaseUntil = wholeMs(now + lease.leaseMs, 'leaseMs');
  run.wakeAt = 0;
  run.problem = undefined;
  if (run.status === 'pending' || run.status === 'waiting') run.status = 'running';
  run.fence += 1;
  const { identity, fence, entries, signals, waits } = run;
  const turn = waits === true ? { waits } : undefined;
  const { startsAt = 0 } = run.first;
  const early = startsAt > now ? { startsInMs: startsAt - now } : undefined;
  const claim = { run: identity.run, fence, head: entries.length, signals, before, ...turn, ...early };
  return run.workLeftAt === undefined ? claim : { ...claim, workLeftMsAgo: Math.max(0, now - run.workLeftAt) };
}

/** @param isFree whether nobody has the run any more. */
export function claimDue(
  among: Iterable<StoredRun>,
  request: DueRequest,
  now: number,
  isFree: (run: StoredRun) => boolean,
): ClaimedRun[] {
  const passedOver = new Set(request.exceptRuns);
  const due: StoredRun[] = [];
  for (const run of among) {
    if (run.wakeAt === null || run.wakeAt > now || isWaitingTurn(run)) continue;
    if (!isWanted(run, request) || !isFree(run) || passedOver.has(run.identity.run)) continue;
    // A backlog is not put in order for the few that are claimed of it.
    const last = due.at(-1);
    if (due.length === request.limit && last !== undefined && byTurn(last, run) < 0) continue;
    due.splice(due.findLastIndex((other) => byTurn(other, run) < 0) + 1, 0, run);
    if (due.length > request.limit) due.pop();
  }
  return due.map((run) => grantAlong(run, request, now));
}

/** @param among those that are named, or all. */
export function claimParked(among: Iterable<StoredRun>, request: ParkedRequest, now: number): ClaimedRun[] {
  const passedOver = new Set(request.exceptRuns);
  const due: StoredRun[] = [];
  for (const run of among) {
    if (run.wakeAt === null || run.waits === true || !isParked(run)) continue;
    if (request.runs === undefined && run.wakeAt > now) continue;
    if (isWanted(run, request) && !passedOver.has(run.identity.run)) due.push(run);
  }
  due.sort((left, right) => (left.wakeAt ?? 0) - (right.wakeAt ?? 0));
  return due.slice(0, request.limit).map((run) => grantAlong(run, request, now));
}

/** The highest priority first, then the oldest. */
function byTurn(left: StoredRun, right: StoredRun): number {
  return right.priority - left.priority || left.age - right.age;
}

function grantAlong(run: StoredRun, lease: Claimant, now: number): ClaimedRun {
  const { identity, entries } = run;
  const along = entries.length > MOST_ENTRIES_ALONG ? {} : { entries: [...entries] };
  return { claim: grant(run, lease, now), tenant: identity.tenant, ...along };
}

/** In how many milliseconds the first parked run of these agents is due. */
export function firstDue(among: Iterable<StoredRun>, agents: readonly string[], now: number): number | undefined {
  let first: number | undefined;
  for (const run of among) {
    const { wakeAt } = run;
    if (wakeAt === null || !isParked(run) || !agents.includes(run.agent)) continue;
    first = Math.min(first ?? wakeAt, wakeAt);
  }
  return first === undefined ? undefined : first - now;
}

export function fitsQuery(run: StoredRun, query: RunQuery): boolean {
  const { identity, status, createdAt, first, agent } = run;
  const { labels = {}, schedule, text } = query;
  const wanted = [...Object.entries(labels), ...(schedule === undefined ? [] : [[SCHEDULE_LABEL, schedule] as const])];
  const has = new Map(wanted.length === 0 ? [] : indexedLabels(first));
  return (
    (query.tenant === undefined || identity.tenant === query.tenant) &&
    (query.user === undefined || identity.user === query.user) &&
    (query.session === undefined || identity.session === query.session) &&
    (query.status === undefined || query.status.includes(status)) &&
    (query.parent === undefined || (first.task?.parent ?? null) === query.parent) &&
    (query.since === undefined || createdAt >= query.since) &&
    (query.agent === undefined || agent === query.agent) &&
    wanted.every(([name, value]) => has.get(name) === value) &&
    (text === undefined || first.query.toLowerCase().includes(text.toLowerCase()))
  );
}

export function memoryRecord(run: StoredRun, now: number): RunRecord {
  const { identity, first, agent, status, priority, createdAt, updatedAt, entries, owner, leaseUntil, problem } = run;
  const isWaiting = run.waits === true && !hasEnded(status);
  const wakeAt = hasEnded(status) || isWaitingTurn(run) ? null : run.wakeAt;
  return {
    identity,
    status,
    ...beginningOf(first),
    ...(run.turn > 0 ? { turn: run.turn } : {}),
    ...(isWaiting ? { waits: true } : {}),
    agent,
    priority,
    createdAt,
    updatedAt,
    readAt: now,
    head: entries.length,
    ...(wakeAt === 0 ? {} : { wakeAt }),
    ...(owner !== undefined && leaseUntil > now ? { lease: { owner, until: leaseUntil } } : {}),
    ...(problem === undefined ? {} : { problem }),
  };
}
