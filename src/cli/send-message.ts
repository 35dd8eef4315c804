/** `--session`: the words of the command are a message to a session, and its turn is shown as a run is. */
import { defined } from '#core';
import type { SentMessage, Session, SessionOptions } from '#runtime';
import { type Following, followRun } from './follow-run.ts';
import { hint } from './options.ts';
import { userName, whenFree } from './project.ts';
import { shortLine } from './text.ts';

export interface Addressed {
  /** The name of the session. */
  readonly name: string;
  /** What its turns are started with. */
  readonly started: SessionOptions;
}

/** @returns the exit code. */
export async function sendAndFollow(message: string, to: Addressed, following: Following): Promise<number> {
  const { runtime, options, terminal } = following;
  const identity = { tenant: 'local', user: userName() };
  const session = runtime.session(to.name, { ...to.started, identity });
  // Tried again under the same id when the journal was busy.
  const { busy, id = `message-${crypto.randomUUID()}` } = options;
  const sent = await whenFree(terminal, () => session.send(message, defined({ busy, id })));
  if (!options.json) await noteAcceptance(sent, to.name, following);
  const code = await followRun(runtime.run(sent.turn), 1, following);
  const own = await turnWith(session, sent);
  return own === sent.turn ? code : followRun(runtime.run(own), 1, following);
}

/** A message that came too late for the turn that was to be told of it has begun the next one. */
export async function turnWith(session: Session, { id, turn, as }: SentMessage): Promise<string> {
  if (as !== 'steered') return turn;
  const turns = await session.turns();
  return turns.find(({ messages }) => messages.some((message) => message.id === id))?.turn ?? turn;
}

async function noteAcceptance({ as, turn }: SentMessage, session: string, following: Following): Promise<void> {
  const { runtime, options, terminal } = following;
  switch (as) {
    case 'started':
      return;
    case 'queued': {
      const { live } = (await runtime.sessions.get({ tenant: 'local', user: userName(), session })) ?? {};
      if (live === undefined || live.run === turn) return;
      const run = shortLine(live.run, 80);
      const waits = live.status === 'paused' ? `, which waits for somebody: ${hint('inspect', run, options)}` : '';
      terminal.note(`  queued behind the turn under way (${run})${waits}`, 'strong');
      return;
    }
    case 'steered':
      terminal.note('  the turn under way is told of it', 'strong');
      return;
    case 'interrupts':
      terminal.note('  the turn under way is cancelled for it', 'strong');
      return;
    case 'known':
      terminal.note('  this message was sent before', 'strong');
      return;
    default:
      as satisfies never;
  }
}
