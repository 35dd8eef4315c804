/**
 * Schedules the branches of a graph: decides what may start next and what will never run. It is told which calls end, and does no
 * work for branches that are not affected. It reads no clock and awaits nothing; its state can be rebuilt from the records of the
 * calls.
 */

import {
  type AtOnce,
  type Branch,
  BranchEnds,
  BranchGraph,
  type BranchVerdict,
  type CallOver,
  type CallParallel,
  type CallRecord,
  type EndOf,
  Heap,
  judgeBranch,
  nothingJudged,
  type Outcome,
} from '#core';
import { atOnceOf } from '#state';

/** Numbers of branches in the order in which they are to start: the longest chain first, then by number. */

/** Above every number of a branch; with the longest chain in front it is far from the end of the exact numbers. */
const SPAN = 2 ** 24;

/** By keys, each made of the length of the chain and the number. */
class ReadyQueue {
  readonly #keys = new Heap<number>((one, other) => one > other);

  push(call: number, chain: number): void {
    this.#keys.push(chain * SPAN + (SPAN - 1 - call));
  }

  /** `undefined`: it is empty. */
  pop(): number | undefined {
    const key = this.#keys.pop();
    return key === undefined ? undefined : SPAN - 1 - (key % SPAN);
  }
}

export interface Ended {
  readonly call: number;
  readonly outcome: Outcome;
}

interface Node {
  readonly branch: Branch;
  /** How many branches the longest chain has that waits for this branch. */
  chain: number;
  /** The last branch that this branch waits for without naming it. */
  held: number | undefined;
  state: 'waiting' | 'ready' | 'taken' | 'parked' | 'ended';
  outcome: Outcome | undefined;
}

const NONE: ReadonlySet<number> = new Set();

type HowToRun = Pick<CallParallel, 'join' | 'concurrency' | 'plan' | 'failFast'>;

export class Schedule {
  /** How many branches may run at once. */
  readonly concurrency: number;
  readonly #graph = new BranchGraph();
  /** The outcome of every call that has not ended when nothing more is needed. */
  readonly #ends: BranchEnds;
  readonly #nodes: Node[] = [];
  readonly #ready = new ReadyQueue();
  #readyCount = 0;
  /** Branches whose chain was made longer by new branches, and whose needs do not know it yet. */
  readonly #longer: number[] = [];
  /** Ready calls for which their tool had no room, by tool. */
  readonly #held = new Map<string, ReadyQueue>();
  readonly #parked = new Set<number>();
  #settled: Ended[] = [];
  #open = 0;
  readonly #before = nothingJudged();
  readonly #endOf: EndOf = (call) => this.#nodes[call]?.outcome;
  /** For a branch that has not ended, the branches that wait for it without naming it. */
  readonly #holds = new Map<number, number[]>();
  /** The outcome of every branch that was not started, except for the spared ones. */
  #closed: Outcome | undefined;
  /** Calls that a dead process started, or that are in doubt: their outcomes must be found out in any case. */
  readonly #begun = new Set<number>();
  /** Beside those. */
  #spared: ReadonlySet<number> = NONE;

  constructor(how: HowToRun, atOnce?: AtOnce) {
    this.#ends = new BranchEnds(how);
    this.concurrency = atOnceOf(how, atOnce);
  }

  get size(): number {
    return this.#nodes.length;
  }

  /** Branches that have not ended. */
  get open(): number {
    return this.#open;
  }

  /** Calls that were started, and are blocked by an answer or a task. */
  get parked(): ReadonlySet<number> {
    return this.#parked;
  }

  /**
   * Whether calls that still run must be stopped: the join has what it needs, the plan has reached its end, or a branch has failed
   * that stops the others.
   */
  get isMet(): boolean {
    return this.#ends.over !== undefined;
  }

  branch(call: number): Branch {
    return this.#node(call).branch;
  }

  indexOf(id: string): number | undefined {
    return this.#graph.indexOf(id);
  }

  hasEnded(call: number): boolean {
    return this.#node(call).state === 'ended';
  }

  /** The call may start as soon as there is room for it. */
  isReady(call: number): boolean {
    return this.#node(call).state === 'ready';
  }

  /**
   * Adds branches at the end.
   * @param records what is known of all branches, by index: those that have ended do not run again.
   */
  grow(branches: readonly Branch[], records: readonly (CallRecord | null)[]): void {
    const first = this.size;
    this.#graph.grow(branches);
    for (const branch of branches) {
      this.#nodes.push(newNode(branch));
      this.#before.met.push(0);
    }
    this.#open += branches.length;
    for (let call = first; call < this.size; call += 1) {
      const outcome = records[call]?.outcome;
      if (outcome !== undefined) this.#end(call, outcome);
    }
    // With a concurrency of 1 the branches run in the order in which they were given.
    if (this.concurrency > 1) this.#measureChains(first);
    this.#closeWhenMet();
    this.#consider(Array.from(branches, (_, at) => first + at));
  }

  /** Records branches that have ended, all of them before acting on any of them. */
  ended(ends: readonly Ended[]): void {
    for (const { call, outcome } of ends) this.#end(call, outcome);
    if (this.#closeWhenMet()) return;
    for (const { call } of ends) this.#consider(this.#followers(call));
  }

  /** Branches that will never run, with the outcome to record. Each is given once. */
  takeSettled(): readonly Ended[] {
    const settled = this.#settled;
    if (settled.length > 0) this.#settled = [];
    return settled;
  }

  /**
   * Takes the branch that starts now, which counts as started from then on; `undefined` when none may start.
   * @param mayStart whether a tool has room for one more call.
   */
  next(mayStart: (tool: string) => boolean): number | undefined {
    // With one call there is nothing to choose.
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

  /** Called when a started call is blocked: it takes no place until it is started again. */
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

  /** Spares calls that may have happened: they are not given up with the others. */
  spare(calls: readonly number[]): void {
    for (const call of calls) this.#begun.add(call);
  }

  /** Called when nothing of the call is under way any more, and it has not happened. */
  spareNoMore(call: number): void {
    this.#begun.delete(call);
  }

  /** Called when a blocked call has what it waited for: it takes its turn again. */
  unpark(call: number): void {
    this.#parked.delete(call);
    if (this.hasEnded(call)) return;
    if (this.#closed === undefined) this.#makeReady(call);
    else this.#settle(call, this.#closed);
  }

  /** Called when a blocked call has what it waited for: the call counts as started. */
  takeParked(call: number): void {
    this.#parked.delete(call);
    this.#become(this.#node(call), 'taken');
  }

  /** Starts nothing more, except the `begun` branches: calls that were cut off, and may have happened. */
  redirect(begun: readonly number[]): void {
    if (this.#closed === undefined) this.#close(REDIRECTED, new Set(begun));
  }

  #closeWhenMet(): boolean {
    const { over } = this.#ends;
    if (over === undefined) return false;
    const outcome = OVER[over];
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

  /** Makes the branches ready whose turn has come, and settles the branches that will never run, with all consequences. */
  #consider(calls: readonly number[]): void {
    // Chains of branches that are skipped may be thousands long.
    const left = [calls];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      for (const call of next) {
        if (this.#node(call).state !== 'waiting') continue;
        const closed = this.#isSpared(call) ? undefined : this.#closed;
        const outcome = closed ?? this.#judge(call);
        if (outcome === 'ready') this.#makeReady(call);
        else if (typeof outcome === 'object') {
          this.#settle(call, outcome);
          left.push(this.#followers(call));
        }
      }
    }
  }

  #judge(call: number): BranchVerdict {
    const verdict = judgeBranch(this.#graph, call, this.#endOf, this.#before);
    if (typeof verdict === 'number') this.#hold(call, verdict);
    return verdict;
  }

  /** A branch may wait for a branch that it does not name: one that comes before a skipped branch. */
  #hold(call: number, open: number): void {
    const node = this.#node(call);
    if (node.held === open || this.#graph.needs(call)[this.#met(call)] === open) return;
    node.held = open;
    const holds = this.#holds.get(open);
    if (holds === undefined) this.#holds.set(open, [call]);
    else holds.push(call);
  }

  /** The branches that may go on, or will never run, when this branch has ended. */
  #followers(call: number): readonly number[] {
    const dependents = this.#graph.dependents(call);
    const held = this.#holds.get(call);
    return held === undefined ? dependents : [...dependents, ...held];
  }

  /** How many needs of the branch do not block it any more. */
  #met(call: number): number {
    return this.#before.met[call] ?? 0;
  }

  /**
   * Whether all branches before this one have run too. Before a branch with routes, some may have been skipped, and branches
   * before those may not have run.
   */
  #hasRun(call: number): boolean {
    const { state, branch } = this.#node(call);
    return state === 'ended' && this.#met(call) === this.#graph.needs(call).length && branch.routes === undefined;
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
    this.#ends.note(node.branch, outcome);
  }

  /** Lets a call for which its tool had no room try again, when the tool has room now or took another call. */
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

  #measureChains(first: number): void {
    const order = this.#graph.orderFrom(first);
    for (let last = order.length - 1; last >= 0; last -= 1) this.#lengthen(order[last] as number, first);
  }

  /**
   * Makes the chains of the branches that this branch waits for longer than its own. The consequences for branches before `first` are
   * left for later.
   */
  #lengthen(call: number, first: number): void {
    const { chain } = this.#node(call);
    for (const need of this.#graph.needs(call)) {
      const node = this.#node(need);
      if (node.chain > chain || this.#hasRun(need)) continue;
      node.chain = chain + 1;
      if (need < first) this.#longer.push(need);
    }
  }

  /** The last first: most of what is in front of it is looked at once. */
  #lengthenAll(): void {
    for (let call = this.#longer.pop(); call !== undefined; call = this.#longer.pop()) {
      const node = this.#node(call);
      // A branch may stand in the queue twice; the second time it is not ready any more.
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

function newNode(branch: Branch): Node {
  return { branch, chain: 0, held: undefined, state: 'waiting', outcome: undefined };
}

const OVER: Readonly<Record<CallOver, Outcome>> = {
  join_met: cancelled('The join had what it needed before this branch ended.'),
  join_missed: cancelled('Too few branches were left for the join.'),
  plan_ended: cancelled('The plan came to its end before this branch did.'),
  failed_fast: cancelled('Another branch failed, which stops all that had not ended.'),
};
const REDIRECTED: Outcome = {
  kind: 'skipped',
  error: { code: 'plan_redirected', message: 'The goal was changed before this branch was started.' },
};

function cancelled(message: string): Outcome {
  return { kind: 'cancelled', error: { code: 'cancelled', message } };
}
