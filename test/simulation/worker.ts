/** A place where one process after another drives runs. */
import { describeThrown, PilotageError } from '#core';
import { createRuntime, type Runtime } from '#runtime';
import type { Agent, Tool } from '#tools';
import { agentIn } from './agents.ts';
import { backgroundAgent, backgroundTools } from './background-tools.ts';
import type { ToolWorld } from './deeds.ts';
import { Dice } from './dice.ts';
import { simulatedFlow } from './flows.ts';
import { gatedTools } from './gated-tools.ts';
import { heldTools } from './held-tools.ts';
import type { Ledger } from './ledger.ts';
import type { Machines } from './machines.ts';
import { type ShownGroups, simulatedPlanner } from './planner.ts';
import { SimulatedProcess } from './process.ts';
import type { Fault, SimulationScript } from './script.ts';
import type { Night } from './script-calendar.ts';
import type { OperationName } from './script-world.ts';
import type { DiskTrouble, Storage } from './storage.ts';
import { type OperationFault, SimulatedStore } from './store.ts';
import { isOfAnotherVersion, isStoreError } from './store-errors.ts';
import { streamingTools } from './streaming-tools.ts';
import { policyIn } from './surroundings.ts';
import type { SimulatedTime } from './time.ts';
import { simulatedTools, withCarried } from './tools.ts';
import { undoableTools } from './undoable-tools.ts';
import { waitingTools } from './waiting-tools.ts';

export interface WorkerWorld {
  readonly script: SimulationScript;
  readonly time: SimulatedTime;
  readonly ledger: Ledger;
  readonly storage: Storage;
  readonly shown: ShownGroups;
  readonly machines: Machines;
  /** A process has been started. */
  readonly started?: (runtime: Runtime) => void;
}

type OperationKind = Extract<Fault, { operation: number }>;
const WRITES: ReadonlySet<OperationName> = new Set(['create', 'append', 'claim', 'renew', 'release', 'signal']);
/** They come at the n-th operation of a kind. */
type FaultAtKind = Extract<Fault, { on: OperationName }>;
/** Those that come at their time. */
type TimedFault = Extract<Fault, { at: number }>;

export class Worker {
  readonly #world: WorkerWorld;
  readonly #index: number;
  /** By the operation at which they come. */
  readonly #faults = new Map<number, OperationKind>();
  readonly #dice: Dice;
  /** For the waits of retries. */
  readonly #jitter: Dice;
  readonly #atKinds: readonly FaultAtKind[];
  /** How often each operation was asked for. */
  readonly #asked = new Map<OperationName, number>();
  #operations = 0;
  #calls = 0;
  #failing: { left: number; readonly landed: boolean; readonly stallMs: number } | undefined;
  #healthy = false;
  #closing = false;
  #lives = 0;
  /** By how much the wall clock of its processes is ahead of the store's. */
  #aheadMs: number;
  /** Its connection to the store was closed under it. */
  #cut: SimulatedProcess | undefined;
  /** What befalls a disk that is only played. */
  #disk: DiskTrouble | undefined;
  #hearing: { readonly until: number; readonly how: 'late' | 'twice' } | undefined;
  #night = { until: 0, isDeep: false };
  #process: SimulatedProcess;
  /** They die as soon as an operation that is under way has landed. */
  readonly #dying = new Set<SimulatedProcess>();
  #runtime: Runtime;

  constructor(index: number, world: WorkerWorld) {
    this.#index = index;
    this.#world = world;
    this.#dice = new Dice(world.script.seed * 31 + index + 1);
    this.#jitter = new Dice(world.script.seed * 37 + index + 1);
    for (const fault of world.script.faults) {
      if ('operation' in fault && fault.worker === index) this.#faults.set(fault.operation, fault);
    }
    this.#atKinds = world.script.faults.filter((at) => 'on' in at).filter((at) => at.worker === index);
    this.#aheadMs = world.script.world.aheadMs[index] ?? 0;
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
    this.#comeBack(process, 0);
  }

  /** Something happens to the process, whatever it does just now. */
  befall(fault: TimedFault): void {
    if (this.#healthy) return;
    const { ledger, time } = this.#world;
    const process = this.#process;
    switch (fault.kind) {
      case 'deploy':
        void this.deploy();
        return;
      case 'clock':
        this.#aheadMs = fault.aheadMs;
        ledger.clocksSet.push({ at: time.now(), shown: process.wallMs() });
        ledger.tell(process.name, () => `has its clock set to ${fault.aheadMs} ms ahead`);
        process.setWall(fault.aheadMs);
        if (fault.stallMs !== undefined) this.#stall(process, fault.stallMs);
        return;
      case 'sleep':
        ledger.tell(process.name, () => `is on a machine that sleeps for ${fault.ms} ms`);
        process.stall(fault.ms, true);
        return;
      case 'hearing':
        this.#hearing = { until: time.now() + fault.ms, how: fault.how };
        return;
      case 'disk':
        this.#setDisk(fault.trouble);
        time.after(fault.ms, () => this.#setDisk(undefined));
        return;
      case 'cut':
        if (this.runtime === undefined) return;
        ledger.tell(process.name, () => 'has its connection closed');
        this.#cut = process;
        time.after(fault.downMs, () => this.#restart(process));
        return;
      default:
        fault satisfies never;
    }
  }

  #setDisk(trouble: DiskTrouble | undefined): void {
    if (this.#healthy && trouble !== undefined) return;
    const { storage, ledger } = this.#world;
    this.#disk = storage.setDisk(this.#index, trouble) ? undefined : trouble;
    ledger.tell(this.#process.name, () => `has a disk that is ${trouble ?? 'well'}`);
  }

  /** Its machine sleeps, and whatever is started on it meanwhile does, too. */
  sleep({ ms, isDeep }: Night): void {
    const { time, ledger } = this.#world;
    this.#night = { until: time.now() + ms, isDeep };
    ledger.tell(this.#process.name, () => `is on a machine that sleeps for ${ms} ms`);
    this.#process.stall(ms, isDeep);
  }

  /** What is left of the night. */
  get nightMs(): number {
    return Math.max(0, this.#night.until - this.#world.time.now());
  }

  /** From now on nothing befalls it. */
  heal(): void {
    this.#healthy = true;
    this.#failing = undefined;
    this.#hearing = undefined;
    this.#setDisk(undefined);
    this.#process.wake();
    if (this.#cut === this.#process) this.#die(this.#process, 'is ended');
    // Later its death would take along what people say through it from now on, and they say it once.
    // One that stands still in the middle of it may have successors by now.
    for (const process of this.#dying) this.#die(process, 'dies');
    if (!this.#process.alive) this.#replace();
  }

  /** Another in the place of this one, unless it has a successor: one that stood still in the middle of its death dies when it wakes. */
  #comeBack(dead: SimulatedProcess, downMs: number): void {
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
    const { machines, script, time } = this.#world;
    const home = script.world.homes[this.#index];
    const isAlive = (): boolean => made.alive;
    const surroundings = home && machines.enter(home, this.#index, this.#lives, isAlive);
    const made: SimulatedProcess = new SimulatedProcess(
      `w${this.#index}.${this.#lives}`,
      time,
      this.#aheadMs,
      surroundings,
      script.world.versions !== undefined && this.#index % 2 === 1,
    );
    const { nightMs } = this;
    if (nightMs > 0 && !this.#healthy) made.stall(nightMs, this.#night.isDeep);
    return made;
  }

  #start(): Runtime {
    const { script, ledger, storage, time, shown } = this.#world;
    const process = this.#process;
    const { chance, maxMs } = script.delays;
    const store = new SimulatedStore({
      inner: storage.of(this.#index),
      isInOrder: storage.isInOrder,
      process,
      time,
      ledger,
      delayMs: () => (chance > 0 && this.#dice.chance(chance) ? this.#dice.between(1, maxMs) : 0),
      nextFault: (name) => this.#faultOf(name, process) ?? this.#nextFault(process),
      hear: (wake) => this.#hear(wake),
      unknown: process.isNewer ? [] : (script.world.versions?.unknown ?? []),
    });
    ledger.tell(process.name, () => 'starts');
    const world: ToolWorld = {
      process,
      ledger,
      graceMs: script.world.graceMs,
      later: (ms, act) => void time.after(ms, act),
      nextCall: () => this.#nextCall(),
      mayDie: (call, landed) => this.#mayDie(process, call, landed),
      mayFreeze: (call) => this.#mayFreeze(process, call),
    };
    const tools = [
      ...simulatedTools(world),
      ...waitingTools(world),
      ...undoableTools(world),
      ...streamingTools(world),
      ...heldTools(world),
      ...backgroundTools(world),
      ...gatedTools(world),
    ];
    const flows = script.flows.map((name) => simulatedFlow(name, world));
    const planners = { script, process, ledger, shown };
    const runtime = createRuntime({
      planner: simulatedPlanner('simulated', planners),
      tools: withCarried(tools, simulatedPlanner('carrier', planners), [
        ...flows.map((flow) => flow.asTool()),
        backgroundAgent(simulatedPlanner('back_carrier', planners), tools),
      ]),
      agents: [...flows, ...this.#agents(process, tools)],
      journal: store,
      clock: process.clock,
      random: () => this.#jitter.next(),
      leaseMs: script.leaseMs,
      takeoverGraceMs: script.world.graceMs,
      maxLiveRuns: script.slots,
      maxLiveRunsPerTenant: script.slotsPerTenant,
      policy: policyIn(process, ledger),
      ...(script.memory === undefined ? {} : { memory: { strategy: 'window', ...script.memory } }),
      ...(script.progress === undefined ? {} : { progress: script.progress }),
      ...(script.upgrades || (process.isNewer && script.world.versions?.migrates) ? { migrate: () => ({}) } : {}),
      onFault: (error) => this.#onFault(error, process),
    });
    runtime.work();
    this.#world.started?.(runtime);
    return runtime;
  }

  /** The planners that come with Pilotage, as far as runs of this history are of them. */
  #agents(process: SimulatedProcess, tools: readonly Tool[]): Agent[] {
    const { script } = this.#world;
    const names = new Set(script.roots.flatMap(({ agent }) => (agent === undefined ? [] : [agent])));
    const life = 100 * this.#index + this.#lives;
    return Array.from(names, (name) => agentIn(name, { script, process, tools, life }));
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
    this.#comeBack(process, fault.downMs);
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
        this.#dying.add(process);
        this.#comeBack(process, fault.downMs);
        return { kind: 'crash', landed: fault.landed };
      default:
        fault satisfies never;
    }
    if (this.#failing === undefined || this.#failing.left === 0) return undefined;
    this.#failing.left -= 1;
    if (this.#failing.left === 0 && this.#failing.stallMs > 0) this.#stall(process, this.#failing.stallMs);
    return { kind: 'store', landed: this.#failing.landed, code: 'journal_unavailable' };
  }

  /** What befalls operations of a kind. */
  #faultOf(name: OperationName, process: SimulatedProcess): OperationFault | undefined {
    if (this.#healthy) return undefined;
    if (this.#cut === process) return { kind: 'store', landed: false, code: 'journal_closed' };
    if (this.#disk !== undefined && WRITES.has(name))
      return { kind: 'store', landed: false, code: `journal_${this.#disk}` };
    if (this.#atKinds.length === 0) return undefined;
    const count = this.#asked.get(name) ?? 0;
    this.#asked.set(name, count + 1);
    const fault = this.#atKinds.find((at) => at.on === name && at.nth <= count && count < at.nth + timesOf(at));
    if (fault?.kind === 'refuse') return { kind: 'store', landed: fault.landed, code: fault.code };
    return fault;
  }

  #hear(wake: () => void): void {
    const { until, how } = this.#hearing ?? { until: 0, how: 'late' };
    const { time } = this.#world;
    const isHard = until > time.now();
    if (!isHard || how === 'twice') wake();
    if (isHard) time.after(how === 'late' ? until - time.now() : this.#dice.between(0, 300), wake);
  }

  /** Whoever looks after the process ends it, and starts another. */
  #restart(process: SimulatedProcess): void {
    if (process !== this.#process || !process.alive) return;
    this.#die(process, 'is ended');
    this.#replace();
  }

  #hasLost(run: string, process: SimulatedProcess): boolean {
    return this.#world.ledger.sessions.goneRun(run)?.run.lostAt.has(process) === true;
  }

  #onFault(error: unknown, process: SimulatedProcess): void {
    if (!process.alive) return;
    this.#world.ledger.tell(process.name, () => `reports: ${describeThrown(error)}`);
    if (PilotageError.is(error, 'lease_lost') || isStoreError(error) || isOfAnotherVersion(error)) return;
    // Its run was deleted with its session while it stood still in the middle of it.
    if (PilotageError.is(error, 'run_not_found') && this.#hasLost(String(error.data?.['run']), process)) return;
    // The servers of scripted models are busy now and then, also as often in a row as they are tried.
    if (PilotageError.is(error, 'model_unavailable')) return;
    const stack = error instanceof Error ? error.stack : undefined;
    this.#world.ledger.violated('no fault', `a runtime reported: ${stack ?? String(error)}`);
  }
}

function timesOf(fault: FaultAtKind): number {
  return fault.kind === 'refuse' ? fault.times : 1;
}
