/** What it takes to send a message to a session, and to answer 1,000 sessions at once. */
import { join } from 'node:path';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, local, type Planner } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Finish } from '#pilotage/planner';
import { median, type Row, short, wallMs } from './measure.ts';
import { openRaw } from './raw-sqlite.ts';
import { listener } from './session-conversations.ts';

const SENDS = 200;
const WARM_UP_SENDS = 100;
const SESSIONS = 1_000;
const ROUNDS = 3;
const MESSAGE = 'A message.';
const HOLD = 'Hold on.';

interface Sends {
  /** To a session in which nobody is at work. */
  readonly idle: number;
  /** To one that has a turn under way. */
  readonly queued: number;
}

/** In memory, and on a disk that has each message before `send` returns. */
export async function sends(folder: string): Promise<{
  readonly memory: Sends;
  readonly sqlite: Sends;
  /** A raw insert on the same disk, in a transaction of its own. */
  readonly raw: number;
}> {
  const raw = openRaw(join(folder, 'raw.db'));
  const rawMs: number[] = [];
  const memory = await sendsTo(memoryJournal());
  const sqlite = await sendsTo(sqliteJournal({ path: join(folder, 'sends.db') }), async () => {
    rawMs.push(await wallMs(async () => raw.insertEach([MESSAGE])));
  });
  raw.close();
  return { memory, sqlite, raw: short(median(rawMs)) };
}

/** Both kinds, and `beside`, in turns. */
async function sendsTo(journal: Journal, beside = async (): Promise<void> => {}): Promise<Sends> {
  const planner = new Holding();
  const runtime = createRuntime({ planner, journal });
  const idle = runtime.session('idle');
  const busy = runtime.session('busy');
  const idleMs: number[] = [];
  const queuedMs: number[] = [];
  for (let sent = 0; sent < WARM_UP_SENDS + SENDS; sent += 1) {
    idleMs.push(await wallMs(async () => assertAs('started', await idle.send(MESSAGE))));
    await idle.result();
    await busy.send(HOLD);
    await planner.arrived();
    queuedMs.push(await wallMs(async () => assertAs('queued', await busy.send(MESSAGE))));
    planner.letGo();
    await busy.result();
    await beside();
  }
  await runtime.close();
  await journal.close();
  return { idle: short(median(idleMs.slice(WARM_UP_SENDS))), queued: short(median(queuedMs.slice(WARM_UP_SENDS))) };
}

function assertAs(wanted: string, { as }: { readonly as: string }): void {
  if (as !== wanted) throw new Error(`The message was accepted as ${as}.`);
}

/** A turn that was told to hold on is under way until it is let go. */
class Holding implements Planner {
  readonly name = 'holding';
  #arrived = Promise.withResolvers<void>();
  #held = Promise.withResolvers<void>();

  async next({ query }: { readonly query: string }): Promise<Finish> {
    if (query === HOLD) {
      this.#arrived.resolve();
      await this.#held.promise;
    }
    return { kind: 'finish', reason: 'goal', payload: { message: 'Done.' } };
  }

  async arrived(): Promise<void> {
    await this.#arrived.promise;
    this.#arrived = Promise.withResolvers();
  }

  letGo(): void {
    this.#held.resolve();
    this.#held = Promise.withResolvers();
  }
}

interface Crowd {
  readonly ms: number;
  readonly msEach: number;
  /** Over the time of as many runs that are started with `runtime.start`. */
  readonly overRuns: number;
}

/** 1,000 sessions at once, one message each, in turns with 1,000 runs without; the first round warms up. */
export async function crowd(freshJournal: () => Journal): Promise<Crowd> {
  const sessionsMs: number[] = [];
  const ratios: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const journal = freshJournal();
    const runtime = createRuntime({ planner: listener, journal });
    const answers = (ask: (number: number) => Promise<{ result(): Promise<{ readonly status: string }> }>) =>
      wallMs(() => Promise.all(Array.from({ length: SESSIONS }, (_, number) => answered(ask(number)))));
    const sessions = await answers((number) => runtime.session(`session-${round}-${number}`).send(MESSAGE));
    const runs = await answers(() => runtime.start(MESSAGE, { identity: local('bench') }));
    await runtime.close();
    await journal.close();
    if (round === 0) continue;
    sessionsMs.push(sessions);
    ratios.push(sessions / runs);
  }
  const ms = median(sessionsMs);
  return { ms: short(ms), msEach: short(ms / SESSIONS), overRuns: short(median(ratios)) };
}

async function answered(asked: Promise<{ result(): Promise<{ readonly status: string }> }>): Promise<void> {
  const { status } = await (await asked).result();
  if (status !== 'finished') throw new Error(`A turn has ended as ${status}.`);
}

export function sendRow(where: string, { idle, queued }: Sends, note?: string): Row {
  return [`send to a session ${where}`, `${idle} ms`, `${queued} ms behind a turn under way${note ?? ''}`];
}

export function crowdRow(where: string, { ms, msEach, overRuns }: Crowd): Row {
  const note = `${msEach} ms each; ${overRuns} x the time of 1,000 runs of runtime.start`;
  return [`1,000 sessions at once ${where}, a message each`, `${ms} ms`, note];
}
