/** The turns of sessions, in the memory of this process: their order, and which of them wait. */
import { type Identity, type Scope, scopeKey } from '#core';
import type { NewRun, RunStatus, SessionQuery, SessionRecord } from './port.ts';
import { assertMaySwitch, ownedBy, pageSize } from './rules.ts';

/** What the order asks of a stored run. */
export interface StoredTurn {
  readonly identity: Identity;
  readonly createdAt: number;
  status: RunStatus;
  signals: number;
  /** Its place in `turns`, from 1; 0 for a run beside the conversation. */
  turn: number;
  /** True: it waits for the turns before it. False: it has waited. `undefined`: it waits for nobody. */
  waits: boolean | undefined;
  /** It was put before those that were put last. */
  isNext: boolean;
}

interface Session<T> {
  readonly scope: Scope;
  readonly turns: T[];
  /** Those that have not ended and wait for nobody, in the order in which their turn came. */
  readonly inTurn: Set<T>;
  /** Those that wait, in their order: no turn behind the first of them is in turn. */
  readonly waiting: T[];
  updatedAt: number;
  title: string | null;
  branch: string | null;
}

export class MemoryTurns<T extends StoredTurn> {
  readonly #sessions = new Map<string, Session<T>>();

  add(run: T, waits: NewRun['waits']): void {
    const { tenant, user, session } = run.identity;
    const key = scopeKey(run.identity);
    let of = this.#sessions.get(key);
    if (of === undefined) {
      const scope = { tenant, user, session };
      of = { scope, turns: [], inTurn: new Set(), waiting: [], updatedAt: 0, title: null, branch: null };
      this.#sessions.set(key, of);
    }
    const { turns, inTurn, waiting } = of;
    run.waits = waits === undefined ? undefined : inTurn.size > 0;
    run.isNext = waits !== 'last';
    of.updatedAt = Math.floor(run.createdAt);
    const place = placeAmong(waiting, waits);
    const at = (waiting[place]?.turn ?? turns.length + 1) - 1;
    turns.splice(at, 0, run);
    for (let index = at; index < turns.length; index += 1) (turns[index] as T).turn = index + 1;
    if (run.waits === true) waiting.splice(place, 0, run);
    else inTurn.add(run);
  }

  /** @returns the turn whose turn it is now that this one has ended; `undefined`: there is none, or one is still under way. */
  ended(run: T): T | undefined {
    const { inTurn, waiting } = this.#sessions.get(scopeKey(run.identity)) ?? {};
    if (inTurn === undefined || waiting === undefined) return undefined;
    if (!inTurn.delete(run) && waiting.includes(run)) waiting.splice(waiting.indexOf(run), 1);
    return this.#next(inTurn, waiting);
  }

  /** @returns as `ended`: one that had ended while it waited may come back when nobody is under way. */
  reopened(run: T): T | undefined {
    const { inTurn, waiting } = this.#sessions.get(scopeKey(run.identity)) ?? {};
    if (inTurn === undefined || waiting === undefined) return undefined;
    if (run.waits !== true) inTurn.add(run);
    else waiting.splice(waiting.filter(({ turn }) => turn < run.turn).length, 0, run);
    return this.#next(inTurn, waiting);
  }

  #next(inTurn: Set<T>, waiting: T[]): T | undefined {
    const next = inTurn.size > 0 ? undefined : waiting.shift();
    if (next === undefined) return undefined;
    next.waits = false;
    inTurn.add(next);
    return next;
  }

  /** The turns, oldest first. */
  of(scope: Scope): readonly T[] {
    return this.#sessions.get(scopeKey(scope))?.turns ?? [];
  }

  /** Another turn that has its turn now, and for which a failed one may not go on. */
  otherInTurn({ identity, waits }: T): string | undefined {
    if (waits !== false) return undefined;
    for (const turn of this.#sessions.get(scopeKey(identity))?.inTurn ?? []) {
      if (turn.identity !== identity && turn.waits === false) return turn.identity.run;
    }
    return undefined;
  }

  record(scope: Scope): SessionRecord | undefined {
    const session = this.#sessions.get(ownedBy(scope));
    return session && recordOf(session);
  }

  list(query: SessionQuery): SessionRecord[] {
    const { after } = query;
    const found = [...this.#sessions.values()].map(recordOf).filter((record) => matches(record, query));
    const isBehind = (record: SessionRecord): boolean => after === undefined || newestFirst(after, record) < 0;
    return found.filter(isBehind).sort(newestFirst).slice(0, pageSize(query));
  }

  set(scope: Scope, { title, branch }: { readonly title?: string | null; readonly branch?: string | null }): void {
    const session = this.#sessions.get(ownedBy(scope));
    if (typeof branch === 'string') {
      const turn = session?.turns.find(({ identity }) => identity.run === branch);
      assertMaySwitch(scope, branch, session && recordOf(session).live?.run, turn?.identity);
    }
    if (session === undefined) return;
    if (title !== undefined) session.title = title;
    if (branch !== undefined) session.branch = branch;
  }

  delete(scope: Scope): void {
    this.#sessions.delete(ownedBy(scope));
  }
}

/** Before which of those that wait a turn is put. */
function placeAmong(waiting: readonly StoredTurn[], waits: NewRun['waits']): number {
  if (waits === 'last') return waiting.length;
  if (waits !== 'next') return 0;
  const behind = waiting.findIndex(({ isNext }) => !isNext);
  return behind === -1 ? waiting.length : behind;
}

function recordOf({ scope, turns, inTurn, waiting, updatedAt, title, branch }: Session<StoredTurn>): SessionRecord {
  let live: StoredTurn | undefined;
  for (const turn of inTurn) if (live === undefined || live.turn < turn.turn) live = turn;
  return {
    ...scope,
    ...(title === null ? {} : { title }),
    ...(branch === null ? {} : { branch }),
    turns: turns.length,
    waiting: waiting.length,
    ...(live === undefined ? {} : { live: { run: live.identity.run, status: live.status, signals: live.signals } }),
    createdAt: Math.floor(turns[0]?.createdAt ?? 0),
    updatedAt,
  };
}

function matches(record: SessionRecord, { tenant, user, since = 0, text }: SessionQuery): boolean {
  const { session, title = '' } = record;
  const has = (given: string): boolean => given.toLowerCase().includes(text?.toLowerCase() ?? '');
  return (
    record.tenant === tenant &&
    (user === undefined || record.user === user) &&
    record.updatedAt >= since &&
    (has(session) || has(title))
  );
}

type Place = Pick<SessionRecord, 'user' | 'session' | 'updatedAt'>;

function newestFirst(one: Place, other: Place): number {
  return other.updatedAt - one.updatedAt || compare(one.user, other.user) || compare(one.session, other.session);
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
