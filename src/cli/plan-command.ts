/** `pilotage plan`: makes a plan and carries it out, only makes it, or shows the one of a stored run. */
import type { ReadyConfig } from '#config/ready';
import {
  asPlanner,
  type CallParallel,
  type Decision,
  type Delta,
  defined,
  isMove,
  local,
  type Move,
  type Planner,
  type SpokenDelta,
  type Step,
  validateDecision,
} from '#core';
import { memoryJournal } from '#journal';
import { traceOfStep, traceText } from '#planners/htn';
import { wholePauses } from '#runtime';
import { foldEntries, planOf, planOfDecision } from '#state';
import { EventLines } from './event-lines.ts';
import { limitsOf, showPauses, withRuntime } from './follow-run.ts';
import type { Options } from './options.ts';
import { pauseNotices } from './pause-lines.ts';
import { PlanSeen } from './plan-lines.ts';
import { planLines } from './plan-text.ts';
import { findProject, openJournal, setUpProject, userName, withJournal } from './project.ts';
import { startRun } from './run-command.ts';
import { codeOfResult, EXIT, type Terminal, UsageError } from './terminal.ts';
import { decisionText, harmless, terminalJson } from './text.ts';

/** @returns the exit code. */
export async function planCommand(goal: string, options: Options, terminal: Terminal): Promise<number> {
  const { run, dryRun } = options;
  if (run !== undefined) {
    if (dryRun) throw new UsageError('--dry-run is for a goal, --run for a run that is stored.');
    return storedPlan(run, options, terminal);
  }
  const project = await findProject(options);
  const ready = await setUpProject(options, project, { plans: true });
  if (dryRun) return dryPlan(goal, ready, options, terminal);
  return startRun({ goal, project, ready, showsPlans: true }, options, terminal);
}

async function storedPlan(id: string, options: Options, terminal: Terminal): Promise<number> {
  const { state, pauses } = await withJournal(await openJournal(options, 'look'), async (journal) => {
    const read = foldEntries(await journal.read(id));
    return { state: read, pauses: await wholePauses(pauseNotices(read), read.identity, { journal }) };
  });
  const plan = planOf(state);
  if (plan === undefined) throw new UsageError('The run has carried out no plan; inspect shows what it did.');
  if (options.json) terminal.write(`${terminalJson(plan)}\n`);
  else {
    const made = (state.open?.move.step === plan.step ? state.open.move : state.steps[plan.step]) ?? {};
    for (const line of [...planLines(plan), ...traceLines(made)]) terminal.write(`${line}\n`);
    if (state.ending === null) showPauses(id, pauses, options, terminal);
  }
  return EXIT.goal;
}

// A plan without a run: the planner is asked on a journal that nobody keeps, and nothing that it decides is carried out.

/** @returns the exit code. */
async function dryPlan(goal: string, ready: ReadyConfig, options: Options, terminal: Terminal): Promise<number> {
  if (options.session !== undefined) throw new UsageError('--session is for runs that are stored: not with --dry-run.');
  const { hints } = ready;
  const { dry, runtime: made } = driedOut(ready.runtime);
  return withJournal(memoryJournal(), (journal) =>
    withRuntime({ runtime: made }, journal, terminal, async (runtime) => {
      const run = await runtime.start(goal, {
        identity: local(userName()),
        limits: limitsOf(options),
        conversation: false,
        ...(hints === undefined ? {} : { context: { hints } }),
      });
      const lines = new EventLines({ texts: false, plan: new PlanSeen() });
      for await (const event of run.events()) {
        if (OF_THE_RUN.has(event.type)) continue;
        for (const { text, tone } of lines.of(event)) terminal.note(text, tone);
      }
      const { decided } = dry;
      if (decided !== undefined) for (const text of shown(decided, options)) terminal.write(`${text}\n`);
      return codeOfResult(await run.result());
    }),
  );
}

/** The default agent with a planner that only makes a plan: that of the configuration, or else the first of its agents. */
function driedOut({ planner, agents = [], ...rest }: ReadyConfig['runtime']): {
  readonly dry: DryPlanner;
  readonly runtime: ReadyConfig['runtime'];
} {
  const [first] = agents;
  if (planner !== undefined) {
    const dry = new DryPlanner(planner);
    return { dry, runtime: { ...rest, agents, planner: dry } };
  }
  if (first === undefined)
    throw new UsageError(
      'The configuration has nobody who could make a plan. Give it a planner, or an agent in `agents`.',
    );
  const { name, tools, limits, readArgs } = first;
  const dry = new DryPlanner(asPlanner(first.planner));
  return { dry, runtime: { ...rest, agents: [{ name, planner: dry, tools, ...defined({ limits, readArgs }) }] } };
}

/** Events of a stored run, which a dry run does not show. */
const OF_THE_RUN: ReadonlySet<string> = new Set(['run.started', 'planner.decision', 'planner.finish']);

function shown(move: Move, { json }: Options): readonly string[] {
  const { decision } = move;
  const plan = planOfDecision(decision);
  if (json) return [terminalJson(plan ?? { decision })];
  const lines = plan === undefined ? [`No plan, but one decision: ${decisionText(decision)}`] : planLines(plan);
  return [...lines, ...traceLines(move)];
}

/** Asks another planner for one decision, and finishes in place of it. */
class DryPlanner implements Planner {
  readonly name: string;
  readonly modelDriven: boolean;
  readonly #inner: Planner;
  #decided: Move | undefined;

  constructor(inner: Planner) {
    this.name = inner.name;
    this.modelDriven = inner.modelDriven === true;
    this.#inner = inner;
  }

  /** What the other planner decided, also as far as it had come when it failed. */
  get decided(): Move | undefined {
    return this.#decided;
  }

  async *next(...asked: Parameters<Planner['next']>): AsyncGenerator<SpokenDelta, Move> {
    const source = this.#inner.next(...asked);
    const answer = Symbol.asyncIterator in source ? yield* this.#spoken(source) : await source;
    const move = isMove(answer) ? answer : { decision: answer };
    // What cannot be carried out is judged by the loop, which may ask again.
    if (move.fault !== undefined || !isValid(move.decision)) return move;
    this.#decided = move;
    return move.decision.kind === 'finish' ? move : { ...move, decision: { kind: 'finish', reason: 'goal' } };
  }

  /** Keeps the nodes of a plan that grows; everything else is passed on. */
  async *#spoken(source: AsyncGenerator<Delta, Decision | Move>): AsyncGenerator<SpokenDelta, Decision | Move> {
    let grown: CallParallel | undefined;
    try {
      for (;;) {
        const { value, done } = await source.next();
        if (done === true) return value;
        if (value.type === 'branches') {
          const { plan, branches } = value;
          grown = { kind: 'call_parallel', plan, branches: [...(grown?.branches ?? []), ...branches] };
          this.#decided = { decision: grown };
        } else yield value;
      }
    } finally {
      await source.return({ decision: { kind: 'finish', reason: 'cancelled' } });
    }
  }
}

function isValid(decision: Decision): boolean {
  try {
    validateDecision(decision);
    return true;
  } catch {
    return false;
  }
}

/** How a plan was found by decomposition, with a blank line before it. None when the plan was made in another way. */
export function traceLines(step: Pick<Step, 'provenance'>): readonly string[] {
  const trace = traceOfStep(step);
  if (trace === undefined || trace.nodes.length === 0) return [];
  return ['', 'decomposition:', ...harmless(traceText(trace)).split('\n')];
}
