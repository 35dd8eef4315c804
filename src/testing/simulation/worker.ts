/** A place where one process after another drives runs. */
import { describeThrown, PilotageError } from '../../core/errors.ts';
import type { Journal } from '../../journal/port.ts';
import { createRuntime, type Runtime } from '../../runtime/runtime.ts';
import { Dice } from './dice.ts';
import type { Ledger } from './ledger.ts';
import { type ShownGroups, simulatedPlanner } from './planner.ts';
import { SimulatedProcess } from './process.ts';
import type { Fault, SimulationScript } from './script.ts';
import { type OperationFault, SimulatedStore } from './store.ts';
import type { SimulatedTime } from './time.ts';
import { simulatedTools, withCarried } from './tools.ts';

export interface WorkerWorld {
  readonly script: SimulationScript;
  readonly time: SimulatedTime;
  readonly ledger: Ledger;
  readonly journal: Journal;
  readonly shown: ShownGroups;
}

/** A call, and all the time for which a process stands still in the middle of it. */
const GRACE_MS = 30_000;

type OperationKind = Extract<Fault, { operation: number }>;

export class Worker {
  readonly #world: WorkerWorld;
  readonly #index: number;
  /** By the operation at which they come. */
  readonly #faults = new Map<number, OperationKind>();
  readonly #dice: Dice;
  /** For the waits of retries. */
  readonly #jitter: Dice;
  #operations = 0;
  #calls = 0;
  #failing: { left: number; readonly landed: boolean; readonly stallMs: number } | undefined;
  #healthy = false;
  #closing = false;
  #lives = 0;
  #process: SimulatedProcess;
  /** It dies as soon as an operation that is under way has landed. */
  #dying: SimulatedProcess | undefined;
  #runtime: Runtime;

  constructor(index: number, world: WorkerWorld) {
    this.#index = index;
    this.#world = world;
    this.#dice = new Dice(world.script.seed * 31 + index + 1);
    this.#jitter = new Dice(world.script.seed * 37 + index + 1);
    for (const fault of world.script.faults) {
      if ('operation' in fault && fault.worker === index) this.#faults.set(fault.operation, fault);
    }
    this.#process = this.#newProcess();
    this.#runtime = this.#process.within(() => this.#start());
  }

  get process(): SimulatedProcess {
    return this.#process;
  }

  /** `undefined` while the process is down, or on its way there. */
  get runtime(): Runtime | undefined {
    return this.#process.alive && !this.#closing ? this.#runtime : undefined;
  }

  /** What it gives, as the process does it; `undefined` while it is down. */
  does<T>(act: (runtime: Runtime, process: SimulatedProcess) => T): T | undefined {
    const { runtime } = this;
    return runtime && this.#process.within(() => act(runtime, this.#process));
  }

  /** Stops the process as one does before a new version is started. */
  async deploy(): Promise<void> {
    const process = this.#process;
    if (this.#healthy || this.runtime === undefined) return;
    this.#closing = true;
    this.#world.ledger.tell(process.name, () => 'is closed');
    await process.within(() => this.#runtime.close());
    if (process.alive) process.kill();
    if (process === this.#process) this.#comeBack(0);
  }

  /** From now on nothing befalls it. */
  heal(): void {
    this.#healthy = true;
    this.#failing = undefined;
    this.#process.wake();
    // Later its death would take along what people say through it from now on, and they say it once.
    if (this.#dying === this.#process) this.#die(this.#process, 'dies');
    if (!this.#process.alive) this.#replace();
  }

  #comeBack(downMs: number): void {
    const dead = this.#process;
    this.#world.time.after(downMs, () => {
      if (dead === this.#process) this.#replace();
    });
  }

  #replace(): void {
    this.#closing = false;
    this.#process = this.#newProcess();
    this.#runtime = this.#process.within(() => this.#start());
  }

  #newProcess(): SimulatedProcess {
    this.#lives += 1;
    return new SimulatedProcess(`w${this.#index}.${this.#lives}`, this.#world.time);
  }

  #start(): Runtime {
    const { script, ledger, journal, time, shown } = this.#world;
    const process = this.#process;
    const { chance, maxMs } = script.delays;
    const store = new SimulatedStore({
      inner: journal,
      process,
      time,
      ledger,
      delayMs: () => (chance > 0 && this.#dice.chance(chance) ? this.#dice.between(1, maxMs) : 0),
      nextFault: () => this.#nextFault(process),
    });
    ledger.tell(process.name, () => 'starts');
    const tools = simulatedTools({
      process,
      ledger,
      nextCall: () => this.#nextCall(),
      mayDie: (call, landed) => this.#mayDie(process, call, landed),
      mayFreeze: (call) => this.#mayFreeze(process, call),
    });
    const planners = { script, process, ledger, shown };
    const runtime = createRuntime({
      planner: simulatedPlanner('simulated', planners),
      tools: withCarried(tools, simulatedPlanner('carrier', planners)),
      journal: store,
      clock: process.clock,
      random: () => this.#jitter.next(),
      leaseMs: script.leaseMs,
      takeoverGraceMs: GRACE_MS,
      maxLiveRuns: script.slots,
      maxLiveRunsPerTenant: script.slots,
      ...(script.upgrades ? { migrate: () => ({}) } : {}),
      onFault: (error) => this.#onFault(error, process),
    });
    runtime.work();
    return runtime;
  }

  #nextCall(): number {
    this.#calls += 1;
    return this.#calls - 1;
  }

  #mayDie(process: SimulatedProcess, call: number, landed: boolean): void {
    if (this.#healthy || !process.alive) return;
    const fault = this.#world.script.faults.find(
      (at) => at.kind === 'kill' && at.worker === this.#index && at.call === call && at.landed === landed,
    );
    if (fault?.kind !== 'kill') return;
    this.#die(process, 'dies in a call');
    this.#comeBack(fault.downMs);
  }

  #mayFreeze(process: SimulatedProcess, call: number): void {
    if (this.#healthy || !process.alive) return;
    for (const fault of this.#world.script.faults) {
      if (fault.kind === 'freeze' && fault.worker === this.#index && fault.call === call)
        this.#stall(process, fault.ms);
    }
  }

  #stall(process: SimulatedProcess, ms: number): void {
    this.#world.ledger.tell(process.name, () => `stalls for ${ms} ms`);
    process.stall(ms);
  }

  #die(process: SimulatedProcess, what: string): void {
    if (process.alive) this.#world.ledger.tell(process.name, () => what);
    process.kill();
  }

  #nextFault(process: SimulatedProcess): OperationFault | undefined {
    if (this.#healthy) return undefined;
    const fault = this.#faults.get(this.#operations);
    this.#operations += 1;
    switch (fault?.kind) {
      case undefined:
        break;
      case 'store':
        this.#failing = { left: fault.times, landed: fault.landed, stallMs: fault.stallMs ?? 0 };
        break;
      case 'stall':
        this.#stall(process, fault.ms);
        break;
      case 'crash':
        this.#dying = process;
        this.#comeBack(fault.downMs);
        return { kind: 'crash', landed: fault.landed };
      default:
        fault satisfies never;
    }
    if (this.#failing === undefined || this.#failing.left === 0) return undefined;
    this.#failing.left -= 1;
    if (this.#failing.left === 0 && this.#failing.stallMs > 0) this.#stall(process, this.#failing.stallMs);
    return { kind: 'store', landed: this.#failing.landed };
  }

  #onFault(error: unknown, process: SimulatedProcess): void {
    if (!process.alive) return;
    this.#world.ledger.tell(process.name, () => `reports: ${describeThrown(error)}`);
    if (PilotageError.is(error, 'lease_lost') || PilotageError.is(error, 'journal_unavailable')) return;
    const stack = error instanceof Error ? error.stack : undefined;
    this.#world.ledger.violated('no fault', `a runtime reported: ${stack ?? String(error)}`);
  }
}
