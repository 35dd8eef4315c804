/** People who talk in sessions: they send until they know what became of it, and do other things with turns once. */
import { PilotageError } from '#core';
import type { Runtime, SentMessage, Session } from '#runtime';
import type { Ledger } from './ledger.ts';
import type { Say, TalkAct, TalkPlay } from './script-talks.ts';
import { isOfAnotherVersion, isStoreError } from './store-errors.ts';
import { isOf } from './store-sessions.ts';
import { openPauses } from './waits-by-hand.ts';

export interface TalkersWorld {
  readonly ledger: Ledger;
  does<T>(worker: number, act: (runtime: Runtime) => T): T | undefined;
  after(ms: number, act: () => void): void;
  isInNight(worker: number): boolean;
  askAgain(worker: number, ask: (next: number) => void): void;
}

/** What is rightly said to whoever comes at a bad moment. */
const ORDINARY: ReadonlySet<string> = new Set([
  ...(['session_busy', 'run_not_found', 'run_ended', 'runtime_closed', 'inbox_full', 'pause_not_found'] as const),
  ...(['run_changed', 'journal_entry_unknown', 'superseded', 'pause_expired', 'idempotency_conflict'] as const),
  // A step that leaves nothing of the limits.
  'invalid_config',
]);

/** What somebody was told of a message. */
export interface Told {
  readonly say: Say;
  /** When it was sent, and when somebody has heard of it: everything with a smaller number had happened. */
  readonly askedAt: number;
  readonly order: number;
  readonly answer: Pick<SentMessage, 'turn' | 'as'> | { readonly code: string };
}

export class Talkers {
  readonly #world: TalkersWorld;
  readonly #play: TalkPlay;
  readonly #asking = new Set<Say>();
  readonly told: Told[] = [];
  #left: number;

  constructor(world: TalkersWorld, play: TalkPlay) {
    this.#world = world;
    this.#play = play;
    this.#left = play.acts.length;
  }

  /** Something may be said yet. */
  get isBusy(): boolean {
    return this.#left > 0 || this.#asking.size > 0;
  }

  act(act: TalkAct): void {
    this.#left -= 1;
    if (act.does !== 'say') {
      void this.#once(act);
      return;
    }
    this.#asking.add(act);
    this.#ask(act, act.worker);
    const { twin } = act;
    if (twin !== undefined) this.#world.after(twin.afterMs, () => void this.#say(act, twin.worker));
  }

  /** Until it was told something: whoever was asked may be dead, or stand still. */
  #ask(say: Say, worker: number): void {
    if (!this.#asking.has(say)) return;
    const { askAgain, isInNight } = this.#world;
    if (!isInNight(worker)) void this.#say(say, worker);
    askAgain(worker, (next) => this.#ask(say, next));
  }

  #session(runtime: Runtime, { talk }: TalkAct, more: { readonly onFail?: 'undo' } = {}): Session {
    const scope = this.#play.sessions[talk % this.#play.sessions.length];
    if (scope === undefined) throw new Error('A script with acts has sessions.');
    const { tenant, user, session } = scope;
    return runtime.session(session, { identity: { tenant, user }, ...more });
  }

  async #say(say: Say, worker: number): Promise<void> {
    const { ledger, does } = this.#world;
    const { id, busy, plan, undoes } = say;
    const askedAt = ledger.next();
    ledger.tell('people', () => `say ${id} (${plan}) in session ${say.talk}, and ${busy}`);
    try {
      const sent = await does(worker, (runtime) =>
        this.#session(runtime, say, undoes ? { onFail: 'undo' } : {}).send(plan, { id, busy }),
      );
      if (sent === undefined) return;
      this.#hear(say, askedAt, { turn: sent.turn, as: sent.as });
    } catch (error) {
      if (PilotageError.is(error, 'session_busy') || PilotageError.is(error, 'inbox_full'))
        this.#hear(say, askedAt, { code: error.code });
      // An older version does not know what a newer one has written in the turn under way: another one is asked.
      else if (!isStoreError(error) && !isOfAnotherVersion(error) && !PilotageError.is(error, 'runtime_closed'))
        ledger.violated('no fault', `whoever said ${id} was told: ${String(error)}`);
    }
  }

  #hear(say: Say, askedAt: number, answer: Told['answer']): void {
    const { ledger } = this.#world;
    this.#asking.delete(say);
    ledger.tell('people', () => `hear of ${say.id}: ${JSON.stringify(answer)}`);
    this.told.push({ say, askedAt, order: ledger.next(), answer });
  }

  async #once(act: Exclude<TalkAct, Say>): Promise<void> {
    const { ledger, does } = this.#world;
    const turn = 'turn' in act ? this.#turn(act, act.turn) : '';
    if (turn === undefined) return;
    ledger.tell('people', () => `${act.does} in session ${act.talk} ${turn}`);
    try {
      await does(act.worker, (runtime) => this.#do(act, turn, runtime));
    } catch (error) {
      if (isStoreError(error) || (PilotageError.is(error) && ORDINARY.has(error.code))) return;
      ledger.violated('no fault', `whoever did ${act.does} in a session was told: ${String(error)}`, turn);
    }
  }

  async #do(act: Exclude<TalkAct, Say>, turn: string, runtime: Runtime): Promise<unknown> {
    const session = this.#session(runtime, act);
    switch (act.does) {
      case 'edit':
        return session.edit(turn, act.plan, { id: act.id, busy: act.busy });
      case 'regenerate':
        return session.regenerate(turn, { id: act.id, busy: act.busy });
      case 'switch':
        return session.switchTo(turn);
      case 'cancel':
        return session.cancel({ waiting: act.waiting });
      case 'drop':
        return runtime.run(turn).cancel();
      case 'write':
        return runtime.run(turn).steer('USER_MESSAGE', { run: turn, message: 'look here too' });
      case 'answer':
        return this.#answer(turn, runtime);
      case 'fork': {
        const identity = this.#world.ledger.runs.get(turn)?.entries[0];
        if (identity?.kind !== 'started') return undefined;
        return runtime.run(turn).fork({ identity: { ...identity.identity, run: act.run }, effects: 'held' });
      }
      case 'delete': {
        const scope = this.#play.sessions[act.talk % this.#play.sessions.length];
        return scope && runtime.sessions.delete(scope);
      }
      default:
        return act satisfies never;
    }
  }

  async #answer(turn: string, runtime: Runtime): Promise<void> {
    const [pause] = openPauses(this.#world.ledger.runs.get(turn)?.entries ?? []);
    if (pause?.reason === 'approval_required') await runtime.run(turn).approve(pause.token);
  }

  /** Those that the session has now, in the order in which they were stored. */
  #turn({ talk }: TalkAct, nth: number): string | undefined {
    const scope = this.#play.sessions[talk % this.#play.sessions.length];
    const turns = [...this.#world.ledger.runs].flatMap(
      ([
        id,
        {
          entries: [first],
        },
      ]) =>
        first?.kind === 'started' && first.turn !== undefined && scope !== undefined && isOf(first.identity, scope)
          ? [id]
          : [],
    );
    return turns.length === 0 ? undefined : turns[nth % turns.length];
  }
}
