/** A handle of one session: a conversation that one can talk to, from any process. The handle holds no state. */
import {
  assertOptions,
  assertScope,
  assertWords,
  capture,
  captureObject,
  defined,
  type Identity,
  type OptionShape,
  PilotageError,
  type Scope,
} from '#core';
import type { SessionRecord } from '#journal';
import { type TurnMessage, type TurnUIMessage, toModelMessages, type UserMessage } from '#messages';
import type { Gate, HandleOptions } from './gate.ts';
import { assertStart, type Starting } from './new-run.ts';
import type { RunResult } from './result.ts';
import { Run } from './run.ts';
import type { RunHost } from './run-host.ts';
import { RESULT, type ResultOptions } from './run-options.ts';
import { type SessionEvent, type SessionEventOptions, sessionEvents, sessionPosition } from './session-events.ts';
import { transcriptOf } from './session-messages.ts';
import { turnsBefore } from './session-path.ts';
import { type Acceptance, BUSY_MODES, type BusyMode, type Outgoing, Sender } from './session-send.ts';
import { type ShownOptions, shownMessages } from './session-shown.ts';
import {
  activeTurn,
  branchesOfSession,
  type SessionBranch,
  saidInTurn,
  sessionTurns,
  type TurnView,
  turnOf,
  whollyReplaced,
} from './session-turns.ts';
import type { BeginOptions, StartOptions } from './start-options.ts';
import { messagePayload } from './user-message.ts';

export interface SessionOptions
  extends Omit<
    StartOptions,
    'identity' | 'history' | 'conversation' | 'signal' | 'inputs' | 'author' | keyof BeginOptions
  > {
  /** Whose session it is. Default: tenant and user are named `local`. Leave the key out for it. */
  readonly identity?: Pick<Identity, 'tenant' | 'user'>;
  /** What whoever uses the handle may not do to single runs. A turn that may not be read is told nothing: messages wait until it has ended. */
  readonly gate?: Gate;
}

export interface SendOptions {
  /**
   * What becomes of the message while a turn is under way. `queue`: it begins the next turn, when this one has ended. `steer`: it is told to the turn that
   * is under way, or begins the next one if that ends before. `interrupt`: what is under way is cancelled, and the next turn has the messages of both.
   * `reject`: it is refused. A turn that has asked its user hears it in any case, as the answer. `edit` and `regenerate` do not steer. Default `queue`.
   */
  readonly busy?: BusyMode;
  /** An id of the message, unique in the session: the same message sent again changes nothing. Default: a fresh one. */
  readonly id?: string;
  /** Tools that whoever sends the message carries out, in the place of the session's (`StartOptions`). A turn that is under way keeps those that it began with. */
  readonly clientTools?: StartOptions['clientTools'];
}

/** A message that was accepted. */
export interface SentMessage {
  readonly id: string;
  /** The turn that has the message, which is a run. A steered one is that of the turn that was under way. */
  readonly turn: string;
  readonly as: Acceptance;
  /** Waits until the turn that has the message has ended or is paused. */
  result(): Promise<RunResult>;
}

const SEND: OptionShape<SendOptions> = { busy: 'text?', id: 'text?', clientTools: 'list?' };
const EVENTS: OptionShape<SessionEventOptions> = { from: 'whole?', tasks: 'flag?', signal: 'signal?' };
const TURNS: OptionShape<{ limit?: number }> = { limit: 'count?' };
const UI: OptionShape<{ limit?: number } & ShownOptions> = { ...TURNS, fileUrl: 'function?', errorText: 'function?' };
const CANCEL: OptionShape<{ waiting?: boolean }> = { waiting: 'flag?' };
const DEFAULT_TURNS = 100;
const MAX_MESSAGE_ID = 500;

export class Session {
  readonly id: string;
  readonly #scope: Scope;
  readonly #host: RunHost;
  readonly #options: StartOptions;
  readonly #user: HandleOptions;
  readonly #sender: Sender;

  /** @throws PilotageError `identity_required`. */
  constructor(id: string, { identity, gate, ...options }: SessionOptions, host: RunHost, starting: Starting) {
    const { tenant, user } = identity ?? { tenant: 'local', user: 'local' };
    assertScope({ tenant, user, session: id });
    this.id = id;
    this.#scope = capture<Scope & Record<string, string>>({ tenant, user, session: id }, 'identity').json;
    this.#host = host;
    this.#options = options;
    this.#user = defined({ gate });
    this.#sender = new Sender(host, starting, gate);
  }

  /**
   * Accepts a message, in one commit: words, or words with files, an author, or a notice which the user did not write. It is stored when this returns, and
   * in exactly one turn.
   * @throws PilotageError `session_busy` with `busy: 'reject'`, `inbox_full`, `url_refused` or `url_failed` for a file at a URL, or as `Runtime.start`.
   */
  async send(message: string | UserMessage, options: SendOptions = {}): Promise<SentMessage> {
    assertOptions('send', options, SEND);
    return this.#send(message, options);
  }

  async #send(
    message: string | UserMessage,
    { busy = 'queue', id = `message-${crypto.randomUUID()}`, clientTools }: SendOptions,
    place: Pick<Outgoing, 'replaces' | 'inPlaceOf' | 'messages'> = {},
  ): Promise<SentMessage> {
    assertWords('send', 'busy', [busy], BUSY_MODES);
    assertStart('', this.#options);
    assertMessageId(id);
    const { deps, files } = this.#host;
    const payload = await messagePayload(message, this.#scope, { artifacts: deps.artifacts, files });
    const { json } = captureObject(payload, 'message');
    const options = { ...this.#options, ...defined({ clientTools }) };
    const outgoing: Outgoing = { id, payload: json, busy, options, ...place };
    const { run, as, own } = await this.#sender.send(this.#scope, outgoing);
    return { id, turn: run, as, result: () => this.#resultOf(run, own) };
  }

  /** Where the message is in the end: a steered one may have begun a turn of its own. */
  async #resultOf(run: string, own: string): Promise<RunResult> {
    const result = await new Run(run, this.#host, this.#user).result();
    if (own === run || (await this.#host.deps.journal.get(own)) === undefined) return result;
    return new Run(own, this.#host, this.#user).result();
  }

  /**
   * The events of all turns in the order of the turns, over pauses, and of turns that come later: the stream goes on until its reader leaves, the
   * signal is aborted, or the session is deleted. Every reader gets the same recorded events in the same order. What a turn records after the next one has begun,
   * because somebody resumed it, comes only to readers who have not passed it.
   */
  events(options: SessionEventOptions = {}): AsyncGenerator<SessionEvent, void> {
    assertOptions('events', options, EVENTS);
    return sessionEvents(this.#host, this.#scope, { ...options, ...this.#user });
  }

  /**
   * How far the session has come: `events({ from: position + 1 })` brings what is recorded from now on. Asked before `turns`, nothing is missed between
   * the two.
   */
  position(): Promise<number> {
    return sessionPosition(this.#host.deps.journal, this.#scope);
  }

  /** The turns of the branch on which the session is, oldest first; the last 100 of them, or `limit`. */
  turns(options: { readonly limit?: number } = {}): Promise<readonly TurnView[]> {
    assertOptions('turns', options, TURNS);
    return sessionTurns(this.#host.deps, this.#scope, options.limit ?? DEFAULT_TURNS);
  }

  /**
   * The conversation on the branch on which the session is, as messages of the AI SDK for its functions (`ModelMessage`), oldest first, with calls, results and
   * files: what `start({ history })` takes. Of the last 100 turns, or `limit`.
   */
  async messages(options: { readonly limit?: number } = {}): Promise<TurnMessage[]> {
    assertOptions('messages', options, TURNS);
    const { limit = DEFAULT_TURNS } = options;
    return toModelMessages(await transcriptOf(this.#host.deps, this.#scope, limit));
  }

  /**
   * The same for clients of the AI SDK (`useChat`), as it was streamed to them: with ids, states of calls, approvals, what tasks, plans and tools report, sources, and
   * who has written what. The message of a turn under way has what is recorded of it.
   */
  async uiMessages(options: { readonly limit?: number } & ShownOptions = {}): Promise<TurnUIMessage[]> {
    assertOptions('uiMessages', options, UI);
    const { limit = DEFAULT_TURNS, ...shown } = options;
    return shownMessages(this.#host, this.#scope, limit, { ...shown, ...this.#user });
  }

  /**
   * Waits until no turn is under way, or one waits for a person. @returns the result of the last turn; `undefined` for a session without turns.
   * @throws the reason of the signal.
   */
  async result(options: ResultOptions = {}): Promise<RunResult | undefined> {
    assertOptions('result', options, RESULT);
    const { journal } = this.#host.deps;
    for (;;) {
      const record = await journal.sessions.get(this.#scope);
      if (record === undefined) return undefined;
      const run = record.live?.run ?? (await activeTurn(journal, record))?.identity.run;
      if (run === undefined) return undefined;
      const result = await new Run(run, this.#host, this.#user).result(options);
      const now = await journal.sessions.get(this.#scope);
      if (result.status === 'paused' || now?.live === undefined) return result;
    }
  }

  /** Cancels the turn that is under way; with `waiting`, also those that wait. */
  async cancel(options: { readonly waiting?: boolean } = {}): Promise<void> {
    assertOptions('cancel', options, CANCEL);
    const { journal } = this.#host.deps;
    const record = await journal.sessions.get(this.#scope);
    if (record === undefined) return;
    const runs = record.live === undefined ? [] : [record.live.run];
    if (options.waiting === true) runs.unshift(...(await this.#waiting(record)));
    for (const run of runs) {
      if ((await this.#user.gate?.mayRead(run)) === false) continue;
      await new Run(run, this.#host, this.#user).cancel().catch(unlessEnded);
    }
  }

  async #waiting({ turns, waiting }: SessionRecord): Promise<readonly string[]> {
    if (waiting === 0) return [];
    const { journal } = this.#host.deps;
    const found: string[] = [];
    // Those that were cancelled stand among them.
    for await (const { waits, identity } of turnsBefore(journal, this.#scope, turns + 1)) {
      if (waits === true) found.push(identity.run);
      if (found.length === waiting) break;
    }
    return found;
  }

  /**
   * Sends another message in the place of a turn's, on a branch of its own that goes on from the turn before it. Nothing is erased. What the turns of
   * the other branch did stays done, and the model is told of it. A turn that has asked its user is interrupted by it.
   * @param options `id`: it may be that of the message in whose place this one is.
   * @throws PilotageError `run_not_found` for a turn that the session has not, `invalid_config` with `busy: 'steer'`, or as `send`.
   */
  async edit(turn: string, message: string | UserMessage, options: SendOptions = {}): Promise<SentMessage> {
    assertOptions('edit', options, SEND);
    assertTurnOfItsOwn('edit', options);
    const { journal } = this.#host.deps;
    const replaces = await whollyReplaced(journal, await turnOf(journal, this.#scope, turn));
    return this.#send(message, options, { replaces, inPlaceOf: turn });
  }

  /**
   * Answers the messages of a turn once more, as `edit` with all of them; they keep their ids.
   * @param options `id`: the request's own, so that it happens once.
   */
  async regenerate(turn: string, options: SendOptions = {}): Promise<SentMessage> {
    assertOptions('regenerate', options, SEND);
    assertTurnOfItsOwn('regenerate', options);
    const { journal } = this.#host.deps;
    const record = await turnOf(journal, this.#scope, turn);
    const replaces = await whollyReplaced(journal, record);
    const { messages, ...message } = await saidInTurn(this.#host.deps, record);
    return this.#send(message, options, { replaces, inPlaceOf: turn, ...defined({ messages }) });
  }

  /** The branches that edits and regenerations have made, in the order in which they were begun. */
  branches(): Promise<readonly SessionBranch[]> {
    return branchesOfSession(this.#host.deps.journal, this.#scope);
  }

  /**
   * The next message goes on from this turn. @throws PilotageError `run_not_found` for a turn that the session has not, `session_busy` while a
   * turn is under way.
   */
  async switchTo(turn: string): Promise<void> {
    const { journal } = this.#host.deps;
    await turnOf(journal, this.#scope, turn);
    await journal.sessions.set(this.#scope, { branch: turn });
  }
}

/** @throws PilotageError `invalid_config`. */
function assertTurnOfItsOwn(what: string, { busy }: SendOptions): void {
  if (busy !== 'steer') return;
  throw new PilotageError(
    'invalid_config',
    `${what} begins a turn of its own, which nobody can be told on the way. Give busy: 'queue', 'interrupt' or 'reject'.`,
  );
}

/** @throws PilotageError `invalid_config`. */
function assertMessageId(id: string): void {
  if (id.trim() !== '' && id.length <= MAX_MESSAGE_ID && id.isWellFormed()) return;
  throw new PilotageError('invalid_config', `The id of a message is a text of 1 to ${MAX_MESSAGE_ID} characters.`);
}

function unlessEnded(error: unknown): void {
  if (!PilotageError.is(error, 'run_ended')) throw error;
}
