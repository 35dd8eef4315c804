/**
 * What a tool waits for in the middle of its work. Its n-th wait that has ended gives what is recorded; at one that has not, the attempt is
 * stopped, and the call is parked. When something that it waits for has ended, its function runs again from its start.
 */
import {
  assertOptions,
  type CallWait,
  captureObject,
  defined,
  isEventKey,
  type JsonObject,
  jsonEquals,
  MAX_KEY_CHARS,
  MAX_QUESTION_CHARS,
  type OptionShape,
  PilotageError,
  readMoment,
  type Thrown,
  timeAfter,
  type WaitEnd,
  type WaitFor,
} from '#core';
import type { WaitState } from '#state';
import {
  type AwaitedEvent,
  checkOf,
  type InputSchema,
  jsonSchemaOf,
  type Question,
  type SleepTime,
  type ValueCheck,
} from '#tools';
import { isInWork } from './kept-work.ts';

/** A wait that a call begins, and what is asked, if it is a question. */
export interface NewWait extends Omit<CallWait, 'token' | 'wait'> {
  readonly wait: number;
  readonly question?: Asked | AskedOfClient;
}

interface Asked {
  readonly message: string;
  readonly payload?: JsonObject;
}

/** A client is to carry the call out. */
interface AskedOfClient {
  readonly reason: 'client_tool';
  /** What it is shown beside the name of the tool. */
  readonly shown: JsonObject;
}

export interface WaitPorts {
  /** What the call has waited for before, in order. */
  readonly known: readonly WaitState[];
  /** Milliseconds since the epoch. */
  now(): number;
  /** The words as they are recorded: without secrets. */
  recorded(words: string): string;
  /** The attempt waits, and nothing of it is under way: it is to be stopped, if it has not ended yet. */
  stop(): void;
  /** Asks while the call stays open, unless the answer is known. Resolves when the wait has ended. */
  hold(asked: NewWait): Promise<WaitEnd>;
}

/** How an attempt ends that waits. Without it, it must not wait. */
export interface WaitingStops {
  /** Nothing of it is under way; also of one that has ended. */
  idle(): void;
  /** Its function runs again later. False when it has ended already. */
  park(): boolean;
  /** A part of its work may be done, and would be done again. Absent: it may be done again. */
  readonly fail?: (error: Thrown) => void;
}

/** What the end of a wait is for the tool. */
interface Ends<T> {
  /** What a value that comes has to fit, and is made of it. */
  readonly check?: ValueCheck | undefined;
  /** It ended without a value. */
  over(end: WaitEnd): T;
}

const QUESTION: OptionShape<Question> = {
  question: 'text',
  schema: 'any?',
  payload: 'object?',
  expiresInMs: 'any?',
  hold: 'flag?',
};
const SLEEP: OptionShape<{ until?: unknown; forMs?: unknown }> = { until: 'any?', forMs: 'any?' };
const EVENT: OptionShape<AwaitedEvent> = { key: 'text', schema: 'any?', timeoutMs: 'any?' };

/** The most characters of a question, and of the key of an event. */
/** The most waits of one call. Each time that it goes on, all of them are gone through again. */
const MAX_WAITS = 1_000;

/** The waits of one attempt. */
export class AttemptWaits {
  readonly #ports: WaitPorts;
  readonly #begun: NewWait[] = [];
  #count = 0;
  /** Works under way that are recorded when they have ended: the attempt is not stopped before. */
  #works = 0;
  #isWaiting = false;
  #check: NodeJS.Immediate | undefined;

  constructor(ports: WaitPorts) {
    this.#ports = ports;
  }

  /** What the attempt has begun to wait for. */
  get begun(): readonly NewWait[] {
    return this.#begun;
  }

  ask(given: Question<InputSchema | undefined>): Promise<unknown> {
    assertOptions('context.ask', given, QUESTION);
    const { question: message, schema, expiresInMs, hold = false } = given;
    assertWords('The question', message, MAX_QUESTION_CHARS);
    const payload = given.payload === undefined ? undefined : captureObject(given.payload, 'payload').json;
    const until = expiresInMs === undefined ? undefined : this.#after('expiresInMs', expiresInMs);
    const wanted = { for: 'answer' as const, ...defined({ until, schema: schema && jsonSchemaOf(schema, OF_ASK) }) };
    const check = schema && checkOf(schema, OF_ASK);
    const over = (end: WaitEnd): never => {
      throw withoutAnswer(end, message);
    };
    // Half of a letter, as a model may leave it, is shown as one that is missing.
    const question = defined({ message: this.#ports.recorded(message.toWellFormed()), payload });
    return this.#wait({ ...wanted, question }, { check, over }, hold);
  }

  sleep(given: SleepTime): Promise<void> {
    assertOptions('context.sleep', given, SLEEP);
    const until = untilOf(given, this.#ports.now());
    const over = (end: WaitEnd): void => {
      if (end.ended !== 'time') throw superseded('The wait for a time');
    };
    return this.#wait({ for: 'time', until }, { over });
  }

  event(given: AwaitedEvent<InputSchema | undefined>): Promise<unknown> {
    assertOptions('context.event', given, EVENT);
    const { key, schema, timeoutMs } = given;
    assertWords('The key of an event', key, MAX_KEY_CHARS);
    if (!isEventKey(key)) throw unfitKey();
    const until = timeoutMs === undefined ? undefined : this.#after('timeoutMs', timeoutMs);
    const wanted = {
      for: 'event' as const,
      key,
      ...defined({ until, schema: schema && jsonSchemaOf(schema, OF_EVENT) }),
    };
    const check = schema && checkOf(schema, OF_EVENT);
    const over = ({ ended }: WaitEnd): never => {
      if (ended !== 'timeout') throw superseded(`The wait for ${key}`);
      throw new PilotageError('event_timeout', `Nothing came for ${key} in time.`, { data: { key } });
    };
    return this.#wait(wanted, { check, over });
  }

  #after(name: string, given: unknown): number {
    return timeAfter(this.#ports.now(), durationOf(name, given));
  }

  /** The attempt is stopped only when this work has ended. */
  async within<T>(work: () => Promise<T>): Promise<T> {
    this.#works += 1;
    try {
      return await work();
    } finally {
      this.#works -= 1;
      this.#lookSoon();
    }
  }

  #wait<T>(wanted: Omit<NewWait, 'wait'>, ends: Ends<T>, isHeld = false): Promise<T> {
    if (isInWork()) throw waitsInWork();
    this.#count += 1;
    const wait = this.#count;
    if (wait > MAX_WAITS) throw tooManyWaits();
    const known = this.#ports.known[wait - 1];
    if (known !== undefined) assertSame(known, wanted);
    const asked = { ...wanted, wait };
    const { end } = known ?? {};
    if (isHeld) return this.within(() => this.#hold(asked, ends));
    if (known === undefined) this.#begun.push(asked);
    if (end === undefined) return this.#park();
    return this.within(() => endWith(end, ends)).then(({ value, refused }) => {
      if (refused === undefined) return value as T;
      // It is waited for once more, as long as before.
      const { until: _, ...again } = asked;
      this.#begun.push({ ...again, ...defined({ until: known?.until, again: refused }) });
      return this.#park();
    });
  }

  /** Asks until what is answered fits. */
  async #hold<T>(asked: NewWait, ends: Ends<T>): Promise<T> {
    let again = asked;
    for (;;) {
      const { value, refused } = await endWith(await this.#ports.hold(again), ends);
      if (refused === undefined) return value as T;
      again = { ...asked, again: refused };
    }
  }

  #park(): Promise<never> {
    this.#isWaiting = true;
    this.#lookSoon();
    // Nothing of this attempt goes on behind the wait.
    return new Promise<never>(() => {});
  }

  /** In the next turn of the event loop: a tool may begin several waits at once. */
  #lookSoon(): void {
    if (!this.#isWaiting) return;
    clearImmediate(this.#check);
    this.#check = setImmediate(() => {
      if (this.#isWaiting && this.#works === 0) this.#ports.stop();
    });
  }
}

const OF_ASK = 'context.ask';
const OF_EVENT = 'context.event';

/** A tool that asks, or waits for, something else than before would get the answer to another question. */
export function assertSame(known: WaitState, wanted: Omit<NewWait, 'wait'>): void {
  const changed = whatChanged(known, wanted);
  if (changed === undefined) return;
  const message = `Wait ${known.wait} of the call ${changed}. A tool that waits has to wait for the same things in the same order whenever it runs again: what decides about it, and about the words of a question, belongs into context.once.`;
  throw new PilotageError('wait_changed', message, { data: { wait: known.wait } });
}

function whatChanged(known: WaitState, wanted: Omit<NewWait, 'wait'>): string | undefined {
  if (known.for !== wanted.for || known.key !== wanted.key) return `was ${named(known)}, and is ${named(wanted)} now`;
  if (!jsonEquals(known.schema ?? null, wanted.schema ?? null)) return `is ${named(wanted)} with another schema now`;
  const { question } = wanted;
  const asks = question !== undefined && 'message' in question ? question.message : undefined;
  if (known.question === undefined || asks === undefined || known.question === asks) return undefined;
  return `asked ${shown(known.question)}, and asks ${shown(asks)} now`;
}

function shown(words: string): string {
  return JSON.stringify(words.length > MOST_SHOWN ? `${words.slice(0, MOST_SHOWN)}…` : words);
}

const MOST_SHOWN = 200;

const FUNCTIONS: Readonly<Record<WaitFor, string>> = {
  answer: 'context.ask',
  time: 'context.sleep',
  event: 'context.event',
};

function named({ for: what, key }: Pick<NewWait, 'for' | 'key'>): string {
  return key === undefined ? FUNCTIONS[what] : `${FUNCTIONS[what]} for ${JSON.stringify(key)}`;
}

/** What the tool gets, or why what came is not it. @throws why nothing came. */
async function endWith<T>(end: WaitEnd, { check, over }: Ends<T>): Promise<{ value?: unknown; refused?: string }> {
  if (end.ended !== 'answer' && end.ended !== 'event') return { value: over(end) };
  const given = end.ended === 'answer' ? end.value : end.payload;
  if (check === undefined) return { value: given };
  const checked = await check(given);
  return checked.ok ? { value: checked.value } : { refused: checked.why };
}

function withoutAnswer(end: WaitEnd, question: string): PilotageError {
  const asked = JSON.stringify(question);
  if (end.ended === 'timeout') return new PilotageError('question_expired', `Nobody answered ${asked} in time.`);
  if (end.ended !== 'declined') return superseded(`The question ${asked}`);
  const why = end.reason === undefined ? '' : ` The reason: ${end.reason}`;
  const data = defined({ reason: end.reason });
  return new PilotageError('question_declined', `Somebody declined to answer ${asked}.${why}`, { data });
}

function superseded(what: string): PilotageError {
  return new PilotageError('superseded', `${what} was given up, since the user wrote or the goal was changed.`);
}

function assertWords(what: string, words: string, most: number): void {
  if (words !== '' && words.length <= most) return;
  const wrong = words === '' ? 'is empty' : `has more than ${most} characters`;
  const message = `${what} ${wrong}. Give a text of 1 to ${most} characters, and what belongs to it as payload.`;
  throw new PilotageError('invalid_config', message);
}

function unfitKey(): PilotageError {
  const message =
    'The key of an event is blank, or has a character that no signal can have. Give a text such as order-17, which whoever signals it can compute too.';
  return new PilotageError('invalid_config', message);
}

function waitsInWork(): PilotageError {
  const message =
    'A work of context.once cannot wait: it is done in one go, and recorded as a whole. Wait before it or behind it, and split the work in two.';
  return new PilotageError('invalid_config', message);
}

function tooManyWaits(): PilotageError {
  const message = `A call waits at most ${MAX_WAITS} times. End it, and let the agent or the flow call the tool again.`;
  return new PilotageError('invalid_config', message);
}

function untilOf(
  { until, forMs }: { readonly until?: Date | number | string; readonly forMs?: number },
  now: number,
): number {
  if ((until === undefined) === (forMs === undefined)) {
    throw new PilotageError('invalid_config', 'context.sleep takes either until, a time, or forMs, milliseconds.');
  }
  if (forMs !== undefined) return timeAfter(now, durationOf('forMs', forMs));
  return readMoment('The option until of context.sleep', until, now);
}

function durationOf(name: string, given: unknown): number {
  if (typeof given === 'number' && Number.isFinite(given) && given >= 0) return given;
  throw new PilotageError(
    'invalid_config',
    `${name} must be a number of milliseconds, from 0; it is ${String(given)}.`,
  );
}
