/** Plays a script: all processes on one journal, in virtual time, to the end of every run. */
import { type Identity, type InputFile, type JsonObject, PilotageError } from '#core';
import type { Journal } from '#journal';
import type { Runtime, StartOptions } from '#runtime';
import { SeededAmbient } from './ambient.ts';
import { Scheduling } from './calendar.ts';
import { checkEnd } from './check.ts';
import type { History } from './check-fires.ts';
import { checkQuiet, everyWait } from './check-quiet.ts';
import { checkStreams } from './check-streams.ts';
import { attachmentText } from './check-view.ts';
import { Clashes } from './clashes.ts';
import { Deciders } from './deciders.ts';
import { Dice } from './dice.ts';
import { Leavers } from './leavers.ts';
import { Ledger, type TimelineLine, type Violation } from './ledger.ts';
import { Machines } from './machines.ts';
import { Outside } from './outside.ts';
import { People } from './people.ts';
import { ShownGroups } from './planner.ts';
import { SimulatedProcess } from './process.ts';
import type { Root, SimulationScript } from './script.ts';
import { queryOf } from './scripted-replies.ts';
import { Starters } from './starters.ts';
import { openStorage, type Storage } from './storage.ts';
import { SimulatedStore } from './store.ts';
import { isStoreError } from './store-errors.ts';
import { StreamReaders } from './stream-readers.ts';
import { Talkers } from './talkers.ts';
import { SimulatedTime } from './time.ts';
import { Watching } from './watching.ts';
import { Worker } from './worker.ts';

export interface Played {
  readonly violations: readonly Violation[];
  /** Empty unless it was asked for. */
  readonly timeline: readonly TimelineLine[];
  readonly runs: number;
  readonly entries: number;
}

/** By then everything that the script says has happened. */
const SCRIPT_MS = 6_000;
/** After the people stop, and all workers are well, every run ends within this time. */
const CLOSING_MS = 300_000;
/** Within this time whoever is well has dealt with all fire times that have come. */
const CATCH_UP_MS = 12_000;
const LOOK_EVERY_MS = 400;
/** Within this time everybody has heard of the last ending, and every runtime is closed. */
const ECHO_MS = 10_000;
const ASK_AGAIN_MS = 500;
/** Of so many runs one is replayed when all is over, within this time. */
const REPLAYED_EVERY = 8;
const REPLAY_MS = 60_000;
/** Few, so that there are pages. */
const PAGE = 7;

/** @param recording keeps a line for everything that happens. */
export async function play(script: SimulationScript, recording = false): Promise<Played> {
  const time = new SimulatedTime(script.calendar?.startMs);
  const ambient = new SeededAmbient(script.seed, time);
  const ledger = new Ledger(time, recording);
  let stage: Stage | undefined;
  try {
    stage = new Stage(script, time, ledger, ambient);
    await stage.play();
  } catch (error) {
    ledger.violated('no fault', `the history could not be played: ${stackOf(error)}`);
  } finally {
    await stage?.close();
    for (const reason of await ambient.restore()) {
      ledger.violated('no fault', `a rejection was not handled: ${stackOf(reason)}`);
    }
  }
  const runs = [...ledger.runs.values()];
  const entries = runs.reduce((sum, run) => sum + run.entries.length, 0);
  return { violations: ledger.violations, timeline: ledger.timeline, runs: runs.length, entries };
}

/** The store says that it is damaged: that is told to whoever asks, and nobody asks again. */
function isDamage(fault: SimulationScript['faults'][number]): boolean {
  return 'code' in fault && fault.code === 'journal_corrupt';
}

function agentFor({ agent, flow }: Root): Pick<StartOptions, 'agent' | 'context'> {
  if (flow !== undefined) {
    // A script is JSON.
    const args: unknown = flow.input;
    return { agent: flow.name, context: { args: args as JsonObject } };
  }
  return agent === undefined ? {} : { agent };
}

function attachment(run: string, index: number): InputFile {
  return { bytes: new TextEncoder().encode(attachmentText(run, index)), mime: 'text/plain' };
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}

type Does = <T>(worker: number, act: (runtime: Runtime, process: SimulatedProcess) => T) => T | undefined;

class Stage {
  readonly #script: SimulationScript;
  readonly #time: SimulatedTime;
  readonly #ledger: Ledger;
  readonly #ambient: SeededAmbient;
  readonly #journal: Journal;
  readonly #storage: Storage;
  readonly #workers: readonly Worker[];
  readonly #people: People;
  readonly #outside: Outside;
  readonly #deciders: Deciders;
  readonly #starters: Starters;
  readonly #shown = new ShownGroups();
  readonly #watching: Watching;
  readonly #leavers: Leavers;
  readonly #streamReaders: StreamReaders;
  readonly #clashes: Clashes;
  readonly #scheduling: Scheduling | undefined;
  readonly #talkers: Talkers | undefined;

  constructor(script: SimulationScript, time: SimulatedTime, ledger: Ledger, ambient: SeededAmbient) {
    this.#script = script;
    this.#time = time;
    this.#ledger = ledger;
    this.#ambient = ambient;
    this.#watching = new Watching(ledger);
    if (script.faults.length === 0) ledger.slotsPerTenant = script.slotsPerTenant;
    const storage = openStorage(script.world.journal, script.workers, time);
    const { journal } = storage;
    this.#storage = storage;
    this.#journal = journal;
    const machines = new Machines();
    const does: Does = (worker, act) => this.#workers[worker]?.does(act);
    this.#scheduling = script.calendar && new Scheduling({ ledger, journal, does }, script.calendar);
    const started = (runtime: Runtime): void => this.#scheduling?.started(runtime);
    const world = { script, time, ledger, storage, shown: this.#shown, machines, started };
    this.#workers = Array.from({ length: script.workers }, (_, index) => new Worker(index, world));
    const seen = { script, ledger, watching: this.#watching, worker: (at: number) => this.#workers[at] };
    this.#leavers = new Leavers(seen);
    this.#streamReaders = new StreamReaders(seen);
    const dice = new Dice(script.seed + 17);
    const { chance, maxMs } = script.delays;
    const store = new SimulatedStore({
      inner: journal,
      isInOrder: storage.isInOrder,
      process: new SimulatedProcess('people', time),
      time,
      ledger,
      delayMs: () => (chance > 0 && dice.chance(chance) ? dice.between(1, maxMs) : 0),
      nextFault: () => undefined,
    });
    const clashing = {
      ledger,
      does,
      after: (ms: number, act: () => void) => void time.after(ms, act),
    };
    this.#clashes = new Clashes(clashing, script.world.clashes);
    const { starts = [], talks } = script;
    const isInNight = (index: number): boolean => this.#nightMs(index) > 0;
    const askAgain = this.#askAgain.bind(this);
    const asking = { ...clashing, isInNight, askAgain };
    this.#starters = new Starters({ ...asking, now: () => time.now() }, starts);
    this.#talkers = talks && new Talkers(asking, talks);
    this.#deciders = new Deciders({ ledger, does });
    this.#outside = new Outside({
      ledger,
      store,
      throughWorker: (index, { key, payload, ...how }) =>
        this.#workers[index]?.does((runtime) => runtime.signal(key, payload, how)),
    });
    this.#people = new People({
      ledger,
      store,
      throughWorker: (index, run, from, say) =>
        this.#workers[index]?.does((runtime, process) => {
          const handle = runtime.run(run, ...(from === undefined ? [] : [{ as: from }]));
          return this.#watching.wait(run, 'an answer to a control', process, say(handle));
        }),
    });
  }

  async play(): Promise<void> {
    this.#schedule();
    const { calendar } = this.#script;
    await this.#pass(calendar?.lastsMs ?? SCRIPT_MS, () => calendar === undefined && this.#isOver());
    for (const worker of this.#workers) worker.heal();
    if (calendar !== undefined) await this.#pass(CATCH_UP_MS, () => false);
    // A connection may write in the next turn of the event loop only.
    const tidied = this.#scheduling?.close(this.#time.now());
    await this.#ambient.settle();
    await tidied;
    // A start that was on its way when its process died may land when all others have ended.
    for (let round = 0; round < 2; round += 1) {
      await this.#endAll();
      await this.#pass(ECHO_MS, () => false);
      if (this.#isOver()) break;
    }
    await this.#replayAll();
    this.#watching.check();
    this.#clashes.check();
    await this.#closeAll();
    const stored = await this.#storedRuns();
    const [kept, waits] = [await this.#keptSignals(), await everyWait(this.#journal)];
    await checkStreams(this.#ledger, this.#journal);
    const told = this.#talkers?.told ?? [];
    const history = await this.#history();
    checkEnd({ script: this.#script, ledger: this.#ledger, shown: this.#shown, stored, kept, waits, told, history });
  }

  /** Lets go of what the history was stored in. */
  async close(): Promise<void> {
    const closed = this.#storage.close();
    await this.#ambient.settle();
    await closed;
  }

  #schedule(): void {
    const { roots, acts, signals, faults, forks, readers, world, calendar, approvals, starts } = this.#script;
    const { streamReaders = [] } = this.#script;
    const at = (ms: number, act: () => unknown): void => void this.#time.after(ms, act);
    for (const root of roots) {
      at(root.at, () => this.#start(root, root.worker));
      const { twin } = root;
      if (twin !== undefined) at(root.at + twin.afterMs, () => this.#startOnce(root, twin.worker));
    }
    for (const clash of world.clashes) at(clash.at, () => this.#clashes.begin(clash));
    for (const act of acts) {
      at(act.at, () => this.#people.act(act));
      if (act.again !== undefined) at(act.at + act.again, () => this.#people.actAgain(act));
    }
    for (const [index, signal] of signals.entries()) {
      at(signal.at, () => this.#outside.act(signal, `s${index}`));
      if (signal.again !== undefined) at(signal.at + signal.again, () => this.#outside.actAgain(signal, `s${index}`));
    }
    for (const start of starts ?? []) at(start.at, () => this.#starters.begin(start));
    for (const act of this.#script.talks?.acts ?? []) at(act.at, () => this.#talkers?.act(act));
    for (const act of approvals ?? []) at(act.at, () => this.#deciders.act(act));
    for (const act of calendar?.acts ?? []) at(act.at, () => this.#scheduling?.act(act));
    for (const night of calendar?.nights ?? [])
      at(night.at, () => {
        for (const worker of this.#workers) worker.sleep(night);
      });
    for (const fork of forks) at(fork.at, () => this.#leavers.fork(fork));
    for (const reader of readers) at(reader.at, () => this.#leavers.read(reader));
    for (const reader of streamReaders) at(reader.at, () => this.#streamReaders.read(reader));
    for (const fault of faults) {
      const worker = this.#workers[fault.worker];
      if ('at' in fault) at(fault.at, () => worker?.befall(fault));
    }
  }

  /** Whoever wants the run tries until it is stored. */
  #start(root: Root, index: number): void {
    if (this.#ledger.runs.has(root.run)) return;
    if (this.#nightMs(index) === 0) void this.#startOnce(root, index);
    this.#askAgain(index, (next) => this.#start(root, next));
  }

  /** The next worker is asked a moment later. A night of all machines takes hours: nobody asks until it is over. */
  #askAgain(index: number, ask: (next: number) => void): void {
    const moments = Math.max(1, Math.ceil(this.#nightMs(index) / ASK_AGAIN_MS));
    this.#time.after(moments * ASK_AGAIN_MS, () => ask((index + moments) % this.#workers.length));
  }

  #nightMs(index: number): number {
    return this.#workers[index]?.nightMs ?? 0;
  }

  async #startOnce(root: Root, index: number): Promise<void> {
    const { run, tenant, user, session, limits, priority, scopes, files, aside, watcher, onFail, undo } = root;
    const identity: Identity = { tenant, user, session, run };
    try {
      const inputs = Array.from({ length: files }, (_, file) => attachment(run, file));
      const options = {
        identity,
        limits,
        priority,
        scopes,
        inputs,
        ...(onFail === undefined ? {} : { onFail }),
        ...(undo === undefined ? {} : { undo }),
        ...(aside ? { conversation: false } : {}),
        ...agentFor(root),
      };
      const query = root.agent === undefined ? root.plan : queryOf(root.plan);
      await this.#workers[index]?.does((runtime) => runtime.start(query, options));
    } catch (error) {
      if (isStoreError(error) || PilotageError.is(error, 'runtime_closed')) return;
      this.#ledger.violated('no fault', `the start was refused: ${stackOf(error)}`, run);
    }
    if (watcher === undefined) return;
    this.#workers[watcher]?.does((runtime, process) => this.#watching.watch(runtime.run(run), process));
  }

  /** Lets time pass, one timer after another, for so long or until it is over. */
  async #pass(ms: number, isOver: () => boolean): Promise<void> {
    const until = this.#time.now() + ms;
    await this.#ambient.settle();
    while (!isOver() && this.#time.step(until)) await this.#ambient.settle();
  }

  #isOver(): boolean {
    return (
      this.#script.roots.every(({ run }) => this.#ledger.runs.has(run)) &&
      this.#allEnded() &&
      !this.#leavers.isBusy &&
      !this.#clashes.isBusy &&
      !this.#starters.isBusy &&
      this.#talkers?.isBusy !== true
    );
  }

  #allEnded(): boolean {
    for (const { endedAt } of this.#ledger.runs.values()) if (endedAt === undefined) return false;
    return true;
  }

  async #endAll(): Promise<void> {
    const dice = new Dice(this.#script.seed + 5);
    const until = this.#time.now() + CLOSING_MS;
    while (!this.#isOver() && this.#time.now() < until) {
      await checkQuiet(this.#journal, {
        ...{ now: this.#time.now(), ledger: this.#ledger, isOnOneClock: this.#isOnOneClock },
        isWoken: this.#script.wakeMode !== 'poll',
        isUndisturbed: this.#script.world.versions === undefined && !this.#script.faults.some(isDamage),
      });
      void this.#people.close(dice);
      void this.#outside.close(dice);
      await this.#pass(LOOK_EVERY_MS, () => this.#isOver());
    }
  }

  /** Today's planner decides everything again as it did. */
  async #replayAll(): Promise<void> {
    const [worker] = this.#workers;
    if (worker?.runtime === undefined) return;
    const runs = [...this.#ledger.runs.keys()];
    const replayed = runs.filter((_, index) => (this.#script.seed + index) % REPLAYED_EVERY === 0);
    let left = replayed.length;
    for (const run of replayed) void this.#leavers.replay(run, worker).finally(() => (left -= 1));
    await this.#pass(REPLAY_MS, () => left === 0);
  }

  async #closeAll(): Promise<void> {
    let open = 0;
    for (const worker of this.#workers) {
      const closed = worker.does((runtime) => runtime.close());
      if (closed === undefined) continue;
      open += 1;
      void closed.then(() => {
        open -= 1;
      });
    }
    await this.#pass(ECHO_MS, () => open === 0);
    if (open > 0) this.#ledger.violated('no hang', `${open} runtimes do not close`);
  }

  get #isOnOneClock(): boolean {
    const { world, faults } = this.#script;
    return world.aheadMs.every((ms) => ms === 0) && faults.every(({ kind }) => kind !== 'clock');
  }

  async #keptSignals(): Promise<ReadonlyMap<string, readonly string[]>> {
    const tenants = [...new Set(this.#script.roots.map(({ tenant }) => tenant))];
    const kept = tenants.map(async (tenant) => {
      const signals = await this.#journal.events.list({ tenant, limit: 200 });
      return [tenant, signals.map(({ id }) => id)] as const;
    });
    return new Map(await Promise.all(kept));
  }

  /** All runs that each schedule has begun, page by page. */
  async #history(): Promise<History> {
    const history = new Map<string, readonly string[]>();
    for (const { tenant, id } of this.#script.calendar?.schedules ?? []) {
      const runs: string[] = [];
      const query = { tenant, schedule: id, limit: PAGE };
      for (let page = await this.#journal.list(query); page.length > 0; ) {
        runs.push(...page.map(({ identity }) => identity.run));
        page = await this.#journal.list({ ...query, after: runs.at(-1) ?? '' });
      }
      history.set(JSON.stringify([tenant, id]), runs);
    }
    return history;
  }

  async #storedRuns(): Promise<Parameters<typeof checkEnd>[0]['stored']> {
    const journal = this.#journal;
    const runs = [...this.#ledger.runs.keys()].map(async (run) => {
      const stored = {
        record: await journal.get(run),
        entries: await journal.read(run),
        inbox: (await journal.inbox(run)).map(({ message }) => message),
      };
      return [run, stored] as const;
    });
    return new Map(await Promise.all(runs));
  }
}
