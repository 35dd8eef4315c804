/** A handle of one run. It holds no state: any process with the journal can make one. */
import type { Control, ControlType } from '../core/control.ts';
import type { Entry } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import type { RunEvent } from '../core/event.ts';
import type { JsonObject } from '../core/json.ts';
import type { Limits } from '../core/limits.ts';
import type { Journal } from '../journal/port.ts';
import { event, eventsOf } from '../view/events.ts';
import { type Redact, redacted } from '../view/redact.ts';
import { foldEntries, isPaused, nextStep, type RunState } from '../view/run-state.ts';
import { Follower } from './follow.ts';
import type { Notice, NoticeHub } from './notices.ts';
import { type RunResult, resultOf } from './result.ts';

export interface RunPorts {
  readonly journal: Journal;
  readonly hub: NoticeHub;
  isDriven(): boolean;
  /** The state in which this process lets go of the run; `undefined` when it does not drive it. */
  settled(): Promise<RunState> | undefined;
  /** Stores a control and sees that somebody drives the run. */
  signal(control: Control): Promise<void>;
  /** Drives the run here, unless somebody else does. */
  drive(): Promise<void>;
}

export interface EventOptions {
  /** Journal position. Default 1. */
  readonly from?: number;
  /**
   * Every text of an event's payload passes through it before this reader gets the event; the journal keeps it whole. What
   * it throws ends the stream. Tokens are left out, as a secret may be cut in two by them; the step's decision has the text.
   */
  readonly redact?: Redact;
}

export interface Answer {
  /** Which pause; needed only when several are open. */
  readonly token?: string;
  /** What the planner gets as the pause's outcome. */
  readonly payload?: JsonObject;
}

export class Run {
  readonly id: string;
  readonly #ports: RunPorts;

  constructor(id: string, ports: RunPorts) {
    this.id = id;
    this.#ports = ports;
  }

  /**
   * The run's events from journal position `from` (default 1) on, in order. The stream ends when the run has ended or is
   * paused. Asking for events is what turns token streaming on.
   */
  events(options: EventOptions = {}): AsyncGenerator<RunEvent, void> {
    const { from = 1, redact } = options;
    const shown = (events: readonly RunEvent[]): readonly RunEvent[] =>
      redact === undefined ? events : events.map((event) => redacted(event, redact));
    return new Follower<RunEvent>({
      ...this.#sources(redact === undefined),
      onEntry: (entry, before) => (entry.seq < from ? [] : shown(eventsOf(entry, before))),
      onPassing: (notice, state) => (redact === undefined ? passingEvent(notice, state) : []),
      isOver: isSettled,
    }).follow();
  }

  /** Waits until the run has ended or is paused: the fold of the same stream. @throws PilotageError `run_not_found`. */
  async result(): Promise<RunResult> {
    const driven = await this.#ports.settled();
    const own = driven === undefined ? undefined : resultOf(driven);
    if (own !== undefined) return own;
    const follower = new Follower<never>({
      ...this.#sources(false),
      onEntry: () => [],
      onPassing: () => [],
      isOver: isSettled,
    });
    for await (const _ of follower.follow());
    const result = follower.state === undefined ? undefined : resultOf(follower.state);
    if (result === undefined)
      throw new PilotageError('run_not_found', `The run ${this.id} has neither ended nor paused.`);
    return result;
  }

  /** The state as the journal has it now. @throws PilotageError `run_not_found`. */
  async state(): Promise<RunState> {
    return foldEntries(await this.#ports.journal.read(this.id));
  }

  /**
   * Goes on: answers the open pause if there is one, and drives the run here if nobody does. A run that was cut off by a
   * crash just goes on.
   * @throws PilotageError `run_not_found`, `run_ended`, or `pause_not_found` for an answer to a pause that is not open.
   */
  async resume(answer: Answer & { readonly limits?: Limits } = {}): Promise<void> {
    const { limits, ...rest } = answer;
    const given = Object.keys(answer).length > 0;
    // An answer that was stored, and that no process has taken yet, is all that the run waits for.
    if (!given && (await this.#ports.journal.inbox(this.id)).length > 0) return this.#ports.drive();
    const { pauses, ending } = await this.state();
    if (ending !== null) throw new PilotageError('run_ended', `The run ${this.id} has ended.`);
    if (pauses.length === 0 && !given) return this.#ports.drive();
    const payload = limits === undefined ? rest.payload : { ...rest.payload, limits: { ...limits } };
    return this.#answer('RESUME', { ...rest, ...(payload === undefined ? {} : { payload }) });
  }

  /** Answers a pause with yes. @throws PilotageError `pause_not_found`. */
  approve(answer: Answer = {}): Promise<void> {
    return this.#answer('APPROVE', answer);
  }

  /** Answers a pause with no; the planner sees it. @throws PilotageError `pause_not_found`. */
  reject(answer: Answer = {}): Promise<void> {
    return this.#answer('REJECT', answer);
  }

  /** Pauses the run at its next step boundary. */
  pause(): Promise<void> {
    return this.steer('PAUSE');
  }

  /** Ends the run as cancelled. What is in flight is aborted at once, unless `hard` is false. */
  async cancel(options: { readonly reason?: string; readonly hard?: boolean } = {}): Promise<void> {
    await this.steer('CANCEL', { ...options });
  }

  /**
   * Sends a control and waits until the run has taken it.
   * @throws PilotageError why it was refused, or `run_ended`.
   */
  async steer(type: ControlType, payload?: JsonObject): Promise<void> {
    const id = `control_${crypto.randomUUID().replaceAll('-', '')}`;
    const taken = this.#untilTaken(id);
    try {
      await this.#ports.signal(payload === undefined ? { id, type } : { id, type, payload });
    } catch (error) {
      await taken.stop();
      throw error;
    }
    await taken.done;
  }

  #answer(type: 'RESUME' | 'APPROVE' | 'REJECT', { token, payload }: Answer): Promise<void> {
    const whole = token === undefined ? payload : { ...payload, token };
    return this.steer(type, whole);
  }

  /** Listens from now on for the entry that takes a control. */
  #untilTaken(id: string): { readonly done: Promise<void>; stop(): Promise<void> } {
    let open = true;
    const follower = new Follower<Entry>({
      ...this.#sources(false),
      onEntry: (entry) => (entry.kind === 'control' && entry.control.id === id ? [entry] : []),
      onPassing: () => [],
      isOver: (state) => !open || state.ending !== null,
    });
    const entries = follower.follow();
    const wait = async (): Promise<void> => {
      const { value: entry } = await entries.next();
      await entries.return();
      if (!open) return;
      if (entry === undefined)
        throw new PilotageError('run_ended', `The run ${this.id} ended before it took the control.`);
      if (entry.kind === 'control' && entry.error !== undefined) throw PilotageError.fromData(entry.error);
    };
    const done = wait();
    // Whoever sends the control awaits it only when it is stored.
    done.catch(() => {});
    return {
      done,
      stop: async () => {
        open = false;
        follower.stop();
        await done.catch(() => {});
      },
    };
  }

  #sources(tokens: boolean): {
    journal: Journal;
    run: string;
    hub: NoticeHub;
    isDriven: () => boolean;
    tokens: boolean;
  } {
    const { journal, hub } = this.#ports;
    return { journal, run: this.id, hub, isDriven: () => this.#ports.isDriven(), tokens };
  }
}

/** Nothing more comes until somebody answers a pause. */
function isSettled(state: RunState): boolean {
  return state.ending !== null || isPaused(state);
}

function passingEvent(notice: Exclude<Notice, { type: 'entry' | 'exit' }>, state: RunState): readonly RunEvent[] {
  const at = { seq: state.head, at: state.updatedAt };
  if (notice.type === 'late') {
    const { step, call, tool } = notice;
    return [event('tool.late', at, state.identity, { step, call, tool })];
  }
  const { step, delta, offset } = notice;
  // The step's decision was read from the journal already: the text is in it.
  if (step < nextStep(state) || state.ending !== null) return [];
  if (delta.type === 'reset') return [event('token.reset', at, state.identity, { step })];
  return [event('token', at, state.identity, { step, channel: delta.type, text: delta.text, offset })];
}
