/**
 * Several processes drive one session and accept its messages; their clients repeat what they did not hear of, and processes are killed, closed
 * and started again. Each accepted message is in one turn, the turns stand in the order of acceptance, one at a time is live, none is stuck, and
 * every reader gets the same events.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { type Entry, local } from '#core';
import type { Journal, RunRecord } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { Session } from '#runtime';
import { seededRandom } from '#testing';
import { builtFile } from '../kit/built.ts';
import { type Born, bear } from '../kit/lives.ts';
import { CROWD_SESSION, type Order, type Reply, sessionRuntime, type Told, toldBy } from './session-crowd-child.ts';

const PROGRAM = builtFile('test/runtime/session-crowd-child.ts');
const ROUNDS = 3;
const PROCESSES = 4;
const CLIENTS = 12;
const ACTS = 14;
/** A process dies, or is closed, after so many acts. */
const ACTS_OF_A_LIFE = 17;
const MINUTE_MS = 60_000;
const SCOPE = { tenant: 'local', user: 'ana', session: CROWD_SESSION };

/** Why a message may be refused. */
const REASONS = ['session_busy', 'run_not_found'];
/** A process that could not take it now, or is being closed: another one is asked. */
const UNHEARD = ['journal_busy', 'journal_closed', 'runtime_closed'];

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

type Wish = Order extends infer One ? (One extends Order ? Omit<One, 'order'> : never) : never;

/** A message that a client has sent, perhaps several times. */
interface Message {
  readonly id: string;
  readonly does: 'send' | 'edit' | 'regenerate';
  readonly busy: string;
  readonly begunAt: number;
  readonly endedAt: number;
  /** What the first reply said. */
  readonly as: string;
  readonly turn: string;
}

class Worker {
  readonly #born: Born;
  readonly #waiting = new Map<number, (reply: Reply | undefined) => void>();
  #count = 0;
  #isOver = false;

  constructor(folder: string) {
    this.#born = bear({ program: PROGRAM, folder, args: ['work'] }, (line) => {
      const reply = JSON.parse(line) as Reply;
      this.#waiting.get(reply.order)?.(reply);
      this.#waiting.delete(reply.order);
    });
    this.ended = this.#born.end.then(() => {
      this.#isOver = true;
      for (const tell of this.#waiting.values()) tell(undefined);
    });
  }

  readonly ended: Promise<void>;

  /** `undefined`: the process has died, and nobody knows what it did. */
  ask(wish: Wish): Promise<Reply | undefined> {
    if (this.#isOver) return Promise.resolve(undefined);
    this.#count += 1;
    const order = this.#count;
    const { promise, resolve } = Promise.withResolvers<Reply | undefined>();
    this.#waiting.set(order, resolve);
    this.#born.child.stdin.write(`${JSON.stringify({ ...wish, order })}\n`);
    return promise;
  }

  kill(): void {
    this.#born.child.kill('SIGKILL');
  }

  close(): void {
    void this.ask({ does: 'close' });
  }
}

class Crowd {
  readonly messages: Message[] = [];
  readonly refused: string[] = [];
  readonly #folder: string;
  readonly #random: () => number;
  readonly #workers: Worker[];
  #acts = 0;

  constructor(folder: string, seed: number) {
    this.#folder = folder;
    this.#random = seededRandom(seed);
    this.#workers = Array.from({ length: PROCESSES }, () => new Worker(folder));
  }

  async act(): Promise<void> {
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => this.#client(client)));
  }

  async settle(session: Session, journal: Journal): Promise<void> {
    for (let count = 0; ; count += 1) {
      const record = await journal.sessions.get(SCOPE);
      if (record?.live === undefined) return;
      if (record.live.status === 'paused') await session.send('done plain', { id: `settle-${count}`, busy: 'steer' });
      await sleep(20);
    }
  }

  async end(): Promise<void> {
    for (const worker of this.#workers) worker.kill();
    await Promise.all(this.#workers.map(({ ended }) => ended));
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)] as T;
  }

  async #client(client: number): Promise<void> {
    for (let act = 0; act < ACTS; act += 1) {
      const wish = this.#wish(`m-${client}-${act}`);
      const begunAt = performance.now();
      const reply = await this.#untilHeard(wish);
      const endedAt = performance.now();
      if ('id' in wish && !('refused' in reply)) {
        const { as = '', turn = '' } = reply;
        this.messages.push({ id: wish.id, does: wish.does, busy: wish.busy, begunAt, endedAt, as, turn });
        // A client that did not hear the reply says it once more, to whomever.
        if (this.#random() < 0.3) {
          const again = await this.#pick(this.#workers).ask(wish);
          if (again !== undefined && !('refused' in again)) expect(again.as, wish.id).toBe('known');
        }
      } else if ('refused' in reply) {
        if (!REASONS.includes(reply.refused)) throw new Error(`${wish.does}: ${reply.refused}: ${reply.message}`);
        this.refused.push(reply.refused);
      }
      this.#live();
    }
  }

  #wish(id: string): Wish {
    const busy = this.#pick(['queue', 'queue', 'queue', 'steer', 'steer', 'interrupt', 'reject'] as const);
    const text = `${id} ${this.#pick(['plain', 'plain', 'work', 'work', 'slow', 'ask'])}`;
    const other = busy === 'steer' ? 'queue' : busy;
    const turn = this.messages.length === 0 ? undefined : this.#pick(this.messages).turn;
    const dice = this.#random();
    if (turn === undefined || dice < 0.75) return { does: 'send', id, text, busy };
    if (dice < 0.83) return { does: 'edit', id, text, busy: other, turn };
    if (dice < 0.89) return { does: 'regenerate', id, busy: other, turn };
    if (dice < 0.95) return { does: 'cancel', waiting: dice < 0.91 };
    return { does: 'switch', turn };
  }

  /** Asks one process after another, until one answers that is not too busy. */
  async #untilHeard(wish: Wish): Promise<Reply> {
    for (;;) {
      const reply = await this.#pick(this.#workers).ask(wish);
      if (reply !== undefined && !('refused' in reply && UNHEARD.includes(reply.refused))) return reply;
      await sleep(5);
    }
  }

  #live(): void {
    this.#acts += 1;
    if (this.#acts % ACTS_OF_A_LIFE !== 0) return;
    const at = Math.floor(this.#random() * PROCESSES);
    const worker = this.#workers[at];
    if (this.#random() < 0.7) worker?.kill();
    else worker?.close();
    this.#workers[at] = new Worker(this.#folder);
  }
}

/** What comes again, without that with which the reader has left. */
function unknown(told: readonly Told[], again: readonly Told[]): readonly Told[] {
  let known = again.length;
  while (JSON.stringify(told.slice(told.length - known)) !== JSON.stringify(again.slice(0, known))) known -= 1;
  return again.slice(known);
}

/** A reader in a process of its own, which is killed and begins again where it was. */
class Reader {
  readonly told: Told[] = [];
  readonly #folder: string;
  readonly #lifeEvents: number;
  #born: Born | undefined;
  #isOver = false;

  constructor(folder: string, lifeEvents: number) {
    this.#folder = folder;
    this.#lifeEvents = lifeEvents;
    this.#read();
  }

  #read(): void {
    const last = this.told.at(-1)?.[0] ?? -1;
    // The events of one entry come again together.
    const again: Told[] = [];
    let count = 0;
    const born = bear({ program: PROGRAM, folder: this.#folder, args: ['read', String(last + 1)] }, (line) => {
      const told = JSON.parse(line) as Told;
      if (told[0] <= last) again.push(told);
      else this.told.push(...unknown(this.told, again.splice(0)), told);
      count += 1;
      if (count === this.#lifeEvents) born.child.kill('SIGKILL');
    });
    this.#born = born;
    void born.end.then(() => {
      if (!this.#isOver) this.#read();
    });
  }

  async until(count: number): Promise<readonly Told[]> {
    while (this.told.length < count) await sleep(20);
    this.#isOver = true;
    this.#born?.child.kill('SIGKILL');
    await this.#born?.end;
    return this.told;
  }
}

/** Looks all the time how many turns are under way. */
async function watchLive(journal: Journal, isOver: () => boolean): Promise<number> {
  let most = 0;
  while (!isOver()) {
    const open = await journal.list({ ...SCOPE, status: ['pending', 'running', 'waiting', 'paused'], limit: 200 });
    most = Math.max(most, open.filter(({ turn, waits }) => turn !== undefined && waits !== true).length);
    await sleep(3);
  }
  return most;
}

async function turnsOf(journal: Journal): Promise<readonly RunRecord[]> {
  const turns: RunRecord[] = [];
  for (let before = 2 ** 40; ; ) {
    const page = await journal.list({ ...SCOPE, beforeTurn: before, limit: 200 });
    turns.push(...page);
    before = page.at(-1)?.turn ?? 0;
    if (page.length < 200) return turns.reverse();
  }
}

/** In which turns each message is. Those that answer the messages of another turn once more have a place of their own, by the id of the request. */
function placesOf(
  messages: readonly Message[],
  turns: readonly RunRecord[],
  entries: ReadonlyMap<string, readonly Entry[]>,
): Map<string, number[]> {
  const places = new Map<string, number[]>();
  const requests = new Map(messages.flatMap(({ does, id, turn }) => (does === 'regenerate' ? [[turn, { id }]] : [])));
  for (const { identity, turn = 0, turnOrigin } of turns) {
    const heard = (entries.get(identity.run) ?? []).flatMap((entry) =>
      entry.kind === 'control' && entry.applied && entry.control.turnMessage ? [entry.control.turnMessage] : [],
    );
    const request = requests.get(identity.run);
    for (const { id } of [...(request === undefined ? (turnOrigin?.messages ?? []) : [request]), ...heard])
      places.set(id, [...(places.get(id) ?? []), turn]);
  }
  return places;
}

function assertPlaced(messages: readonly Message[], places: ReadonlyMap<string, readonly number[]>): void {
  for (const { id } of messages) expect([id, places.get(id)?.length]).toEqual([id, 1]);
  for (const [id, turns] of places) expect([id, turns.length]).toEqual([id, 1]);
}

/** What was accepted before another message was sent stands before it. */
function assertInOrder(messages: readonly Message[], turns: readonly RunRecord[]): void {
  const numbers = new Map(turns.map(({ turn = 0, identity }) => [identity.run, turn]));
  const queued = messages.filter(({ as }) => as === 'queued' || as === 'started');
  for (const one of queued) {
    for (const other of queued) {
      if (one.endedAt >= other.begunAt) continue;
      const inOrder = (numbers.get(one.turn) ?? 0) < (numbers.get(other.turn) ?? 0);
      expect([one.id, other.id, inOrder]).toEqual([one.id, other.id, true]);
    }
  }
}

/** A turn does nothing before the turns before it have ended. */
function assertOneAfterAnother(turns: readonly RunRecord[], entries: ReadonlyMap<string, readonly Entry[]>): void {
  let ended = 0;
  for (const { identity } of turns) {
    const own = entries.get(identity.run) ?? [];
    const begun = own.find(({ kind }) => kind === 'turn_started');
    if (begun === undefined) continue;
    expect([identity.run, begun.at >= ended]).toEqual([identity.run, true]);
    ended = own.at(-1)?.at ?? 0;
  }
}

/** No call of one turn begins while a living process is in one of another. */
function assertNoOverlap(folder: string): void {
  const lines = readFileSync(join(folder, 'work'), 'utf8').trim().split('\n');
  const calls = lines.map((line) => line.split(' ') as [what: string, run: string, pid: string]);
  calls.forEach(([what, run, pid], index) => {
    if (what !== 'begin') return;
    const end = calls.findIndex(([word, other, by], at) => at > index && word === 'end' && other === run && by === pid);
    const others = calls.slice(index, Math.max(index, end)).filter(([, other]) => other !== run);
    expect(others, `while ${run} was at work in ${pid}`).toEqual([]);
  });
}

it.each(Array.from({ length: ROUNDS }, (_, round) => round))(
  'round %i: each message is in one turn, in order, one turn is live, and readers see the same',
  async (round) => {
    const folder = mkdtempSync(join(tmpdir(), 'pilotage-session-'));
    folders.push(folder);
    const runtime = sessionRuntime(folder);
    const session = runtime.session(CROWD_SESSION, { identity: local('ana') });
    const journal = sqliteJournal({ path: join(folder, 'runs.db'), watchIntervalMs: 50 });
    let isOver = false;
    const mostLive = watchLive(journal, () => isOver);
    const crowd = new Crowd(folder, round);
    const readers = [new Reader(folder, Number.POSITIVE_INFINITY), new Reader(folder, 120)];
    await crowd.act();
    await crowd.settle(session, journal);
    isOver = true;
    await crowd.end();

    const turns = await turnsOf(journal);
    const read = await Promise.all(turns.map(async ({ identity: { run } }) => [run, await journal.read(run)] as const));
    const entries = new Map(read);
    expect(turns.map(({ turn }) => turn)).toEqual(turns.map((_, index) => index + 1));
    expect(turns.filter(({ status }) => status !== 'finished' && status !== 'cancelled')).toEqual([]);
    assertPlaced(crowd.messages, placesOf(crowd.messages, turns, entries));
    assertInOrder(crowd.messages, turns);
    assertOneAfterAnother(turns, entries);
    assertNoOverlap(folder);
    expect(await mostLive).toBe(1);

    const all = await readAll(session, turns, entries);
    for (const reader of readers) expect(await reader.until(all.length)).toEqual(all);
    const middle = all[Math.floor(all.length / 2)]?.[0] ?? 0;
    const rest = await readAll(session, turns, entries, middle);
    const from = ([position]: Told): boolean => position >= middle;
    expect(rest.filter(from)).toEqual(all.filter(from));
    await runtime.close();
    await journal.close();
    // Otherwise nothing was tried.
    const ways = new Set(crowd.messages.map(({ as }) => as));
    for (const way of ['started', 'queued', 'steered', 'interrupts']) expect(ways).toContain(way);
  },
  4 * MINUTE_MS,
);

/** Up to the last event of the last turn. */
async function readAll(
  session: Session,
  turns: readonly RunRecord[],
  entries: ReadonlyMap<string, readonly Entry[]>,
  from: number = 0,
): Promise<readonly Told[]> {
  const last = turns.at(-1)?.identity.run ?? '';
  const end = turns.length * 2 ** 32 + (entries.get(last)?.length ?? 0);
  const all: Told[] = [];
  for await (const told of toldBy(session, from)) {
    all.push(told);
    if (told[0] === end) return all;
  }
  return all;
}
