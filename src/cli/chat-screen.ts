/** Shows the turns of a session as they happen, whoever sends and drives them, and knows which of them are settled. */
import type { RunEvent } from '#core';
import type { Journal } from '#journal';
import type { Runtime, Session, SessionEvent } from '#runtime';
import { type Conclusion, conclude, isAboutPlan, type ShownRun, showProgress } from './follow-run.ts';
import type { Options } from './options.ts';
import { commandsFor, type Ways } from './pause-lines.ts';
import { PlanSeen } from './plan-lines.ts';
import { whenFree } from './project.ts';
import { codeOfResult, type Terminal } from './terminal.ts';

export interface ChatSurroundings {
  readonly runtime: Runtime;
  readonly journal: Journal;
  readonly session: Session;
  readonly options: Options;
  readonly terminal: Terminal;
}

/** A turn that is shown. */
interface ShownTurn {
  readonly run: string;
  readonly show: ShownRun;
  readonly plan: PlanSeen;
}

export class ChatScreen {
  readonly #of: ChatSurroundings;
  readonly #left = new AbortController();
  /** What each turn came to, as far as it is shown, and when: the number of the conclusion. */
  readonly #concluded = new Map<string, { readonly at: number; readonly code: number }>();
  #conclusions = 0;
  /** Runs that the one that is shown goes on with: what it comes to is what they have come to. */
  readonly #before: string[] = [];
  /** The pauses that were shown last. */
  #shown = '';
  #turn: ShownTurn | undefined;
  /** What the turn came to is shown behind the event of this number. */
  #concludesAt = Number.POSITIVE_INFINITY;
  /** The turn that waits for somebody, as far as it is shown. */
  #paused: string | undefined;
  #wake: (() => void) | undefined;

  constructor(surroundings: ChatSurroundings) {
    this.#of = surroundings;
  }

  /** The turn that waits for somebody. */
  get paused(): string | undefined {
    return this.#paused;
  }

  /** How many conclusions were shown. */
  get concluded(): number {
    return this.#conclusions;
  }

  /** Whether the turn has ended, or waits for somebody, and this was shown after so many conclusions. */
  isConcluded(turn: string, before: number): boolean {
    return (this.#concluded.get(turn)?.at ?? 0) > before;
  }

  /** The exit code that what the turn came to stands for. */
  codeOf(turn: string | undefined): number | undefined {
    return turn === undefined ? undefined : this.#concluded.get(turn)?.code;
  }

  /** Shows what happens from this position on, until it is left. */
  async follow(from: number): Promise<void> {
    const { session, terminal } = this.#of;
    let next = from;
    await whenFree(terminal, async () => {
      for await (const event of session.events({ from: next, signal: this.#left.signal })) {
        await this.#show(event);
        next = event.position + 1;
      }
    });
  }

  leave(): void {
    this.#left.abort();
  }

  /** Waits for something to be shown after which this is so. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #show(event: SessionEvent): Promise<void> {
    const { run } = event.identity;
    const turn = this.#turn?.run === run ? this.#turn : this.#begin(run);
    const wasPaused = this.#paused === run;
    if (wasPaused && event.type !== 'control.received') this.#paused = undefined;
    if (isAboutPlan(event)) {
      for (const entry of await this.#of.journal.read(run, event.seq, 1)) turn.plan.note(entry);
    }
    turn.show.event(event);
    if (goesOnElsewhere(event)) this.#before.push(run);
    else if (isEnd(event)) this.#concludesAt = event.seq;
    else if (isQuestion(event)) this.#concludesAt = await this.#lastBeforePause(event);
    else if (wasPaused && isSaid(event) && (await this.#asksStill(run))) {
      this.#shown = '';
      this.#concludesAt = event.seq;
    }
    if (event.seq >= this.#concludesAt) await this.#conclude(turn);
  }

  /** What was said answers nothing: the planner waits for something else than words. */
  async #asksStill(run: string): Promise<boolean> {
    const { pauses } = await this.#of.runtime.run(run).state();
    return pauses.length > 0 && pauses.every(({ call }) => call === undefined);
  }

  /** Calls beside the one that is asked about may have ended since: they are shown before what the turn waits for. */
  async #lastBeforePause({ identity: { run }, seq }: SessionEvent): Promise<number> {
    let last = seq;
    for await (const event of this.#of.runtime.run(run).events({ from: seq + 1 })) {
      if (event.type !== 'run.paused') last = event.seq;
    }
    return last;
  }

  #begin(run: string): ShownTurn {
    const plan = new PlanSeen();
    this.#concludesAt = Number.POSITIVE_INFINITY;
    this.#turn = { run, plan, show: showProgress(this.#of.terminal, plan) };
    return this.#turn;
  }

  /** What is shown of a turn ends with what it came to, or with what it waits for. */
  async #conclude({ run, show }: ShownTurn): Promise<void> {
    const { runtime, options, terminal } = this.#of;
    this.#concludesAt = Number.POSITIVE_INFINITY;
    const result = await runtime.run(run).result();
    const asks = result.status === 'paused' ? result.pauses.map(({ token }) => token).join(' ') : '';
    // Each of several questions has an event of its own.
    if (asks === '' || asks !== this.#shown) {
      const conclusion: Conclusion = { options, terminal, streamed: show.streamed(), ways: chatWays(run, options) };
      conclude(run, result, conclusion);
    }
    this.#shown = asks;
    this.#paused = result.status === 'paused' ? run : undefined;
    this.#conclusions += 1;
    for (const each of [...this.#before.splice(0), run]) {
      this.#concluded.set(each, { at: this.#conclusions, code: codeOfResult(result) });
    }
    this.#wake?.();
  }
}

/** Another run goes on with the turn, right behind this one. */
function goesOnElsewhere(event: RunEvent): boolean {
  return event.type === 'planner.finish' && (event.reason === 'handed_over' || event.reason === 'continued');
}

function isEnd({ type }: RunEvent): boolean {
  return type === 'planner.finish' || type === 'planner.error';
}

function isSaid({ type }: RunEvent): boolean {
  return type === 'control.applied' || type === 'control.rejected';
}

function isQuestion({ type }: RunEvent): boolean {
  return type === 'pause.requested' || type === 'task.paused';
}

/** Lines of the chat in place of commands. A limit is raised by a command, and a message answers who waits for one. */
function chatWays(run: string, options: Options): Ways {
  const which = (token: string | undefined): string => (token === undefined ? '' : ` ${token}`);
  const commands = commandsFor(run, options);
  return {
    happened: (token) => `/settle${which(token)} happened …`,
    didNotHappen: (token) => `/settle${which(token)} did-not-happen`,
    lookUp: (token) => `/resume${which(token)}`,
    approve: (token) => `/approve${which(token)}`,
    reject: (token) => `/reject${which(token)}`,
    answer: (token, value) => (value === undefined ? 'your next message' : `/answer${which(token)} ${value}`),
    goOn: (pause, token) => {
      if (pause.reason === 'await_input') return 'your next message';
      return pause.payload?.['budget'] === undefined ? `/resume${which(token)}` : commands.goOn(pause, token);
    },
  };
}
