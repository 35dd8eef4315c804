/** `pilotage fork`, another way from one step of a run on, and what came of it; and `pilotage replay`. */
import { defined, type Outcome, type Step } from '#core';
import { type Divergence, type ForkOptions, foldable, type ReplayedMove, type ReplayReport } from '#runtime';
import {
  compareRuns,
  foldEntries,
  type RunComparison,
  type RunState,
  type RunSummary,
  type StepPair,
  type StepSummary,
} from '#state';
import { followRun, limitsOf, withRuntime } from './follow-run.ts';
import type { Options } from './options.ts';
import { findProject, setUpProject, storedJournal, whenFree, withJournal } from './project.ts';
import { EXIT, type Line, line, type Terminal, UsageError } from './terminal.ts';
import { count, decisionText, dollars, grouped, outcomeText, shortLine, terminalJson } from './text.ts';

/** @returns the exit code: how the fork ended. */
export async function forkCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  return withJournal(storedJournal(options, project, 'write'), async (journal) => {
    const { state: stored } = await whenFree(terminal, () => foldable(journal, id));
    const plan = planOf(stored, options);
    return withRuntime(await setUpProject(options, project, { stored }), journal, terminal, async (runtime) => {
      const fork = await runtime.run(id).fork(plan);
      const { fork: origin } = await fork.state();
      const { step = 0, entries = 0 } = origin ?? {};
      if (!options.json) terminal.note(startText(fork.id, id, step, options), 'strong');
      const code = await followRun(fork, entries + 1, { runtime, journal, options, terminal });
      const comparison = compareRuns(stored, await fork.state());
      if (options.json) terminal.write(`${terminalJson({ type: 'comparison', ...comparison })}\n`);
      else for (const { text } of diffLines(comparison)) terminal.write(`${text}\n`);
      return code;
    });
  });
}

function startText(fork: string, run: string, step: number, { allowEffects }: Options): string {
  const effects = allowEffects ? 'once calls are made' : 'once calls are held back';
  return `⑂ ${fork} is a fork of ${run}: from step ${step + 1} on, ${effects}`;
}

/** Steps and calls are counted from 1 here, and from 0 inside. */
function planOf({ steps }: RunState, options: Options): ForkOptions {
  const { at, goal, allowEffects, result, call } = options;
  const limits = limitsOf(options);
  if (at !== undefined && at > steps.length + 1) {
    throw new UsageError(
      `--at ${at}: the run has taken ${count(steps.length, 'step')}. Give 1 to ${steps.length + 1}.`,
    );
  }
  if (call !== undefined && result === undefined) throw new UsageError('--call goes with --result.');
  if (result !== undefined) assertHasCall(steps, at ?? ownStep(steps), call);
  return {
    effects: allowEffects ? 'allowed' : 'held',
    ...(at === undefined ? {} : { step: at - 1 }),
    ...defined({ goal }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(result === undefined ? {} : { result: { value: result, ...(call === undefined ? {} : { call: call - 1 }) } }),
  };
}

/** The step after the last one that has calls: where a fork begins that names none. */
function ownStep(steps: readonly Step[]): number {
  return steps.findLastIndex(({ calls }) => calls.length > 0) + 2;
}

function assertHasCall(steps: readonly Step[], at: number, call: number | undefined): void {
  const calls = steps[at - 2]?.calls.length ?? 0;
  if (calls === 0)
    throw new UsageError(`--result: there is no call just before step ${at}. Give --at the step after one.`);
  if (call === undefined ? calls === 1 : call <= calls) return;
  throw new UsageError(
    `--result: step ${at - 1} has ${count(calls, 'call')}. Say which with --call, from 1 to ${calls}.`,
  );
}

// Two runs side by side, as a diff: what both did, what only the first did (-), what only the second did (+).

function diffLines(comparison: RunComparison): Line[] {
  const { a, b, steps, sameEnding } = comparison;
  return [
    line('strong', `- ${heading(a)}`),
    line('strong', `+ ${heading(b)}`),
    ...steps.flatMap(stepLines),
    ...(sameEnding
      ? [line('quiet', `  ${endText(a)}`)]
      : [line('bad', `- ${endText(a)}`), line('good', `+ ${endText(b)}`)]),
    line('plain', `  cost    ${costText(a)} → ${costText(b)}`),
  ];
}

function heading({ run, agent, goal }: RunSummary): string {
  return `${run}  ${shortLine(agent, 60)}: ${shortLine(goal, 120)}`;
}

function stepLines({ index, verdict, changes, a, b }: StepPair): Line[] {
  if (verdict === 'same' && a !== undefined) return [line('quiet', `  ${stepText(index, a)}`)];
  const outcome = changes.includes('outcome') || changes.length === 0;
  return [
    ...(a === undefined ? [] : [line('bad', `- ${stepText(index, a, outcome)}`)]),
    ...(b === undefined ? [] : [line('good', `+ ${stepText(index, b, outcome)}`)]),
  ];
}

/** @param withOutcome what the calls came to differs, too, or the other run has no such step. */
function stepText(index: number, { decision, outcomes, error }: StepSummary, withOutcome: boolean = false): string {
  const words = [`step ${index + 1}  ${decisionText(decision)}`];
  if (error !== undefined) words.push(shortLine(error, 60));
  else if (withOutcome && outcomes.length > 0) words.push(outcomesText(outcomes));
  return words.join('  → ');
}

function outcomesText(outcomes: readonly Outcome[]): string {
  return shortLine(outcomes.map(outcomeText).join(', '), 160);
}

function endText({ ending }: RunSummary): string {
  if (ending === null) return 'not ended';
  if (ending.kind === 'failed') return `failed: ${shortLine(ending.error.code, 60)}`;
  const { reason, payload } = ending;
  return payload === undefined ? `ended: ${reason}` : `ended: ${reason} ${shortLine(terminalJson(payload), 160)}`;
}

function costText({ totals }: RunSummary): string {
  const { steps, calls, inputTokens, outputTokens, costMicroUsd } = totals;
  const tokens = inputTokens + outputTokens;
  const words = [count(steps, 'step'), count(calls, 'call')];
  if (tokens > 0) words.push(`${grouped(tokens)} tokens`);
  if (costMicroUsd > 0) words.push(dollars(costMicroUsd));
  return words.join(', ');
}

/** `pilotage replay`: whether a run would be decided in the same way today. @returns the exit code. */
export async function replayCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  return withJournal(storedJournal(options, project, 'look'), async (journal) => {
    const stored = foldEntries(await journal.read(id));
    return withRuntime(await setUpProject(options, project, { stored }), journal, terminal, async (runtime) => {
      const report = await runtime.run(id).replay();
      if (options.json) terminal.write(`${terminalJson(report)}\n`);
      else for (const text of reportLines(report)) terminal.write(`${text}\n`);
      return report.divergence === undefined ? EXIT.goal : EXIT.diverged;
    });
  });
}

function reportLines({ compared, divergence, from }: ReplayReport): string[] {
  const since = from === 0 ? '' : ` from step ${from + 1} on, where the fork begins`;
  if (compared === 0) return [`The run has decided nothing${since}.`];
  if (divergence !== undefined) return divergenceLines(divergence);
  return [compared === 1 ? `The decision agrees${since}.` : `All ${count(compared, 'decision')} agree${since}.`];
}

function divergenceLines({ step, recorded, now }: Divergence): string[] {
  return [
    `Step ${step + 1} would be decided otherwise.`,
    `- recorded  ${moveText(recorded)}`,
    `+ today     ${moveText(now)}`,
  ];
}

function moveText({ decision, error }: ReplayedMove): string {
  const words = decision === undefined ? [] : [decisionText(decision)];
  if (error !== undefined) words.push(`${shortLine(error.code, 60)}: ${shortLine(error.message, 200)}`);
  return words.join('  → ');
}
