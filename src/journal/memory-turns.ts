/** The turns of sessions, in the memory of this process: their order, and which of them wait. */
import { type Identity, type Scope, scopeKey } from '#core';
import type { NewRun, RunStatus, SessionQuery, SessionRecord } from './port.ts';
import { ownedBy, pageSize } from './rules.ts';

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
}

interface Session<T> {
  readonly scope: Scope;
  readonly turns: T[];
  /** Those that have not ended. */
  readonly open: Set<T>;
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
      of = { scope, turns: [], open: new Set(), updatedAt: 0, title: null, branch: null };
      this.#sessions.set(key, of);
    }
    const { turns, open } = of;
    run.waits = waits === undefined ? undefined : open.size > 0;
    open.add(run);
    of.updatedAt = Math.floor(run.createdAt);
    const at = waits === 'next' ? turns.length - countWaiting(turns) : turns.length;
    turns.splice(at, 0, run);
    for (let index = at; index < turns.length; index += 1) (turns[index] as T).turn = index + 1;
  }

  /** @returns the turn whose turn it is now that this one has ended; `undefined`: there is none, or one is still under way. */
  ended(run: T): T | undefined {
    const { open } = this.#sessions.get(scopeKey(run.identity)) ?? {};
    open?.delete(run);
    let next: T | undefined;
    for (const turn of open ?? []) {
      if (turn.waits !== true) return undefined;
      if (next === undefined || turn.turn < next.turn) next = turn;
    }
    if (next !== undefined) next.waits = false;
    return next;
  }

  reopened(run: T): void {
    this.#sessions.get(scopeKey(run.identity))?.open.add(run);
  }

  /** The turns, oldest first. */
  of(scope: Scope): readonly T[] {
    return this.#sessions.get(scopeKey(scope))?.turns ?? [];
  }

  /** Another turn that has its turn now, and for which a failed one may not go on. */
  otherInTurn({ identity, waits }: T): string | undefined {
    if (waits !== false) return undefined;
    for (const turn of this.#sessions.get(scopeKey(identity))?.open ?? []) {
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
    if (session === undefined) return;
    if (title !== undefined) session.title = title;
    if (branch !== undefined) session.branch = branch;
  }

  delete(scope: Scope): void {
    this.#sessions.delete(ownedBy(scope));
  }
}

/** How many stand at the end that wait for their turn, and have not ended. */
function countWaiting(turns: readonly StoredTurn[]): number {
  return turns.length - 1 - turns.findLastIndex(({ waits }) => waits !== true);
}

function recordOf({ scope, turns, open, updatedAt, title, branch }: Session<StoredTurn>): SessionRecord {
  let live: StoredTurn | undefined;
  let waiting = 0;
  for (const turn of open) {
    if (turn.waits === true) waiting += 1;
    else if (live === undefined || live.turn < turn.turn) live = turn;
  }
  return {
    ...scope,
    ...(title === null ? {} : { title }),
    ...(branch === null ? {} : { branch }),
    turns: turns.length,
    waiting,
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
