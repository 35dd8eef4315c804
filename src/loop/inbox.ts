/** What is said to a run that is driven here: heard at once or at the next boundary, and taken as entries. */
import {
  type EntryBody,
  type ErrorData,
  isControl,
  isDismissal,
  isPlan,
  type Json,
  type Message,
  type Outcome,
  PilotageError,
} from '#core';
import type { Received } from '#journal';
import { presentName, type RunState } from '#state';
import type { AuthorisedTools } from '#tools';
import { prepareCall } from '../calls/arguments.ts';
import { turn } from '../calls/large-values.ts';
import { valueOutcome } from '../calls/outcome.ts';
import { isVerdict, type TakePorts, takeMessages } from './controls.ts';
import type { DriverDeps } from './driver-deps.ts';
import type { Changes } from './run-writer.ts';

export interface InboxPorts {
  readonly deps: DriverDeps;
  readonly state: RunState;
  tools(): AuthorisedTools;
  commit(bodies: readonly EntryBody[], changes: Changes): Promise<void> | undefined;
  /** Everything may be taken now. */
  isBoundary(): boolean;
  /** A hard cancel has come. `dismissal`: by a run above that goes on itself. */
  onCancel(why: 'cancel' | 'dismissal'): void;
  /** There is something to take while calls are in flight. */
  onHeard(): void;
}

export class RunInbox {
  readonly #ports: InboxPorts;
  #dirty: boolean;
  /** How many signals the run had had when it was last read. */
  #signalsSeen: number;

  constructor(ports: InboxPorts, hasNews: boolean) {
    this.#ports = ports;
    this.#dirty = hasNews;
    this.#signalsSeen = ports.state.messagesTaken;
  }

  /** Something came, or may have come, after it was last read. */
  get hasNews(): boolean {
    return this.#dirty;
  }

  /** Marks the inbox to be read again. */
  look(): void {
    this.#dirty = true;
  }

  /**
   * Something may be new in it. A hard cancel is heard at once, an answer to a call that waits beside others too, everything
   * else at the next boundary.
   */
  poke(): void {
    this.#dirty = true;
    const { deps, state, onCancel, onHeard } = this.#ports;
    deps.journal.inbox(state.identity.run).then((received) => {
      const messages = received.map(({ message }) => message);
      const cancels = messages.filter(isHardCancel);
      if (cancels.length > 0) onCancel(cancels.every(isDismissal) ? 'dismissal' : 'cancel');
      if (messages.some((message) => this.#isHeardAtOnce(message))) onHeard();
    }, deps.onFault);
  }

  /** On the way to an ending, and between boundaries, not everything is taken. */
  async take(): Promise<void> {
    if (this.#ports.isBoundary()) return this.#take(await this.#read());
    // The rest waits for the boundary.
    const received = (await this.#read()).filter(({ message }) => this.#isHeardAtOnce(message));
    this.#dirty = true;
    if (this.#ports.state.ending === null) await this.#take(received);
  }

  async #read(): Promise<readonly Received[]> {
    const { deps, state } = this.#ports;
    this.#dirty = false;
    const received = await deps.journal.inbox(state.identity.run);
    this.#signalsSeen = state.messagesTaken + received.length;
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
    if (!isControl(message)) return open.waits.length > 0;
    // A plan is stopped, or given up, between two of its nodes.
    if (isPlan(open.move.decision) && (message.type === 'PAUSE' || message.type === 'REDIRECT')) return true;
    return isVerdict(message) && pauses.some(({ call }) => call !== undefined);
  }

  async #take(received: readonly Received[]): Promise<void> {
    if (received.length === 0) return;
    const { deps, state, commit } = this.#ports;
    const ports: TakePorts = {
      now: deps.clock.now(),
      newToken: deps.newToken,
      misfit: (tool, args) => this.#misfit(tool, args),
      outcomeOf: (tool, value) => this.#outcomeOf(tool, value),
      canLookUp: (tool) => this.#canLookUp(tool),
      agent: deps.agent,
      unpriced: deps.unpriced,
    };
    const { entries, status } = await takeMessages(state, received, ports);
    await commit(entries, { status, takes: received.map(({ message }) => message.id) });
    // A turn of the event loop: whoever answered a pause can begin to listen before the planner is asked.
    if (entries.some(({ kind }) => kind === 'resumed')) await turn();
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
    const tool = tools().ready(presentTool) ?? { schema: { name: presentTool }, checkValue: undefined };
    const { identity } = state;
    return valueOutcome(value, { identity }, tool, { artifacts: deps.artifacts });
  }

  #canLookUp(name: string): boolean {
    const { state, tools } = this.#ports;
    const tool = tools().ready(presentName(state, name));
    return tool !== undefined && 'source' in tool && tool.source.reconcile !== undefined;
  }
}

function isHardCancel(message: Message): boolean {
  return message.type === 'CANCEL' && message.payload?.['hard'] !== false;
}
