/**
 * The branch executor's judgement: of a graph of branches, what may start next and what will never run. It is told what
 * ends, and does no work for branches that nothing has happened to. It reads no clock and awaits nothing; what it knows can
 * be made again from the records of the calls.
 */

import {
  type AtOnce,
  type Branch,
  type BranchLinks,
  blockOf,
  type CallParallel,
  type CallRecord,
  FINISH_TOOL,
  isPassedOver,
  jsonEquals,
  linkBranches,
  type Outcome,
  openRoute,
  orderOf,
  waysOf,
} from '#core';
import { atOnceOf, isFailure, winnersOf } from '#state';
import { ReadyQueue } from './ready-queue.ts';

export interface Ended {
  readonly call: number;
  readonly outcome: Outcome;
}

interface Node {
  readonly branch: Branch;
  readonly needs: readonly number[];
  /** Those of its needs that may be passed over. */
  readonly behind: ReadonlySet<number>;
  readonly dependents: number[];
  /** Branches in the longest chain that waits for it. */
  chain: number;
  /** How many of its needs, from the first one on, have ended: with a value, but for those of a branch with routes. */
  met: number;
  /** A branch that is no need of its own, but is before one that was passed over: it waits for that too. */
  held: number | undefined;
  state: 'waiting' | 'ready' | 'taken' | 'parked' | 'ended';
  outcome: Outcome | undefined;
}

const NONE: ReadonlySet<number> = new Set();

type HowToRun = Pick<CallParallel, 'join' | 'concurrency' | 'plan' | 'failFast'>;

export class Schedule {
  /** Branches that may run at once. */
  readonly concurrency: number;
  readonly #isPlan: boolean;
  /** With so many values nothing more is wanted. */
  readonly #winners: number;
  readonly #links: BranchLinks = { indexById: new Map(), needs: [] };
  readonly #nodes: Node[] = [];
  readonly #ready = new ReadyQueue();
  #readyCount = 0;
  /** Branches whose chain was made longer by what was added, and those before them do not know yet. */
  readonly #longer: number[] = [];
  /** Ready, but there was no room at their tool. By the tool. */
  readonly #held = new Map<string, ReadyQueue>();
  readonly #parked = new Set<number>();
  #settled: Ended[] = [];
  #open = 0;
  #values = 0;
  #isFinished = false;
  readonly #isFailFast: boolean;
  #hasFailed = false;
  /** Of skipped branches, as far as somebody has asked: whether they were passed over. */
  readonly #passed = new Map<number, boolean>();
  /** Skipped branches before which all has ended. */
  readonly #clear = new Set<number>();
  /** What becomes of every branch that has not been started, but for those that are spared. */
  #closed: Outcome | undefined;
  /** Started by a process that died, or in doubt: what became of them is to be found out, whatever else is wanted. */
  readonly #begun = new Set<number>();
  /** Beside those. */
  #spared: ReadonlySet<number> = NONE;

  constructor(how: HowToRun, atOnce?: AtOnce) {
    const { join, plan, failFast } = how;
    this.#isFailFast = failFast === true;
    this.#isPlan = plan !== undefined;
    this.concurrency = atOnceOf(how, atOnce);
    this.#winners = winnersOf(join) ?? Number.POSITIVE_INFINITY;
  }

  get size(): number {
    return this.#nodes.length;
  }

  /** Branches that have not ended. */
  get open(): number {
    return this.#open;
  }

  /** Calls that were started, and wait for an answer or a task. */
  get parked(): ReadonlySet<number> {
    return this.#parked;
  }

  /** The join has what it needs, or the plan its end, or a branch has failed that stops the others: what still runs is to be stopped. */
  get isMet(): boolean {
    return this.#ending !== undefined;
  }

  /** What becomes of all that has not ended when nothing more is wanted. */
  get #ending(): Outcome | undefined {
    if (this.#isFinished) return PLAN_ENDED;
    if (this.#values >= this.#winners) return JOIN_MET;
    return this.#isFailFast && this.#hasFailed ? FAILED_FAST : undefined;
  }

  branch(call: number): Branch {
    return this.#node(call).branch;
  }

  indexOf(id: string): number | undefined {
    return this.#links.indexById.get(id);
  }

  hasEnded(call: number): boolean {
    return this.#node(call).state === 'ended';
  }

  /**
   * Adds branches at the end.
   * @param records what is known of all branches, by index: those that have ended do not run again.
   */
  grow(branches: readonly Branch[], records: readonly (CallRecord | null)[]): void {
    const first = this.size;
    const { needs } = linkBranches(branches, this.#links);
    for (const [at, branch] of branches.entries()) {
      this.#nodes.push(newNode(branch, needs[first + at] ?? [], this.#behind(branch)));
    }
    this.#open += branches.length;
    for (let call = first; call < this.size; call += 1) {
      for (const need of this.#node(call).needs) this.#node(need).dependents.push(call);
      const outcome = records[call]?.outcome;
      if (outcome !== undefined) this.#end(call, outcome);
    }
    // One at a time, they run in the order in which they were given.
    if (this.concurrency > 1) this.#measureChains(first);
    this.#closeWhenMet();
    this.#consider(Array.from(branches, (_, at) => first + at));
  }

  /** Takes note of branches that have ended, all of them before anything follows from one. */
  ended(ends: readonly Ended[]): void {
    for (const { call, outcome } of ends) this.#end(call, outcome);
    if (this.#closeWhenMet()) return;
    for (const { call } of ends) this.#consider(this.#node(call).dependents);
  }

  /** Branches that will never run, with the outcome to record. Each is given once. */
  takeSettled(): readonly Ended[] {
    const settled = this.#settled;
    if (settled.length > 0) this.#settled = [];
    return settled;
  }

  /**
   * The branch that is to start now; it counts as started. `undefined`: none may.
   * @param mayStart whether a tool has room for one more call.
   */
  next(mayStart: (tool: string) => boolean): number | undefined {
    // Of one there is nothing to choose.
    if (this.#readyCount > 1) this.#lengthenAll();
    for (;;) {
      const call = this.#ready.pop();
      if (call === undefined) return undefined;
      const node = this.#node(call);
      if (node.state !== 'ready') continue;
      const { tool } = node.branch;
      if (mayStart(tool)) {
        this.#become(node, 'taken');
        this.#giveWay(tool);
        return call;
      }
      this.#heldOf(tool).push(call, node.chain);
    }
  }

  /** The call was started, and waits: it takes no place until it is started again. */
  park(call: number): void {
    const node = this.#node(call);
    if (node.state === 'ended') return;
    if (this.isMet && this.#closed !== undefined && !this.#begun.has(call)) {
      this.#settle(call, this.#closed);
      return;
    }
    this.#become(node, 'parked');
    this.#parked.add(call);
    this.#giveWay(node.branch.tool);
  }

  /** These may have happened: they are not given up with the others. */
  spare(calls: readonly number[]): void {
    for (const call of calls) this.#begun.add(call);
  }

  /** What the parked call waited for is there: it takes its turn again. */
  unpark(call: number): void {
    this.#parked.delete(call);
    if (this.hasEnded(call)) return;
    if (this.#closed === undefined) this.#makeReady(call);
    else this.#settle(call, this.#closed);
  }

  /** What the parked call waited for is there: it counts as started, whatever else runs. */
  takeParked(call: number): void {
    this.#parked.delete(call);
    this.#become(this.#node(call), 'taken');
  }

  /** Nothing more is started, but for the `begun` branches: calls that were cut off, of which something may have happened. */
  redirect(begun: readonly number[]): void {
    if (this.#closed === undefined) this.#close(REDIRECTED, new Set(begun));
  }

  #closeWhenMet(): boolean {
    const outcome = this.#ending;
    if (outcome === undefined) return false;
    if (this.#closed !== outcome) this.#close(outcome);
    return true;
  }

  #close(outcome: Outcome, spared: ReadonlySet<number> = NONE): void {
    this.#closed = outcome;
    this.#spared = spared;
    for (const [call, { state }] of this.#nodes.entries()) {
      const isOver = state === 'parked' ? this.isMet : state === 'waiting' || state === 'ready';
      if (isOver && !this.#isSpared(call)) this.#settle(call, outcome);
    }
  }

  #isSpared(call: number): boolean {
    return this.#begun.has(call) || this.#spared.has(call);
  }

  /** Makes ready those of these branches whose turn has come, and settles those whose turn never will, with all that follows. */
  #consider(calls: readonly number[]): void {
    // Chains of branches that are skipped may be thousands long.
    const left = [calls];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      for (const call of next) {
        if (this.#node(call).state !== 'waiting') continue;
        const closed = this.#isSpared(call) ? undefined : this.#closed;
        const outcome = closed ?? this.#judge(call);
        if (outcome === 'ready') this.#makeReady(call);
        else if (outcome !== 'wait') {
          this.#settle(call, outcome);
          left.push(this.#node(call).dependents);
        }
      }
    }
  }

  /** Ready, still waiting, or why the branch will never run: of needs that failed the first one, whichever failed first. */
  #judge(call: number): 'ready' | 'wait' | Outcome {
    const node = this.#node(call);
    if (node.branch.routes !== undefined) return this.#judgeRoutes(node);
    for (; node.met < node.needs.length; node.met += 1) {
      const need = node.needs[node.met] as number;
      const { outcome } = this.#node(need);
      if (outcome === undefined) return 'wait';
      if (outcome.kind === 'value') continue;
      if (!node.behind.has(need) || this.#isLost(need)) {
        return skipped(`It needs branch ${need}, which did not end with a value.`, need);
      }
      if (this.#isHeld(call, need)) return 'wait';
    }
    const { when } = node.branch;
    if (when === undefined) return 'ready';
    const route = this.indexOf(when.branch) as number;
    const { outcome } = this.#node(route);
    return outcome?.kind === 'value' && jsonEquals(outcome.value, when.equals)
      ? 'ready'
      : skipped(`Its condition on branch ${route} does not hold.`, route);
  }

  /**
   * Whether something before the need, which was passed over, has not ended: what stands behind a step stands behind all that
   * the step waited for, though it was passed over before that.
   */
  #isHeld(call: number, need: number): boolean {
    const node = this.#node(call);
    const open = this.#openBefore(need);
    if (open !== undefined && open !== node.held) this.#node(open).dependents.push(call);
    node.held = open;
    return open !== undefined;
  }

  #openBefore(skipped: number): number | undefined {
    const seen = new Set<number>();
    const left = [skipped];
    for (let at = left.pop(); at !== undefined; at = left.pop()) {
      if (seen.has(at) || this.#clear.has(at)) continue;
      const { outcome, needs } = this.#node(at);
      if (outcome === undefined) return at;
      seen.add(at);
      // What has run did so when all before it had ended.
      if (outcome.kind === 'skipped') for (const need of needs) left.push(need);
    }
    for (const each of seen) this.#clear.add(each);
    return undefined;
  }

  /** The first route that is open is taken, and which that is is known only when all that any of them needs has ended. */
  #judgeRoutes(node: Node): 'ready' | 'wait' | Outcome {
    const { branch, needs } = node;
    for (; node.met < needs.length; node.met += 1) {
      if (this.#node(needs[node.met] as number).outcome === undefined) return 'wait';
    }
    const outcomeOf = (id: string): Outcome | undefined => this.#node(this.indexOf(id) as number).outcome;
    if (openRoute(branch, outcomeOf) !== undefined) return 'ready';
    const failed = needs.find((need) => this.#isLost(need));
    if (failed !== undefined) return skipped(`None of its routes is open; branch ${failed} came to nothing.`, failed);
    const [first] = waysOf(branch);
    const passed = this.indexOf((first && blockOf(first, outcomeOf)) ?? '') ?? 0;
    return skipped(`None of its routes is open; branch ${passed} led elsewhere, or was passed over.`, passed);
  }

  /** It failed, or was skipped because of one that did. */
  #isLost(call: number): boolean {
    const outcomeOf = (other: number): Outcome | undefined => this.#nodes[other]?.outcome;
    return outcomeOf(call)?.kind !== 'value' && !isPassedOver(call, outcomeOf, this.#passed);
  }

  #makeReady(call: number): void {
    const node = this.#node(call);
    this.#become(node, 'ready');
    this.#ready.push(call, node.chain);
  }

  #settle(call: number, outcome: Outcome): void {
    this.#end(call, outcome);
    this.#settled.push({ call, outcome });
  }

  #end(call: number, outcome: Outcome): void {
    const node = this.#node(call);
    const wasTaken = node.state === 'taken';
    this.#become(node, 'ended');
    node.outcome = outcome;
    this.#open -= 1;
    this.#parked.delete(call);
    if (wasTaken) this.#giveWay(node.branch.tool);
    if (isFailure(outcome, node.branch)) this.#hasFailed = true;
    if (outcome.kind !== 'value') return;
    this.#values += 1;
    if (this.#isPlan && node.branch.tool === FINISH_TOOL) this.#isFinished = true;
  }

  /** One of those for which the tool had no room may try again: there is room now, or was for another. */
  #giveWay(tool: string): void {
    const held = this.#held.get(tool);
    for (let call = held?.pop(); call !== undefined; call = held?.pop()) {
      const node = this.#node(call);
      if (node.state !== 'ready') continue;
      this.#ready.push(call, node.chain);
      return;
    }
  }

  #heldOf(tool: string): ReadyQueue {
    const found = this.#held.get(tool);
    if (found !== undefined) return found;
    const made = new ReadyQueue();
    this.#held.set(tool, made);
    return made;
  }

  #behind({ behind }: Branch): ReadonlySet<number> {
    return behind === undefined ? NONE : new Set(behind.map((id) => this.indexOf(id) as number));
  }

  #measureChains(first: number): void {
    const order = orderOf(this.#links.needs, first);
    for (let last = order.length - 1; last >= 0; last -= 1) this.#lengthen(order[last] as number, first);
  }

  /** The branches that this one waits for have chains longer than its own; what that means for those before `first` is left for later. */
  #lengthen(call: number, first: number): void {
    const { needs, chain } = this.#node(call);
    for (const need of needs) {
      const node = this.#node(need);
      if (node.chain > chain || hasRun(node)) continue;
      node.chain = chain + 1;
      if (need < first) this.#longer.push(need);
    }
  }

  /** The last first: most of what is in front of it is looked at once. */
  #lengthenAll(): void {
    for (let call = this.#longer.pop(); call !== undefined; call = this.#longer.pop()) {
      const node = this.#node(call);
      // It stands in the queue twice; the second time it is not ready any more.
      if (node.state === 'ready') this.#ready.push(call, node.chain);
      this.#lengthen(call, this.size);
    }
  }

  #become(node: Node, state: Node['state']): void {
    if (node.state === 'ready') this.#readyCount -= 1;
    if (state === 'ready') this.#readyCount += 1;
    node.state = state;
  }

  #node(call: number): Node {
    return this.#nodes[call] as Node;
  }
}

/** All before it have run too. Of a branch with routes some of them may have been skipped, and what is before those not have run. */
function hasRun({ state, met, needs, branch }: Node): boolean {
  return state === 'ended' && met === needs.length && branch.routes === undefined;
}

function newNode(branch: Branch, needs: readonly number[], behind: ReadonlySet<number>): Node {
  return {
    branch,
    needs,
    behind,
    dependents: [],
    chain: 0,
    met: 0,
    held: undefined,
    state: 'waiting',
    outcome: undefined,
  };
}

function skipped(message: string, branch: number): Outcome {
  return { kind: 'skipped', error: { code: 'branch_not_started', message, data: { branch } } };
}

const JOIN_MET: Outcome = cancelled('The join had what it needed before this branch ended.');
const PLAN_ENDED: Outcome = cancelled('The plan came to its end before this branch did.');
const FAILED_FAST: Outcome = cancelled('Another branch failed, which stops all that had not ended.');
const REDIRECTED: Outcome = {
  kind: 'skipped',
  error: { code: 'plan_redirected', message: 'The goal was changed before this branch was started.' },
};

function cancelled(message: string): Outcome {
  return { kind: 'cancelled', error: { code: 'cancelled', message } };
}
