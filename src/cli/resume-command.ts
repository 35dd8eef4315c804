/** `pilotage resume`: a paused run, one whose process died, or one that has ended and only shows its answer again. */
import type { Journal } from '../journal/port.ts';
import { resultOf } from '../runtime/result.ts';
import type { Run } from '../runtime/run.ts';
import { foldEntries, type RunState } from '../view/run-state.ts';
import { chooseModel } from './choose-model.ts';
import { follow, howToGoOn, limitsOf, plannerFor, waitsFor, withRuntime } from './drive.ts';
import { EXIT, UsageError } from './exit-code.ts';
import { openJournal } from './open-journal.ts';
import type { Options } from './options.ts';
import { survey } from './survey.ts';
import type { Terminal } from './terminal.ts';
import { oneLine } from './text.ts';

/** @returns the exit code. */
export async function resumeCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const stored = await storedState(id, options);
  const usesModel = stored.planner !== survey.name;
  const choice = usesModel ? chooseModel(options, process.env) : undefined;
  if (usesModel && choice === undefined && stored.ending === null) {
    throw new UsageError(
      'The run was started with a model. Give --model and --base-url, or set them in the environment.',
    );
  }
  const planner = await plannerFor(choice, options);
  if (stored.ending === null && planner.name !== stored.planner) {
    throw new UsageError(
      `The run was started by the planner ${oneLine(stored.planner, 60)}, which only its own program can go on with.`,
    );
  }
  return withRuntime(options, planner, terminal, async (runtime, journal) => {
    const run = runtime.run(id);
    const state = await run.state();
    if (state.ending !== null) {
      if (isAsking(options)) throw new UsageError('The run has ended: it takes no message and no limit any more.');
      return follow(run, state.head, options, terminal);
    }
    const unanswered = unansweredPause(state, options);
    if (unanswered !== undefined) {
      terminal.note(`${waitsFor(unanswered)} ${howToGoOn(id, unanswered, options)}`, 'strong');
      return EXIT.paused;
    }
    await goOn(run, state, options, journal);
    return follow(run, state.head + 1, options, terminal);
  });
}

function isAsking(options: Options): boolean {
  return options.message !== undefined || Object.keys(limitsOf(options)).length > 0;
}

async function storedState(id: string, options: Options): Promise<RunState> {
  const journal: Journal = openJournal(options);
  try {
    return foldEntries(await journal.read(id));
  } finally {
    await journal.close();
  }
}

/** A pause that waits for words of somebody, when none were given. */
function unansweredPause(state: RunState, { message }: Options): ReturnType<typeof pausesOf>[number] | undefined {
  if (message !== undefined) return undefined;
  return pausesOf(state).find(({ step, reason }) => step !== undefined && reason === 'await_input');
}

function pausesOf(state: RunState): Extract<ReturnType<typeof resultOf>, { status: 'paused' }>['pauses'] {
  const result = resultOf(state);
  return result?.status === 'paused' ? result.pauses : [];
}

async function goOn(run: Run, state: RunState, options: Options, journal: Journal): Promise<void> {
  const { message } = options;
  const limits = limitsOf(options);
  const raise = Object.keys(limits).length === 0 ? {} : { limits };
  const [pause] = state.pauses;
  if ('limits' in raise && (pause === undefined || pause.step !== undefined)) {
    throw new UsageError('Limits can be changed only while a run is paused between two steps: interrupt it first.');
  }
  if (pause?.step !== undefined) {
    return run.resume({ token: pause.token, ...(message === undefined ? {} : { payload: { message } }) });
  }
  if (message !== undefined) await run.steer('USER_MESSAGE', { message });
  if (pause !== undefined) return run.resume({ token: pause.token, ...raise });
  // The process ended before it could obey a Ctrl-C: the pause that is still asked for is answered with it.
  const isPauseWaiting = (await journal.inbox(run.id)).some(({ type }) => type === 'PAUSE');
  return isPauseWaiting ? run.steer('RESUME') : run.resume();
}
