/** A round: many runs in one store, whose processes are hindered in every way for a while, and then left alone until all is over. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Journal, RunRecord } from '#pilotage/journal';
import { seededRandom } from '#testing';
import { wholeLedger } from '../double-act/ledger.ts';
import { openAttempts } from '../double-act/person.ts';
import { Clockwork } from './clockwork.ts';
import { type Member, member } from './crew.ts';
import { type Disk, disk } from './disk.ts';
import { Operator } from './operator.ts';
import { People } from './people.ts';
import { Readers } from './readers.ts';
import { dropSchema, openStore, ownSchema } from './store.ts';
import { GRACE_MS, LEASE_MS } from './times.ts';
import { type Judged, judge, KINDS, Testimony } from './verdict.ts';
import { machineMs, type Said } from './words.ts';

export interface RoundOptions {
  readonly seed: number;
  /** How long the processes are hindered. */
  readonly ms: number;
  readonly processes: number;
  /** What is done to them; some names more than once, so that they are drawn more often. */
  readonly deeds: readonly (keyof Deeds)[];
  /** The URL of a Postgres database, of which the round has a schema of its own. Absent: a file. */
  readonly database?: string;
}

export interface Deeds {
  kills: number;
  stops: number;
  blocks: number;
  jumps: number;
  leaps: number;
  fullDisks: number;
}

export const ALL_DEEDS: readonly (keyof Deeds)[] = [
  'kills',
  'kills',
  'stops',
  'stops',
  'blocks',
  'blocks',
  'jumps',
  'jumps',
  'leaps',
  'fullDisks',
];

export interface RoundReport extends Judged {
  readonly seed: number;
  readonly runs: number;
  readonly deeds: Readonly<Deeds>;
  readonly effects: number;
  readonly answers: number;
  readonly readings: number;
  readonly pauses: number;
  /** What was told of faults and refusals, by code. */
  readonly faults: Readonly<Record<string, number>>;
  readonly healMs: number;
  /** Where its files are, and the schema of a database, when something was wrong. */
  readonly kept?: string;
}

const LOOK_MS = 100;
const HEAL_MS = 60_000;
/** How far a clock is set. */
const JUMP_MS = 12_000;
/** How far it is set behind, or ahead where a process does nothing but schedules: minutes. */
const LEAP_MS = 240_000;
const GOES_ON_EVERY_MS = 1_000;
const FULL_MS = 2_500;
/** What stands still in the middle of an effect wakes so long before others may believe that nothing has happened. */
const BEFORE_GRACE_MS = 1_200;

export async function playRound(options: RoundOptions): Promise<RoundReport> {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-chaos-'));
  const own = disk(join(folder, 'disk'));
  const { database, seed } = options;
  const place = database === undefined ? join(own.folder, 'pilotage.db') : ownSchema(database, seed);
  const round = new Round(options, folder, own, place);
  try {
    const report = await round.play();
    if (KINDS.every((kind) => report.verdict[kind].length === 0)) {
      if (database !== undefined) await dropSchema(place);
      return report;
    }
    // Equal seeds do not give equal rounds, as real processes have their own time: this is all that is left of it.
    const kept = mkdtempSync(join(tmpdir(), 'pilotage-chaos-kept-'));
    for (const part of ['disk', 'ledger']) {
      cpSync(join(folder, part), join(kept, part), { recursive: true, filter: (path) => !path.endsWith('/compiled') });
    }
    return { ...report, kept: database === undefined ? kept : `${kept} and ${place}` };
  } finally {
    await round.clear();
    own.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Round {
  readonly #options: RoundOptions;
  readonly #folder: string;
  readonly #disk: Disk;
  readonly #place: string;
  readonly #random: () => number;
  readonly #heard = new Testimony();
  readonly #faults: Record<string, number> = {};
  readonly #deeds: Deeds = { kills: 0, stops: 0, blocks: 0, jumps: 0, leaps: 0, fullDisks: 0 };
  readonly #busy = new Set<Promise<void>>();
  readonly #unexpected: string[] = [];
  readonly #tired = new Set<Member>();
  readonly #readers = new Readers(
    (run) => this.#heard.streamOf(run),
    () => this.#pick(this.#able),
  );
  #clockwork: Clockwork | undefined;
  #crew: Member[] = [];
  #births = 0;
  #isFull = false;

  constructor(options: RoundOptions, folder: string, own: Disk, place: string) {
    this.#place = place;
    this.#options = options;
    this.#folder = folder;
    this.#disk = own;
    this.#random = seededRandom(options.seed);
    mkdirSync(join(folder, 'ledger'));
  }

  get #able(): readonly Member[] {
    return this.#crew.filter(({ isReady, isStill, isDead }) => isReady && !isStill && !isDead);
  }

  get #ledger(): string {
    return join(this.#folder, 'ledger');
  }

  async play(): Promise<RoundReport> {
    const file = openStore(this.#place);
    const operator = new Operator({
      journal: file,
      random: this.#random,
      speaker: () => this.#pick(this.#able),
      say: (said) => this.#hear(said),
      around: {
        folder: this.#ledger,
        isAnyStill: () => this.#crew.some(({ isStill }) => isStill),
        isAlive: (pid) => this.#everybody.some((each) => each.pid === pid && !each.isDead),
      },
    });
    for (let born = 0; born < this.#options.processes; born += 1) this.#crew.push(this.#bear('worker'));
    while (!this.#crew.every(({ isReady, isDead }) => isReady || isDead)) await sleep(LOOK_MS);
    const clockwork = new Clockwork({
      journal: file,
      heard: this.#heard.schedules,
      random: this.#random,
      able: () => this.#pick(this.#able.filter(({ aheadMs }) => Math.abs(aheadMs) <= JUMP_MS)),
      bear: () => this.#bear('keeper'),
      shift: (keeper, ms) => this.#shift(keeper, ms),
    });
    this.#clockwork = clockwork;
    await this.#hinder(file, operator, clockwork);
    const healing = performance.now();
    await this.#heal(file, operator, clockwork);
    const healMs = Math.round(performance.now() - healing);
    for (const each of this.#everybody)
      await each.leave().catch((error: unknown) => this.#unexpected.push(String(error)));
    const judged = await judge(file, this.#ledger, this.#heard);
    judged.verdict.stuck.push(...this.#unexpected);
    await file.close();
    return {
      ...judged,
      seed: this.#options.seed,
      runs: this.#heard.acknowledged.size,
      deeds: this.#deeds,
      effects: wholeLedger(this.#ledger).filter(({ what }) => what === 'done').length,
      answers: operator.answers,
      readings: this.#readers.readings,
      pauses: clockwork.pauses,
      faults: this.#faults,
      healMs,
    };
  }

  /** Nobody is left behind, whatever has happened. */
  async clear(): Promise<void> {
    await Promise.all(this.#everybody.filter(({ isDead }) => !isDead).map((each) => each.kill()));
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #pick<T>(list: readonly T[]): T | undefined {
    return list[this.#below(list.length)];
  }

  #bear(role: 'worker' | 'keeper'): Member {
    this.#births += 1;
    const seed = String(this.#options.seed * 1_000 + this.#births);
    const places = [this.#ledger, this.#place, seed, role] as const;
    return member(places, (said, from) => this.#hear(said, from));
  }

  get #everybody(): readonly Member[] {
    return this.#clockwork === undefined ? this.#crew : [...this.#crew, this.#clockwork.keeper];
  }

  #shift(each: Member, ms: number): Promise<void> {
    this.#heard.schedules.shifts.push({ ms, at: machineMs() });
    return each.shift(ms);
  }

  #hear(said: Said, from?: Member): void {
    switch (said.said) {
      case 'claimed':
      case 'appended':
      case 'signalled':
      case 'happened':
      case 'rows':
      case 'passed':
      case 'sent':
        this.#heard.hear(said, from?.pid ?? process.pid);
        return;
      case 'started':
        this.#heard.acknowledged.add(said.run);
        if (this.#heard.starts.get(said.run) === 'streaming') this.#readers.begin(said.run);
        return;
      case 'put':
        if (!this.#heard.schedules.begins.has(said.id)) this.#heard.schedules.begins.set(said.id, said.wallMs);
        return;
      case 'triggered':
        this.#heard.schedules.triggered.add(said.run);
        return;
      case 'spoken':
        this.#heard.talk.spoken.set(said.id, said.turn);
        return;
      case 'scheduled':
        this.#clockwork?.hear(said, from);
        return;
      case 'writes':
        this.#heard.streamOf(said.run).meant.add(JSON.stringify(said.row));
        return;
      case 'row':
        this.#readers.hear(said.reader, said.row, from);
        return;
      case 'read':
        this.#readers.ended(said.reader, said.isWhole, from);
        return;
      case 'entered':
        this.#heard.entered.push({ ...said, pid: from?.pid ?? 0 });
        return;
      case 'fault':
        this.#faults[said.code || 'untyped'] = (this.#faults[said.code || 'untyped'] ?? 0) + 1;
        // A process cannot be born while there is no room for it to open its file; any other death is nobody's doing.
        if (said.code === 'died' && !(from?.isReady === false && said.message.includes('journal_full'))) {
          this.#unexpected.push(said.message);
        }
        if (said.code === '') this.#unexpected.push(`an error without a code: ${said.message}`);
        return;
      default:
    }
  }

  #do(deed: Promise<void>): void {
    const done = deed.finally(() => this.#busy.delete(done));
    this.#busy.add(done);
  }

  async #hinder(journal: Journal, operator: Operator, clockwork: Clockwork): Promise<void> {
    const until = performance.now() + this.#options.ms;
    const people = new People({
      seed: this.#options.seed,
      heard: this.#heard,
      random: this.#random,
      able: () => this.#pick(this.#able),
    });
    let looking: Promise<void> | undefined;
    let ticking: Promise<void> | undefined;
    while (performance.now() < until) {
      await people.look(journal);
      looking ??= operator.look().finally(() => {
        looking = undefined;
      });
      this.#readers.look();
      ticking ??= clockwork.look().finally(() => {
        ticking = undefined;
      });
      if (this.#random() < 0.35) this.#deed();
      this.#crew = this.#crew.filter(({ isDead }) => !isDead);
      while (this.#crew.length < this.#options.processes) this.#crew.push(this.#bear('worker'));
      await sleep(LOOK_MS);
    }
    await Promise.all(this.#busy);
    await looking;
    await ticking;
  }

  /** Something happens to one of the processes, or to all. */
  #deed(): void {
    const deed = this.#pick(this.#options.deeds);
    const each = this.#pick(this.#able.filter((able) => !this.#tired.has(able)));
    if (deed === undefined || each === undefined) return;
    if (deed === 'fullDisks') this.#fillDisk();
    else {
      this.#deeds[deed] += 1;
      this.#befall(each, deed);
    }
  }

  #befall(each: Member, deed: Exclude<keyof Deeds, 'fullDisks'>): void {
    switch (deed) {
      case 'kills':
        this.#heard.schedules.deaths.push({ at: machineMs(), ms: each.aheadMs });
        this.#do(each.kill());
        break;
      case 'stops':
        this.#do(this.#still(each, this.#stop(each, this.#stillMs())));
        break;
      case 'blocks':
        this.#do(this.#still(each, each.block(Math.min(this.#stillMs(), GRACE_MS - BEFORE_GRACE_MS))));
        break;
      case 'jumps':
        void this.#shift(each, this.#below(2 * JUMP_MS) - JUMP_MS);
        break;
      case 'leaps':
        // What a clock that is minutes ahead puts off, such as a sleep, is minutes late: only schedules can wait for that.
        void this.#shift(each, -this.#below(LEAP_MS) - JUMP_MS);
        break;
      default:
        deed satisfies never;
    }
  }

  /** Below the lease, beyond it, and beyond the grace after it. */
  #stillMs(): number {
    const longest = this.#pick([LEASE_MS, GRACE_MS - BEFORE_GRACE_MS, GRACE_MS + 3 * LEASE_MS]) ?? LEASE_MS;
    return 50 + this.#below(longest);
  }

  async #stop(each: Member, ms: number): Promise<void> {
    await each.stop();
    // What no runtime can stop is an effect that is under way in a process that stands still for longer than the grace.
    await sleep(this.#isAtWork(each) ? Math.min(ms, GRACE_MS - BEFORE_GRACE_MS) : ms);
    await each.goOn();
  }

  #isAtWork(each: Member): boolean {
    return openAttempts(wholeLedger(this.#ledger), { isAlive: (pid) => pid === each.pid }).length > 0;
  }

  /** Whoever stood still in the middle of an effect gets to the end of it before anything else makes it stand still. */
  async #still(each: Member, standing: Promise<void>): Promise<void> {
    this.#tired.add(each);
    await standing;
    while (!each.isDead && this.#isAtWork(each)) await sleep(LOOK_MS);
    this.#tired.delete(each);
  }

  #fillDisk(): void {
    if (this.#isFull || this.#disk.fill === undefined) return;
    this.#isFull = true;
    this.#deeds.fullDisks += 1;
    this.#disk.fill();
    const emptied = async (): Promise<void> => {
      await sleep(100 + this.#below(FULL_MS));
      this.#disk.free();
      this.#isFull = false;
    };
    this.#do(emptied());
  }

  /**
   * The lease of a process that has died with a clock that was minutes ahead is over in minutes, for whoever only looks for work. Who wants the run to
   * go on finds that its owner is dead.
   */
  #goOn(live: readonly RunRecord[]): void {
    const isTime = this.#random() < LOOK_MS / GOES_ON_EVERY_MS;
    for (const { identity, schedule, turnOrigin, waits } of live)
      if (isTime && (schedule ?? turnOrigin) !== undefined && waits !== true)
        this.#pick(this.#able)?.tell({ do: 'goOn', id: identity.run });
  }

  /** Everybody is well: clocks are right, the disk has room, nobody stands still. Until all runs have ended, or long enough. */
  async #heal(journal: Journal, operator: Operator, clockwork: Clockwork): Promise<void> {
    for (const each of this.#everybody) if (!each.isDead) void this.#shift(each, 0);
    const until = performance.now() + HEAL_MS;
    for (;;) {
      await operator.look();
      await clockwork.heal();
      // A schedule that rests begins nothing more.
      const live = await journal.list({ status: ['pending', 'running', 'waiting', 'paused'], limit: 200 });
      this.#goOn(live);
      this.#readers.look();
      const isOver = live.length === 0 && !this.#readers.hasOpen && clockwork.isDone;
      if (!clockwork.isDone && performance.now() > until) this.#unexpected.push('the schedules do not go on');
      if (isOver || performance.now() > until) return;
      await sleep(LOOK_MS);
    }
  }
}
