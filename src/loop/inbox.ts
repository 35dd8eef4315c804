/** What is said to a run that is driven here: heard at once or at the next boundary, and taken as entries. */
import {
  type Caller,
  type Control,
  type Entry,
  type EntryBody,
  type ErrorData,
  isControl,
  isDismissal,
  isPlan,
  isSecondCancel,
  type Json,
  type Message,
  type Outcome,
  PilotageError,
  withdrawsQuestions,
} from '#core';
import { patiently, type Received, storedJsonIfAny } from '#journal';
import { closedIn, isSteering, presentName, type RunState, unfitToCancel } from '#state';
import type { AuthorisedTools } from '#tools';
import { prepareCall } from '../calls/arguments.ts';
import { unfitBreakpoint } from '../calls/breakpoint.ts';
import { turn } from '../calls/large-values.ts';
import { valueOutcome } from '../calls/outcome.ts';
import { retriesOf } from '../tasks/retries.ts';
import { withdrawBelow } from '../tasks/withdraw.ts';
import { isVerdict, type TakePorts } from './answers.ts';
import { placeToCancel, takeMessages } from './controls.ts';
import type { DriverDeps } from './driver-deps.ts';
import type { Changes, Hearing } from './run-writer.ts';

export interface InboxPorts {
  readonly deps: DriverDeps;
  readonly state: RunState;
  tools(): AuthorisedTools;
  commit(bodies: readonly EntryBody[], changes: Changes): Promise<void> | undefined;
  /** Until the state knows all that was given to be written. */
  untilWritten(): Promise<void>;
  /** Everything may be taken now. */
  isBoundary(): boolean;
  /** A hard cancel has come. `dismissal`: by a run above that goes on itself. */
  onCancel(why: 'cancel' | 'dismissal'): void;
  /** Somebody cancels a call of the open step. */
  onCallCancelled(cancel: Control): void;
  /** There is something to take while calls are in flight. */
  onHeard(): void;
}

export class RunInbox implements Hearing {
  readonly #ports: InboxPorts;
  #dirty: boolean;
  /** How many signals the run had had when it was last read. */
  #signalsSeen: number;
  /** How many of them were looked at: a cancel among them is known, the rest may wait to be read. */
  #signalsHeard: number;
  #isCancelled = false;

  constructor(ports: InboxPorts, hasNews: boolean) {
    this.#ports = ports;
    this.#dirty = hasNews;
    this.#signalsSeen = ports.state.messagesTaken;
    this.#signalsHeard = this.#signalsSeen;
  }

  get signalsHeard(): number {
    return this.#signalsHeard;
  }

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /** Something came, or may have come, after it was last read. */
  get hasNews(): boolean {
    return this.#dirty;
  }

  look(): void {
    this.#dirty = true;
  }

  /**
   * Something may be new in it. A hard cancel is heard at once, an answer to a call that waits beside others too, everything
   * else at the next boundary.
   */
  poke(): void {
    this.#dirty = true;
    const { deps, state } = this.#ports;
    deps.journal.inbox(state.identity.run).then((received) => this.#heed(received), deps.onFault);
  }

  async hear(signals: number): Promise<void> {
    if (signals <= this.#signalsHeard) return;
    this.#dirty = true;
    const { deps, state } = this.#ports;
    this.#heed(await patiently(deps.clock, () => deps.journal.inbox(state.identity.run)));
    this.#signalsHeard = Math.max(this.#signalsHeard, signals);
  }

  #heed(received: readonly Received[]): void {
    const messages = received.map(({ message }) => message);
    this.#isCancelled = messages.some((message) => this.#cancels(message));
    this.#heedCancel(messages);
    for (const message of messages) if (isControl(message)) this.#heedCallCancel(message);
    if (messages.some((message) => this.#isHeardAtOnce(message))) this.#ports.onHeard();
  }

  #heedCancel(messages: readonly Message[]): void {
    const cancels = messages.filter((message) => isHardCancel(message) && this.#cancels(message));
    if (cancels.length > 0) this.#ports.onCancel(cancels.every(isDismissal) ? 'dismissal' : 'cancel');
  }

  /** What is under way is stopped at once; the control is taken before what that came to is recorded. */
  #heedCallCancel(control: Control): void {
    const isFit =
      control.type === 'CANCEL_CALL' && unfitToCancel(this.#ports.state, placeToCancel(control)) === undefined;
    if (isFit) this.#ports.onCallCancelled(control);
  }

  /** A run that unwinds is on its way to an ending: only a second cancel stops it. */
  #cancels(message: Message): boolean {
    return message.type === 'CANCEL' && (this.#ports.state.unwinding === null || isSecondCancel(message));
  }

  /** On the way to an ending, and between boundaries, not everything is taken. */
  async take(): Promise<void> {
    while (this.#ports.isBoundary()) {
      const received = await this.#read();
      this.#isCancelled = false;
      await this.#take(received);
      // What came while this was written is taken, too, before anything is done: a cancel may be among it.
      if (!this.#dirty) return;
    }
    // The rest waits for the boundary, but for a cancel: whoever takes over the open step begins no call of it.
    const received = await this.#read();
    this.#dirty = true;
    if (this.#ports.state.ending !== null) return;
    this.#heedCancel(received.map(({ message }) => message));
    await this.#take(this.#heardAtOnce(received));
  }

  /** Words that are heard at once bring along what was said before them: the planner is told all in the order of acceptance. */
  #heardAtOnce(received: readonly Received[]): readonly Received[] {
    const isHeard = ({ message }: Received): boolean => this.#isHeardAtOnce(message);
    const isSaid = ({ message }: Received): boolean => isControl(message) && isSteering(message);
    const last = received.findLastIndex((each) => isSaid(each) && isHeard(each));
    return received.filter((each, index) => isHeard(each) || (index < last && isSaid(each)));
  }

  async #read(): Promise<readonly Received[]> {
    const { deps, state } = this.#ports;
    this.#dirty = false;
    const received = await deps.journal.inbox(state.identity.run);
    // It may be an answer to what is stored by now, and not known here.
    if (received.length > 0) await this.#ports.untilWritten();
    this.#signalsSeen = state.messagesTaken + received.length;
    this.#signalsHeard = Math.max(this.#signalsHeard, this.#signalsSeen);
    this.#isCancelled = received.some(({ message }) => this.#cancels(message));
    return received;
  }

  /**
   * Records that the time of a pause is over, unless something came that was not read yet: it may be an answer, which was in
   * time if the store says so.
   */
  async expire(entries: readonly EntryBody[]): Promise<void> {
    try {
      await this.#ports.commit(entries, { seenSignals: this.#signalsSeen });
    } catch (error) {
      if (!PilotageError.is(error, 'inbox_changed')) throw error;
      this.#dirty = true;
    }
  }

  /** What may move a call of the open step while others are in flight. */
  #isHeardAtOnce(message: Message): boolean {
    const { open, pauses } = this.#ports.state;
    if (open === null) return false;
    if (message.type === 'EVENT') return open.waiting.length > 0;
    if (!isControl(message)) return open.waits.length > 0;
    if (message.type === 'CANCEL_CALL') return true;
    if (message.type === 'PAUSE' && message.payload?.['before'] !== undefined) return true;
    // A plan is stopped, or given up, between two of its nodes.
    if (isPlan(open.move.decision) && (message.type === 'PAUSE' || message.type === 'REDIRECT')) return true;
    // Words of the user answer what a call has asked.
    if (message.type === 'USER_MESSAGE' && pauses.some(({ wait }) => wait !== undefined)) return true;
    // A question is withdrawn before an answer that came later is heard.
    const asks = pauses.some(({ call }) => call !== undefined);
    if (withdrawsQuestions(message, this.#ports.state.whileAsked)) return asks || open.waits.length > 0;
    if (!isVerdict(message)) return false;
    const token = message.payload?.['token'];
    // What has lost its pause is refused without a wait for the calls that are under way.
    return asks || (token !== undefined && pauses.every((pause) => pause.token !== token));
  }

  async #take(stored: readonly Received[]): Promise<void> {
    const { deps, state, commit } = this.#ports;
    const received = withoutLateWords(stored, state);
    if (received.length === 0) return;
    const now = deps.clock.now();
    const { head } = state;
    const ports: TakePorts = {
      now,
      newToken: deps.newToken,
      misfit: (tool, args) => this.#misfit(tool, args),
      outcomeOf: (tool, value) => this.#outcomeOf(tool, value),
      retries: async (nodes) => retriesOf(deps.journal, state, nodes, await deps.journal.read(state.identity.run)),
      canLookUp: (tool) => this.#canLookUp(tool),
      unfitBreakpoint: (payload) => unfitBreakpoint(payload, state, this.#ports.tools()),
      withdrawBelow: (control) => withdrawBelow(deps, state, control),
      isStored: async (ref) => (await storedJsonIfAny(ref, state.identity, deps.artifacts)) !== undefined,
      closedBy: async (token, made) => {
        const entries = made.map((body, index): Entry => ({ ...body, seq: head + 1 + index, at: now }));
        return closedIn([...(await deps.journal.read(state.identity.run)), ...entries], token);
      },
      agent: deps.agent,
      unpriced: deps.unpriced,
    };
    const { entries, status } = await takeMessages(state, received, ports);
    await commit(entries, { status, takes: received.map(({ message }) => message.id) });
    const retried = entries.find((entry) => entry.kind === 'reopened');
    if (retried?.retries?.tasks !== undefined) await this.#goOnWithTasks(retried.by);
    // A turn of the event loop: whoever answered a pause can begin to listen before the planner is asked.
    if (entries.some(({ kind }) => kind === 'resumed')) await turn();
  }

  /** What fails here fails nothing else: whoever retries the run again goes on with the tasks. */
  async #goOnWithTasks(by: Caller | undefined): Promise<void> {
    const { deps, state } = this.#ports;
    try {
      await deps.reopenTasks(state.identity.run, by);
    } catch (error) {
      deps.onFault(error);
    }
  }

  async #misfit(name: string, args: Json): Promise<ErrorData | undefined> {
    const { state, tools } = this.#ports;
    const prepared = await prepareCall(tools(), presentName(state, name), args);
    return 'error' in prepared ? prepared.error : undefined;
  }

  /** What somebody says that a call in doubt came to. */
  async #outcomeOf(name: string, value: Json): Promise<Outcome> {
    const { deps, state, tools } = this.#ports;
    const presentTool = presentName(state, name);
    // Without its effect: what does not fit is refused, and whoever said it can say it again.
    const tool = { schema: { name: presentTool }, checkValue: tools().ready(presentTool)?.checkValue };
    const { identity } = state;
    return valueOutcome(value, { identity }, tool, { artifacts: deps.artifacts });
  }

  #canLookUp(name: string): boolean {
    const { state, tools } = this.#ports;
    const tool = tools().ready(presentName(state, name));
    return tool !== undefined && 'source' in tool && tool.source.reconcile !== undefined;
  }
}

/** Words of a session behind a cancel that ends the run stay in the inbox: they begin a turn of their own when it ends. */
function withoutLateWords(stored: readonly Received[], { cancel, undo, undoStopped }: RunState): readonly Received[] {
  // Until it is known what has to be undone the run goes on to hear: what is left in the inbox would wake it again and again.
  if (undo !== null && !undoStopped) return stored;
  const ends = (message: Message): boolean => message.type === 'CANCEL' && message.stored === undefined;
  const from = cancel !== null && ends(cancel) ? -1 : stored.findIndex(({ message }) => ends(message));
  if (from === -1 && cancel === null) return stored;
  return stored.filter(({ message }, at) => at <= from || !isControl(message) || message.turnMessage === undefined);
}

/** A cancel that does not wait for what is under way. */
export function isHardCancel(message: Message): boolean {
  return message.type === 'CANCEL' && message.payload?.['hard'] !== false;
}
