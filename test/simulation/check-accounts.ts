/**
 * What a run may use, reckoned from its entries by hand: nothing here asks the code that it judges. A move is asked for only while there
 * is room for it, no more is lent than is there, and nobody is stopped by a limit that has room left.
 */
import type { Entry, JsonObject, Usage } from '#core';
import type { RunTotals } from '#state';
import { type EndedRun, endingOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import { isFlow } from './script.ts';

/** Steps that a run takes when nobody says how many. */
const STEPS_UNSAID = 64;
/** Controls with which the user speaks. */
export const HEARD: ReadonlySet<string> = new Set(['USER_MESSAGE', 'REDIRECT']);
const AXES = ['steps', 'calls', 'tokens', 'costMicroUsd'] as const;
type Axis = (typeof AXES)[number];
type Amounts = Record<Axis, number>;
/** How limits are named where one is reached. */
const NAMES: Readonly<Record<string, Axis>> = {
  steps: 'steps',
  tokens: 'tokens',
  cost: 'costMicroUsd',
};

export class Account {
  readonly used: Amounts = { steps: 0, calls: 0, tokens: 0, costMicroUsd: 0 };
  /** Steps of the run itself. */
  ownSteps = 0;
  /** How often the user has spoken since the start. */
  turns = 0;
  /** What was used of the steps, also of the run's own, before the user spoke last. */
  #before = { all: 0, own: 0 };
  limits: Partial<Amounts> = {};
  /** What each task had used when it ended. */
  readonly #ended = new Map<string, Ended>();
  readonly lent: Map<string, Partial<Amounts>> = new Map();
  /** Money of calls under way, by step and call. */
  readonly #promised = new Map<string, number>();
  /** By token the call that waits; none for a pause of the whole run. */
  readonly #pauses = new Map<string, string | undefined>();
  /** Tokens of pauses that wait for the user's next message. */
  readonly #questions = new Set<string>();

  lentOn(axis: Axis): number {
    return sum([...this.lent.values()].map((share) => share[axis]));
  }

  /** Set aside for this call already, which begins anew. */
  promisedTo(place: string): number {
    return this.#promised.get(place) ?? 0;
  }

  get promised(): number {
    return sum([...this.#promised.values()]);
  }

  /** What counts against the limit: of steps, those since the user spoke last. */
  countedOn(axis: Axis): number {
    return this.used[axis] - (axis === 'steps' ? this.#before.all : 0);
  }

  get ownStepsCounted(): number {
    return this.ownSteps - this.#before.own;
  }

  /** What is left for a task or a call. */
  roomOn(axis: Axis): number {
    const limit = this.limits[axis] ?? Number.POSITIVE_INFINITY;
    return limit - this.countedOn(axis) - this.lentOn(axis) - (axis === 'costMicroUsd' ? this.promised : 0);
  }

  take(entry: Entry): void {
    switch (entry.kind) {
      case 'started':
        this.limits = amounts(entry.limits);
        return;
      case 'moved':
        this.#step(entry);
        this.#spend(entry.usage);
        return;
      case 'plan_grown':
      case 'compacted':
      case 'compaction_failed':
      case 'model_away':
      case 'failed':
        this.#spend(entry.usage);
        return;
      case 'call_began':
        if (entry.costMicroUsd !== undefined) this.#promised.set(`${entry.step}.${entry.call}`, entry.costMicroUsd);
        return;
      case 'call_ended':
        this.#pay(`${entry.step}.${entry.call}`, entry.costMicroUsd);
        return;
      case 'paused':
        // What a call asks in the middle of its work begins no turn.
        if (entry.reason === 'await_input' && entry.wait === undefined) this.#questions.add(entry.token);
        this.#pauses.set(entry.token, entry.step === undefined ? undefined : `${entry.step}.${entry.call ?? 0}`);
        // A call that waits for a login, or for its approval, has taken nothing.
        if (entry.call !== undefined && entry.reason !== 'in_doubt')
          this.#promised.delete(`${entry.step}.${entry.call}`);
        return;
      case 'resumed': {
        const place = this.#pauses.get(entry.token);
        const isSaid = !['timeout', 'superseded'].includes(entry.verdict) && entry.payload?.['group_id'] === undefined;
        if (this.#questions.has(entry.token) && isSaid) this.#hear();
        if (place === undefined) Object.assign(this.limits, amounts(entry.limits ?? {}));
        // Somebody knows what became of a call in doubt.
        if (place !== undefined && entry.outcome !== undefined) this.#pay(place);
        return;
      }
      case 'control':
        // Words that are an answer are heard with it.
        if (entry.applied && entry.as !== 'answer' && HEARD.has(entry.control.type)) this.#hear();
        return;
      case 'spawned':
        this.lent.set(entry.task, amounts(entry.reserved));
        if (entry.agentCall) this.used.calls += 1;
        return;
      case 'task_ended': {
        // The end of what somebody else has spawned costs nothing here.
        const share = this.lent.get(entry.task);
        const before = this.#ended.get(entry.task);
        if (!this.lent.delete(entry.task) && before === undefined) return;
        this.#ended.set(entry.task, entry.usage);
        // One that has undone what it did has ended before.
        const { steps, calls, inputTokens, outputTokens, costMicroUsd } = since(entry.usage, before);
        // What a task took beyond its share, its own user gave it.
        this.#before.all += Math.max(0, steps - (share?.steps ?? steps));
        this.used.steps += steps;
        this.used.calls += calls;
        this.used.tokens += inputTokens + outputTokens;
        this.used.costMicroUsd += costMicroUsd;
        return;
      }
      default:
        return;
    }
  }

  #hear(): void {
    this.turns += 1;
    this.#before = { all: this.used.steps, own: this.ownSteps };
  }

  #pay(place: string, costMicroUsd: number = this.#promised.get(place) ?? 0): void {
    this.used.costMicroUsd += costMicroUsd;
    this.#promised.delete(place);
  }

  /** To finish is no step, unless it did not come to that. */
  #step({ decision, rejected, fault, partial }: Extract<Entry, { kind: 'moved' }>): void {
    const isCarriedOut = rejected === undefined && fault === undefined && partial === undefined;
    if (decision.kind === 'finish' && isCarriedOut) return;
    this.used.steps += 1;
    this.ownSteps += 1;
  }

  #spend({ inputTokens = 0, outputTokens = 0, costMicroUsd = 0 }: Usage = {}): void {
    this.used.tokens += inputTokens + outputTokens;
    this.used.costMicroUsd += costMicroUsd;
  }
}

function amounts(given: object): Partial<Amounts> {
  const found: Partial<Amounts> = {};
  for (const axis of AXES) {
    const value = (given as Readonly<Record<string, unknown>>)[axis];
    if (typeof value === 'number') found[axis] = value;
  }
  return found;
}

function sum(parts: readonly (number | undefined)[]): number {
  return parts.reduce<number>((total, part = 0) => total + part, 0);
}

export function accountOf(entries: readonly Entry[]): Account {
  const account = new Account();
  for (const entry of entries) account.take(entry);
  return account;
}

/** @param totals as the code that is judged reckons them. */
export function checkAccounts(run: EndedRun, totals: RunTotals, ledger: Ledger): void {
  const account = new Account();
  const [first] = run.entries;
  // What a fork was made with it has not done itself.
  const copied = first?.kind === 'started' && first.task === undefined ? (first.fork?.entries ?? 0) : 0;
  for (const [index, entry] of run.entries.entries()) {
    // What is taken with a move came when the planner had been asked.
    if (run.landed[index] !== run.landed[index - 1]) {
      const together = run.entries.filter(({ seq }) => run.landed[seq - 1] === run.landed[index]);
      const move = together.find(({ kind, seq }) => kind === 'moved' && seq > copied);
      if (move !== undefined) checkRoom(move, account, run, ledger);
    }
    if (entry.seq > copied && entry.kind !== 'moved') checkRoom(entry, account, run, ledger);
    account.take(entry);
  }
  if (endingOf(run) !== undefined) checkEnding(run, account, totals, ledger);
}

function checkRoom(entry: Entry, account: Account, { id, entries }: EndedRun, ledger: Ledger): void {
  if (entry.kind === 'moved') {
    const axes = isFree(entries) ? (['steps'] as const) : (['steps', 'tokens', 'costMicroUsd'] as const);
    for (const axis of axes) {
      const limit = account.limits[axis];
      if (limit === undefined || account.countedOn(axis) + account.lentOn(axis) < limit) continue;
      ledger.violated('budget', `step ${entry.step} was asked for with no ${axis} left of ${limit}`, id);
    }
    if (account.limits.steps === undefined && account.ownStepsCounted >= STEPS_UNSAID) {
      ledger.violated('budget', `step ${entry.step} was asked for, beyond what a run takes that says nothing`, id);
    }
  }
  if (entry.kind === 'spawned') {
    for (const [axis, share] of Object.entries(amounts(entry.reserved)) as [Axis, number][]) {
      if (share <= account.roomOn(axis)) continue;
      ledger.violated('budget', `${entry.task} was lent ${share} ${axis}, and ${account.roomOn(axis)} were left`, id);
    }
    for (const axis of AXES) {
      if (account.limits[axis] === undefined || amounts(entry.reserved)[axis] !== undefined) continue;
      ledger.violated('budget', `${entry.task} was lent no share of the ${axis}`, id);
    }
  }
  if (entry.kind === 'call_began' && entry.costMicroUsd !== undefined) {
    const room = account.roomOn('costMicroUsd') + account.promisedTo(`${entry.step}.${entry.call}`);
    if (entry.costMicroUsd > room)
      ledger.violated('budget', `a call of ${entry.costMicroUsd} began with ${room} left`, id);
  }
  checkReached(entry, account, id, ledger);
}

/** The moves of a flow, of a list in one, and of a task that makes one call, cost nothing. */
function isFree([first]: readonly Entry[]): boolean {
  return first?.kind === 'started' && (isFlow(first.agent) || /^(?:map|tool):/.test(first.agent));
}

/** Whoever is stopped by a limit has nothing left of it. */
function checkReached(entry: Entry, account: Account, id: string, ledger: Ledger): void {
  const told = stopIn(entry);
  const axis = NAMES[String(told?.['budget'])];
  if (told === undefined || axis === undefined) return;
  const limit = account.limits[axis] ?? (axis === 'steps' ? STEPS_UNSAID : Number.POSITIVE_INFINITY);
  if (told['needs'] !== undefined) {
    // What is under way beside a call that does not fit is not in the entries yet.
    if (Number(told['needs']) <= Number(told['left']))
      ledger.violated('budget', `it was stopped with ${told['left']} left, and needs ${told['needs']} ${axis}`, id);
    return;
  }
  const used = account.countedOn(axis) + account.lentOn(axis);
  if (used < limit) ledger.violated('budget', `it was stopped at ${used} of ${limit} ${axis}`, id);
}

/** What an entry says of the limit at which it stops the run. Calls are counted outside. */
function stopIn(entry: Entry): JsonObject | undefined {
  if (entry.kind === 'finished') return entry.metadata;
  return entry.kind === 'paused' && entry.step === undefined ? entry.payload : undefined;
}

/** What it says that it came to agrees with what is in its journal. */
function checkEnding({ id, entries }: EndedRun, { used, ownSteps }: Account, totals: RunTotals, ledger: Ledger): void {
  const told = {
    steps: totals.steps,
    tokens: totals.inputTokens + totals.outputTokens,
    costMicroUsd: totals.costMicroUsd,
  };
  const counted = { steps: ownSteps, tokens: used.tokens, costMicroUsd: used.costMicroUsd };
  for (const axis of ['steps', 'tokens', 'costMicroUsd'] as const) {
    if (told[axis] !== counted[axis]) {
      ledger.violated(
        'budget',
        `${told[axis]} ${axis} are reckoned, and ${counted[axis]} are in its ${entries.length} entries`,
        id,
      );
    }
  }
  // A tool that took money is in the journal with it.
  const refused = refusedIn(entries);
  const isUndone = (key: string): boolean =>
    ledger.refuted.has(key) && !ledger.effects.has(key) && refused.has(key.slice(key.lastIndexOf('/') + 1));
  const prices = new Map(
    ledger.attempts.flatMap(({ run, key, costMicroUsd }) =>
      run === id && !isUndone(key) ? [[key, costMicroUsd]] : [],
    ),
  );
  const paid = sum([...prices.values()]);
  if (paid > used.costMicroUsd)
    ledger.violated('budget', `tools took ${paid}, and ${used.costMicroUsd} are in its journal`, id);
}

/** By step and call, what did not fit the budget when it was to be made, perhaps again: it had not happened, and has taken nothing. */
function refusedIn(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(
    entries.flatMap((entry) =>
      entry.kind === 'call_ended' && entry.outcome.kind === 'error' && entry.outcome.error.code === 'budget_exceeded'
        ? [`${entry.step}.${entry.call}`]
        : [],
    ),
  );
}

type Ended = Extract<Entry, { kind: 'task_ended' }>['usage'];

function since(
  now: Ended,
  before: Ended | undefined,
): Required<Pick<Ended, 'steps' | 'calls' | 'inputTokens' | 'outputTokens' | 'costMicroUsd'>> {
  return {
    steps: now.steps - (before?.steps ?? 0),
    calls: (now.calls ?? 0) - (before?.calls ?? 0),
    inputTokens: now.inputTokens - (before?.inputTokens ?? 0),
    outputTokens: now.outputTokens - (before?.outputTokens ?? 0),
    costMicroUsd: now.costMicroUsd - (before?.costMicroUsd ?? 0),
  };
}
