/** One request of a visitor: the runs, sessions and streams of the runtime that it may reach. */
import { assertIdentity, type Caller, type ControlType, defined, describeThrown, PilotageError } from '#core';
import type { RunRecord } from '#journal';
import { type Gate, isVerdict, type Run, type Runtime, type Session, type SessionOptions } from '#runtime';
import type { Access, Action, Subject } from './access.ts';
import { type EventStreamOptions, eventHeaders, eventStream, type StreamPiece } from './event-stream.ts';
import { RequestRefused } from './problem.ts';
import type { StreamSlots } from './stream-slots.ts';

/** Made once: each that `abort` makes by itself costs more than the end of a stream. */
const GONE = new DOMException('Nobody reads this stream any more.', 'AbortError');

export class Visit {
  readonly access: Access;
  readonly runtime: Runtime;
  readonly #slots: StreamSlots;
  readonly #request: Request;
  /** Gives back the place of a stream that is still to be made. */
  #entered: (() => void) | undefined;

  constructor(access: Access, runtime: Runtime, slots: StreamSlots, request: Request) {
    this.access = access;
    this.runtime = runtime;
    this.#slots = slots;
    this.#request = request;
  }

  /** The tenant and user whose runs the request starts. */
  get owner(): { readonly tenant: string; readonly user: string } {
    const { tenant, user } = this.access.identity;
    return { tenant, user };
  }

  /** Aborted when the client is gone. */
  get signal(): AbortSignal {
    return this.#request.signal;
  }

  get isAdmin(): boolean {
    return this.access.as === 'admin';
  }

  /** The visitor as a caller of the runtime, in a session. */
  caller(session: string): Caller {
    const { as: scope = 'owner_user', identity } = this.access;
    return { ...this.owner, session: identity.session ?? session, scope };
  }

  /** The scopes that runs of the visitor start with. */
  get scopes(): readonly string[] {
    return this.access.scopes ?? [];
  }

  /** Whether the visitor may do this. A visitor of the scope `session_user` may not change what concerns everybody (`manage`). */
  async may(action: Action, subject: Subject = {}): Promise<boolean> {
    if (action === 'manage' && this.access.as === 'session_user') return false;
    const { may } = this.access;
    // A program that forgets an answer allows nothing by it.
    return may === undefined || (await may(action, subject)) === true;
  }

  /** @throws RequestRefused `forbidden`. */
  async must(action: Action, subject: Subject = {}): Promise<void> {
    if (await this.may(action, subject)) return;
    throw new RequestRefused('forbidden', `You may not do this here (${action}).`, { action });
  }

  /**
   * Something is to be begun. @param agent by whom; absent: by the first agent of the runtime.
   * @throws RequestRefused `forbidden`.
   */
  async mustStart(agent: string | undefined, session?: string): Promise<void> {
    if (this.access.may === undefined) return;
    await this.must('start', defined({ agent: agent ?? this.runtime.agents[0]?.name, session }));
  }

  /** What `may` leaves of the runs that a handle leads to. Absent: all. */
  get #gate(): Gate | undefined {
    if (this.access.may === undefined) return undefined;
    return {
      mayRead: (run) => this.sees(run),
      assertMaySend: async (type, run) => {
        await this.run(run, isSaid(type) ? 'answer' : 'control');
      },
    };
  }

  /** A handle that acts for the visitor. @param session that of the run. */
  handle(run: string, session: string): Run {
    return this.runtime.run(run, { as: this.caller(session), ...defined({ gate: this.#gate }) });
  }

  /** Whether a run of the visitor's may be looked at, and whether this may be done with it, as `may` says. */
  async allows(action: Action, record: RunRecord): Promise<boolean> {
    const subject = subjectOf(record);
    return (await this.may('read', subject)) && (action === 'read' || (await this.may(action, subject)));
  }

  /** The record of the run, if it may be looked at. */
  async seen(id: string): Promise<RunRecord | undefined> {
    try {
      return (await this.run(id)).record;
    } catch (error) {
      if (PilotageError.is(error, 'run_not_found')) return undefined;
      throw error;
    }
  }

  /** Whether the run of this id may be looked at. Without a `may`, the runs of the visitor's own handles are. */
  async sees(id: string): Promise<boolean> {
    return this.access.may === undefined || (await this.seen(id)) !== undefined;
  }

  /**
   * A run that the visitor may see, with the handle that acts for the visitor.
   * @param action what is to be done with it.
   * @throws PilotageError `run_not_found`, also for a run that only others may see; RequestRefused `forbidden`.
   */
  async run(id: string, action: Action = 'read'): Promise<{ readonly run: Run; readonly record: RunRecord }> {
    const record = await this.runtime
      .run(id)
      .record()
      .catch((error: unknown) => {
        throw PilotageError.is(error, 'run_not_found') ? noRun(id) : error;
      });
    const { identity } = record;
    const own = this.access.identity;
    const isOwn =
      own.tenant === identity.tenant &&
      own.user === identity.user &&
      (own.session === undefined || own.session === identity.session);
    const subject = subjectOf(record);
    if (!(isOwn || this.isAdmin) || !(await this.may('read', subject))) throw noRun(id);
    if (action !== 'read') await this.must(action, subject);
    return { run: this.handle(id, identity.session), record };
  }

  /**
   * A session of the visitor. @param options what its turns are started with.
   * @throws RequestRefused `forbidden`, and `request_invalid` for an id that no session can have; PilotageError `run_not_found` for any other session when
   * the visitor has but one.
   */
  async session(
    id: string,
    action: Action = 'read',
    options: Omit<SessionOptions, 'identity' | 'gate'> = {},
  ): Promise<Session> {
    const { session } = this.access.identity;
    if (session !== undefined && session !== id) throw new PilotageError('run_not_found', `There is no session ${id}.`);
    assertSessionId(id);
    return this.sessionOf(id, action, options, this.owner);
  }

  /** The same of any owner, for whoever may have it. @throws RequestRefused `forbidden`. */
  async sessionOf(
    id: string,
    action: Action,
    options: Omit<SessionOptions, 'identity' | 'gate'>,
    owner: { readonly tenant: string; readonly user: string },
  ): Promise<Session> {
    const session = this.runtime.session(id, {
      scopes: this.scopes,
      ...options,
      identity: owner,
      ...defined({ gate: this.#gate }),
    });
    if (action !== 'start') await this.must(action, { session: id, ...defined({ agent: options.agent }) });
    else if (this.access.may !== undefined) {
      // The agent that has a conversation goes on with it, whichever is named.
      const last = (await session.turns({ limit: 1 })).at(-1);
      await this.mustStart(last?.agent ?? options.agent, id);
    }
    return session;
  }

  /**
   * Takes one of the visitor's slots for a stream that the caller sends itself.
   * @returns a function to be called when the stream has ended. @throws RequestRefused `streams_full`.
   */
  enterStream(): () => void {
    return this.#slots.enter(this.owner);
  }

  /**
   * Takes a place for the stream with which `act` answers, before it does anything: who is told that there are too many streams has done nothing.
   * @throws RequestRefused `streams_full`.
   */
  async entering(act: () => Promise<Response>): Promise<Response> {
    this.#entered = this.enterStream();
    try {
      const answer = await act();
      // The planner of what has begun is asked first, and those of others that have begun in this turn of the event loop.
      await new Promise<void>((resolve) => setImmediate(resolve));
      return answer;
    } finally {
      this.#entered?.();
      this.#entered = undefined;
    }
  }

  /**
   * Answers with events, as one of the streams that the visitor may have at once.
   * @param events makes them; its signal is aborted when the reader is gone.
   * @throws RequestRefused `streams_full`.
   */
  stream(
    events: (signal: AbortSignal) => AsyncIterable<StreamPiece>,
    options: Omit<EventStreamOptions, 'onEnd'> = {},
  ): Response {
    // Nobody reads the body of an answer to HEAD.
    if (this.#request.method === 'HEAD') return new Response(null, { headers: eventHeaders(options) });
    const leave = this.#entered ?? this.enterStream();
    this.#entered = undefined;
    const left = new AbortController();
    const gone = (): void => left.abort(GONE);
    const { signal } = this;
    signal.addEventListener('abort', gone);
    const onEnd = (): void => {
      signal.removeEventListener('abort', gone);
      left.abort(GONE);
      leave();
    };
    return eventStream(events(left.signal)[Symbol.asyncIterator](), { ...options, onEnd });
  }
}

/** What needs `answer`; any other control needs `control`. */
function isSaid(type: ControlType): boolean {
  return type === 'USER_MESSAGE' || isVerdict({ type });
}

function subjectOf(record: RunRecord): Subject {
  return { agent: record.agent, session: record.identity.session, run: record };
}

/** The same words for a run of others and for one that never was: nobody finds out which ids there are. */
function noRun(id: string): PilotageError {
  return new PilotageError('run_not_found', `There is no run ${id}.`);
}

/** @throws RequestRefused `request_invalid`. */
function assertSessionId(session: string): void {
  try {
    assertIdentity({ tenant: '-', user: '-', session, run: '-' });
  } catch (error) {
    throw new RequestRefused('request_invalid', `The id of the session cannot be. ${describeThrown(error)}`);
  }
}
