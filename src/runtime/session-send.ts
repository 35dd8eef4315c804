/** Puts a message into a session: it begins a turn, or is told to the turn that is under way, in one commit. */
import { hash } from 'node:crypto';
import {
  type AcceptedMessage,
  type Control,
  deepFreeze,
  defined,
  type Entry,
  type Identity,
  INTERRUPT,
  type JsonObject,
  messageParts,
  PilotageError,
  type ScheduleOrigin,
  type Scope,
  SESSION_MESSAGE,
  scopeKey,
  TURN_RUN,
  type TurnOrigin,
  wordsIn,
} from '#core';
import type { NewRun, ScheduleMove, Sending, SessionRecord, Told } from '#journal';
import { foldEntries } from '#state';
import { isQuestion } from '../loop/controls.ts';
import type { Gate } from './gate.ts';
import { firstEntry, type Starting } from './new-run.ts';
import type { RunHost } from './run-host.ts';
import { turnsBehind } from './session-path.ts';
import { activeTurn } from './session-turns.ts';
import type { StartOptions } from './start-options.ts';

/** What a message does while a turn is under way. */
export const BUSY_MODES = ['queue', 'steer', 'interrupt', 'reject'] as const;
export type BusyMode = (typeof BUSY_MODES)[number];

/** What became of a message. `known`: it was accepted before. */
export type Acceptance = 'started' | 'queued' | 'steered' | 'interrupts' | 'known';

export interface Outgoing {
  readonly id: string;
  /** The payload of the message: its words, files, author. */
  readonly payload: JsonObject;
  readonly busy: BusyMode;
  readonly options: StartOptions;
  /** The turn in whose place the message's is, if it is not behind the last one. */
  readonly replaces?: string;
  /** The turn that the caller has named for it. What it replaces may be another one by the time that the message is sent again. */
  readonly inPlaceOf?: string;
  /** The messages that the turn answers, when they are those of the turn that it replaces. */
  readonly messages?: TurnOrigin['messages'];
  /** Set when a schedule sends it: it always begins a turn, for it answers nobody's question. */
  readonly scheduled?: { readonly origin: ScheduleOrigin; readonly move: ScheduleMove };
}

export interface Accepted {
  /** The run that has the message. */
  readonly run: string;
  readonly as: Acceptance;
  /** The run that a steered message begins which comes too late for the turn that was under way. */
  readonly own: string;
}

/** Ids that follow from the message's, so that it is accepted once. An edited message may keep its id: it is another one for each turn in whose place it was sent. */
function idsOf(scope: Scope, message: string, inPlaceOf?: string): { readonly run: string; readonly control: string } {
  const parts = [scopeKey(scope), message, ...(inPlaceOf === undefined ? [] : [inPlaceOf])];
  const digest = hash('sha256', parts.join('\n')).slice(0, 32);
  return { run: `${TURN_RUN}${digest}`, control: `${SESSION_MESSAGE}${digest}` };
}

export class Sender {
  readonly #host: RunHost;
  readonly #starting: Starting;
  readonly #gate: Gate | undefined;

  constructor(host: RunHost, starting: Starting, gate?: Gate) {
    this.#host = host;
    this.#starting = starting;
    this.#gate = gate;
  }

  /** @throws PilotageError `session_busy`, `runtime_closed`, or as `Runtime.start`. */
  send(scope: Scope, outgoing: Outgoing): Promise<Accepted> {
    // Side by side, each that begins a turn or interrupts one, and each turn that ends, would make all others begin again.
    return this.#host.sends.after([scopeKey(scope)], () => this.#accepted(scope, outgoing));
  }

  async #accepted(scope: Scope, outgoing: Outgoing): Promise<Accepted> {
    const known = idsOf(scope, outgoing.id, outgoing.inPlaceOf);
    for (;;) {
      this.#host.assertOpen();
      const asked = await this.#request(scope, known, outgoing);
      if (asked === undefined) continue;
      const { request, way } = asked;
      try {
        return await this.#sent(request, way, known.run);
      } catch (error) {
        if (!PilotageError.is(error, 'session_changed')) throw error;
        if (way.as === 'started' && way.busyWith !== undefined) await this.#assertFree(scope);
      }
    }
  }

  /** What is to be stored, as the session is now; `undefined` when it was deleted while it was looked at. */
  async #request(
    scope: Scope,
    known: Sending['known'],
    outgoing: Outgoing,
  ): Promise<{ readonly request: Sending; readonly way: Way } | undefined> {
    const { journal } = this.#host.deps;
    const { replaces } = outgoing;
    const record = await journal.sessions.get(scope);
    const way = await this.#wayFor(outgoing, record).catch((error: unknown) => {
      if (PilotageError.is(error, 'run_not_found')) return undefined;
      throw error;
    });
    if (way === undefined) return undefined;
    const branch = record?.branch;
    const place = replaces === undefined ? defined({ after: branch }) : { replaces };
    const last = replaces === undefined ? record && (await activeTurn(journal, record)) : await journal.get(replaces);
    const request: Sending = {
      scope,
      known,
      seen: { live: way.seen, branch: branch ?? null, ...(record === undefined ? { isNew: true } : {}) },
      ...(outgoing.scheduled === undefined ? {} : { fires: { ...outgoing.scheduled.move, run: known.run } }),
      ...(way.as === 'steered'
        ? { tells: [{ run: way.run, message: this.#steering(known, outgoing) }] }
        : await this.#turn(
            { ...scope, run: known.run },
            outgoing,
            way,
            place,
            defined({ record, agent: last?.agent }),
          )),
    };
    return { request, way };
  }

  /** @throws PilotageError `session_busy`. */
  async #assertFree(scope: Scope): Promise<void> {
    const { live } = (await this.#host.deps.journal.sessions.get(scope)) ?? {};
    if (live !== undefined) throw sessionBusy(scope, live.run);
  }

  async #sent(request: Sending, way: Way, run: string): Promise<Accepted> {
    const { fleet } = this.#host;
    const before = await fleet.sendMessage(request);
    if (before !== undefined) return { run: before, as: 'known', own: run };
    if (way.as === 'steered') {
      await fleet.told(way.run);
      return { run: way.run, as: 'steered', own: run };
    }
    for (const { run: told } of request.tells ?? []) await fleet.told(told);
    // The process that has the turn under way may be gone.
    if (way.as === 'queued') fleet.wake(way.seen.run);
    return { run, as: way.as, own: run };
  }

  async #wayFor({ busy, replaces, scheduled }: Outgoing, record: SessionRecord | undefined): Promise<Way> {
    const { live } = record ?? {};
    if (record === undefined || live === undefined) return { as: 'started', seen: null };
    const { run, signals } = live;
    if (busy !== 'reject' && (await this.#gate?.mayRead(run)) === false) return { as: 'queued', seen: { run } };
    // Every interruption is a signal of the turn under way: of two senders, one sees what the other has done.
    const interrupts = async (): Promise<Way> => {
      await this.#gate?.assertMaySend('CANCEL', run);
      return { as: 'interrupts', run: await this.#lastInterrupting(record, run), seen: { run, signals } };
    };
    const steers = async (seen: { readonly run: string; readonly signals?: number }): Promise<Way> => {
      await this.#gate?.assertMaySend('USER_MESSAGE', run);
      return { as: 'steered', run, seen };
    };
    if (live.status === 'paused' && scheduled === undefined && (await this.#asksItsUser(run))) {
      // An edit does not answer the question, which is withdrawn.
      return replaces === undefined ? steers({ run, signals }) : interrupts();
    }
    switch (busy) {
      case 'queue':
        return { as: 'queued', seen: { run } };
      case 'steer':
        return steers({ run });
      case 'interrupt':
        return interrupts();
      case 'reject':
        // The store knows it when it was accepted before, and may have its turn under way; else it finds that somebody is at work.
        return { as: 'started', seen: null, busyWith: run };
      default:
        return busy satisfies never;
    }
  }

  /** The turn that waits to take the place of the one under way, and is interrupted in turn; that one itself when there is none. */
  async #lastInterrupting({ waiting, turns, ...scope }: SessionRecord, live: string): Promise<string> {
    if (waiting === 0) return live;
    const { journal } = this.#host.deps;
    const { turn = 0 } = (await journal.get(live)) ?? {};
    let link = live;
    let last = live;
    for await (const { identity, waits, turnOrigin } of turnsBehind(journal, scope, turn)) {
      if (turnOrigin?.interrupts === link) {
        link = identity.run;
        if (waits === true) last = link;
      } else if (waits === true) break;
    }
    return last;
  }

  /** Its planner has asked the user, and nobody has answered. */
  async #asksItsUser(run: string): Promise<boolean> {
    const { journal } = this.#host.deps;
    if ((await journal.inbox(run)).length > 0) return false;
    return foldEntries(await journal.read(run)).pauses.some(isQuestion);
  }

  async #turn(
    identity: Identity,
    { id, payload, options, messages, scheduled }: Outgoing,
    way: Exclude<Way, { as: 'steered' }>,
    place: Pick<TurnOrigin, 'after' | 'replaces'>,
    before: { readonly record?: SessionRecord; readonly agent?: string },
  ): Promise<Pick<Sending, 'starts' | 'tells'>> {
    const interrupts = way.as === 'interrupts' ? way.run : undefined;
    const { inputs, author } = messageParts(payload);
    const turn: TurnOrigin = { messages: messages ?? [acceptedAs(id, payload)], ...place, ...defined({ interrupts }) };
    const given = { ...this.#withAgent(options, before.agent), inputs, ...defined({ author }) };
    const entry = await firstEntry(this.#starting, wordsIn(payload), identity, given, {
      turn,
      ...defined({ schedule: scheduled?.origin }),
    });
    const { priority = 0 } = options;
    const waits = interrupts === undefined ? 'last' : 'next';
    const first = before.record === undefined ? this.#host.deps.firstTurn() : undefined;
    const started = first && deepFreeze<Entry>({ ...first, seq: 2, at: entry.at });
    const starts: NewRun = { identity, priority, entries: started ? [entry, started] : [entry], waits };
    if (interrupts === undefined || way.seen === null) return { starts };
    const cancelled = new Set([way.seen.run, interrupts]);
    return { starts, tells: [...cancelled].map((run) => interrupting(run, identity.run)) };
  }

  /** The agent to which the conversation was handed over last has it, as long as the runtime knows that agent. */
  #withAgent(options: StartOptions, lastAgent: string | undefined): StartOptions {
    if (lastAgent === undefined || this.#starting.agents.find(lastAgent) === undefined) return options;
    return { ...options, agent: lastAgent };
  }

  /** A run that ends before it hears of the message begins the next turn with it. */
  #steering({ control }: Sending['known'], { id, payload }: Outgoing): Control {
    const turnMessage = acceptedAs(id, payload);
    return this.#starting.deps.redaction.control({ id: control, type: 'USER_MESSAGE', payload, turnMessage });
  }
}

function sessionBusy({ session }: Scope, run: string): PilotageError {
  return new PilotageError(
    'session_busy',
    `The session ${session} has a turn under way (run ${run}). Wait for it, or send the message with busy: 'queue', 'steer' or 'interrupt'.`,
    { data: { run } },
  );
}

function acceptedAs(id: string, payload: JsonObject): AcceptedMessage {
  const { author, notice } = messageParts(payload);
  return { id, ...defined({ author }), ...(notice ? { notice } : {}) };
}

function interrupting(run: string, by: string): Told {
  const payload = { reason: 'The user has sent another message.', by };
  return { run, message: { id: `${INTERRUPT}${by}`, type: 'CANCEL', payload } };
}

/** How a message goes on its way, as the session is. */
type Way =
  /** `busyWith`: the turn because of which it is refused, unless it was accepted before. */
  | { readonly as: 'started'; readonly seen: null; readonly busyWith?: string }
  | { readonly as: 'queued'; readonly seen: { readonly run: string } }
  | {
      readonly as: 'steered' | 'interrupts';
      readonly run: string;
      readonly seen: NonNullable<Sending['seen']['live']>;
    };
