/** The planner's interface: a planner is asked for one decision at a time, and knows nothing of how decisions are carried out. */

import type { BudgetView } from './budget-view.ts';
import type { Compaction, CompactionAttempt, CompactionFailures, ContextLimit, Overflow } from './compaction.ts';
import type { InputFile, LoadedInput, RunContext, SkillView } from './context.ts';
import { type Control, WHILE_ASKED, type WhileAsked } from './control.ts';
import type { Branch, Decision, GivenDecision } from './decision.ts';
import { type ErrorData, PilotageError } from './errors.ts';
import type { Identity } from './identity.ts';
import type { CeilingReason } from './limits.ts';
import type { PlannerMemory, Recalled } from './memory.ts';
import type { Author } from './message.ts';
import type { MediaView } from './model-output.ts';
import { assertKnownKeys, type OptionShape } from './options.ts';
import type { MoveNotes, PartialReply, Step } from './step.ts';
import type { BackgroundResult, GroupView, TaskOrigin, TaskView } from './task.ts';
import type { ToolSchema, ToolView } from './tool.ts';
import type { Turn } from './turn.ts';

export type WakeMode = 'push' | 'poll' | 'hybrid';

export interface Move extends MoveNotes {
  readonly decision: Decision;
  /** Files that the model has made. The runtime stores them; the step, or the end of the run, has their references. */
  readonly made?: readonly InputFile[];
  /**
   * The names of the tools that were shown to whoever decided, such as a model. A call of another tool is not made, and comes to the
   * error `tool_not_offered`. Starting tasks and waiting for them are no calls of tools. Absent: all tools of the view.
   */
  readonly offered?: readonly string[];
  /**
   * Set when the model's reply cannot be carried out. The move is recorded as a step, and the planner is asked again; `decision` is
   * what the planner would end the run with now. The planner itself limits how often it sets a fault. A fault with the code
   * `model_unavailable` is not a step: the run waits, and then asks the planner again. The same happens when the planner throws an
   * error with that code, or a retryable error of an AI SDK model (`AI_APICallError`, `AI_RetryError`). Nor is one with the code
   * `context_window_exceeded`, whose data is of the form `OverflowData`: what it says is learnt, and the planner is asked again, first
   * for a shorter history (`compact`). With `context_exhausted` the run pauses, since no request fits.
   */
  readonly fault?: ErrorData;
  /**
   * Set when the model's reply is not whole and can go on: because the limit of its length cut it off, or because its provider paused
   * it. The move is recorded as a step, and the planner is asked for the rest; `decision` is what the planner would end the run with now.
   * The planner itself limits how often it goes on. It does not count as a fault.
   */
  readonly partial?: PartialReply;
}

/** The data of a fault `context_window_exceeded`. */
export interface OverflowData {
  readonly model: string;
  /** The length of the request, by our own count. */
  readonly tokens: number;
  readonly overflow: Overflow;
}

/** A piece of what a planner says on the way to its move. */
export type SpokenDelta =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  /**
   * A piece of the arguments of a call, as JSON text, while they are written. `callId` is the id that the call has in the decision, and
   * `tool` its tool. The first piece of a call may be empty. A call that is not made after all needs nothing more.
   */
  | { readonly type: 'input'; readonly callId: string; readonly tool: string; readonly text: string }
  /** Everything said for this move so far is void, and the move starts again. */
  | { readonly type: 'reset' };

/** What a streaming planner yields on the way to its move. */
export type Delta =
  | SpokenDelta
  /**
   * Nodes of a plan that may start while the planner goes on. The final move must be a `call_parallel` of the same plan, whose
   * first branches are the ones yielded here, in the same order. If the planner fails after the first delta, the plan is closed with
   * the branches it has, and the failure is the error of the step. A branch may refer only to branches of its own or an earlier
   * delta. The `concurrency` of the first delta counts.
   */
  | {
      readonly type: 'branches';
      readonly plan: string;
      readonly branches: readonly Branch[];
      readonly concurrency?: number;
    };

/** A message that came in while the run was going. `atStep` is the step that was next at that time. */
export interface SteeringTurn {
  readonly atStep: number;
  readonly control: Control;
  /** True: it came while the step before waited for an answer, so that it was said before that answer. */
  readonly beforeAnswer?: true;
}

/** The steps so far. Only the runtime adds to them. */
export interface Trajectory {
  readonly count: number;
  step(index: number): Step | undefined;
  /** A frozen copy of all steps; `step` is cheaper. */
  readonly steps: readonly Step[];
  readonly steering: readonly SteeringTurn[];
  /** What this run has spawned, in order. */
  readonly tasks: readonly TaskView[];
  readonly groups: ReadonlyMap<string, GroupView>;
  /** Results of groups that nobody awaited, in the order in which they came. Each group comes once, and stays in the list. */
  readonly background: readonly BackgroundResult[];
  /** The last summary of the first steps, if there is one. All steps are still here. */
  readonly compaction?: Compaction;
  /** Attempts to summarise that failed since then; absent when none did. */
  readonly compactionFailures?: CompactionFailures;
  /** What was learnt of how much the models take; absent when nothing was. */
  readonly contextLimits?: readonly ContextLimit[];
}

/** A run of the session before this one, as this one is told of it: what its own planner was shown, and what became of it. */
export interface EarlierRun {
  readonly run: string;
  readonly query: string;
  readonly author?: Author;
  /** True: the query was a notice of the program. */
  readonly notice?: true;
  /** The attachments of the query, with their bytes. */
  readonly inputs: readonly LoadedInput[];
  /** Also a step whose calls had not all ended: such a call has an outcome that says so. */
  readonly trajectory: Trajectory;
  /** The files of its steps and of its last reply. */
  readonly media?: MediaView;
  /** It is told from this step on, which begins with the user's answer to the step before. Absent: from its beginning. */
  readonly from?: number;
  readonly end: EarlierEnd;
}

/** What an earlier run came to, as far as this run is told. */
export interface EarlierEnd extends Pick<MoveNotes, 'text' | 'reasoning' | 'providerState'> {
  /** The answer that it ended with. Absent or empty: there is none. */
  readonly answer?: string;
  /** A sentence that says why there is no answer, such as what the run waits for. */
  readonly unanswered?: string;
  /** Files that the model made with its last reply. */
  readonly files?: readonly LoadedInput[];
}

/** The runs of the session that a run is told of, oldest first, and what stands for those before them. */
export interface EarlierRuns {
  readonly runs: readonly EarlierRun[];
  readonly summary?: Pick<Compaction, 'summary' | 'made'>;
  /** Runs on other branches of the conversation: what they did stays done, and what was said in them does not count. Absent: none. */
  readonly aside?: readonly EarlierRun[];
}

/** Everything a planner may look at: frozen, and made afresh for each step. */
export interface RunView {
  readonly identity: Identity;
  /** The name of the agent. */
  readonly agent: string;
  readonly query: string;
  /** Who has written the query, as far as the program has said. */
  readonly author?: Author;
  /** True: the query is a notice of the program, and no word of the user. */
  readonly notice?: true;
  /** What the run is to reach now: the query, until a REDIRECT replaces it. */
  readonly goal: string;
  /** Earlier turns of the conversation, oldest first, with the bytes of their files. */
  readonly history: readonly Turn[];
  /** The runs that `history` is made of, with all that their planners saw. Absent: the caller gave the history, or there is none. */
  readonly earlier?: EarlierRuns;
  /** What the run was given beside its query. */
  readonly context: RunContext;
  /** What is remembered of its user. Absent: the planner remembers nothing. */
  readonly recalled?: Recalled;
  /** The attachments of the query, in order, with their bytes. */
  readonly inputs: readonly LoadedInput[];
  readonly trajectory: Trajectory;
  /** The files that its steps have to show; absent when there are none. */
  readonly media?: MediaView;
  /** Controls applied since the last step, in order. */
  readonly controls: readonly Control[];
  readonly tools: ToolView;
  /** The skills of `context.skills`. */
  readonly skills: SkillView;
  readonly budget: BudgetView;
  /** When the run started, as recorded: the only clock a planner may read. Milliseconds since the epoch. */
  readonly startedAt: number;
  /** How many decisions in a row, up to now, did not pass validation. */
  readonly rejections: number;
  /** True: this run may spawn and await tasks. False for a task at the greatest depth. */
  readonly tasks: boolean;
  /** Set when this run is a task of another run. */
  readonly task?: Pick<TaskOrigin, 'kind' | 'depth' | 'description'>;
  /** Set when the last steps repeat: the same `period` steps came `times` times. The planner should try something else. */
  readonly noProgress?: { readonly period: number; readonly times: number };
  /**
   * Set when a limit is reached and this is the last move (`onCeiling: 'answer'`): finish with what was found. Whatever else is decided is not
   * carried out. `reason`: with which the run ends in any case.
   */
  readonly lastMove?: { readonly reason: CeilingReason };
  /** True: somebody reads the events of the run, and streamed tokens reach them. */
  readonly streaming: boolean;
  /** What planners have kept of this run, each under an object of its own. */
  readonly cache: RunCache;
}

/**
 * What planners keep of a run from one move to the next. It goes with the run: another process that goes on with it begins with none, so
 * that only what can be made again from the view belongs here. Nothing in it is part of the view.
 */
export class RunCache {
  #values: Map<object, unknown> | undefined;

  get(key: object): unknown {
    return this.#values?.get(key);
  }

  set(key: object, value: unknown): void {
    this.#values ??= new Map();
    this.#values.set(key, value);
  }
}

/**
 * One value of each run, in the cache of its view. A `WeakMap` by the run would do the same, but young collections keep all that its values
 * hold, also of runs that have ended: to copy that took an eighth of a step.
 */
export class PerRun<T> {
  get({ cache }: Pick<RunView, 'cache'>): T | undefined {
    return cache.get(this) as T | undefined;
  }

  set({ cache }: Pick<RunView, 'cache'>, value: T | undefined): void {
    cache.set(this, value);
  }
}

export type MoveSource = Decision | Move | Promise<Decision | Move> | AsyncGenerator<Delta, Decision | Move>;

/** The part of a planner that tells which models it may ask. */
export interface AsksModels {
  /** Names of its models without prices. A limit on cost is refused when there is one, as the limit could not be kept. */
  readonly unpriced?: readonly string[];
  /** The model that it asks under this name: tools of its runs may ask it too. */
  readonly modelNamed?: (name: string) => NamedModel | undefined;
}

/** An entry of a model as planners keep it. */
export interface NamedModel {
  readonly name: string;
  readonly model: object;
}

export interface Planner extends AsksModels {
  readonly name: string;
  /** Recorded with each run. Change it when runs that were started before must not go on with the changed planner unasked. */
  readonly version?: string;
  /** What wakes the planner when a task it started has ended. Default `push`. */
  readonly wakeMode?: WakeMode;
  /**
   * True: the planner's own moves cost nothing, so that a spent limit on money or tokens does not end its run. Calls that would
   * spend more are still refused.
   */
  readonly costless?: true;
  /**
   * What a message of the user does to questions of a run that are open, unless the run is started with another rule. `withdraw`: they are
   * withdrawn, and the planner hears the message. `keep`: the message is heard when they have been answered, which is right for a planner that
   * reads no messages. Default `withdraw`.
   */
  readonly whileAsked?: WhileAsked;
  /**
   * What it remembers of users. Its runs read it before their first step (`recalled` of the view), and have the tool `remember`. Absent:
   * nothing.
   */
  readonly remembers?: PlannerMemory;
  /** True: a model makes the decisions. An invalid decision is then shown to it again before the run fails. */
  readonly modelDriven?: boolean;
  /**
   * Checks that each of its models can be offered these tools, which a provider defines. Absent: the planner offers tools to no model, so
   * that nobody could call one that a provider carries out. @throws PilotageError `invalid_config` naming the tool and the model.
   */
  readonly assertOffered?: (tools: readonly ToolSchema[]) => void;
  /** `pause`: when it ends a run with an error because nodes of its plan have failed, the run is paused instead. Default `fail`. */
  readonly onFailedPlan?: OnFailedPlan;
  /** @throws the signal's reason when it is aborted. */
  next(run: RunView, signal: AbortSignal): MoveSource;
  /**
   * Called before `next`, once a step, to shorten the history when the request has become too long. Once the run has learnt a limit
   * of a model, it is called again after each summary and each shortening, until there is nothing more to do.
   * @returns `undefined`, at once or later, when the history fits, or when it is too early to try again; other failures are reported
   * in the attempt.
   * @throws the signal's reason when it is aborted; PilotageError `model_unavailable` when the run cannot go on without a summary.
   */
  compact?(run: RunView, signal: AbortSignal): Promise<CompactionAttempt | undefined> | undefined;
}

/** What becomes of a run whose plan has failed: it fails, or is paused. In both cases what has failed can be retried. */
export type OnFailedPlan = 'fail' | 'pause';

/** A decision as programs write it, alone or as a move. It is looked at, and copied as JSON, before it is carried out. */
type Given = Decision | GivenDecision | Move | (Omit<Move, 'decision'> & { readonly decision: GivenDecision });
type GivenSource = Given | Promise<Given> | AsyncGenerator<Delta, Given>;

export type PlannerFunction = (run: RunView, signal: AbortSignal) => MoveSource;
/** A planner, or a function that is one, as programs write them: `asPlanner` makes planners of them. */
export type GivenPlanner =
  | (Omit<Planner, 'next'> & { next(run: RunView, signal: AbortSignal): GivenSource })
  | ((run: RunView, signal: AbortSignal) => GivenSource);

const PLANNER: OptionShape<Planner> = {
  ...({ name: 'any', version: 'any?', wakeMode: 'any?', costless: 'any?', whileAsked: 'any?' } as const),
  ...({ remembers: 'any?', modelDriven: 'any?', onFailedPlan: 'any?', next: 'any', compact: 'any?' } as const),
  ...({ unpriced: 'any?', modelNamed: 'any?', assertOffered: 'any?' } as const),
};
const PLANNER_KEYS = Object.keys(PLANNER);

/** A plain function is a planner. @throws PilotageError `no_planner`, or `invalid_config` for a bad name or wake mode. */
export function asPlanner(planner: GivenPlanner): Planner {
  if (typeof planner === 'function') return plannerOf(planner);
  if (typeof planner?.next === 'function') {
    if (typeof planner.name !== 'string' || planner.name === '') {
      throw new PilotageError('invalid_config', 'The planner has no name. Give it a name, which every run records.');
    }
    // Many a planner keeps its model under that name, and means no `models`.
    assertKnownKeys(`The planner ${planner.name}`, planner, PLANNER_KEYS, ['model'], true);
    const known = planner as Planner;
    resolveWakeMode(known);
    assertOnFailedPlan(`The planner ${planner.name}`, planner.onFailedPlan);
    assertWhileAsked(planner.whileAsked, `The planner ${planner.name}`);
    return known;
  }
  throw new PilotageError(
    'no_planner',
    'The planner is missing. Give a function, or an object with next(run, signal).',
  );
}

/** The same function is the same planner, wherever it is given: agents are told apart by their planners. */
const plannersOf = new WeakMap<GivenPlanner, Planner>();

function plannerOf(next: Extract<GivenPlanner, (...args: never) => unknown>): Planner {
  const found = plannersOf.get(next);
  if (found !== undefined) return found;
  const made = { name: next.name || 'function', next: next as Planner['next'] };
  plannersOf.set(next, made);
  return made;
}

/** @param owner whose it is, for the message. @throws PilotageError `invalid_config` for another word. */
export function assertOnFailedPlan(owner: string, onFailedPlan: string = 'fail'): void {
  if (onFailedPlan === 'fail' || onFailedPlan === 'pause') return;
  throw new PilotageError(
    'invalid_config',
    `${owner} has the onFailedPlan ${JSON.stringify(onFailedPlan)}; use fail or pause.`,
  );
}

/** @throws PilotageError `invalid_config` for a word that is not a wake mode. */
export function resolveWakeMode(planner: Planner): WakeMode {
  const mode: string = planner.wakeMode ?? 'push';
  if (mode === 'push' || mode === 'poll' || mode === 'hybrid') return mode;
  throw new PilotageError(
    'invalid_config',
    `The planner ${planner.name} has the wake mode ${JSON.stringify(mode)}; use push, poll or hybrid.`,
  );
}

/** @param of who has the option, for the message. @throws PilotageError `invalid_config` for a word that is not a rule. */
export function assertWhileAsked(given: WhileAsked | undefined, of: string): void {
  if (given === undefined || WHILE_ASKED.includes(given)) return;
  throw new PilotageError(
    'invalid_config',
    `${of} has whileAsked ${JSON.stringify(given)}; use one of ${WHILE_ASKED.join(', ')}.`,
  );
}

export function isMove(value: Decision | Move): value is Move {
  return typeof value === 'object' && value !== null && 'decision' in value;
}
