/** `pilotage chat`: a conversation on the input and the output, in a session. */
import { asksOpenly, defined, PilotageError, type Scope } from '#core';
import type { SentMessage, Session } from '#runtime';
import { foldEntries } from '#state';
import { type ChatInput, chatInput } from './chat-input.ts';
import { type ChatAnswer, type ChatLine, readChatLine } from './chat-lines.ts';
import { ChatScreen, type ChatSurroundings } from './chat-screen.ts';
import { GRACE_MS, withRuntime } from './follow-run.ts';
import { CHAT_HELP, DEFAULT_SESSION } from './help.ts';
import type { Options } from './options.ts';
import { ownAnswer, pauseNotices } from './pause-lines.ts';
import { findProject, journalOf, setUpProject, userName, whenFree, withJournal } from './project.ts';
import { NO_MODEL, startedWith } from './run-command.ts';
import { turnWith } from './send-message.ts';
import { turnLines } from './session-lines.ts';
import { writeBranches } from './sessions-command.ts';
import { survey } from './survey.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { count, shortLine } from './text.ts';

/** @returns the exit code. */
export async function chatCommand(options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  const { agent, session: name = DEFAULT_SESSION } = options;
  const ready = await setUpProject(options, project, agent === undefined ? {} : { stored: { agent } });
  if (agent === undefined && ready.runtime.planner === survey) terminal.note(NO_MODEL);
  return withJournal(journalOf(options, project), async (journal) => {
    const input = chatInput(terminal);
    try {
      return await withRuntime(ready, journal, input.terminal, (runtime) => {
        const scope = { tenant: 'local', user: userName(), session: name };
        const { tenant, user } = scope;
        // A time limit is counted from the message.
        const session = (): Session =>
          runtime.session(name, { ...startedWith(ready, project, options), identity: { tenant, user } });
        const surroundings = { runtime, journal, session: session(), options, terminal: input.terminal };
        return new Chat({ ...surroundings, scope, talking: session, input }).talk();
      });
    } finally {
      input.close();
    }
  });
}

interface ChatOptions extends ChatSurroundings {
  readonly scope: Scope;
  /** The session, with limits that count from now. */
  readonly talking: () => Session;
  readonly input: ChatInput;
}

/** How many turns a chat shows when it begins. */
const SHOWN_TURNS = 5;

class Chat {
  readonly #of: ChatOptions;
  readonly #screen: ChatScreen;
  /** Turns of which something is still to be shown: what was concluded before this is not it. */
  readonly #expected = new Map<string, number>();
  readonly #steered: SentMessage[] = [];
  readonly #left = Promise.withResolvers<number>();
  /** The last turn that was begun here. */
  #last: string | undefined;
  #isInterrupted = false;
  #isStopping = false;

  constructor(options: ChatOptions) {
    this.#of = options;
    this.#screen = new ChatScreen(options);
  }

  /** @returns the exit code. */
  async talk(): Promise<number> {
    const { input } = this.#of;
    const onTerminate = (): void => {
      this.#stop().then(() => this.#left.resolve(EXIT.terminated), this.#left.reject);
    };
    input.onInterrupt(() => this.#interrupt());
    process.on('SIGTERM', onTerminate);
    try {
      const from = await this.#begin();
      const shown = this.#screen.follow(from).then(() => this.#left.promise);
      return await Promise.race([this.#listen(), shown, this.#left.promise]);
    } catch (error) {
      if (PilotageError.is(error, 'runtime_closed')) return this.#left.promise;
      throw error;
    } finally {
      this.#screen.leave();
      process.off('SIGTERM', onTerminate);
    }
  }

  /** Shows what was said last, and goes on with a turn whose process is gone. @returns the position from which on everything is shown. */
  async #begin(): Promise<number> {
    const { session, runtime, scope, terminal } = this.#of;
    const position = await session.position();
    const { live, waiting = 0 } = (await runtime.sessions.get(scope)) ?? {};
    const turns = await session.turns({ limit: SHOWN_TURNS + waiting + 1 });
    const isOpen = (status: string): boolean => status !== 'finished' && status !== 'failed' && status !== 'cancelled';
    const open = turns.find(({ status }) => isOpen(status));
    for (const turn of turns) {
      // On a pipe nothing is said before they are shown.
      if (isOpen(turn.status)) this.#expected.set(turn.turn, 0);
      else for (const line of turnLines(turn, false)) terminal.note(line, 'quiet');
    }
    if (live !== undefined && live.status !== 'paused') await runtime.run(live.run).resume().catch(this.#refused);
    return Math.min(position + 1, open?.position ?? Number.POSITIVE_INFINITY);
  }

  async #listen(): Promise<number> {
    const { input } = this.#of;
    for await (const text of input.lines) {
      const line = readChatLine(text);
      if (line === undefined) continue;
      this.#isInterrupted = false;
      if (!input.isTyped && waitsItsTurn(line)) await this.#settled();
      if (line.kind === 'quit') return this.#leave(EXIT.goal);
      await this.#act(line).catch(this.#refused);
    }
    if (input.isTyped) return this.#leave(EXIT.goal);
    await this.#settled();
    return this.#screen.codeOf(this.#screen.paused ?? this.#last) ?? EXIT.goal;
  }

  readonly #refused = (error: unknown): void => {
    if (!PilotageError.is(error) || error.code === 'runtime_closed') throw error;
    this.#of.terminal.note(`${shortLine(error.message, 500)} (${error.code})`, 'bad');
  };

  async #act(line: Exclude<ChatLine, { kind: 'quit' }>): Promise<void> {
    const { terminal, session, runtime, scope, talking } = this.#of;
    switch (line.kind) {
      case 'message': {
        const { text, busy } = line;
        return this.#sent((id) => talking().send(text, { id, ...defined({ busy }) }));
      }
      case 'edit': {
        const turn = await this.#turn(line.turn);
        if (turn !== undefined) await this.#sent((id) => talking().edit(turn, line.text, { id }));
        return;
      }
      case 'regenerate': {
        const turn = await this.#turn(line.turn);
        if (turn !== undefined) await this.#sent((id) => talking().regenerate(turn, { id }));
        return;
      }
      case 'switch': {
        const branch = (await session.branches())[line.branch - 1];
        if (branch === undefined)
          return terminal.note(`There is no branch ${line.branch}; /branches lists them.`, 'bad');
        await session.switchTo(branch.turn);
        return this.#writeTurns(SHOWN_TURNS);
      }
      case 'turns':
        return this.#writeTurns();
      case 'branches':
        return writeBranches(runtime, await session.branches(), terminal);
      case 'title':
        return runtime.sessions.setTitle(scope, line.text);
      case 'stop':
        return session.cancel();
      case 'help':
        return terminal.write(`${CHAT_HELP}\n`);
      case 'wrong':
        return terminal.note(line.why, 'bad');
      default:
        return this.#answer(line);
    }
  }

  async #sent(send: (id: string) => Promise<SentMessage>): Promise<void> {
    const { terminal } = this.#of;
    // Tried again under the same id when the journal was busy.
    const id = `message-${crypto.randomUUID()}`;
    const before = this.#screen.concluded;
    const sent = await whenFree(terminal, () => send(id));
    this.#expected.set(sent.turn, before);
    this.#last = sent.turn;
    if (sent.as === 'steered') this.#steered.push(sent);
    if (sent.as === 'queued') terminal.note('  queued behind the turn under way', 'quiet');
  }

  /** Says yes, no or something else to what the turn under way asks. */
  async #answer(answer: ChatAnswer): Promise<void> {
    const { runtime, journal, scope, terminal } = this.#of;
    const { live } = (await runtime.sessions.get(scope)) ?? {};
    if (live === undefined) return terminal.note('No turn waits for an answer.', 'bad');
    const run = runtime.run(live.run);
    const before = this.#screen.concluded;
    const { token } = answer;
    switch (answer.kind) {
      case 'approve':
        await run.approve(token, defined({ args: answer.args }));
        break;
      case 'reject':
        await run.reject(token, defined({ reason: answer.reason }));
        break;
      case 'answer': {
        const open = pauseNotices(foldEntries(await journal.read(live.run)));
        const meant = open.find((pause) => token === undefined || token === pause.token);
        const { value } = answer;
        // It is checked by its schema before it is stored.
        if (meant !== undefined && asksOpenly(meant))
          await run.answer(meant.token, { kind: 'payload', payload: ownAnswer(meant, value) });
        else await run.answer(token, { kind: 'answer', value });
        break;
      }
      case 'settle':
        await run.settle(
          token,
          answer.happened ? { happened: true, value: answer.value ?? null } : { happened: false },
        );
        break;
      case 'resume':
        await run.resume(defined({ token }));
        break;
      default:
        answer satisfies never;
    }
    this.#expected.set(live.run, before);
  }

  /** The turn of this number on the branch; the last one without a number. */
  async #turn(number: number | undefined): Promise<string | undefined> {
    const turns = await this.#of.session.turns();
    const found = number === undefined ? turns.at(-1) : turns.find((turn) => turn.number === number);
    if (found !== undefined) return found.turn;
    const what =
      number === undefined ? 'There is no turn yet.' : `There is no turn ${number} on this branch; /turns lists them.`;
    this.#of.terminal.note(what, 'bad');
    return undefined;
  }

  async #writeTurns(limit?: number): Promise<void> {
    const { session, terminal } = this.#of;
    const turns = await session.turns(defined({ limit }));
    for (const turn of turns) for (const line of turnLines(turn, false)) terminal.write(`${line}\n`);
    if (turns.length === 0) terminal.note('No turns.');
  }

  /** Everything that was begun here is shown to its end, or waits for somebody. */
  async #settled(): Promise<void> {
    const screen = this.#screen;
    for (;;) {
      await screen.until(() => {
        for (const [turn, before] of this.#expected) if (screen.isConcluded(turn, before)) this.#expected.delete(turn);
        return this.#expected.size === 0 || (screen.paused !== undefined && !this.#expected.has(screen.paused));
      });
      const sent = this.#steered.shift();
      if (sent === undefined) return;
      const own = await turnWith(this.#of.session, sent);
      if (own !== sent.turn) this.#expected.set(own, 0);
    }
  }

  /** The first time the turn under way is cancelled, the second time the chat is left. */
  #interrupt(): void {
    if (this.#isStopping) {
      this.#stop().catch(this.#left.reject);
      return;
    }
    if (this.#isInterrupted) {
      this.#leave(EXIT.interrupted).then(this.#left.resolve, this.#left.reject);
      return;
    }
    this.#isInterrupted = true;
    this.#cancel().catch((error: unknown) => {
      // Asked again meanwhile, the chat is left.
      if (!PilotageError.is(error, 'runtime_closed')) this.#left.reject(error);
    });
  }

  async #cancel(): Promise<void> {
    const { session, runtime, scope, terminal } = this.#of;
    const { live } = (await runtime.sessions.get(scope)) ?? {};
    const what = live === undefined ? 'Nothing is under way.' : 'Cancelling what is under way.';
    terminal.note(`${what} Press Ctrl-C again to leave.`, 'strong');
    await session.cancel();
  }

  async #leave(code: number): Promise<number> {
    const { runtime, scope, terminal } = this.#of;
    const { live, waiting = 0 } = (await runtime.sessions.get(scope)) ?? {};
    this.#screen.leave();
    if (live !== undefined) {
      const more = waiting > 0 ? `, and ${count(waiting, 'turn')} that wait` : '';
      terminal.note(`The session keeps the turn under way (${live.run})${more}: the next chat goes on.`, 'strong');
    }
    await this.#stop();
    return code;
  }

  /** What is under way has its grace to end; asked again, it is aborted at once. */
  async #stop(): Promise<void> {
    const { runtime, options } = this.#of;
    const graceMs = this.#isStopping ? 0 : (options.graceMs ?? GRACE_MS);
    this.#isStopping = true;
    await runtime.close({ graceMs });
  }
}

/** On a pipe nobody sees what was answered before the next line. */
function waitsItsTurn(line: ChatLine): boolean {
  return line.kind === 'message' ? line.busy === undefined : line.kind !== 'stop' && line.kind !== 'quit';
}
