/**
 * A planner that has a model write a whole plan: look up, render, pick a model, call, parse, validate, verify, hand over. It
 * keeps nothing of a run: what was planned, and with which tries, stands in the run's own journal.
 */
import {
  asJson,
  assertIdentity,
  type Branch,
  branchesOf,
  branchId,
  CEILING_REASONS,
  type Decision,
  type Delta,
  defined,
  FINISH_TOOL,
  type Finish,
  type FinishReason,
  isPlan,
  isTaskTool,
  MESSAGE_TOOL,
  type Move,
  type PlanFault,
  type Planner,
  type Remark,
  type RunView,
  type SpokenDelta,
  type Usage,
} from '#core';
import { askFallback, asksModels } from '#planners';
import { checkPlan, faultsAsJson, freshPlanId, policyFaults, type ReadyStep } from '#plans';
import { decisionOf } from './judge.ts';
import { type MadePlan, makePlan, type NoPlan } from './make-plan.ts';
import { type PipelineOptions, type Setup, setUpPipeline } from './options.ts';
import { type GoalProgress, phaseOf } from './phase.ts';
import { PlanDraft } from './plan-draft.ts';
import { promptFor } from './prompt.ts';
import { linesAsTheyCome, wholeReplies } from './replies.ts';
import type { PlanMaking, Prompt } from './request.ts';
import { Tries } from './tries.ts';

/** Raised by hand when a run that was started before should not go on unasked. */
const VERSION = 'pipeline.1';

/** @throws PilotageError `invalid_config` for a value that is not a model, and for wrong options. */
export function pipeline(options: PipelineOptions): Planner {
  const setup = setUpPipeline(options);
  const { stream = false, name = 'pipeline', version = VERSION, onFailedPlan } = options;
  return Object.freeze({
    name,
    version,
    ...defined({ onFailedPlan }),
    wakeMode: 'push',
    whileAsked: 'keep',
    modelDriven: true,
    ...asksModels([...setup.pool.models, setup.outline, setup.judge], [setup.fallback]),
    next: (run: RunView, signal: AbortSignal) => {
      const move = moveOf(setup, run, signal);
      return stream || run.streaming ? move : lastOf(move);
    },
  } satisfies Planner);
}

/** The move, without what is said on the way. */
async function lastOf(deltas: AsyncGenerator<Delta, Move>): Promise<Move> {
  for (;;) {
    const { value, done } = await deltas.next();
    if (done === true) return value;
  }
}

async function* moveOf(setup: Setup, run: RunView, signal: AbortSignal): AsyncGenerator<Delta, Move> {
  signal.throwIfAborted();
  assertIdentity(run.identity);
  const phase = phaseOf(run, setup.options.replans, setup.fallback?.name);
  switch (phase.kind) {
    case 'finish':
      return { decision: phase.decision };
    case 'fallback':
      return yield* giveUp({ decision: refusedPlan('no_path', 'pipeline', []) }, setup, run, signal);
    case 'spent': {
      const { faults, decision, failed } = phase;
      if (failed !== undefined && setup.fallback === undefined) throw failed;
      return yield* giveUp(failedMove(setup, { because: 'exhausted', faults }, decision), setup, run, signal);
    }
    case 'plan':
      return yield* planMove(phase.work, setup, run, signal);
    default:
      return phase satisfies never;
  }
}

async function* planMove(
  work: GoalProgress,
  setup: Setup,
  run: RunView,
  signal: AbortSignal,
): AsyncGenerator<Delta, Move> {
  const prompt = await promptFor(setup, run, work, signal);
  await setup.ready();
  const making = begin(setup, run, work, prompt, signal);
  making.tries.remarks.push(...prompt.remarks);
  const draft = new PlanDraft(freshPlanId(run), making);
  const ask = setup.options.stream === true ? linesAsTheyCome(making, draft) : wholeReplies(making);
  const made = yield* makePlan(making, ask);
  await setup.saved();
  if (made.kind === 'plan') {
    const decision = made.plan === undefined ? draft.decision : decisionOf(made.plan, making);
    return { decision, ...notesOf(making, made) };
  }
  if (draft.size > 0) {
    // What was given runs already. The plan is closed with it, and what is missing is planned when that has ended.
    const message = `The plan did not become whole: ${shownFaults(made.faults, setup)}`;
    return { decision: draft.decision, fault: { code: 'plan_invalid', message }, ...notesOf(making) };
  }
  const { usage, remarks: told = [] } = notesOf(making);
  const { away, tight } = making.tries;
  const ending = endWithout(made, making);
  // One of the models may still give the plan, when it is there again, or may be paid again, unless somebody else does.
  const passing = { exhausted: away, ceiling: tight, policy: undefined }[made.because];
  if (passing !== undefined && setup.fallback === undefined) {
    return withNotes({ decision: ending, fault: passing.toJSON() }, told, usage);
  }
  const failed = failedMove(setup, made, ending);
  return yield* giveUp(withNotes(failed, told, usage), setup, run, signal);
}

type Without = Extract<MadePlan, { kind: 'none' }>;

function endWithout(made: Without, making: PlanMaking): Finish {
  const reason = reasonOf(made, making);
  const { metadata, ...ending } = refusedPlan(reason, `pipeline.${made.because}`, redacted(made.faults, making.setup));
  const { refusal } = making.tries;
  return { ...ending, metadata: reason === 'refused' ? { ...metadata, ...defined({ refusal }) } : { ...metadata } };
}

/** A limit ends the run in its own words; so do models all of which have refused. */
function reasonOf({ because, faults }: Without, { tries }: PlanMaking): FinishReason {
  if (because === 'ceiling') return CEILING_REASONS[tries.tight?.data?.['axis'] === 'cost' ? 'cost' : 'tokens'];
  const isRefused = faults.length > 0 && faults.every(({ code }) => code === 'model_refused');
  return isRefused ? 'refused' : 'no_path';
}

function begin(setup: Setup, run: RunView, work: GoalProgress, prompt: Prompt, signal: AbortSignal): PlanMaking {
  const { maxSteps, internal, concurrency } = setup.options;
  const tries = new Tries(setup, run, prompt.template, signal);
  return { setup, run, signal, work, maxSteps, ...defined({ internal, concurrency }), prompt, tries };
}

/** What the making of the plan leaves beside it: every try, what all of them used, and who made it. */
function notesOf({ tries, prompt }: PlanMaking, made?: Extract<MadePlan, { kind: 'plan' }>): Omit<Move, 'decision'> {
  const { usage, remarks } = tries;
  const by = made === undefined ? {} : { model: made.model.name };
  return {
    remarks,
    provenance: { ...by, template: prompt.template.id, templateVersion: prompt.template.version, tries: tries.count },
    ...defined({ usage }),
  };
}

function withNotes(move: Move, before: readonly Remark[], usage: Usage | undefined): Move {
  const remarks = [...before, ...(move.remarks ?? [])];
  return { ...move, remarks, ...defined({ usage }) };
}

/** There is no plan: how the run ends, unless somebody takes over. */
function failedMove(
  setup: Setup,
  { because, faults }: { readonly because: NoPlan; readonly faults: readonly PlanFault[] },
  decision: Finish,
): Move {
  const planner = setup.fallback?.name;
  const remark: Remark<'plan.fallback'> = {
    type: 'plan.fallback',
    because,
    faults: redacted(faults, setup),
    ...defined({ planner }),
  };
  return { decision, remarks: [remark] };
}

async function* giveUp(ending: Move, setup: Setup, run: RunView, signal: AbortSignal): AsyncGenerator<Delta, Move> {
  const { fallback, options } = setup;
  return fallback === undefined ? ending : yield* fallBack(fallback, ending, run, signal, options);
}

function redacted(faults: readonly PlanFault[], { redact }: Setup): readonly PlanFault[] {
  return faults.map((fault) => ({ ...fault, message: redact(fault.message) }));
}

const MAX_SHOWN = 5;

function shownFaults(faults: readonly PlanFault[], setup: Setup): string {
  const shown = redacted(faults.slice(0, MAX_SHOWN), setup).map(({ message }) => message);
  return [...shown, ...(faults.length > MAX_SHOWN ? [`And ${faults.length - MAX_SHOWN} more.`] : [])].join(' ');
}

// The planner that takes over when the models gave no plan. Its plan is checked like theirs, and forbidden calls stay forbidden.

/**
 * Its move, marked as its own. It is checked before anything of it runs, so what it says on the way is passed on, and what it
 * plans on the way is not: the move has that too.
 * @param before what led to it: remarks and usage.
 */
async function* fallBack(
  fallback: Planner,
  before: Move,
  run: RunView,
  signal: AbortSignal,
  options: PipelineOptions,
): AsyncGenerator<SpokenDelta, Move> {
  const move = yield* spokenOnly(askFallback(fallback, before, run, signal));
  signal.throwIfAborted();
  if (move.fault !== undefined) return move;
  const invalid = planFaults(move.decision, run, options);
  if (invalid.length > 0) return { ...move, decision: refusedPlan('no_path', 'pipeline.fallback', invalid) };
  const forbidden = await forbiddenIn(move.decision, run, signal);
  if (forbidden.length === 0) return move;
  return { ...move, decision: refusedPlan('constraints_conflict', 'pipeline.policy', forbidden) };
}

async function* spokenOnly(deltas: AsyncGenerator<Delta, Move>): AsyncGenerator<SpokenDelta, Move> {
  try {
    for (;;) {
      const { value, done } = await deltas.next();
      if (done === true) return value;
      if (value.type !== 'branches') yield value;
    }
  } finally {
    await deltas.return(undefined as never);
  }
}

const MAX_FAULTS = 50;

/** A clear end, with what is wrong. */
function refusedPlan(reason: Finish['reason'], via: string, faults: readonly PlanFault[]): Finish {
  return { kind: 'finish', reason, metadata: { via, faults: faultsAsJson(faults.slice(0, MAX_FAULTS)) } };
}

/** Only for plans: the runtime tells the planner of other calls by their outcomes. */
function planFaults(
  decision: Decision,
  { tools }: RunView,
  { internal, maxSteps }: PipelineOptions,
): readonly PlanFault[] {
  if (!isPlan(decision)) return [];
  const { branches, plan: planId } = decision;
  const steps = branches.filter(isOurs).map((branch) => asJson(stepOf(branch, branches.indexOf(branch))));
  const rules = {
    tools,
    ...defined({ internal, maxSteps }),
  };
  const checked = checkPlan({ planId, steps }, rules);
  return 'faults' in checked ? checked.faults : [];
}

function forbiddenIn(decision: Decision, run: RunView, signal: AbortSignal): Promise<readonly PlanFault[]> {
  const steps = branchesOf(decision).flatMap((branch, index) => (isMade(branch) ? [stepOf(branch, index)] : []));
  return policyFaults({ steps }, run, signal);
}

/** A call that is refused already is never made. */
function isMade({ refusal }: Branch): boolean {
  return refusal === undefined;
}

/** Tasks are for the runtime to judge. */
function isOurs(branch: Branch): boolean {
  return isMade(branch) && !isTaskTool(branch.tool);
}

function stepOf(branch: Branch, index: number): ReadyStep {
  const { tool, args, after = [], behind, when } = branch;
  const id = branchId(branch, index);
  const placed = {
    id,
    input: args,
    after,
    ...defined({ behind }),
    ...(when === undefined ? {} : { when: { step: when.branch, equals: when.equals } }),
  };
  if (tool === MESSAGE_TOOL) return { ...placed, type: 'message' };
  if (tool === FINISH_TOOL) return { ...placed, type: 'finish' };
  return { ...placed, type: 'tool', toolId: tool };
}
