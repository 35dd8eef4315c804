/** What sessions remember, in the memory of this process. */
import type { Scope } from '#core';
import { assertCounts, assertSummary, ownedBy } from './rules.ts';
import type { SessionMemory, SessionMemoryStore, SessionSummary, SessionTurn } from './session-memory.ts';

interface Session {
  readonly turns: SessionTurn[];
  summary?: SessionSummary;
}

export class MemorySessions implements SessionMemoryStore {
  readonly #assertOpen: () => void;
  readonly #sessions = new Map<string, Session>();
  /** Runs that have a turn. */
  readonly #runs = new Set<string>();

  constructor(assertOpen: () => void) {
    this.#assertOpen = assertOpen;
  }

  /** A second turn of the same run changes nothing. */
  add(scope: Scope, turn: SessionTurn): void {
    if (this.#runs.has(turn.run)) return;
    this.#runs.add(turn.run);
    this.#session(ownedBy(scope)).turns.push(Object.freeze({ ...turn }));
  }

  async read(scope: Scope, limit: number, from: number = 0): Promise<SessionMemory> {
    this.#assertOpen();
    assertCounts({ limit, from });
    const { turns, summary } = this.#sessions.get(ownedBy(scope)) ?? { turns: [] };
    const first = Math.max(from, turns.length - limit);
    return { count: turns.length, turns: turns.slice(first), ...(summary === undefined ? {} : { summary }) };
  }

  async summarise(scope: Scope, expected: number | undefined, summary: SessionSummary): Promise<boolean> {
    this.#assertOpen();
    assertSummary(summary);
    const session = this.#session(ownedBy(scope));
    if (session.summary?.updatedAt !== expected) return false;
    session.summary = Object.freeze({ ...summary });
    return true;
  }

  #session(key: string): Session {
    const found = this.#sessions.get(key);
    if (found !== undefined) return found;
    const made: Session = { turns: [] };
    this.#sessions.set(key, made);
    return made;
  }
}
