/** Those who speak to runs from outside: at the times that the script says, and at the end until nothing is left to answer. */
import type { Caller, Control } from '../../core/control.ts';
import { branchesOf } from '../../core/decision.ts';
import { PilotageError } from '../../core/errors.ts';
import type { Identity } from '../../core/identity.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Journal } from '../../journal/port.ts';
import type { Run } from '../../runtime/run.ts';
import { sendControl } from '../../runtime/send-control.ts';
import { foldEntries, type OpenPause, type RunState } from '../../view/run-state.ts';
import type { Dice } from './dice.ts';
import type { Ledger } from './ledger.ts';
import type { Act, Sender } from './script.ts';

/** What may rightly be said to somebody who speaks to a run at a bad moment, or who may not. */
const ORDINARY: ReadonlySet<string> = new Set([
  'run_not_found',
  'run_ended',
  'run_changed',
  'pause_not_found',
  'payload_invalid',
  'scope_mismatch',
  'approver_refused',
  'runtime_closed',
  'task_not_found',
  'inbox_full',
  'journal_unavailable',
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
  readonly #answered = new Map<string, { readonly control: string; readonly tries: number }>();
  #controls = 0;

  constructor(world: PeopleWorld) {
    this.#world = world;
  }

  /** @returns when it has been said, or refused. */
  act(act: Act): Promise<void> {
    const { ledger } = this.#world;
    const run = target(act, ledger);
    const state = run === undefined ? undefined : stateOf(run, ledger);
    if (run === undefined || state === undefined) return Promise.resolve();
    const pause = act.pause === undefined ? undefined : nth(state.pauses, act.pause);
    const to = act.atRoot === true ? act.root : run;
    const from = callerOf(act.from, state.identity);
    const payload = payloadOf(act, to, pause, state);
    this.#logIn(state, pause);
    ledger.tell('people', () => `${to}: ${act.from} sends ${act.type} ${JSON.stringify(payload)}`);
    const said =
      act.worker === undefined
        ? undefined
        : this.#world.throughWorker(act.worker, to, from, (handle) => handle.steer(act.type, payload));
    return said === undefined ? this.#send(to, this.#control(act, payload, from)) : this.#heard(said, to);
  }

  /** The same control once more. */
  actAgain(act: Act): Promise<void> {
    const { ledger } = this.#world;
    const run = target(act, ledger);
    const known = run === undefined ? undefined : ledger.runs.get(run);
    const last = known === undefined ? undefined : ledger.controlsOf(known).at(-1)?.message;
    return run === undefined || last === undefined ? Promise.resolve() : this.#send(run, last);
  }

  /** Answers every pause that nobody has answered, so that all runs can end. */
  async close(dice: Dice): Promise<void> {
    const { ledger } = this.#world;
    ledger.loggedIn = true;
    const answers: Promise<void>[] = [];
    for (const [run, { endedAt }] of ledger.runs) {
      if (endedAt !== undefined) continue;
      const state = stateOf(run, ledger);
      for (const pause of state?.pauses ?? []) if (state !== undefined) answers.push(this.#answer(state, pause, dice));
    }
    await Promise.all(answers);
  }

  #answer(state: RunState, pause: OpenPause, dice: Dice): Promise<void> {
    const { ledger } = this.#world;
    const { run } = state.identity;
    const before = this.#answered.get(pause.token);
    // An answer that was stored is enough: asking again would hide one that was lost.
    if (before !== undefined && !isTaken(run, before.control, ledger)) return Promise.resolve();
    if ((before?.tries ?? 0) >= MAX_TRIES || (pause.expiresAt !== undefined && dice.chance(0.5)))
      return Promise.resolve();
    const isBudget = pause.step === undefined && pause.payload?.['budget'] !== undefined;
    const type = isBudget ? 'CANCEL' : verdictFor(pause, dice);
    const control: Control = { id: this.#newId(), type, payload: isBudget ? {} : { token: pause.token } };
    this.#answered.set(pause.token, { control: control.id, tries: (before?.tries ?? 0) + 1 });
    return this.#send(run, control);
  }

  #control(act: Act, payload: JsonObject, from: Caller | undefined): Control {
    return { id: this.#newId(), type: act.type, payload, ...(from === undefined ? {} : { from }) };
  }

  #newId(): string {
    this.#controls += 1;
    return `say${this.#controls}`;
  }

  #send(run: string, control: Control): Promise<void> {
    return this.#heard(sendControl(this.#world.store, run, control), run);
  }

  async #heard(said: Promise<unknown>, run: string): Promise<void> {
    try {
      await said;
    } catch (error) {
      if (PilotageError.is(error) && ORDINARY.has(error.code)) return;
      this.#world.ledger.violated('no fault', `whoever spoke to the run was told: ${String(error)}`, run);
    }
  }

  /** Whoever resumes a login has logged in. */
  #logIn({ identity, open }: RunState, pause: OpenPause | undefined): void {
    if (pause?.call === undefined || open === null) return;
    const args = branchesOf(open.move.decision)[pause.call]?.args;
    const id = typeof args === 'object' && args !== null ? (args as JsonObject)['id'] : undefined;
    this.#world.ledger.logins.add(`${identity.run}/${String(id)}`);
  }
}

const MAX_TRIES = 5;

function verdictFor({ reason, call }: OpenPause, dice: Dice): 'APPROVE' | 'REJECT' | 'RESUME' {
  if (reason === 'approval_required' && call !== undefined) return dice.pick(['APPROVE', 'APPROVE', 'REJECT']);
  return dice.pick(['RESUME', 'RESUME', 'APPROVE', 'REJECT']);
}

function isTaken(run: string, control: string, ledger: Ledger): boolean {
  const entries = ledger.runs.get(run)?.entries ?? [];
  return entries.some((entry) => entry.kind === 'control' && entry.control.id === control);
}

function stateOf(run: string, ledger: Ledger): RunState | undefined {
  const entries = ledger.runs.get(run)?.entries;
  return entries && foldEntries(entries);
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

function payloadOf(act: Act, run: string, pause: OpenPause | undefined, state: RunState): JsonObject {
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
    case 'PAUSE':
      return {};
    case 'RESUME':
    case 'REJECT':
      return pause === undefined ? {} : { token: pause.token };
    case 'APPROVE':
      return { ...(pause === undefined ? {} : { token: pause.token }), ...editedArgs(act, pause, state) };
    default:
      return act.type satisfies never;
  }
}

function editedArgs({ args }: Act, pause: OpenPause | undefined, { open }: RunState): JsonObject {
  if (args === undefined || pause?.call === undefined || open === null) return {};
  const own = branchesOf(open.move.decision)[pause.call]?.args;
  if (typeof own !== 'object' || own === null || Array.isArray(own)) return {};
  return { args: args === 'fit' ? { ...own, note: 'edited' } : { ...own, ms: 'soon' } };
}
