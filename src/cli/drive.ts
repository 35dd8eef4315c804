/** Carries a run through in this process: shows what happens, obeys Ctrl-C, and says how it ended. */
import { describeThrown, PilotageError } from '../core/errors.ts';
import type { Limits } from '../core/limits.ts';
import type { Planner } from '../core/planner.ts';
import type { Journal } from '../journal/port.ts';
import { sqliteJournal } from '../journal/sqlite.ts';
import type { PauseNotice, RunResult } from '../runtime/result.ts';
import type { Run } from '../runtime/run.ts';
import { createRuntime, type Runtime } from '../runtime/runtime.ts';
import { workspaceTools } from '../tools/workspace.ts';
import type { ModelChoice } from './choose-model.ts';
import { EventLines } from './event-lines.ts';
import { codeOfResult, EXIT, UsageError } from './exit-code.ts';
import type { Options } from './options.ts';
import { resumeCommand } from './resume-hint.ts';
import { survey } from './survey.ts';
import type { Terminal } from './terminal.ts';
import { count, dollars, harmless, jsonLine, oneLine } from './text.ts';

/** The planner that a run is made with: ReAct on the model, or the fixed survey without one. */
export async function plannerFor(choice: ModelChoice | undefined, options: Options): Promise<Planner> {
  if (choice === undefined) return survey;
  if (options.maxCostMicroUsd !== undefined && options.prices === undefined) {
    throw new UsageError('--max-cost-usd needs --prices: without them the cost of the model is not known.');
  }
  // Loaded only here, so that commands without a model start fast.
  const [{ openaiCompatible }, { react }] = await Promise.all([
    import('../model/openai-compatible.ts'),
    import('../planners/react/react.ts'),
  ]);
  const { prices, chat, textCalls } = options;
  const model = { model: openaiCompatible(choice), toolCalls: textCalls ? ('text' as const) : ('native' as const) };
  return react({ model, converse: chat, ...(prices === undefined ? {} : { prices }) });
}

export function limitsOf({ maxSteps, maxCostMicroUsd, timeoutMs }: Options): Limits {
  return {
    ...(maxSteps === undefined ? {} : { steps: maxSteps }),
    ...(maxCostMicroUsd === undefined ? {} : { costMicroUsd: maxCostMicroUsd }),
    ...(timeoutMs === undefined ? {} : { deadlineAt: Date.now() + timeoutMs }),
  };
}

/** Opens the journal and a runtime, and closes both whatever happens. */
export async function withRuntime<T>(
  options: Options,
  planner: Planner,
  terminal: Terminal,
  use: (runtime: Runtime, journal: Journal) => Promise<T>,
): Promise<T> {
  const tools = workspaceTools({ root: options.workspace });
  const journal = sqliteJournal({ path: options.journal });
  try {
    const onFault = (error: unknown): void => terminal.note(`pilotage: ${oneLine(describeThrown(error), 300)}`, 'bad');
    // A run knows from its start whether it is a turn of a conversation, also when it is resumed.
    const runtime = createRuntime({ planner, tools, journal, memory: { strategy: 'window' }, onFault });
    try {
      return await use(runtime, journal);
    } finally {
      await runtime.close();
    }
  } finally {
    await journal.close();
  }
}

/** Shows the run from journal position `from` on until it ends or is paused. Returns the exit code. */
export async function follow(run: Run, from: number, options: Options, terminal: Terminal): Promise<number> {
  const interrupt = watchInterrupt(run, options, terminal);
  const show = options.json ? showJson(terminal) : showProgress(terminal);
  try {
    for await (const event of run.events({ from })) show.event(event);
    const result = await run.result();
    if (!options.json) conclude(run.id, result, { options, terminal, streamed: show.streamed() });
    const paused = result.status === 'paused' && interrupt.happened();
    return paused ? EXIT.interrupted : codeOfResult(result);
  } finally {
    interrupt.stop();
  }
}

/** The first Ctrl-C pauses the run at its next step; the second leaves at once, and the journal has what was done. */
function watchInterrupt(run: Run, options: Options, terminal: Terminal): { happened(): boolean; stop(): void } {
  let happened = false;
  const onInterrupt = (): void => {
    if (happened) {
      terminal.note(`Stopped. Go on with: ${resumeCommand(run.id, options)}`, 'strong');
      process.exit(EXIT.interrupted);
    }
    happened = true;
    terminal.note('Pausing after the step that is under way. Press Ctrl-C again to stop at once.', 'strong');
    run.pause().catch((error: unknown) => {
      // A run that ends before it can pause says so itself.
      if (!PilotageError.is(error, 'run_ended')) terminal.note(oneLine(describeThrown(error), 300), 'bad');
    });
  };
  process.on('SIGINT', onInterrupt);
  return { happened: () => happened, stop: () => process.off('SIGINT', onInterrupt) };
}

interface Shown {
  event(event: Parameters<EventLines['of']>[0]): void;
  /** The text that the reader of stdout has seen of the last step. */
  streamed(): string;
}

function showJson(terminal: Terminal): Shown {
  return { event: (event) => terminal.write(`${jsonLine(event)}\n`), streamed: () => '' };
}

function showProgress(terminal: Terminal): Shown {
  const lines = new EventLines({ texts: !terminal.isLive });
  let streamed = '';
  let step = -1;
  let isLineOpen = false;
  return {
    event: (event) => {
      if (event.type === 'token') {
        if (!terminal.isLive || event.channel !== 'text') return;
        if (event.step !== step) streamed = '';
        step = event.step;
        streamed += event.text;
        isLineOpen = !event.text.endsWith('\n');
        terminal.write(harmless(event.text));
        return;
      }
      if (isLineOpen) terminal.write('\n');
      isLineOpen = false;
      if (event.type === 'token.reset') streamed = '';
      for (const { text, tone } of lines.of(event)) terminal.note(text, tone);
    },
    streamed: () => streamed,
  };
}

interface Conclusion {
  readonly options: Options;
  readonly terminal: Terminal;
  readonly streamed: string;
}

function conclude(id: string, result: RunResult, { options, terminal, streamed }: Conclusion): void {
  terminal.note(totals(result), 'quiet');
  const say = (text: string): void => {
    if (text !== '' && text !== streamed) terminal.write(`${harmless(text).trimEnd()}\n`);
  };
  switch (result.status) {
    case 'finished':
      if (result.payload !== undefined) say(result.answer);
      else if (result.reason !== 'goal') terminal.note(`The run ended: ${result.reason}.`, 'bad');
      return;
    case 'failed':
      terminal.note(`The run failed: ${oneLine(result.error.message, 500)} (${result.error.code})`, 'bad');
      return;
    case 'paused':
      for (const pause of result.pauses) {
        if (pause.text !== undefined) say(pause.text);
        terminal.note(`${waitsFor(pause)} ${howToGoOn(id, pause, options)}`, 'strong');
      }
      return;
    default:
      result satisfies never;
  }
}

function totals({ usage }: RunResult): string {
  const { steps, calls, inputTokens, outputTokens, costMicroUsd } = usage;
  const words = [count(steps, 'step'), count(calls, 'call')];
  if (inputTokens + outputTokens > 0)
    words.push(`${inputTokens.toLocaleString('en')} tokens in`, `${outputTokens.toLocaleString('en')} out`);
  if (costMicroUsd > 0) words.push(dollars(costMicroUsd));
  return words.join(', ');
}

/** What a pause is about, for a person. */
export function waitsFor(pause: PauseNotice): string {
  const budget = pause.payload?.['budget'];
  if (pause.step === undefined && typeof budget === 'string') return `The limit of ${oneLine(budget, 20)} is used up.`;
  if (pause.reason === 'await_input') return 'The run waits for your message.';
  if (pause.step === undefined) return 'The run is paused.';
  return `The run waits: ${pause.reason}.`;
}

/** The command that answers a pause. */
export function howToGoOn(id: string, pause: PauseNotice, options: Options): string {
  return `Go on with: ${resumeCommand(id, options, ...answerFlags(pause))}`;
}

function answerFlags(pause: PauseNotice): string[] {
  if (pause.step !== undefined) return pause.reason === 'await_input' ? ['--message', '…'] : [];
  const limit = Number(pause.payload?.['limit']);
  switch (pause.payload?.['budget']) {
    case 'steps':
      return ['--max-steps', String(limit * 2)];
    case 'cost':
      return ['--max-cost-usd', String((limit * 2) / 1_000_000)];
    case 'deadline':
      return ['--timeout', '60'];
    default:
      return [];
  }
}
