/** Carries a run through in this process: shows what happens, obeys Ctrl-C, and says how it ended. */
import type { ReadyConfig } from '#config/ready';
import {
  ceilingOf,
  DECISION_NAMES,
  defined,
  describeThrown,
  type Entry,
  type FinishReason,
  type Limits,
  PilotageError,
  type RunEvent,
} from '#core';
import type { Journal } from '#journal';
import { createRuntime, type PauseNotice, type Run, type RunResult, type Runtime } from '#runtime';
import { foldEntries, type PlanView } from '#state';
import { EventLines } from './event-lines.ts';
import { hint, type Options } from './options.ts';
import { commandsFor, pauseLines, problemText, type Ways } from './pause-lines.ts';
import { PlanSeen } from './plan-lines.ts';
import { planLines, treeLines } from './plan-text.ts';
import { whenFree } from './project.ts';
import { survey } from './survey.ts';
import { codeOfResult, EXIT, type Terminal } from './terminal.ts';
import { count, dollars, fileText, harmless, shortLine, terminalJson, tokenWords } from './text.ts';

export function limitsOf({ maxSteps, maxCalls, maxTokens, maxCostUsd, timeoutMs }: Options): Limits {
  return {
    ...defined({ steps: maxSteps, calls: maxCalls, tokens: maxTokens, costUsd: maxCostUsd }),
    ...(timeoutMs === undefined ? {} : { deadlineAt: Date.now() + timeoutMs }),
  };
}

/** For commands that ask no planner: any will do. */
export const DECIDES_NOTHING: ReadyConfig = { runtime: { planner: survey } };

/** Uses a runtime on the journal, and closes it in every case. */
export async function withRuntime<T>(
  { runtime: made }: ReadyConfig,
  journal: Journal,
  terminal: Terminal,
  use: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  const onFault = (error: unknown): void => terminal.note(`pilotage: ${shortLine(describeThrown(error), 300)}`, 'bad');
  // A command is about its own run, and ends with it: what else is due is left to processes that stay.
  const runtime = createRuntime({ ...made, journal, onFault, goesOn: false });
  try {
    return await use(runtime);
  } finally {
    await runtime.close();
  }
}

export interface Following {
  readonly runtime: Runtime;
  readonly journal: Journal;
  readonly options: Options;
  readonly terminal: Terminal;
  /** Plans are shown when they are made, and when nothing more comes. */
  readonly showsPlans?: boolean;
}

/** Shows the run from journal position `from` on until it ends or is paused. Returns the exit code. */
export async function followRun(run: Run, from: number, following: Following): Promise<number> {
  const { journal, options, terminal, showsPlans = false } = following;
  const interrupt = watchSignals(run, following);
  const seen = new PlanSeen();
  const show = options.json ? showJson(terminal) : showProgress(terminal, seen);
  try {
    if (from > 1) noteOpenStep(seen, await journal.read(run.id, 1, from - 1));
    const showEvent = async (event: RunEvent): Promise<void> => {
      const isOfPlan = isAboutPlan(event);
      if (isOfPlan) for (const entry of await journal.read(run.id, event.seq, 1)) seen.note(entry);
      show.event(event);
      const made = showsPlans && isOfPlan ? seen.view(event.step) : undefined;
      if (made?.growing === false) show.plan(made, planLines);
    };
    let next = from;
    const follow = async (): Promise<RunResult> => {
      for await (const event of run.events({ from: next })) {
        await showEvent(event);
        next = event.seq + 1;
      }
      return run.result();
    };
    const result = await whenFree(terminal, follow);
    const last = showsPlans ? (await run.state()).plan : null;
    if (last !== null) show.plan(last, treeLines);
    if (!options.json) conclude(run.id, result, { options, terminal, streamed: show.streamed() });
    const paused = result.status === 'paused' && interrupt.happened();
    return paused ? EXIT.interrupted : codeOfResult(result);
  } catch (error) {
    if (!PilotageError.is(error, 'runtime_closed')) throw error;
    terminal.note(stoppedText(run, options), 'strong');
    return EXIT.terminated;
  } finally {
    await interrupt.stop();
  }
}

/** The run may be in the middle of a plan that was made before. */
export function noteOpenStep(seen: PlanSeen, entries: readonly Entry[]): void {
  const { open } = foldEntries(entries);
  if (open !== null) seen.note(open.move);
}

/** Its entry makes a plan, or adds to one. */
export function isAboutPlan(event: RunEvent): event is RunEvent<'planner.decision' | 'plan.grown'> {
  if (event.type === 'planner.decision') return event.decisionKind === DECISION_NAMES.call_parallel;
  return event.type === 'plan.grown';
}

function stoppedText({ id }: Run, options: Options): string {
  return `Stopped. Go on with: ${hint('resume', id, options)}`;
}

/** How long what is under way has to end after a SIGTERM. Whoever stops services kills what is still there after 30 s, or 10. */
export const GRACE_MS = 8_000;

/**
 * The first Ctrl-C pauses the run at its next step; the second leaves at once, and the journal has what was done. A SIGTERM gives the run
 * back when what is under way has ended, or its grace is over; any further signal aborts that at once.
 */
function watchSignals(
  run: Run,
  { runtime, options, terminal }: Following,
): { happened(): boolean; stop(): Promise<void> } {
  let happened = false;
  let closing: Promise<void> | undefined;
  const onTerminate = (): void => {
    const { graceMs = GRACE_MS } = options;
    if (closing === undefined && graceMs > 0) {
      const seconds = graceMs / 1_000;
      terminal.note(
        `Stopping. What is under way has ${seconds} s to end; a second signal aborts it at once.`,
        'strong',
      );
    }
    closing = runtime.close({ graceMs: closing === undefined ? graceMs : 0 });
  };
  const onInterrupt = (): void => {
    if (closing !== undefined) {
      onTerminate();
      return;
    }
    if (happened) {
      terminal.note(stoppedText(run, options), 'strong');
      process.exit(EXIT.interrupted);
    }
    happened = true;
    terminal.note('Pausing after the step that is under way. Press Ctrl-C again to stop at once.', 'strong');
    run.pause().catch((error: unknown) => {
      // A run that ends before it can pause says so itself.
      if (!PilotageError.is(error, 'run_ended')) terminal.note(shortLine(describeThrown(error), 300), 'bad');
    });
  };
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onTerminate);
  return {
    happened: () => happened,
    stop: async () => {
      await closing;
      process.off('SIGINT', onInterrupt);
      process.off('SIGTERM', onTerminate);
    },
  };
}

export interface ShownRun {
  event(event: RunEvent): void;
  plan(plan: PlanView, draw: (plan: PlanView) => readonly string[]): void;
  /** The text that the reader of stdout has seen of the last step. */
  streamed(): string;
}

function showJson(terminal: Terminal): ShownRun {
  return {
    event: (event) => terminal.write(`${terminalJson(event)}\n`),
    plan: (plan) => terminal.write(`${terminalJson({ type: 'plan', ...plan })}\n`),
    streamed: () => '',
  };
}

export function showProgress(terminal: Terminal, seen: PlanSeen): ShownRun {
  const lines = new EventLines({ texts: !terminal.isLive, plan: seen });
  let streamed = '';
  /** What of it was streamed in steps before, of which the step is the rest. */
  let beginning = '';
  let step = -1;
  let isLineOpen = false;
  return {
    event: (event) => {
      if (event.type === 'token') {
        if (!terminal.isLive || event.channel !== 'text') return;
        if (event.step !== step) streamed = beginning;
        step = event.step;
        streamed += event.text;
        isLineOpen = !event.text.endsWith('\n');
        terminal.write(harmless(event.text));
        return;
      }
      if (event.type === 'planner.decision') {
        beginning = event.partial === undefined ? '' : streamed;
        // The rest of the reply comes in the same line.
        if (beginning !== '') return;
      }
      if (isLineOpen) terminal.write('\n');
      isLineOpen = false;
      if (event.type === 'token.reset') streamed = beginning;
      for (const { text, tone } of lines.of(event)) terminal.note(text, tone);
    },
    plan: (plan, draw) => {
      for (const text of draw(plan)) terminal.note(text);
    },
    streamed: () => streamed,
  };
}

export interface Conclusion {
  readonly options: Options;
  readonly terminal: Terminal;
  readonly streamed: string;
  /** How its pauses are answered. Default: by commands of their own. */
  readonly ways?: Ways;
}

/** Says how the run ended, or what it waits for. */
export function conclude(id: string, result: RunResult, conclusion: Conclusion): void {
  const { options, terminal, streamed, ways = commandsFor(id, options) } = conclusion;
  terminal.note(totals(result), 'quiet');
  const say = (text: string): void => {
    if (text !== '' && text !== streamed) terminal.write(`${harmless(text).trimEnd()}\n`);
  };
  switch (result.status) {
    case 'finished':
      for (const file of result.files ?? []) terminal.note(fileText(file), 'strong');
      if (result.answer !== undefined) say(result.answer);
      else if (result.reason !== 'goal') terminal.note(endText(result.reason), 'bad');
      return;
    case 'failed':
      terminal.note(`The run failed: ${shortLine(result.error.message, 500)} (${result.error.code})`, 'bad');
      // What was undone cannot go on.
      if (RETRIED.has(result.error.code) && result.error.data?.['undo'] === undefined)
        terminal.note(`Try again what has failed: ${hint('retry', id, options)}`, 'strong');
      return;
    case 'paused':
      for (const text of new Set(result.pauses.map((pause) => (pause.run === id ? (pause.text ?? '') : '')))) say(text);
      for (const { text, tone } of pauseLines(id, result.pauses, ways)) terminal.note(text, tone);
      if (result.problem !== undefined) terminal.note(problemText(result.problem), 'bad');
      return;
    default:
      result satisfies never;
  }
}

/** How runs fail when nodes of their plan have. */
const RETRIED: ReadonlySet<string> = new Set(['plan_failed', 'node_exception', 'node_timeout']);

function endText(reason: FinishReason): string {
  const axis = ceilingOf(reason);
  if (axis === undefined) return `The run ended: ${reason}.`;
  return axis === 'deadline'
    ? `The run ended: its time is over (${reason}).`
    : `The run ended: its limit of ${axis} is used up (${reason}).`;
}

export function showPauses(id: string, pauses: readonly PauseNotice[], options: Options, terminal: Terminal): void {
  for (const { text, tone } of pauseLines(id, pauses, commandsFor(id, options))) terminal.note(text, tone);
}

function totals({ usage }: RunResult): string {
  const { steps, calls, inputTokens, outputTokens, costMicroUsd } = usage;
  const words = [count(steps, 'step'), count(calls, 'call')];
  if (inputTokens + outputTokens > 0) words.push(tokenWords(usage));
  if (costMicroUsd > 0) words.push(dollars(costMicroUsd));
  return words.join(', ');
}
