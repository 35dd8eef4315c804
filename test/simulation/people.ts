/** Those who speak to runs from outside: at the times that the script says, and at the end until nothing is left to answer. */
import {
  branchesOf,
  type Caller,
  type Control,
  type ControlType,
  deepFreeze,
  type Identity,
  type Json,
  type JsonObject,
  PilotageError,
  waysOf,
} from '#core';
import type { Journal } from '#journal';
import { type Run, sendControl } from '#runtime';
import { applyEntry, type OpenPause, type OpenStep, openState, type RunState } from '#state';
import { keptBy } from './call-waits-by-hand.ts';
import type { Dice } from './dice.ts';
import type { Ledger, LedgerRun } from './ledger.ts';
import type { Act, Sender } from './script.ts';
import { isStoreError } from './store-errors.ts';
import { fitting, misfitting, shapeOf } from './wait-args.ts';

/** What may rightly be said to somebody who speaks to a run at a bad moment, or who may not. */
export const ORDINARY: ReadonlySet<string> = new Set([
  'run_not_found',
  'run_ended',
  'run_changed',
  'journal_entry_unknown',
  'pause_not_found',
  'pause_expired',
  'payload_invalid',
  'scope_mismatch',
  'approver_refused',
  'runtime_closed',
  'task_not_found',
  'inbox_full',
  'superseded',
]);

export interface PeopleWorld {
  readonly ledger: Ledger;
  /** The store from a process that drives nothing. */
  readonly store: Journal;
  /** Says it through the run's handle in this worker; `undefined` while the worker is down. */
  readonly throughWorker: (
    worker: number,
    run: string,
    from: Caller | undefined,
    say: (run: Run) => Promise<void>,
  ) => Promise<void> | undefined;
}

export class People {
  readonly #world: PeopleWorld;
  /** Answers of the closing phase, by pause token. */
  readonly #tries = new Map<string, number>();
  /** How often the budget of a run was raised. */
  readonly #raises = new Map<string, number>();
  /** The fold of each run that somebody has looked at, up to then. */
  readonly #states = new WeakMap<LedgerRun, RunState>();
  #controls = 0;
  /** Each answer to what a call asks is like no other. */
  #answers = 0;

  constructor(world: PeopleWorld) {
    this.#world = world;
  }

  /** @returns when it has been said, or refused. */
  async act(act: Act): Promise<void> {
    const { ledger } = this.#world;
    const run = target(act, ledger);
    const state = run === undefined ? undefined : this.#stateOf(run);
    if (run === undefined || state === undefined) return;
    const pause = act.pause === undefined ? undefined : nth(state.pauses, act.pause);
    const to = act.atRoot === true ? act.root : run;
    const from = callerOf(act.from, state.identity);
    this.#answers += 1;
    const payload = payloadOf(act, to, pause, state, this.#answers);
    this.#logIn(state, pause);
    ledger.tell('people', () => `${to}: ${act.from} sends ${act.type} ${JSON.stringify(payload)}`);
    const said =
      act.worker === undefined
        ? undefined
        : this.#world.throughWorker(act.worker, to, from, (handle) => handle.steer(act.type, payload));
    await (said === undefined ? this.#send(to, this.#control(act, payload, from)) : this.#heard(said, to));
  }

  /** The same control once more. */
  async actAgain(act: Act): Promise<void> {
    const { ledger } = this.#world;
    const run = target(act, ledger);
    const known = run === undefined ? undefined : ledger.runs.get(run);
    const last = known === undefined ? undefined : ledger.controlsOf(known).at(-1)?.message;
    if (run !== undefined && last !== undefined) await this.#send(run, last);
  }

  /** Answers every pause that nobody has answered, so that all runs can end. */
  async close(dice: Dice): Promise<void> {
    const { ledger } = this.#world;
    ledger.loggedIn = true;
    const answers: Promise<void>[] = [];
    for (const [run, { endedAt }] of ledger.runs) {
      if (endedAt !== undefined) continue;
      const state = this.#stateOf(run);
      for (const pause of state?.pauses ?? []) if (state !== undefined) answers.push(this.#answer(state, pause, dice));
    }
    await Promise.all(answers);
  }

  async #answer(state: RunState, pause: OpenPause, dice: Dice): Promise<void> {
    const { ledger, throughWorker } = this.#world;
    const { run } = state.identity;
    const { token } = pause;
    const tries = this.#tries.get(token) ?? 0;
    // An answer that was stored is enough: asking again would hide one that was lost.
    if (tries > answersTaken(run, token, ledger) || tries >= MAX_TRIES) return;
    if (pause.expiresAt !== undefined && dice.chance(0.5)) return;
    // Whoever looks at the world waits until nobody is at it.
    if (isDoubt(pause) && ledger.isAtWork(keyOf(pause))) return;
    this.#tries.set(token, tries + 1);
    const { type, payload } = this.#closingAnswer(state, pause, dice);
    const root = rootOf(run, ledger);
    const from = pause.approvals === undefined ? undefined : oneOfMany(state.identity, tries);
    const said = dice.chance(0.5)
      ? throughWorker(0, type === 'CANCEL' ? run : root, from, (handle) => handle.steer(type, payload))
      : undefined;
    const control = { id: this.#newId(), type, payload, ...(from === undefined ? {} : { from }) };
    const isStored = said === undefined ? await this.#send(run, control) : await this.#heard(said, run);
    if (!isStored) this.#tries.set(token, tries);
  }

  /** A budget is raised, if that is possible and did not happen too often. */
  #closingAnswer(
    state: RunState,
    pause: OpenPause,
    dice: Dice,
  ): { readonly type: ControlType; readonly payload: JsonObject } {
    const {
      identity: { run },
      limits,
    } = state;
    const payload = { token: pause.token, closing: true, ...seenOf(pause) };
    if (pause.wait !== undefined) return this.#closingWords(pause, payload, dice);
    if (isDoubt(pause) && dice.chance(0.9))
      return { type: 'SETTLE', payload: { ...payload, ...this.#truthOf(pause, state) } };
    const isBudget = pause.step === undefined && pause.payload?.['budget'] !== undefined;
    if (!isBudget) return { type: verdictFor(pause, dice), payload };
    const raises = this.#raises.get(run) ?? 0;
    this.#raises.set(run, raises + 1);
    if (raises >= MAX_RAISES) return { type: 'CANCEL', payload };
    const { steps, calls, tokens, costMicroUsd, deadlineAt } = limits;
    const raised = {
      ...(steps === undefined ? {} : { steps: steps + 3 }),
      ...(calls === undefined ? {} : { calls: calls + 3 }),
      ...(tokens === undefined ? {} : { tokens: tokens + 500 }),
      ...(costMicroUsd === undefined ? {} : { costUsd: (costMicroUsd + 300) / 1_000_000 }),
      ...(deadlineAt === undefined ? {} : { deadlineAt: deadlineAt + 60_000 }),
    };
    return { type: 'RESUME', payload: { ...payload, limits: raised } };
  }

  /** To what a call asks in the middle of its work: an answer, now and then one that does not fit, or that nobody wants to give one. */
  #closingWords(
    { schema }: OpenPause,
    payload: JsonObject,
    dice: Dice,
  ): { readonly type: ControlType; readonly payload: JsonObject } {
    if (dice.chance(0.15)) return { type: 'REJECT', payload };
    this.#answers += 1;
    const give = dice.chance(0.15) ? misfitting : fitting;
    return { type: 'ANSWER', payload: { ...payload, value: give(shapeOf(schema), this.#answers) } };
  }

  /** What became of a call in doubt, as the world knows it. */
  #truthOf(pause: OpenPause, { identity: { run } }: RunState): JsonObject {
    const { ledger } = this.#world;
    const key = keyOf(pause);
    const done = ledger.partsDone(key);
    if (done.length > 0) {
      const kept = new Set(
        keptBy(ledger.runs.get(run)?.entries ?? [], { step: pause.step ?? 0, call: pause.call ?? 0 }).map(
          ({ name }) => name,
        ),
      );
      // What was done and is not recorded would be done again.
      if (done.some((part) => !kept.has(part))) return { happened: true, value: null };
    }
    ledger.partsNotDone(key);
    if (ledger.effects.has(key)) return { happened: true, value: ledger.values.get(key) ?? null };
    ledger.notDone(key);
    return { happened: false };
  }

  /** As it is now: the same object changes with the run. */
  #stateOf(run: string): RunState | undefined {
    const known = this.#world.ledger.runs.get(run);
    const { entries = [] } = known ?? {};
    const [first] = entries;
    if (known === undefined || first === undefined) return undefined;
    const state = this.#states.get(known) ?? openState(deepFreeze(first));
    this.#states.set(known, state);
    for (const entry of entries.slice(state.head)) applyEntry(state, deepFreeze(entry));
    return state;
  }

  #control(act: Act, payload: JsonObject, from: Caller | undefined): Control {
    return { id: this.#newId(), type: act.type, payload, ...(from === undefined ? {} : { from }) };
  }

  #newId(): string {
    this.#controls += 1;
    return `say${this.#controls}`;
  }

  #send(run: string, control: Control): Promise<boolean> {
    return this.#heard(sendControl(this.#world.store, run, control), run);
  }

  /** False when whoever spoke was told why it was not heard. */
  async #heard(said: Promise<unknown>, run: string): Promise<boolean> {
    try {
      await said;
      return true;
    } catch (error) {
      if ((PilotageError.is(error) && ORDINARY.has(error.code)) || isStoreError(error)) return false;
      this.#world.ledger.violated('no fault', `whoever spoke to the run was told: ${String(error)}`, run);
      return false;
    }
  }

  /** Whoever resumes a login has logged in. */
  #logIn({ identity, open }: RunState, pause: OpenPause | undefined): void {
    if (pause?.call === undefined || open === null) return;
    const args = ownArgs(open, pause.call);
    const id = typeof args === 'object' && args !== null ? (args as JsonObject)['id'] : undefined;
    this.#world.ledger.logins.add(`${identity.run}/${String(id)}`);
  }
}

function isDoubt({ reason }: OpenPause): boolean {
  return reason === 'in_doubt';
}

function keyOf({ payload }: OpenPause): string {
  return String(payload?.['key']);
}

/** Each time another person. */
function oneOfMany({ tenant }: Identity, nth: number): Caller {
  return { tenant, user: `closer${nth}`, session: 'office', scope: 'admin' };
}

/** Whoever approves what somebody else has put in place of the call's own arguments says that they have seen it. */
function seenOf({ given, payload }: OpenPause): JsonObject {
  return given === undefined ? {} : { digest: payload?.['digest'] ?? null };
}

const MAX_TRIES = 5;
const MAX_RAISES = 2;

function verdictFor({ reason, call }: OpenPause, dice: Dice): 'APPROVE' | 'REJECT' | 'RESUME' {
  if (reason === 'approval_required' && call !== undefined) return dice.pick(['APPROVE', 'APPROVE', 'REJECT']);
  if (reason === 'await_input') return 'RESUME';
  return dice.pick(['RESUME', 'RESUME', 'APPROVE', 'REJECT']);
}

/** Answers of the closing phase that the run has taken, and that have not closed the pause. */
function answersTaken(run: string, token: string, ledger: Ledger): number {
  const entries = ledger.runs.get(run)?.entries ?? [];
  return entries.filter(
    (entry) =>
      entry.kind === 'control' &&
      entry.control.payload?.['closing'] === true &&
      entry.control.payload['token'] === token,
  ).length;
}

/** The run that somebody started, also under a name that a task could have. */
function rootOf(run: string, ledger: Ledger): string {
  const first = ledger.runs.get(run)?.entries[0];
  const above = first?.kind === 'started' ? first.task?.parent : undefined;
  return above === undefined ? run : rootOf(above, ledger);
}

function target({ root, task }: Act, ledger: Ledger): string | undefined {
  const tree = [...ledger.runs.keys()].filter((run) => run === root || run.startsWith(`${root}.`));
  return nth(tree, task);
}

function nth<T>(items: readonly T[], index: number): T | undefined {
  return items.length === 0 ? undefined : items[index % items.length];
}

function callerOf(sender: Sender, { tenant, user, session }: Identity): Caller | undefined {
  switch (sender) {
    case 'program':
      return undefined;
    case 'owner':
      return { tenant, user, session, scope: 'owner_user' };
    case 'guest':
      return { tenant, user, session, scope: 'session_user' };
    case 'colleague':
      return { tenant, user: 'colleague', session, scope: 'owner_user' };
    case 'admin':
      return { tenant, user: 'boss', session: 'office', scope: 'admin' };
    case 'stranger':
      return { tenant: 'elsewhere', user, session, scope: 'owner_user' };
    default:
      return sender satisfies never;
  }
}

function payloadOf(act: Act, run: string, pause: OpenPause | undefined, state: RunState, nth: number): JsonObject {
  switch (act.type) {
    case 'INJECT_CONTEXT':
      return { run, fact: 'it rains' };
    case 'USER_MESSAGE':
      return { run, message: 'look here too' };
    case 'REDIRECT':
      return { run, goal: 'elsewhere' };
    case 'CANCEL':
      return act.soft ? { hard: false } : { reason: 'enough' };
    case 'PRIORITIZE':
      return { priority: 7 };
    case 'CANCEL_CALL':
      return { step: state.open?.move.step ?? state.steps.length, call: 0 };
    case 'PAUSE':
      return {};
    case 'REVOKE':
      return { rule: `rule:${run}:1` };
    case 'RESUME':
    case 'REJECT':
      return pause === undefined ? {} : { token: pause.token };
    case 'ANSWER':
      return { ...(pause === undefined ? {} : { token: pause.token }), value: answerTo(pause, act, nth) };
    case 'SETTLE':
      // Nobody says what the world does not know: these are refused.
      return pause === undefined ? {} : { token: pause.token, happened: false, value: null };
    case 'APPROVE':
      return { ...(pause === undefined ? {} : { token: pause.token }), ...editedArgs(act, pause, state) };
    default:
      return act.type satisfies never;
  }
}

/** In place of a call it is a value; to what a call asks in the middle of its work, what fits its schema, or does not. */
function answerTo(pause: OpenPause | undefined, { args }: Act, nth: number): Json {
  if (pause?.wait === undefined) return null;
  return (args === 'misfit' ? misfitting : fitting)(shapeOf(pause.schema), nth);
}

function editedArgs({ args }: Act, pause: OpenPause | undefined, { open }: RunState): JsonObject {
  if (args === undefined || pause?.call === undefined || open === null) return {};
  const own = ownArgs(open, pause.call);
  if (typeof own !== 'object' || own === null || Array.isArray(own)) return {};
  return { args: args === 'fit' ? { ...own, note: 'edited' } : { ...own, ms: 'soon' } };
}

/** Of a call with routes those of its first one. */
function ownArgs({ move }: OpenStep, call: number): Json | undefined {
  const branch = branchesOf(move.decision)[call];
  return branch && waysOf(branch)[0]?.args;
}
