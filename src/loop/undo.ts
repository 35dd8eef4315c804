/**
 * Undoing the calls of a run that ends other than by its goal. That it is to end, and how, is recorded first (`unwinding`). Then each call that has
 * a value, and whose tool names an undo, is undone by a step of its own, the one that ended last first: the executor makes that call as any
 * other. When nothing is left, the ending is written, with what came of it.
 */
import {
  type CallEnded,
  type CallTool,
  captureDecision,
  checkDecision,
  describeThrown,
  type EntryBody,
  type ErrorData,
  type Failed,
  type Finished,
  isUndoneBy,
  type Json,
  type Moved,
  type Resumed,
  timeAfter,
  UNDO_TASK,
} from '#core';
import {
  callsToUndo,
  foldEntries,
  leftOn,
  nextStep,
  openBranches,
  presentName,
  type RunState,
  type UndoableCall,
  type UndoStop,
  undoReport,
  unsureCalls,
  withheldTools,
  withReport,
} from '#state';
import type { AuthorisedTools, ReadyTool } from '#tools';
import { argsInStep } from '../calls/arguments.ts';
import { wholeValue } from '../calls/large-values.ts';
import type { DriverDeps } from './driver-deps.ts';
import { abandonCalls } from './next.ts';

export interface UndoPorts {
  readonly deps: Pick<DriverDeps, 'artifacts' | 'clock' | 'journal' | 'agentNamed'>;
  readonly state: RunState;
  tools(): AuthorisedTools;
}

export class Undo {
  readonly #ports: UndoPorts;
  /** The calls that are still to be undone, the next one last. */
  #queue: UndoableCall[] | undefined;

  constructor(ports: UndoPorts) {
    this.#ports = ports;
  }

  /** The entries of an ending; those by which the run begins to unwind, where it has something to undo. */
  async before(bodies: readonly EntryBody[]): Promise<readonly EntryBody[]> {
    const { state, deps } = this.#ports;
    const ending = bodies.at(-1);
    if (ending?.kind !== 'finished' && ending?.kind !== 'failed') return bodies;
    if (state.unwinding !== null || !isUndoneBy(ending)) return bodies;
    const made = bodies.slice(0, -1);
    if (!(await this.#hasSome()) && this.#unsure().length === 0 && !this.#isCutOff(made)) return bodies;
    if (state.undoStopped) return this.#stopped(made, ending);
    const { timeoutMs = 0 } = state.undo ?? {};
    return [
      ...made,
      ...closing(state, made),
      { kind: 'unwinding', ending, until: timeAfter(deps.clock.now(), timeoutMs) },
    ];
  }

  /** What comes next while the run unwinds: the step that undoes the next call, or the ending. */
  async next(stopped: UndoStop | undefined): Promise<readonly EntryBody[]> {
    const { state, deps } = this.#ports;
    const { ending } = state.unwinding ?? {};
    if (ending === undefined) return [];
    if (stopped !== undefined) return this.#end(ending, abandonCalls(state), stopped);
    this.#queue ??= this.#undoable().reverse();
    for (let made = this.#queue.at(-1); made !== undefined; made = this.#queue.at(-1)) {
      const decision = await this.#undoing(made);
      if (decision !== undefined) {
        if ((leftOn(state, 'calls') ?? 1) < 1) return this.#end(ending, [], 'calls');
        this.#queue.pop();
        const { step, call } = made;
        const moved: Moved = {
          kind: 'moved',
          step: nextStep(state),
          decision,
          startedAt: deps.clock.now(),
          undoes: { step, call },
        };
        return [moved];
      }
      this.#queue.pop();
    }
    return this.#end(ending, [], undefined);
  }

  async #end(
    ending: Finished | Failed,
    abandoned: readonly CallEnded[],
    stopped: UndoStop | undefined,
  ): Promise<readonly EntryBody[]> {
    const left = stopped === undefined ? [] : await this.#left();
    return [...abandoned, withReport(ending, undoReport(this.#ports.state, left, stopped, this.#unsure(), abandoned))];
  }

  /** Somebody cancelled the run twice before anything was undone. */
  async #stopped(made: readonly EntryBody[], ending: Finished | Failed): Promise<readonly EntryBody[]> {
    return [
      ...made,
      withReport(ending, undoReport(this.#ports.state, await this.#left(), 'cancelled', this.#unsure())),
    ];
  }

  async #left(): Promise<readonly UndoableCall[]> {
    const left: UndoableCall[] = [];
    const underWay = this.#ports.state.open?.move.undoes;
    for (const made of this.#undoable()) {
      const isUnderWay = underWay?.step === made.step && underWay.call === made.call;
      if (!isUnderWay && (await this.#undoing(made)) !== undefined) left.push(made);
    }
    return left;
  }

  /** The one that ended last first: calls whose tools name an undo, and those that tasks have carried out. */
  #undoable(): UndoableCall[] {
    return callsToUndo(this.#ports.state).filter(({ tool: recorded }) => {
      const tool = this.#toolOf(recorded);
      return tool !== undefined && (tool.undo !== undefined || 'agent' in tool);
    });
  }

  async #hasSome(): Promise<boolean> {
    for (const made of this.#undoable()) {
      if (this.#toolOf(made.tool)?.undo !== undefined || (await this.#byTask(made)) !== undefined) return true;
    }
    return false;
  }

  /** The call that has the task undo what it did for this one; `undefined` where it has done nothing that can be undone. */
  async #byTask({ step, call }: UndoableCall): Promise<CallTool | undefined> {
    const { state, deps } = this.#ports;
    const task = state.tasks.findLast((one) => one.step === step && one.call === call && one.agentCall === true);
    if (task?.end?.status !== 'complete') return undefined;
    const below = foldEntries(await deps.journal.read(task.id));
    if (below.undo === null || below.unwinding !== null) return undefined;
    const tools = deps
      .agentNamed(below.agent)
      ?.toolsOf(below.scopes, below.found, withheldTools(below), below.clientTools);
    const may = callsToUndo(below).some(({ tool: recorded }) => {
      const tool = tools?.ready(presentName(below, recorded));
      return tools === undefined || (tool !== undefined && (tool.undo !== undefined || 'agent' in tool));
    });
    return may ? { kind: 'call_tool', tool: UNDO_TASK, args: { task: task.id } } : undefined;
  }

  /** Those that may have happened, and that have no value by which they could be undone. */
  #unsure(): readonly UndoableCall[] {
    return unsureCalls(this.#ports.state).filter(({ tool }) => this.#toolOf(tool)?.undo !== undefined);
  }

  /** Whether a call that had begun ends with these entries, and may have happened. */
  #isCutOff(made: readonly EntryBody[]): boolean {
    const branches = openBranches(this.#ports.state);
    return made.some(
      (body) =>
        body.kind === 'call_ended' &&
        body.attempts > 0 &&
        this.#toolOf(branches[body.call]?.tool ?? '')?.undo !== undefined,
    );
  }

  #toolOf(recorded: string): ReadyTool | undefined {
    const { state, tools } = this.#ports;
    return tools().ready(presentName(state, recorded));
  }

  /** The call that undoes this one; `undefined`: there is nothing to undo. What goes wrong with naming it is the outcome of a call. */
  async #undoing(call: UndoableCall): Promise<CallTool | undefined> {
    const tool = this.#toolOf(call.tool);
    if (tool?.undo !== undefined) return this.#named(call, tool);
    return tool === undefined ? undefined : this.#byTask(call);
  }

  async #named({ step, call, tool: recorded, record }: UndoableCall, tool: ReadyTool): Promise<CallTool | undefined> {
    const { state, deps } = this.#ports;
    const made = state.steps[step];
    // A call of the open step is only counted among those that are left.
    if (made === undefined) return { kind: 'call_tool', tool: recorded, args: {} };
    if (tool.undo === undefined || record.outcome.kind !== 'value') return undefined;
    try {
      const given = await argsInStep(made, call, { state, artifacts: deps.artifacts });
      const checked = await tool.checkArgs(given);
      if (!checked.ok) throw new Error(`its arguments do not fit its schema any more: ${checked.why}`);
      const value: Json = await wholeValue(record.outcome, state.identity, deps.artifacts);
      const named: unknown = tool.undo(checked.value as never, value);
      return named === undefined || named === null ? undefined : readUndo(named);
    } catch (thrown) {
      return { kind: 'call_tool', tool: recorded, args: {}, refusal: cannotName(recorded, thrown) };
    }
  }
}

/** @throws Error for what names no call, PilotageError for arguments that are not JSON. */
function readUndo(named: unknown): CallTool {
  // Nobody waits for a promise, and none that fails may end the process.
  if (named instanceof Promise) named.catch(() => {});
  const { tool, args = {} } = named as { readonly tool?: unknown; readonly args?: unknown };
  if (typeof tool !== 'string') throw new Error('it gives { tool, args } at once, or nothing');
  return checkDecision(captureDecision({ kind: 'call_tool', tool, args: args as Json })) as CallTool;
}

function cannotName(tool: string, thrown: unknown): ErrorData {
  const message = `The call of ${tool} was not undone, because its undo did not say how: ${describeThrown(thrown)}`;
  return { code: 'undo_failed', message };
}

/** Nobody has to answer any more what the run has asked; a step that only asks ends with that. */
function closing({ pauses, open }: RunState, made: readonly EntryBody[]): readonly Resumed[] {
  const isOver = (step: number | undefined, call: number | undefined): boolean =>
    made.some((body) => body.kind === 'call_ended' && body.step === step && body.call === call);
  const payload = { reason: 'the run is to end, and undoes what it has done', control: null };
  return pauses.flatMap(({ token, step, call }): Resumed[] => {
    if (step !== undefined && (step !== open?.move.step || isOver(step, call))) return [];
    return [{ kind: 'resumed', token, verdict: 'superseded', payload }];
  });
}
