/** What all handles of a runtime share: its journal, the fleet that drives runs here, and the agents that would go on with a run. */
import { assertMaySend, type Caller, type Control, defined, InOrder } from '#core';
import { type RunRecord, runNotFound } from '#journal';
import type { FileOptions } from '#messages';
import { foldEntries, type RunState, withheldTools } from '#state';
import type { AuthorisedTools } from '#tools';
import type { DriverDeps, ReadyAgent } from '../loop/driver-deps.ts';
import { earlierTurns } from '../loop/earlier-turns.ts';
import { loadInputs } from '../loop/inputs.ts';
import type { Agents } from './agents.ts';
import { CancelSignals, cancelRun } from './cancel-signals.ts';
import type { Fleet } from './fleet.ts';
import type { FollowOptions } from './follow.ts';
import { type ForkOptions, forkRun } from './fork.ts';
import type { ReopenAs } from './reopen.ts';
import { type ReplayReport, replayRun } from './replay.ts';
import { TakenControls } from './taken-controls.ts';
import { type TaskProgress, watchProgressOfTasks } from './task-record.ts';
import { tasksUnderWay } from './waking.ts';

/** Where a run is read, and how it is waited for. */
export type RunSources = Pick<FollowOptions<never>, 'journal' | 'run' | 'hub' | 'clock' | 'isDriven' | 'waiting'>;

export class RunHost {
  readonly deps: DriverDeps;
  readonly fleet: Fleet;
  /** How files are taken that are given by their URLs. */
  readonly files: FileOptions;
  /** Messages to sessions, by their scopes. */
  readonly sends: InOrder = new InOrder();
  readonly taken: TakenControls;
  readonly #agents: Agents;
  /** @throws PilotageError `runtime_closed`: a handle may live longer. */
  readonly assertOpen: () => void;
  readonly #signals: CancelSignals;

  constructor(deps: DriverDeps, fleet: Fleet, agents: Agents, assertOpen: () => void, files: FileOptions = {}) {
    this.deps = deps;
    this.fleet = fleet;
    this.files = files;
    this.#agents = agents;
    this.assertOpen = assertOpen;
    this.taken = new TakenControls(deps);
    this.#signals = new CancelSignals({
      journal: deps.journal,
      isDriven: (run) => fleet.driven(run) !== undefined,
      cancel: async (run, reason) => {
        assertOpen();
        await cancelRun(fleet, run, reason);
      },
      onFault: (error) => deps.onFault(error),
    });
  }

  /** What whoever follows a run reads. */
  sourcesOf(run: string): RunSources {
    const { fleet, deps } = this;
    const { journal, hub, clock } = deps;
    return {
      ...{ journal, run, hub, clock },
      isDriven: () => fleet.driven(run) !== undefined,
      waiting: (waited) => fleet.waiting(run, waited),
    };
  }

  /** Stores a control and sees that somebody drives the run. @returns false when only a process with the run's own code can take it. */
  async signal(run: string, control: Control): Promise<boolean> {
    this.assertOpen();
    return this.fleet.send(run, control);
  }

  /** Records that the failed run goes on. @returns the run, and the tasks that go on with it. */
  async reopen(run: string, as: ReopenAs): Promise<readonly string[]> {
    this.assertOpen();
    return this.fleet.ended.reopen(run, as);
  }

  /** Drives the run here, unless another process does. `acceptChanges`: also when the code has changed since the run started. */
  async drive(run: string, acceptChanges: boolean): Promise<void> {
    this.assertOpen();
    await this.fleet.claimAndDrive(run, acceptChanges);
  }

  /**
   * Drives the run here, and the tasks below it that may go on, unless other processes do.
   * @param acceptChanges also where the code has changed since they started.
   * @throws PilotageError `run_changed`, of the run or of a task, when all that can has gone on.
   */
  async driveWithTasks(run: string, acceptChanges: boolean): Promise<void> {
    await this.drive(run, acceptChanges);
    const refused: unknown[] = [];
    const below = [run];
    for (let parent = below.pop(); parent !== undefined; parent = below.pop()) {
      for await (const { identity, wakeAt = 0, readAt } of tasksUnderWay(this.deps.journal, parent)) {
        below.push(identity.run);
        const mayGoOn = acceptChanges || (wakeAt !== null && wakeAt <= readAt);
        if (mayGoOn) await this.drive(identity.run, acceptChanges).catch((error: unknown) => refused.push(error));
      }
    }
    if (refused.length > 0) throw refused[0];
  }

  /**
   * A run that was there when it was started goes on. If there is a slot, it is driven by then: nobody who asks for its result reads how it stood before
   * this process had it, such as a pause whose answer is stored.
   */
  async goOn(run: string): Promise<void> {
    // Why it cannot be driven here is told to its readers when it is looked at.
    await this.fleet.claimAndDrive(run, false).catch(() => {});
    if (this.fleet.driven(run) === undefined) this.fleet.wake(run);
  }

  /** Makes the abort of the signal cancel the run. */
  cancelOn(signal: AbortSignal | undefined, run: string): void {
    if (signal !== undefined) this.#signals.add(run, signal);
  }

  /** The run has ended: nobody has to be able to cancel it. */
  forget(run: string): void {
    this.#signals.forget(run);
  }

  close(): void {
    this.#signals.close();
  }

  /** @throws PilotageError `scope_mismatch` when the caller may not resume the run, `run_not_found`. */
  async assertMayResume(run: string, as: Caller | undefined): Promise<void> {
    if (as !== undefined) assertMaySend('RESUME', as, (await this.#recordOf(run)).identity);
  }

  /** @returns the id of the fork, which is driven. */
  async fork(run: string, options: ForkOptions): Promise<string> {
    this.assertOpen();
    options.signal?.throwIfAborted();
    const forked = await forkRun({ ...this.deps, ...(await this.#successorOf(run)) }, run, options);
    this.cancelOn(options.signal, forked.run);
    await this.fleet.claimAndDrive(forked.run, false);
    return forked.run;
  }

  async replay(run: string, signal: AbortSignal | undefined): Promise<ReplayReport> {
    this.assertOpen();
    const { journal, artifacts } = this.deps;
    const { planner, toolsOf } = await this.#successorOf(run);
    const entries = await journal.read(run);
    // What the run was told of stands in its first entry, or in that with which its turn has begun.
    const began = entries.findIndex(({ kind }) => kind === 'turn_started');
    const state = foldEntries(entries.slice(0, Math.max(1, began + 1)));
    const inputs = await loadInputs(state.context.inputs ?? [], state.identity, artifacts);
    const before = await earlierTurns(state, this.deps);
    return replayRun({ entries, planner, toolsOf, inputs, before, artifacts, ...defined({ signal }) });
  }

  /** The tools that the run has here; `undefined` when its agent is another process's. */
  toolsOf(state: RunState): AuthorisedTools | undefined {
    return this.#agents.find(state.agent)?.toolsOf(state.scopes, state.found, withheldTools(state), state.clientTools);
  }

  /** Whether some agent shows readers the progress of its tasks. */
  get showsTasks(): boolean {
    return this.#agents.all.some(isHybrid);
  }

  /** Whether the run is of such an agent. */
  showsTasksOf({ agent }: RunState): boolean {
    return isHybrid(this.#agents.successorOf(agent));
  }

  /** Looks at the tasks of the run on behalf of a reader, until the returned function is called. */
  watchTasks(state: () => RunState | undefined, tell: (progress: TaskProgress) => void): () => void {
    const shown = (): RunState | undefined => {
      const known = state();
      return known !== undefined && this.showsTasksOf(known) ? known : undefined;
    };
    return watchProgressOfTasks(this.deps, shown, tell);
  }

  /** The agent that would go on with the run today. */
  async #successorOf(run: string): Promise<ReadyAgent> {
    return this.#agents.successorOf((await this.#recordOf(run)).agent);
  }

  /** @throws PilotageError `run_not_found`, also when the run is stored a moment later. */
  async #recordOf(run: string): Promise<RunRecord> {
    const record = await this.deps.journal.get(run);
    if (record === undefined) throw runNotFound(run);
    return record;
  }
}

function isHybrid({ planner }: ReadyAgent): boolean {
  return planner.wakeMode === 'hybrid';
}
