/** Tells a client of a turn: first what has happened that the client does not know, then what happens. */
import { type ErrorData, isRecorded, PilotageError, type RunEvent } from '#core';
import { clientCallId } from '#messages';
import type { Run } from '#runtime';
import { DataRows } from './data-rows.ts';
import { interruptOf } from './interrupts.ts';
import { Mapper } from './mapper.ts';
import { withOwnOf } from './messages.ts';
import { type AgUiEvent, type AgUiMessage, isFirstVersion, type RunAgentInput } from './protocol.ts';
import { keptState } from './state.ts';

/** How far a client knows a turn and the tasks below it: the last position of each run. */
export type Known = ReadonlyMap<string, number>;

export interface TellingOptions {
  readonly input: RunAgentInput;
  readonly errorText: (error: ErrorData) => string;
  /** Gives the visitor's handle of a run. */
  readonly runOf: (id: string) => Run;
  /** The messages of the thread before this turn. */
  readonly before: () => Promise<readonly AgUiMessage[]>;
  readonly signal: AbortSignal;
  /** Where the telling begins in the middle of the turn, all messages are told at once. */
  readonly isAnew?: boolean;
}

export class Telling {
  readonly mapper: Mapper;
  readonly #options: TellingOptions;
  readonly #rows: DataRows;
  /** The messages, calls and results that the client has already and that are still to come here. */
  #held: Held;
  #client: readonly AgUiMessage[];
  #wake = (): void => {};
  #isMuted: boolean;
  readonly #known: Known;

  constructor(options: TellingOptions, known: Known = new Map()) {
    const { input, errorText } = options;
    this.#options = options;
    this.#known = known;
    this.#isMuted = known.size > 0;
    this.mapper = new Mapper({ errorText, state: keptState(input.state) });
    this.#rows = new DataRows(
      (row) => this.mapper.state.report(row),
      () => this.#wake(),
    );
    this.#client = input.messages;
    this.#held = heldOf(input.messages, []);
  }

  /** Tells all of a run but its start and its end. */
  async *of(run: Run): AsyncGenerator<AgUiEvent, void> {
    const { signal } = this.#options;
    if (!this.#isMuted) yield { type: 'STATE_SNAPSHOT', snapshot: this.mapper.state.snapshot() };
    try {
      yield* this.#follow(run.events({ tasks: true, signal }));
      await this.#rows.end();
    } finally {
      this.#rows.leave();
    }
    if (signal.aborted) return;
    yield* this.#begun();
    if (this.#client.some((message) => this.mapper.isVoid(message))) yield await this.#snapshot();
    yield* this.#changed();
  }

  /** Tells how the turn has ended. */
  async *end(): AsyncGenerator<AgUiEvent, void> {
    const { input, errorText, signal } = this.#options;
    const { end, state } = this.mapper;
    if (signal.aborted) return;
    yield* this.mapper.closed();
    if (this.mapper.isOutOfStep()) yield await this.#snapshot();
    const of = { threadId: input.threadId, runId: input.runId };
    const usage = state.usage === undefined ? {} : { usage: [this.#usage(state.usage)] };
    if (end === undefined) throw new PilotageError('run_not_found', 'The run is not there any more.');
    switch (end.kind) {
      case 'failed':
        return yield { type: 'RUN_ERROR', message: errorText(end.error), code: end.error.code, ...usage };
      case 'cancelled': {
        const outcome = isFirstVersion(input) ? { outcome: { type: 'cancelled' as const } } : {};
        return yield { type: 'RUN_FINISHED', ...of, ...outcome, ...usage };
      }
      case 'finished': {
        const result = end.payload === undefined ? {} : { result: end.payload };
        return yield { type: 'RUN_FINISHED', ...of, ...result, outcome: { type: 'success' }, ...usage };
      }
      case 'paused':
        return yield* this.#paused(end.pauses, { ...of, ...usage });
      default:
        end satisfies never;
    }
  }

  async *#paused(
    pauses: Extract<Mapper['end'], { kind: 'paused' }>['pauses'],
    of: { readonly threadId: string; readonly runId: string },
  ): AsyncGenerator<AgUiEvent, void> {
    const isClients = ({ reason }: { readonly reason: string }): boolean => reason === 'client_tool';
    const asked = pauses.filter((pause) => !isClients(pause));
    if (asked.length > 0) {
      yield { type: 'STATE_SNAPSHOT', snapshot: this.mapper.state.snapshot() };
      yield await this.#snapshot();
      const interrupts = asked.map((pause) => interruptOf(pause, this.mapper));
      return yield { type: 'RUN_FINISHED', ...of, outcome: { type: 'interrupt', interrupts } };
    }
    const ids = pauses.flatMap((pause) => clientCallId(pause) ?? []);
    const pending = isFirstVersion(this.#options.input) && ids.length > 0 ? { pendingToolCallIds: ids } : {};
    yield { type: 'RUN_FINISHED', ...of, outcome: { type: 'success', ...pending } };
  }

  #usage({ cacheWriteInputTokens, ...usage }: NonNullable<Mapper['state']['usage']>) {
    const isTold = cacheWriteInputTokens !== undefined && isFirstVersion(this.#options.input);
    return isTold ? { ...usage, cacheWriteInputTokens } : usage;
  }

  async *#follow(events: AsyncGenerator<RunEvent, void>): AsyncGenerator<AgUiEvent, void> {
    let next = events.next();
    try {
      for (;;) {
        await this.#news(next);
        yield* this.#changed();
        const { done, value } = (await settledNow(next)) ?? {};
        if (done === true) return;
        if (value === undefined) continue;
        yield* this.#tell(value);
        next = events.next();
      }
    } finally {
      void events.return(undefined).catch(() => {});
    }
  }

  /** Resolves when there is an event or a row. */
  #news(next: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      const now = (): void => resolve();
      next.then(now, now);
    });
  }

  async *#tell(event: RunEvent): AsyncGenerator<AgUiEvent, void> {
    if (event.type === 'tool.invoked' && event.path === undefined)
      await this.#rows.begin(this.#options.runOf(event.identity.run));
    if (this.#isMuted && this.#isNew(event)) yield* this.#begun();
    const events = this.mapper.of(event);
    if (this.#isMuted) return void this.mapper.isOutOfStep();
    yield* this.#fresh(events);
    if (this.mapper.isOutOfStep()) yield await this.#snapshot();
    yield* this.#changed();
  }

  #isNew(event: RunEvent): boolean {
    const { seq, identity } = event;
    return !isRecorded(event) || seq > (this.#known.get(identity.run) ?? Number.POSITIVE_INFINITY);
  }

  /** Begins to tell the client. */
  async *#begun(): AsyncGenerator<AgUiEvent, void> {
    if (!this.#isMuted) return;
    this.#isMuted = false;
    const { messages, state } = this.mapper;
    yield { type: 'STATE_SNAPSHOT', snapshot: state.snapshot() };
    if (
      this.#options.isAnew === true ||
      messages.some(({ id, role }) => role === 'assistant' && !this.#held.messages.has(id))
    )
      yield await this.#snapshot();
    yield* this.mapper.reopened();
  }

  *#changed(): Generator<AgUiEvent, void> {
    if (this.#isMuted) return;
    const delta = this.mapper.state.delta();
    if (delta.length > 0) yield { type: 'STATE_DELTA', delta };
  }

  /** Tells events without what the client has already, which it would otherwise add a second time. */
  async *#fresh(events: readonly AgUiEvent[]): AsyncGenerator<AgUiEvent, void> {
    const news = events.filter((event) => !this.#isHeld(event));
    if (!news.some((event) => this.#isStale(event))) return yield* news;
    yield await this.#snapshot();
    // The snapshot had all that the messages hold now.
    yield* news.filter(
      (event) => !isWords(event) && event.type !== 'TOOL_CALL_ARGS' && event.type !== 'TOOL_CALL_RESULT',
    );
  }

  /** Whether the client has the message that the event is about, perhaps with other words. */
  #isStale(event: AgUiEvent): boolean {
    if (isWords(event)) return this.#held.messages.has(event.messageId);
    if (event.type !== 'TOOL_CALL_START') return false;
    const { toolCallId, parentMessageId } = event;
    const isHeld = this.#held.messages.has(parentMessageId) || this.#held.calls.has(toolCallId);
    return isHeld && saidIn(this.#client, event) !== saidIn(this.mapper.messages, event);
  }

  #isHeld(event: AgUiEvent): boolean {
    const { messages, calls, results, words } = this.#held;
    switch (event.type) {
      case 'TOOL_CALL_RESULT':
        return messages.has(event.messageId) || results.has(event.toolCallId);
      case 'TOOL_CALL_ARGS':
        return calls.has(event.toolCallId);
      case 'TEXT_MESSAGE_START':
      case 'TEXT_MESSAGE_CONTENT':
      case 'TEXT_MESSAGE_END':
        return words.has(event.messageId);
      default:
        return false;
    }
  }

  async #snapshot(): Promise<AgUiEvent> {
    const before = await this.#options.before();
    const { messages: own } = this.mapper;
    const client = this.#client.filter((message) => !this.mapper.isVoid(message));
    this.#client = withOwnOf(client, [...before, ...own]);
    this.#held = heldOf(this.#client, own);
    return { type: 'MESSAGES_SNAPSHOT', messages: this.#client };
  }
}

/** Sets of ids. `results` holds the ids of calls, `words` those of the user's messages. */
interface Held {
  readonly messages: ReadonlySet<string>;
  readonly calls: ReadonlySet<string>;
  readonly results: ReadonlySet<string>;
  readonly words: ReadonlySet<string>;
}

/** What the client has that it was not told by this server. */
function heldOf(client: readonly AgUiMessage[], told: readonly AgUiMessage[]): Held {
  const without = (ids: (message: AgUiMessage) => readonly string[]): ReadonlySet<string> => {
    const known = new Set(told.flatMap(ids));
    return new Set(client.flatMap(ids).filter((id) => !known.has(id)));
  };
  return {
    messages: without(({ id }) => [id]),
    calls: without(({ toolCalls = [] }) => toolCalls.map(({ id }) => id)),
    results: without(({ role, toolCallId }) => (role === 'tool' && toolCallId !== undefined ? [toolCallId] : [])),
    words: new Set(client.flatMap(({ role, id }) => (role === 'user' ? [id] : []))),
  };
}

/** The text beside a call, and the arguments of the call. */
function saidIn(
  messages: readonly AgUiMessage[],
  { parentMessageId, toolCallId }: AgUiEvent<'TOOL_CALL_START'>,
): string {
  const { content = '', toolCalls = [] } = messages.find(({ id }) => id === parentMessageId) ?? {};
  const call = toolCalls.find(({ id }) => id === toolCallId);
  return JSON.stringify([content, call?.function.arguments ?? null]);
}

function isWords(event: AgUiEvent): event is AgUiEvent<'TEXT_MESSAGE_CONTENT' | 'REASONING_MESSAGE_CONTENT'> {
  return event.type === 'TEXT_MESSAGE_CONTENT' || event.type === 'REASONING_MESSAGE_CONTENT';
}

const PENDING = Symbol('pending');

/** The value of a promise that is settled already. */
async function settledNow<T>(promise: Promise<T>): Promise<T | undefined> {
  const first = await Promise.race([promise, Promise.resolve(PENDING)]);
  return first === PENDING ? undefined : (first as T);
}
