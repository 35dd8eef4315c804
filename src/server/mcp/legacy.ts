/**
 * Calls of the protocols up to 2025-11-25. No process keeps anything for a session: its id holds, signed, what the client can do. A question is a request in
 * the stream of the call, and its signed id says what it asks. So any process can give an answer to the run, and any can send the rest of a stream that
 * broke off.
 */
import { randomUUID } from 'node:crypto';
import { defined, isJsonObject, type Json, type JsonObject, PilotageError } from '#core';
import type { Run } from '#runtime';
import { cancelUnlessEnded } from '../cancel.ts';
import type { ServerEvent } from '../event-stream.ts';
import { statusOf } from '../problem.ts';
import type { Visit } from '../visit.ts';
import type { AnswerNews, CallNews } from './answer-news.ts';
import { toolResult } from './answers.ts';
import {
  answered,
  asksFor,
  begin,
  type CallProgress,
  callParams,
  followed,
  type Ground,
  PLACE_LABEL,
  type Stands,
  untilMoved,
} from './call.ts';
import {
  errorMessage,
  jsonResponse,
  METHOD_NOT_ALLOWED,
  type RequestId,
  type RpcMessage,
  resultMessage,
  SESSION_NOT_FOUND,
  thrownMessage,
} from './json-rpc.ts';
import { type Askable, askableOf, NOT_ASKABLE, pausesNamed } from './questions.ts';
import { sdk } from './sdk.ts';
import { digestOf, principalOf } from './seal.ts';

export const SESSION_HEADER = 'mcp-session-id';
const VERSION_HEADER = 'mcp-protocol-version';
/** Since this version a stream begins with an event without data, from whose id a client goes on after its connection broke. */
const PRIMED_SINCE = '2025-11-25';
/** How many early cancellations are kept, the newest, so that cancelling calls that never come fills no memory. */
const MAX_EARLY = 1_000;
const SESSION_HOLDS_MS = 30 * 86_400_000;

interface McpSession {
  readonly id: string;
  readonly asks: Askable;
}

/** Where the stream of a call stands: what a process needs for sending the rest. */
interface Position {
  readonly run: string;
  readonly id: RequestId;
  readonly progress: RequestId | null;
  readonly asks: Askable;
  readonly next: number;
  /** The place of the call in its session, by which it is cancelled. Absent: cancelling it leaves the run alone. */
  readonly place?: string;
}

export class Legacy {
  readonly #ground: Ground;
  readonly #answerNews: AnswerNews;
  /** Calls that were cancelled before their runs were stored. */
  readonly #early: Set<string> = new Set();
  /** The runs of the calls whose streams are open here, by place: a call that found its run by a key is not in the labels of the run. */
  readonly #open: Map<string, Run> = new Map();

  constructor(ground: Ground, answerNews: AnswerNews) {
    this.#ground = ground;
    this.#answerNews = answerNews;
  }

  /** Makes the id of a new session. @param params those of `initialize`. */
  sessionFor(visit: Visit, params: JsonObject): string {
    const asks = { ...askableOf(params['capabilities']) };
    return this.#ground.seal.close('session', principalOf(visit), { id: randomUUID(), asks }, SESSION_HOLDS_MS);
  }

  /** @returns `undefined` for requests that the package answers; status 404 for an unknown session, so that the client begins a new one. */
  async response(visit: Visit, request: Request, message: RpcMessage | undefined): Promise<Response | undefined> {
    const session = this.#sessionOf(visit, request);
    if (session === undefined) return jsonResponse(errorMessage(null, SESSION_NOT_FOUND, 'Session not found'), 404);
    const version = request.headers.get(VERSION_HEADER) ?? PRIMED_SINCE;
    if (!sdk().SUPPORTED_PROTOCOL_VERSIONS.includes(version)) return undefined;
    if (request.method === 'GET') return this.#rest(visit, request);
    if (message === undefined) return undefined;
    const { id, method, params } = message;
    if (method === 'tools/call' && id !== undefined) return this.#call(visit, request, session, { id, params });
    if (method === 'notifications/cancelled') return this.#cancelled(visit, session, params['requestId']);
    if (method === undefined && id !== undefined) return this.#answer(visit, id, message.result ?? null);
    return undefined;
  }

  /** The session of a request. A client without a session cannot be asked. @returns `undefined` for an id that is not valid. */
  #sessionOf(visit: Visit, { headers }: Request): Partial<McpSession> | undefined {
    const sealed = headers.get(SESSION_HEADER);
    if (sealed === null) return {};
    return this.#ground.seal.open('session', principalOf(visit), sealed) as Partial<McpSession> | undefined;
  }

  async #call(
    visit: Visit,
    request: Request,
    session: Partial<McpSession>,
    { id, params }: { readonly id: RequestId; readonly params: JsonObject },
  ): Promise<Response> {
    try {
      const call = callParams(params);
      // In a session each id is used once: a second call with the same id is the first one, sent again.
      const known = session.id === undefined ? undefined : { place: placeOf(session.id, id) };
      return await visit.entering(async () => {
        const begun = await begin(this.#ground, visit, call, known);
        if ('result' in begun) return jsonResponse(resultMessage(id, begun.result));
        const { run, from: next, isOwn } = begun;
        if (known !== undefined && this.#early.delete(known.place)) await cancelled(run);
        const { progressToken: progress = null } = call;
        const place = isOwn ? known?.place : undefined;
        const position = { run: run.id, id, progress, asks: session.asks ?? NOT_ASKABLE, next, ...defined({ place }) };
        const isPrimed = (request.headers.get(VERSION_HEADER) ?? '') >= PRIMED_SINCE;
        return this.#stream(visit, run, position, isPrimed);
      });
    } catch (error) {
      const status = statusOf(error);
      const message = thrownMessage(id, error, this.#ground.onFault);
      return jsonResponse(message, status === 403 || status === 429 ? status : 200);
    }
  }

  /** Sends the rest of a stream whose connection broke. */
  async #rest(visit: Visit, { headers }: Request): Promise<Response> {
    const last = headers.get('last-event-id');
    // This server sends no messages outside of calls.
    if (last === null)
      return jsonResponse(errorMessage(null, METHOD_NOT_ALLOWED, 'Method not allowed.'), 405, { allow: 'POST' });
    const opened = this.#ground.seal.open('event', principalOf(visit), last);
    const position = opened as unknown as Position | undefined;
    if (position === undefined) return jsonResponse(errorMessage(null, SESSION_NOT_FOUND, 'No such event'), 404);
    const { run } = await visit.run(position.run);
    return this.#stream(visit, run, position, true);
  }

  #stream(visit: Visit, run: Run, position: Position, isPrimed: boolean): Response {
    const { onFault } = this.#ground;
    const eventOf = (message: JsonObject, next: number): ServerEvent => ({
      data: JSON.stringify(message),
      event: 'message',
      id: this.#eventId(visit, { ...position, next }),
    });
    const { id } = position;
    const messages = (signal: AbortSignal): AsyncGenerator<Said> => this.#messages(visit, run, position, signal);
    const first = isPrimed ? { data: '', id: this.#eventId(visit, position) } : undefined;
    return visit.stream(
      async function* (signal) {
        if (first !== undefined) yield first;
        for await (const { message, next } of messages(signal)) yield eventOf(message, next);
      },
      {
        // A server that closes sends no error, so that the client asks for the rest of the stream.
        onError: (error) =>
          PilotageError.is(error, 'runtime_closed')
            ? undefined
            : eventOf(thrownMessage(id, error, onFault), position.next),
      },
    );
  }

  #eventId(visit: Visit, position: Position): string {
    return this.#ground.seal.close('event', principalOf(visit), position as unknown as Json, this.#ground.holdsMs);
  }

  async *#messages(visit: Visit, run: Run, position: Position, signal: AbortSignal): AsyncGenerator<Said> {
    const hearing = this.#answerNews.of(run.id);
    const { place } = position;
    if (place !== undefined) this.#open.set(place, run);
    try {
      yield* this.#heardMessages(visit, run, position, { signal, hearing });
    } finally {
      hearing.leave();
      // A client that has come again reads another stream of the call.
      if (place !== undefined && this.#open.get(place) === run) this.#open.delete(place);
    }
  }

  async *#heardMessages(visit: Visit, run: Run, position: Position, { signal, hearing }: Hears): AsyncGenerator<Said> {
    const asked = new Set<string>();
    let { next } = position;
    for (;;) {
      const stands: Stands = yield* followed(run, next, signal, (progress) => progressOf(position, progress));
      const { result } = stands;
      ({ next } = stands);
      const pauses = result.status === 'paused' ? result.pauses : [];
      const open = asksFor(
        pauses.filter(({ token }) => !hearing.later.has(token)),
        position.asks,
      );
      if (open.size === 0) {
        yield { message: resultMessage(position.id, await toolResult(run, result, this.#ground)), next };
        return;
      }
      const refused = hearing.takeRefused();
      for (const token of refused.keys()) asked.delete(token);
      for (const [token, params] of open) {
        if (asked.has(token)) continue;
        asked.add(token);
        yield { message: this.#question(visit, run.id, token, params, refused.get(token)), next };
      }
      await hearing.untilNews(signal, (until) => untilMoved(run, next, until));
    }
  }

  #question(visit: Visit, run: string, token: string, params: JsonObject, refused: string | undefined): JsonObject {
    const id = this.#ground.seal.close('question', principalOf(visit), { run, token }, this.#ground.holdsMs);
    const message = refused === undefined ? params : { ...params, message: `${refused}\n${params['message']}` };
    return { jsonrpc: '2.0', id, method: 'elicitation/create', params: message };
  }

  /** Takes the answer to a question. Answers with an unknown id are ignored. */
  async #answer(visit: Visit, id: RequestId, response: Json): Promise<Response> {
    const opened = this.#ground.seal.open('question', principalOf(visit), id);
    if (opened !== undefined) await this.#answered(visit, opened as { run: string; token: string }, response);
    return new Response(null, { status: 202 });
  }

  async #answered(visit: Visit, question: { run: string; token: string }, response: Json): Promise<void> {
    const { run: id, token } = question;
    // An error means that the client cannot ask its user after all.
    const said = isJsonObject(response) ? response : { action: 'cancel' };
    try {
      const { run } = await visit.run(id, 'answer');
      const { later, refused } = await answered(run, await pausesNamed(run, [token]), { [token]: said });
      const [why] = refused;
      if (why !== undefined) this.#answerNews.tell(id, token, why);
      else if (later.length > 0) this.#answerNews.tell(id, token);
    } catch (error) {
      // Somebody else was first, or this visitor may not answer. The call goes on, and tells what comes of the run.
      if (statusOf(error) >= 500) throw error;
      this.#answerNews.tell(id, token);
    }
  }

  async #cancelled(visit: Visit, session: Partial<McpSession>, requestId: Json | undefined): Promise<Response> {
    if (session.id !== undefined && (typeof requestId === 'string' || typeof requestId === 'number')) {
      const place = placeOf(session.id, requestId);
      const run = this.#open.get(place)?.id ?? (await this.#begunAt(visit, place));
      if (run !== undefined) await cancelled((await visit.run(run, 'control')).run);
      else this.#cancelsEarly(place);
    }
    return new Response(null, { status: 202 });
  }

  async #begunAt(visit: Visit, place: string): Promise<string | undefined> {
    const [found] = await visit.runtime.list({ ...visit.owner, labels: { [PLACE_LABEL]: place }, limit: 1 });
    return found?.identity.run;
  }

  #cancelsEarly(place: string): void {
    this.#early.add(place);
    const [oldest] = this.#early;
    if (oldest !== undefined && this.#early.size > MAX_EARLY) this.#early.delete(oldest);
  }
}

interface Hears {
  readonly signal: AbortSignal;
  readonly hearing: CallNews;
}

interface Said {
  readonly message: JsonObject;
  /** The position from which the rest of the stream is read. */
  readonly next: number;
}

function progressOf(
  { progress: progressToken }: Position,
  { progress, message, next }: CallProgress,
): Said | undefined {
  if (progressToken === null) return undefined;
  const params = { progressToken, progress, message };
  return { message: { jsonrpc: '2.0', method: 'notifications/progress', params }, next };
}

function cancelled(run: Run): Promise<void> {
  return cancelUnlessEnded(run, { reason: 'The client has cancelled its call.' });
}

function placeOf(session: string, id: RequestId): string {
  return digestOf([session, id]);
}
