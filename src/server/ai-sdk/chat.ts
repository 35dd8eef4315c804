/**
 * Chats of the AI SDK (`useChat`). A chat is a session of the visitor. The server keeps the conversation: from a client it takes only the newest message and
 * the answers.
 */
import type { Context } from 'hono';
import { assertOptions, assertWords, defined, type OptionShape, PilotageError, type TurnFile } from '#core';
import { hasEnded, type RunRecord } from '#journal';
import type { TurnUIMessage } from '#messages';
import { BUSY_MODES, type BusyMode, type Run, type Session, type SessionOptions, type TurnView } from '#runtime';
import { artifactResponse } from '../artifact.ts';
import { cancelledWithin, cancelUnlessEnded } from '../cancel.ts';
import type { ServerEvent } from '../event-stream.ts';
import { openPauses } from '../open-pauses.ts';
import type { Part, PartContext, ServerEnv } from '../part.ts';
import { RequestRefused } from '../problem.ts';
import { bodyOf } from '../request-body.ts';
import type { Visit } from '../visit.ts';
import { withinTime } from '../within-time.ts';
import {
  type Answered,
  answersOfCalls,
  giveAnswers,
  giveOutputs,
  lateOutput,
  taken,
  turnUnderWay,
  untaken,
} from './answers.ts';
import { Feed, NOTHING_TOLD, type Target, untilHeard } from './feed.ts';
import {
  ANSWER_BODY,
  answersIn,
  CHAT_BODY,
  type ChatBody,
  type ClientMessage,
  clientMessagesOf,
  type GivenAnswer,
  heldIn,
  lastCallsIn,
  outputsIn,
  userMessageOf,
} from './request.ts';
import { turnOfMessage } from './turn-of-message.ts';

export interface AiSdkOptions {
  /** Where `useChat` posts to, as the `api` of its transport. Default `/api/chat`. */
  readonly path?: string;
  /** The agent that begins chats. Default: as in `runtime.session`. */
  readonly agent?: string;
  /**
   * What becomes of a message while the agent is at work, as in `session.send`. A message that comes while the agent waits for somebody is told to it at once,
   * and takes the place of an answer. Default `queue`.
   */
  readonly busy?: BusyMode;
  /** Further options for starting turns, such as limits and the context. */
  readonly start?: Omit<SessionOptions, 'identity' | 'agent'>;
  /** The address of a file for clients. Default: a route of this part. */
  readonly fileUrl?: (file: TurnFile) => string;
}

const OPTIONS: OptionShape<AiSdkOptions> = {
  path: 'text?',
  agent: 'text?',
  busy: 'text?',
  start: 'object?',
  fileUrl: 'function?',
};
const HEADERS = { 'x-vercel-ai-ui-message-stream': 'v1' };
/** How long a request that stops a turn waits for its end. */
const STOP_MS = 5_000;
const NOT_TAKEN = 'The answer is kept, but nobody can go on with it now. It is taken as soon as somebody can.';
const ACTIVE: ReadonlySet<string> = new Set(['pending', 'running', 'waiting']);

/**
 * The part for `useChat`. Its routes: `POST {path}` with all messages or the last one, `GET {path}/{id}/stream`, `POST {path}/{id}/stop`, `GET {path}/{id}/messages`, `POST {path}/{id}/approvals`,
 * `GET {path}/{id}/files/{reference}`.
 * @throws PilotageError `invalid_config`.
 */
export function aiSdk(options: AiSdkOptions = {}): Part {
  assertOptions('aiSdk', options, OPTIONS);
  const { path = '/api/chat', busy } = options;
  if (busy !== undefined) assertWords('aiSdk', 'busy', [busy], BUSY_MODES);
  if (!/^\/[^?#]*[^/?#]$/.test(path))
    throw new PilotageError('invalid_config', `aiSdk: the path is ${path}. Give one such as /api/chat.`);
  return {
    name: 'ai-sdk',
    routes: (app, context) => {
      const chats = new Chats(path, options, context);
      app.post(path, async (request) => chats.post(request));
      app.get(`${path}/:id/stream`, async (request) => chats.resume(request));
      app.post(`${path}/:id/stop`, async (request) => chats.stop(request));
      app.get(`${path}/:id/messages`, async (request) => chats.messages(request));
      app.post(`${path}/:id/approvals`, async (request) => chats.answer(request));
      app.get(`${path}/:id/files/:reference`, async (request) => chats.file(request));
    },
  };
}

type Request = Context<ServerEnv>;

/** What is streamed of a turn. */
interface Fed {
  readonly target: Target | undefined;
  /** Told at the end of the stream, as an error. */
  readonly conflict?: string | undefined;
  /** The questions whose answers are stored, and that nobody has taken. */
  readonly left?: readonly string[];
}

class Chats {
  readonly #path: string;
  readonly #options: AiSdkOptions;
  readonly #context: PartContext;

  constructor(path: string, options: AiSdkOptions, context: PartContext) {
    this.#path = path;
    this.#options = options;
    this.#context = context;
  }

  async post(request: Request): Promise<Response> {
    const visit = request.get('visit');
    const body = await bodyOf<ChatBody>(request, CHAT_BODY);
    const messages = clientMessagesOf(body);
    const last = messages.at(-1);
    if (body.trigger === 'regenerate-message') return visit.entering(() => this.#regenerate(visit, body));
    if (last === undefined) throw new RequestRefused('request_invalid', 'The request has no message.');
    const isWords = last.role === 'user' && !isOfAssistant(messages, body.messageId);
    return visit.entering(() =>
      isWords ? this.#say(visit, body, messages, last) : this.#goOn(visit, body, messages, last),
    );
  }

  /** A new message, or one that takes the place of an earlier one. */
  async #say(visit: Visit, body: ChatBody, messages: readonly ClientMessage[], last: ClientMessage): Promise<Response> {
    const session = await this.#session(visit, body.id, 'start');
    const message = userMessageOf(last, this.#filesAt(body.id));
    // Answers that the client has not got through yet go ahead.
    const before = await session.turns();
    const { tokens } = await giveAnswers(visit, session, before, answersIn(messages, body.edits), 'passed over');
    const outputs = await giveOutputs(visit, before, outputsIn(messages), 'passed over');
    const turns = tokens.size + outputs.size === 0 ? before : await session.turns();
    const edited =
      body.messageId === undefined ? undefined : await turnOfMessage(visit, session, turns, body.messageId);
    if (edited !== undefined) {
      await assertSeen(visit, edited);
      await visit.mustStart(edited.agent, body.id);
      const sent = await session.edit(edited.turn, message, { id: last.id, busy: await makeWay(visit, edited) });
      return this.#stream(visit, session, sent.turn, undefined);
    }
    const busy = (await isAsked(visit, turns)) ? 'steer' : (this.#options.busy ?? 'queue');
    const sent = await session.send(message, { id: last.id, busy });
    return this.#stream(visit, session, sent.turn, last.id);
  }

  async #regenerate(visit: Visit, { id, messageId }: ChatBody): Promise<Response> {
    const session = await this.#session(visit, id, 'start');
    const turns = await session.turns();
    const named = messageId === undefined ? turns.at(-1) : await turnOfMessage(visit, session, turns, messageId);
    const turn = await assertSeen(visit, named);
    await visit.mustStart(turn.agent, id);
    const sent = await session.regenerate(turn.turn, { busy: await makeWay(visit, turn) });
    return this.#stream(visit, session, sent.turn, undefined);
  }

  /** Answers of the client, by which a message of the assistant goes on. */
  async #goOn(
    visit: Visit,
    body: ChatBody,
    messages: readonly ClientMessage[],
    last: ClientMessage,
  ): Promise<Response> {
    const session = await this.#session(visit, body.id, 'answer');
    const message = body.messageId ?? last.id;
    const turns = await session.turns();
    const turn = await assertSeen(visit, await turnOfMessage(visit, session, turns, message));
    const { head } = await visit.runtime.run(turn.turn).record();
    const { tokens, conflict } = await giveAnswers(visit, session, turns, answersIn(messages, body.edits));
    const outputs = await giveOutputs(visit, turns, outputsIn(messages));
    const own = messages.filter(({ id }) => id === message);
    const calls = new Set(own.flatMap((each) => [...lastCallsIn(each)]));
    const before = await answersOfCalls(visit.handle(turn.turn, session.id), calls);
    const goesOnAt = { tokens: new Set([...tokens, ...outputs, ...before]), from: head + 1, held: heldIn(messages) };
    // What was answered otherwise in an earlier turn is over: a client keeps its answers as it has given them, and sends them each time.
    const told = conflict?.turn === turn.number ? conflict?.text : undefined;
    const isStill = outputs.size === 0 && (hasEnded(turn.status) || turn.status === 'paused');
    const late = await lateOutput(session, message, outputsIn(own), { calls, isStill });
    const left = await untaken(visit, session, goesOnAt.tokens);
    return this.#feed(visit, body.id, turn.turn, { target: { message, goesOnAt }, conflict: told ?? late, left });
  }

  async resume(request: Request): Promise<Response> {
    const visit = request.get('visit');
    const id = request.req.param('id') ?? '';
    const session = await this.#session(visit, id, 'read');
    const turn = (await session.turns()).find(({ status, waits }) => waits !== true && ACTIVE.has(status));
    if (turn === undefined || !(await visit.sees(turn.turn))) return new Response(null, { status: 204 });
    const shown = await this.#shown(session, id);
    const last = shown.findLast(({ metadata }) => metadata?.turn === turn.number);
    const target: Target | undefined =
      last === undefined ? undefined : last.role === 'user' ? { after: last.id } : { message: last.id };
    return this.#feed(visit, id, turn.turn, { target });
  }

  async stop(request: Request): Promise<Response> {
    const visit = request.get('visit');
    const session = await this.#session(visit, request.req.param('id') ?? '', 'control');
    const live = turnUnderWay(await session.turns());
    if (live !== undefined) {
      const { run } = await visit.run(live.turn, 'control');
      await cancelledWithin(run, STOP_MS, visit.signal);
    }
    return request.json({ stopped: live !== undefined });
  }

  async messages(request: Request): Promise<Response> {
    const id = request.req.param('id') ?? '';
    const limit = Number(request.req.query('limit') ?? 100);
    if (!(Number.isSafeInteger(limit) && limit > 0))
      throw new RequestRefused('request_invalid', 'limit is a whole number from 1 up.');
    const visit = request.get('visit');
    const session = await this.#session(visit, id, 'read');
    return request.json(await this.#shown(session, id, limit), 200, { 'cache-control': 'no-store' });
  }

  /** Takes the answers that `useChat` cannot send: other arguments, values, and answers to questions that are not about a call. */
  async answer(request: Request): Promise<Response> {
    const visit = request.get('visit');
    const given = await bodyOf<GivenAnswer>(request, ANSWER_BODY);
    const session = await this.#session(visit, request.req.param('id') ?? '', 'answer');
    const { conflict }: Answered = await giveAnswers(visit, session, await session.turns(), [given]);
    if (conflict !== undefined) throw new PilotageError('call_ended', conflict.text);
    return request.json({ approvalId: given.approvalId });
  }

  async file(request: Request): Promise<Response> {
    const visit = request.get('visit');
    const session = await this.#session(visit, request.req.param('id') ?? '', 'read');
    const [turn] = await session.turns({ limit: 1 });
    const ref = request.req.param('reference') ?? '';
    const found = turn && (await visit.runtime.run(turn.turn).artifact(ref));
    return artifactResponse(request.req.raw.headers, ref, found, 'inline');
  }

  async #session(visit: Visit, id: string, action: 'read' | 'start' | 'answer' | 'control'): Promise<Session> {
    if (id.trim() === '' || !id.isWellFormed())
      throw new RequestRefused('request_invalid', 'The id of a chat is a text.');
    return visit.session(id, action, { ...this.#options.start, ...defined({ agent: this.#options.agent }) });
  }

  #shown(session: Session, id: string, limit = 100): Promise<TurnUIMessage[]> {
    const { errorText } = this.#context;
    return session.uiMessages({ limit, errorText, fileUrl: this.#fileUrl(id) });
  }

  #filesAt(id: string): string {
    return `${this.#path}/${encodeURIComponent(id)}/files/`;
  }

  #fileUrl(id: string): (file: TurnFile) => string {
    return (
      this.#options.fileUrl ??
      (({ artifactRef, sizeBytes }) => `${this.#filesAt(id)}${encodeURIComponent(artifactRef)}?size=${sizeBytes}`)
    );
  }

  /** Streams the answer to a message of the user. @param message absent: the message with which the turn began. */
  async #stream(visit: Visit, session: Session, run: string, message: string | undefined): Promise<Response> {
    return visit.stream((signal) => this.#whenHeard(visit, session, run, message, signal), this.#streamOptions());
  }

  async *#whenHeard(
    visit: Visit,
    session: Session,
    sent: string,
    message: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<ServerEvent, void> {
    const own = await visit.runtime.run(sent).record();
    const first = await this.#beginning(visit, own);
    const isBeginning = message === undefined || first.turnOrigin?.messages.some(({ id }) => id === message) === true;
    let turn = sent;
    if (!isBeginning && !(await untilHeard(visit.runtime.run(sent), message, signal))) {
      // It came too late for the turn, and has begun one of its own.
      turn = (await turnOfMessage(visit, session, await session.turns(), message))?.turn ?? sent;
    }
    const record = turn === sent ? own : await visit.runtime.run(turn).record();
    const there = await this.#whenItsTurn(visit, session, record, signal);
    if (there === undefined || !(await visit.sees(there.identity.run))) {
      yield { data: JSON.stringify(NOTHING_TOLD) };
      yield { data: '[DONE]' };
      return;
    }
    const target = isBeginning || turn !== sent || message === undefined ? undefined : { after: message };
    const begun = turn === sent ? first : await this.#beginning(visit, there);
    yield* this.#feedOf(visit, session.id, { record: there, first: begun }, target).events(signal);
  }

  /** Waits until the turns before this one have ended. @returns `undefined` when one of them waits for somebody, who may be this client. */
  async #whenItsTurn(
    visit: Visit,
    session: Session,
    given: RunRecord,
    signal: AbortSignal,
  ): Promise<RunRecord | undefined> {
    const { runtime, owner } = visit;
    const { run: turn } = given.identity;
    for (let record = given; ; record = await runtime.run(turn).record()) {
      // What it interrupts waits for nobody any more.
      if (record.waits !== true || record.turnOrigin?.interrupts !== undefined || signal.aborted) return record;
      const { live } = (await runtime.sessions.get({ ...owner, session: session.id })) ?? {};
      if (live === undefined || live.run === turn) return record;
      const { run } = live;
      // The commit that ends a turn says whose turn it is then.
      const result = await withinTime(undefined, signal, (left) => runtime.run(run).result({ signal: left }));
      if (result?.status === 'paused') return undefined;
    }
  }

  async #feed(visit: Visit, id: string, turn: string, { target, conflict, left = [] }: Fed): Promise<Response> {
    const record = await visit.runtime.run(turn).record();
    const place = { record, first: await this.#beginning(visit, record) };
    const feed = (said?: string): Feed => this.#feedOf(visit, id, place, target, said);
    const events =
      left.length === 0
        ? (signal: AbortSignal) => feed(conflict).events(signal)
        : (signal: AbortSignal) =>
            onceTaken(visit.runtime.run(turn), left, (isTaken) => feed(isTaken ? conflict : NOT_TAKEN), signal);
    return visit.stream(events, this.#streamOptions());
  }

  /** @param target absent: the answer to the words with which the turn began. */
  #feedOf(
    visit: Visit,
    id: string,
    { record: { head }, first }: { readonly record: RunRecord; readonly first: RunRecord },
    target?: Target,
    conflict?: string,
  ): Feed {
    const { identity, turnOrigin, turn: number } = first;
    const begunBy = turnOrigin?.messages[0]?.id;
    return new Feed({
      run: visit.handle(identity.run, identity.session),
      runOf: (run): Run => visit.handle(run, identity.session),
      begunBy,
      head,
      target: target ?? { after: begunBy ?? `${identity.run}:0` },
      metadata: defined({ turn: number }),
      errorText: this.#context.errorText,
      fileUrl: this.#fileUrl(id),
      ...defined({ conflict }),
    });
  }

  /** The run with which the turn began. */
  async #beginning({ runtime }: Visit, given: RunRecord): Promise<RunRecord> {
    let record = given;
    for (let before = record.turnOrigin?.succeeds; before !== undefined; before = record.turnOrigin?.succeeds)
      record = await runtime.run(before).record();
    return record;
  }

  #streamOptions() {
    return {
      headers: HEADERS,
      onError: (error: unknown) => {
        this.#context.onFault(error);
        const code = PilotageError.is(error) ? error.code : 'server_failed';
        return { data: JSON.stringify({ type: 'error', errorText: this.#context.errorText({ code, message: '' }) }) };
      },
    };
  }
}

/** A client that is told nothing of an answer that nobody can go on with, as after a deploy, takes it for done, or sends it again. */
async function* onceTaken(
  run: Run,
  left: readonly string[],
  feed: (isTaken: boolean) => Feed,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent, void> {
  yield* feed(await taken(run, left, signal)).events(signal);
}

/** Whether the turn under way has asked somebody something. Other calls of it may still be carried out. */
async function isAsked({ runtime }: Visit, turns: readonly TurnView[]): Promise<boolean> {
  const live = turnUnderWay(turns);
  if (live === undefined || live.status === 'paused') return live !== undefined;
  return openPauses(await runtime.run(live.turn).state()).length > 0;
}

/**
 * Withdraws a turn that still waits: answered beside the one that takes its place, it would be in the page a second time.
 * @returns how the other one comes in. In the place of one that waited it stops nothing.
 */
async function makeWay(visit: Visit, { turn, waits }: TurnView): Promise<'interrupt' | 'queue'> {
  if (waits !== true) return 'interrupt';
  await visit.run(turn, 'control');
  const run = visit.runtime.run(turn);
  await cancelUnlessEnded(run);
  await withinTime(STOP_MS, visit.signal, (signal) => run.result({ signal }));
  return 'queue';
}

/** Whether the message of this id is the assistant's. */
function isOfAssistant(messages: readonly ClientMessage[], id: string | undefined): boolean {
  return messages.some((message) => message.id === id && message.role === 'assistant');
}

/** @throws PilotageError `run_not_found` where there is no turn, or none that the visitor may read. */
async function assertSeen(visit: Visit, turn: TurnView | undefined): Promise<TurnView> {
  if (turn !== undefined && (await visit.sees(turn.turn))) return turn;
  throw new PilotageError('run_not_found', 'The chat has no such message.');
}
