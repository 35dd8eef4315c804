/** The events of a run as one stream, with those of the tasks below it where somebody asks for them. */
import { defined, type RunEvent, type TaskStep } from '#core';
import {
  answerable,
  applyEntry,
  event,
  eventsOf,
  foldEntries,
  isPaused,
  type Redact,
  type RunState,
  redacted,
  wakesByTasks,
} from '#state';
import { turn } from '../calls/large-values.ts';
import { type Backlog, Follower, type FollowOptions } from './follow.ts';
import { admitted, assertMayRead, type HandleOptions } from './gate.ts';
import { passingEvent } from './passing-events.ts';
import type { RunHost } from './run-host.ts';
import type { EventOptions, PageOptions } from './run-options.ts';
import { type TaskPlace, TasksBelow } from './tasks-below.ts';

export interface RunEvents {
  /** The journal position of the run's first event, from 1. */
  readonly from: number;
  readonly redact?: Redact;
  /** The events of tasks come too. */
  readonly tasks?: boolean;
  /** The stream goes on while the run is paused, until it has ended. */
  readonly overPauses?: boolean;
  /** False: what is recorded by now, and no more. */
  readonly follow?: boolean;
  /** Is told of the events of each entry of the run, before they come. */
  readonly onRecorded?: (events: readonly RunEvent[]) => void;
}

/** Reads the events of a run. Nothing is read before the first `next()` of `follow()`. */
export function followEvents(host: RunHost, run: string, options: RunEvents): Follower<RunEvent> {
  const { from, redact, overPauses = false, tasks = false, follow = true, onRecorded } = options;
  return new Follower<RunEvent>({
    ...host.sourcesOf(run),
    ...toldWith(redact, from, onRecorded),
    onCaughtUp: (state) => host.fleet.remind(state),
    // With tasks all of it is read: those that were started before have no other place.
    ...(from > 1 && !tasks ? { begin: () => host.deps.states.of(run, from - 1) } : {}),
    ...(host.showsTasks
      ? { beside: (hear, state) => host.watchTasks(state, (progress) => hear({ type: 'progress', progress })) }
      : {}),
    // The planner waits in its own pause, so that only its tasks can be seen to move.
    isOver: overPauses
      ? ({ ending }) => ending !== null
      : (state) => isSettled(state) && !(host.showsTasks && host.showsTasksOf(state) && wakesByTasks(state)),
    onOver: (state) => (state.ending === null ? shownTo(redact, [pausedEvent(state)]) : []),
    ...(tasks ? { below: (backlog, onNews) => tasksBelow({ host, redact, backlog }, from, () => [], onNews) } : {}),
    ...(follow ? {} : { tokens: false, onPassing: () => [], onOver: () => [], isOnlyThere: true }),
  });
}

/** Recorded events, and the position where the next page begins. */
export interface EventPage {
  readonly events: readonly RunEvent[];
  readonly next: number;
}

/** The events of at most `limit` entries from position `from` on, as far as the run has come. */
export async function recordedEvents(
  { journal, states }: Pick<RunHost['deps'], 'journal' | 'states'>,
  run: string,
  { from = 1, limit = DEFAULT_PAGE }: PageOptions,
): Promise<EventPage> {
  const entries = await journal.read(run, from, limit);
  let state = from === 1 || entries.length === 0 ? undefined : await states.of(run, from - 1);
  const events: RunEvent[] = [];
  for (const entry of entries) {
    events.push(...eventsOf(entry, state));
    if (state === undefined) state = foldEntries([entry]);
    else applyEntry(state, entry);
  }
  return { events, next: from + entries.length };
}

const DEFAULT_PAGE = 500;

/** The run that goes on where this one has ended. */
export function nextRunOf(state: RunState | undefined): string | undefined {
  const ending = state?.ending;
  return ending?.kind === 'finished' ? ending.successor?.run : undefined;
}

/**
 * The events of the run, and of the runs that go on where it has ended, as far as they may be read.
 * @param isAdmitted true: the gate was asked about the run itself just now.
 */
export async function* conversationEvents(
  host: RunHost,
  run: string,
  { from = 1, signal, ...rest }: EventOptions,
  user: HandleOptions,
  isAdmitted = false,
): AsyncGenerator<RunEvent, void> {
  const { as, gate } = user;
  const isLeft = (): boolean => signal?.aborted === true;
  const follower = followEvents(host, run, { from, ...rest });
  const stop = (): void => follower.stop();
  signal?.addEventListener('abort', stop);
  try {
    if (isBegunHere(host, run, { from, ...rest })) {
      follower.open();
      await turn();
    }
    await assertMayRead(host, run, defined({ as, gate: isAdmitted ? undefined : gate }));
    if (isLeft()) return;
    yield* admitted(follower.follow(), run, gate);
  } finally {
    signal?.removeEventListener('abort', stop);
    follower.close();
  }
  const next = nextRunOf(follower.state);
  if (isLeft() || next === undefined || (await gate?.mayRead(next)) === false) return;
  yield* conversationEvents(host, next, { ...rest, ...defined({ signal }) }, user, true);
}

/**
 * Whether a run is read from its beginning on that this process drives. It may just have begun: then it is listened to at once, and read when its planner was
 * asked, and that of each other run that has begun in this turn of the event loop. Models take longer than it does to read.
 */
function isBegunHere({ fleet }: RunHost, run: string, { from = 1, tasks, follow }: EventOptions): boolean {
  return from === 1 && tasks !== true && follow !== false && fleet.driven(run) !== undefined;
}

/** Whether nothing more comes until somebody answers a pause. */
export function isSettled(state: RunState): boolean {
  return state.ending !== null || isPaused(state);
}

/** What a reader needs of every run in its stream. */
interface Reader {
  readonly host: RunHost;
  readonly redact: Redact | undefined;
  readonly backlog: Backlog;
}

/** The tasks that lead to a run. They are known once its first entry was read. */
type Path = () => readonly TaskStep[];

function tasksBelow(reader: Reader, from: number, above: Path, onNews: () => void): TasksBelow<RunEvent> {
  return new TasksBelow<RunEvent>({
    from,
    onNews,
    read: (place, told, onNewsOfTask) => followTask(reader, place, { told, above, onNews: onNewsOfTask }),
  });
}

function followTask(
  reader: Reader,
  { task: run, step, call }: TaskPlace,
  { told, above, onNews }: { readonly told: number; readonly above: Path; readonly onNews: () => void },
): Follower<RunEvent> {
  const { host, redact, backlog } = reader;
  const { tokens, onEntry, onPassing } = toldWith(redact, told + 1);
  let path: readonly TaskStep[] = [];
  const placed = (events: readonly RunEvent[]): readonly RunEvent[] => events.map((each) => ({ ...each, path }));
  return new Follower<RunEvent>({
    ...host.sourcesOf(run),
    ...{ tokens, backlog, onNews },
    onEntry: (entry, before) => {
      if (entry.kind === 'started') path = Object.freeze([...above(), { run, step, call, agent: entry.agent }]);
      return placed(onEntry(entry, before));
    },
    onPassing: (notice, state) => placed(onPassing(notice, state)),
    // Whether it goes on after it has ended is for the run above to say.
    isOver: ({ ending, head }) => ending !== null && head > told,
    below: (_, onNewsBelow) => tasksBelow(reader, told + 1, () => path, onNewsBelow),
  });
}

function toldWith(
  redact: Redact | undefined,
  from: number,
  onRecorded?: RunEvents['onRecorded'],
): Pick<FollowOptions<RunEvent>, 'onEntry' | 'onPassing' | 'tokens'> {
  return {
    tokens: redact === undefined,
    onEntry: (entry, before) => {
      if (entry.seq < from) return [];
      const events = shownTo(redact, eventsOf(entry, before));
      onRecorded?.(events);
      return events;
    },
    onPassing: (notice, state) =>
      notice.type === 'progress' || redact === undefined ? passingEvent(notice, state) : [],
  };
}

function shownTo(redact: Redact | undefined, events: readonly RunEvent[]): readonly RunEvent[] {
  return redact === undefined ? events : events.map((each) => redacted(each, redact));
}

function pausedEvent(state: RunState): RunEvent {
  const at = { seq: state.head, at: state.updatedAt };
  return event('run.paused', at, state.identity, { pauses: answerable(state) });
}
