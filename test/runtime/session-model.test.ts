/**
 * A session beside a simple model of it: whatever is sent, cancelled, ended and killed, in whatever order, the turns are those of the model, in its
 * order, and each message is in one of them.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PlannerFunction } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, type Runtime, type Session } from '#runtime';
import { VirtualClock } from '#testing';
import { finish } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { aborted, advanceUntil, type Gate, gate } from '../kit/waiting.ts';

const SCOPE = { tenant: 'local', user: 'local', session: 'model' };
const LEASE_MS = 3_000;
/** The clock is 250 ms further on with every second look: nothing takes so many leases. */
const MOST_LOOKS = 200;

/** What is done next, and by which of two processes. */
interface Act {
  readonly does:
    | 'queue'
    | 'steer'
    | 'interrupt'
    | 'repeat'
    | 'edit'
    | 'beside'
    | 'end'
    | 'cancel'
    | 'cancelAll'
    | 'freeze'
    | 'thaw';
  readonly by: 0 | 1;
  readonly which: number;
}

const acts = fc.array(
  fc.record<Act>({
    does: fc.constantFrom(
      ...(['queue', 'queue', 'steer', 'steer', 'interrupt', 'repeat', 'edit', 'beside'] as const),
      ...(['end', 'end', 'end', 'cancel', 'cancelAll', 'freeze', 'thaw'] as const),
    ),
    by: fc.constantFrom(0, 1),
    which: fc.nat(99),
  }),
  { minLength: 3, maxLength: 25 },
);

/** The session as it has to be. Turns are named by the messages that have begun them. */
class Model {
  readonly turns: string[] = [];
  /** Those under way, oldest first. */
  inTurn: string[] = [];
  next: string[] = [];
  last: string[] = [];
  /** What was said to a turn under way that is being thought about. */
  readonly told = new Map<string, string[]>();
  /** In which turns messages are. */
  readonly places = new Map<string, string>();

  get live(): string | undefined {
    return this.inTurn.at(-1);
  }

  get waiting(): readonly string[] {
    return [...this.next, ...this.last];
  }

  begin(name: string, waits: 'next' | 'last' | undefined): void {
    const before = waits === 'last' ? undefined : waits === 'next' ? this.last[0] : this.waiting[0];
    this.turns.splice(before === undefined ? this.turns.length : this.turns.indexOf(before), 0, name);
    if (waits === undefined || this.inTurn.length === 0) this.inTurn.push(name);
    else this[waits].push(name);
    if (waits !== undefined) this.places.set(name, name);
  }

  tell(message: string): void {
    const live = this.live ?? '';
    this.told.set(live, [...(this.told.get(live) ?? []), message]);
  }

  /** The turn under way hears all that it was told. */
  hear(turn: string): void {
    for (const message of this.told.get(turn) ?? []) this.places.set(message, turn);
    this.told.delete(turn);
  }

  /** It ends by itself: what it was told begins turns. */
  end(turn: string): void {
    for (const message of this.told.get(turn) ?? []) this.begin(message, 'next');
    this.told.delete(turn);
    this.over(turn);
  }

  cancel(turn: string): void {
    this.hear(turn);
    this.over(turn);
  }

  over(turn: string): void {
    this.inTurn = this.inTurn.filter((other) => other !== turn);
    if (this.inTurn.length > 0) return;
    const following = this.next.shift() ?? this.last.shift();
    if (following !== undefined) this.inTurn.push(following);
  }
}

class Process {
  readonly runtime: Runtime;
  readonly session: Session;
  /** Runs that wait for their end here. */
  readonly thinking = new Map<string, Gate>();
  /** Set while it stands still. */
  #frozen: Gate | undefined;

  constructor(journal: Journal, clock: VirtualClock) {
    const next: PlannerFunction = async ({ query, identity: { run } }, signal) => {
      const thought = gate();
      this.thinking.set(run, thought);
      try {
        await Promise.race([thought.opened, aborted(signal)]);
      } finally {
        this.thinking.delete(run);
      }
      return finish(`re ${query}`);
    };
    const planner = { name: 'model', next };
    this.runtime = createRuntime({
      planner,
      journal: this.#mortal(journal),
      clock,
      leaseMs: LEASE_MS,
      onFault: () => {},
    });
    this.runtime.work();
    this.session = this.runtime.session(SCOPE.session);
  }

  /** What it asks of the store is done when it thaws: by then others have its runs. */
  freeze(): void {
    this.#frozen = gate();
  }

  thaw(): void {
    this.#frozen?.open();
    this.#frozen = undefined;
  }

  #mortal<T extends object>(store: T): T {
    return new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value === 'object' && value !== null) return this.#mortal(value);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          const apply = (): unknown => Reflect.apply(value, target, args);
          return this.#frozen === undefined || String(name).startsWith('watch')
            ? apply()
            : this.#frozen.opened.then(apply);
        };
      },
    });
  }
}

class Play {
  readonly model = new Model();
  readonly clock = new VirtualClock();
  readonly journal: Journal;
  readonly processes: Process[];
  readonly frozen: Process[] = [];
  /** The ids of runs, by their names in the model. */
  readonly runs = new Map<string, string>();
  readonly sent: string[] = [];
  /** In whose place messages stand, by their ids: a message may keep its id when it is edited. */
  readonly edited = new Map<string, string>();
  #count = 0;

  constructor(open: (clock: VirtualClock) => Journal) {
    this.journal = open(this.clock);
    this.processes = [0, 1].map(() => new Process(this.journal, this.clock));
  }

  async act({ does, by, which }: Act): Promise<void> {
    const { model } = this;
    const { session, runtime } = this.processes[by] as Process;
    this.#count += 1;
    const id = `m${this.#count}`;
    const isIdle = model.live === undefined;
    switch (does) {
      case 'queue':
        expect((await session.send(id, { id })).as).toBe(isIdle ? 'started' : 'queued');
        model.begin(id, 'last');
        break;
      case 'edit': {
        const turn = this.runs.get(model.turns[which % Math.max(1, model.turns.length)] ?? '');
        if (turn === undefined) return;
        await session.edit(turn, id, { id });
        this.edited.set(id, turn);
        model.begin(id, 'last');
        break;
      }
      case 'steer':
        expect((await session.send(id, { id, busy: 'steer' })).as).toBe(isIdle ? 'started' : 'steered');
        if (isIdle) model.begin(id, 'last');
        else model.tell(id);
        break;
      case 'interrupt': {
        expect((await session.send(id, { id, busy: 'interrupt' })).as).toBe(isIdle ? 'started' : 'interrupts');
        const cut = model.live;
        model.begin(id, 'next');
        if (cut !== undefined) model.cancel(cut);
        break;
      }
      case 'repeat': {
        const known = this.sent[which % Math.max(1, this.sent.length)];
        if (known === undefined) return;
        const edited = this.edited.get(known);
        const again = await (edited === undefined
          ? session.send('again', { id: known, busy: 'steer' })
          : session.edit(edited, 'again', { id: known }));
        expect(again.as).toBe('known');
        return;
      }
      case 'beside':
        await runtime.start(id, { identity: { ...SCOPE, run: id } });
        model.begin(id, undefined);
        break;
      case 'end': {
        const turn = model.live;
        if (turn === undefined) return;
        const run = this.runs.get(turn) ?? '';
        for (const { thinking } of this.processes) thinking.get(run)?.open();
        model.end(turn);
        break;
      }
      case 'cancel':
        await session.cancel();
        if (model.live !== undefined) model.cancel(model.live);
        break;
      case 'cancelAll':
        await session.cancel({ waiting: true });
        model.next = [];
        model.last = [];
        if (model.live !== undefined) model.cancel(model.live);
        break;
      case 'freeze':
        for (const turn of model.inTurn) {
          if (this.processes[by]?.thinking.has(this.runs.get(turn) ?? '') === true) model.hear(turn);
        }
        this.processes[by]?.freeze();
        this.frozen.push(...this.processes.splice(by, 1, new Process(this.journal, this.clock)));
        break;
      case 'thaw':
        this.#thaw();
        break;
      default:
        does satisfies never;
    }
    if (['queue', 'edit', 'steer', 'interrupt'].includes(does)) this.sent.push(id);
    await this.#settle();
  }

  #thaw(): void {
    for (const process of this.frozen) process.thaw();
    this.processes.push(...this.frozen.splice(0));
  }

  /** Until the turns under way are being thought about, the store has what the model has, and nothing else. */
  async #settle(): Promise<void> {
    const { model } = this;
    let looks = 0;
    await advanceUntil(this.clock, async () => {
      looks += 1;
      // What it is in place of that is said below.
      if (looks > MOST_LOOKS) return true;
      const { turns = 0, waiting = 0, live } = (await this.journal.sessions.get(SCOPE)) ?? {};
      if (turns !== model.turns.length || waiting !== model.waiting.length) return false;
      await this.#name();
      if (live?.run !== this.runs.get(model.live ?? '')) return false;
      return model.inTurn.every((turn) =>
        this.processes.some(({ thinking }) => thinking.has(this.runs.get(turn) ?? '')),
      );
    });
    expect(await this.#order()).toEqual([model.turns, model.waiting]);
    expect(looks, `nobody drives ${model.inTurn}`).toBeLessThan(MOST_LOOKS);
  }

  async #name(): Promise<void> {
    for (const { identity, turnOrigin } of await this.journal.list({ ...SCOPE, beforeTurn: 999, limit: 200 }))
      this.runs.set(turnOrigin?.messages[0]?.id ?? identity.run, identity.run);
  }

  async #order(): Promise<readonly [string[], string[]]> {
    const turns = (await this.journal.list({ ...SCOPE, beforeTurn: 999, limit: 200 })).reverse();
    const nameOf = (turn: (typeof turns)[number]): string => turn.turnOrigin?.messages[0]?.id ?? turn.identity.run;
    return [turns.map(nameOf), turns.filter(({ waits }) => waits === true).map(nameOf)];
  }

  /** Ends all that is under way, and compares where the messages are. */
  async end(): Promise<void> {
    const { model } = this;
    while (model.live !== undefined) await this.act({ does: 'end', by: 0, which: 0 });
    const places = new Map<string, string>();
    for (const [name, run] of this.runs) {
      for (const entry of await this.journal.read(run)) {
        const heard = entry.kind === 'control' && entry.applied ? entry.control.turnMessage : undefined;
        for (const { id } of [
          ...(entry.kind === 'started' ? (entry.turn?.messages ?? []) : []),
          ...(heard ? [heard] : []),
        ]) {
          expect(places.has(id), `${id} is in ${places.get(id)} and in ${name}`).toBe(false);
          places.set(id, name);
        }
      }
    }
    expect(new Map([...places].sort())).toEqual(new Map([...model.places].sort()));
    expect([...places.keys()].sort()).toEqual([...this.sent].sort());
  }

  async close(): Promise<void> {
    this.#thaw();
    for (const { runtime } of this.processes) await runtime.close();
    await this.journal.close();
  }
}

const STORES: Record<string, (clock: VirtualClock) => Journal> = {
  memory: (clock) => memoryJournal({ clock }),
  sqlite: (clock) => sqliteJournal({ path: temporaryFile(), clock, synchronous: 'normal', watchIntervalMs: 10 }),
};
const RUNS = { memory: 40, sqlite: 8 };

describe.each(Object.entries(STORES))('a session in %s', (name, open) => {
  it('is as its model, whatever is done to it', async () => {
    await fc.assert(
      fc.asyncProperty(acts, async (given) => {
        const play = new Play(open);
        for (const act of given) await play.act(act);
        await play.end();
        await play.close();
      }),
      { numRuns: RUNS[name as keyof typeof RUNS], seed: 24 },
    );
  });
});
