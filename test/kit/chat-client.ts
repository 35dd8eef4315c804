/**
 * A client of a chat: its messages are computed from the events of a session, and from the turns that it has loaded. It may lose its connection and
 * come again with its position, or be loaded anew, at any moment.
 */
import { wordsIn } from '#core';
import type { Session, SessionEvent, TurnView } from '#runtime';

/** A turn as the client shows it. */
export interface ShownTurn {
  readonly turn: string;
  readonly messages: readonly string[];
  readonly user: string;
  readonly assistant: string | null;
  readonly status: string;
}

interface KnownTurn extends ShownTurn {
  readonly parent: string | null;
  /** Loaded as it has ended: its events are old news. */
  readonly isLoaded?: true;
}

const OPEN: ReadonlySet<string> = new Set(['pending', 'running', 'waiting', 'paused']);

export function shownOf({ turn, messages, exchanges, status }: TurnView): ShownTurn {
  const [said] = exchanges;
  return {
    turn,
    messages: messages.map(({ id }) => id),
    user: said?.user ?? '',
    assistant: said?.assistant ?? null,
    status,
  };
}

export class ChatClient {
  readonly #turns = new Map<string, KnownTurn>();
  #last: string | null = null;
  /** Of what was heard last: a reader that comes again asks for what is behind it. */
  position = 0;

  /** The messages as they are now, with the place from which on the events have the rest. */
  async load(session: Session): Promise<void> {
    const position = await session.position();
    const turns = await session.turns();
    const open = turns.find(({ status }) => OPEN.has(status));
    for (const view of turns) {
      if (OPEN.has(view.status)) break;
      this.#turns.set(view.turn, { ...shownOf(view), parent: this.#last, isLoaded: true });
      this.#last = view.turn;
    }
    this.position = Math.min(position, (open?.position ?? Number.POSITIVE_INFINITY) - 1);
  }

  /** The turns of the branch, oldest first. */
  get turns(): readonly ShownTurn[] {
    const path: ShownTurn[] = [];
    for (let at = this.#last; at !== null; ) {
      const turn: KnownTurn | undefined = this.#turns.get(at);
      if (turn === undefined) break;
      const { parent, isLoaded: _, ...shown } = turn;
      path.unshift(shown);
      at = parent;
    }
    return path;
  }

  /** As `useChat` has it. */
  get status(): 'ready' | 'streaming' | 'error' {
    const last = this.turns.at(-1);
    if (last === undefined) return 'ready';
    return OPEN.has(last.status) && last.status !== 'paused'
      ? 'streaming'
      : last.status === 'failed'
        ? 'error'
        : 'ready';
  }

  hear(event: SessionEvent): void {
    this.position = event.position;
    const { run } = event.identity;
    const known = this.#turns.get(run);
    if (known?.isLoaded === true) return;
    if (event.type === 'run.started') {
      const begun = { turn: run, messages: [], user: event.query, assistant: null, status: 'running', parent: null };
      if (known === undefined) this.#turns.set(run, begun);
    } else if (event.type === 'turn.started') this.#place(event);
    else if (known !== undefined) this.#turns.set(run, { ...known, ...changeBy(event, known) });
  }

  /** Where the turn stands, whose turn has come. */
  #place(event: Extract<SessionEvent, { type: 'turn.started' }>): void {
    const { identity, query, messages, continues, replaces, interrupts } = event;
    const { run } = identity;
    const known = this.#turns.get(run);
    if (known === undefined) return;
    const parent = continues.at(-1) ?? null;
    this.#last = run;
    // The messages of a turn that was interrupted are those of the one that has interrupted it.
    const cut = interrupts === undefined || replaces !== undefined ? undefined : this.#turns.get(interrupts);
    const place =
      cut?.status === 'cancelled'
        ? { messages: [...cut.messages, ...messages], parent: cut.parent }
        : { messages, parent };
    this.#turns.set(run, { ...known, ...place, user: query });
  }
}

/** What the event changes of its turn. One that is heard twice changes nothing more. */
function changeBy(event: SessionEvent, { messages, user, assistant }: KnownTurn): Partial<KnownTurn> {
  switch (event.type) {
    case 'control.applied': {
      const { type, payload = {}, turnMessage } = event.control;
      if (type !== 'USER_MESSAGE' || turnMessage === undefined || messages.includes(turnMessage.id)) return {};
      return { messages: [...messages, turnMessage.id], user: `${user}\n\n${wordsIn(payload)}` };
    }
    case 'token':
      if (event.channel !== 'text') return {};
      return { assistant: `${(assistant ?? '').slice(0, event.offset)}${event.text}` };
    case 'pause.requested':
      return { status: 'paused' };
    case 'pause.resumed':
      return { status: 'running' };
    case 'planner.finish':
      return {
        assistant: typeof event.payload === 'string' ? event.payload : null,
        status: event.reason === 'cancelled' ? 'cancelled' : 'finished',
      };
    case 'planner.error':
      return { assistant: null, status: 'failed' };
    default:
      return {};
  }
}
