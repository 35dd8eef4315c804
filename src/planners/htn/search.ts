/**
 * Total-order HTN planning: depth first, chronological backtracking. One state is changed in place and taken back; what
 * is left to do is a linked list of which all branches share the tail; the choices that are open are a stack. So neither
 * the length of a plan nor the depth of a task takes anything of the call stack.
 */
import { assertOptions, defined, describeThrown, type Json, jsonEquals, type OptionShape, PilotageError } from '#core';
import type { DomainFunction, HtnDomain, HtnTask } from './domain.ts';
import {
  badDecomposition,
  type DeadEnd,
  type FailedMethod,
  Item,
  itemsOf,
  methodOf,
  type Resolve,
  resolverOf,
} from './item.ts';
import type { HtnState } from './state.ts';
import { type HtnTrace, traceOf } from './trace.ts';

export interface HtnLimits {
  /** Levels of tasks, the first ones being at level 1. Default: no limit. */
  readonly depth?: number;
  /** Items that are taken up, those of dead branches too. Default: no limit. */
  readonly nodes?: number;
}

export interface SearchOptions extends HtnLimits {
  readonly signal?: AbortSignal;
  /** Keeps the decomposition, with what was tried in vain, up to so many nodes. */
  readonly trace?: number;
}

const OPTIONS: OptionShape<SearchOptions> = { depth: 'any?', nodes: 'any?', signal: 'signal?', trace: 'any?' };

export interface HtnResult {
  /** The actions in their order. Absent: there is no plan. */
  readonly actions?: readonly HtnTask[];
  /** Items that were taken up, and one for the end of the list. */
  readonly nodes: number;
  readonly trace?: HtnTrace;
}

/**
 * The first plan for the tasks. The state is then as the plan leaves it; without a plan it is as it was before.
 * @throws PilotageError `htn_depth`, `htn_nodes`; `htn_cycle` when no plan is found, and a task leads back to itself with nothing
 * changed is why: such a branch is given up, so a plan in which a task is begun by itself again is not found.
 * `htn_invalid_decomposition` for a function of the domain that throws or gives what it must not. The signal's reason.
 */
export function findPlan(
  domain: HtnDomain,
  state: HtnState,
  todo: readonly HtnTask[],
  options: SearchOptions = {},
): HtnResult {
  assertOptions('findPlan', options, OPTIONS);
  const resolve = resolverOf(domain);
  const { signal, trace } = options;
  const search = new Search({
    ...options,
    ...defined({ fingerprint: domain.fingerprint }),
    state,
    resolve,
    todo: itemsOf(todo, resolve),
  });
  let status: SearchStatus = 'more';
  while (status === 'more') {
    signal?.throwIfAborted();
    status = search.run();
  }
  if (status === 'none' && search.cycle !== undefined) throw search.cycle;
  if (status === 'asked')
    throw search.misfit('returned a promise; only the planner waits for promises, the plain search does not.');
  return {
    ...(status === 'found' ? { actions: actionsOf(search.plan) } : {}),
    nodes: search.nodes,
    ...(trace === undefined ? {} : { trace: traceOf(search.spec.todo, trace) }),
  };
}

function actionsOf(plan: readonly Item[]): HtnTask[] {
  const actions: HtnTask[] = [];
  for (const { kind, task } of plan) if (kind !== 'check') actions.push(task);
  return actions;
}

/** `asked`: `search.asked` is waited for, and `answer` is called with what it comes to. */
export type SearchStatus = 'found' | 'none' | 'more' | 'asked';

export interface SearchSpec extends HtnLimits {
  readonly state: HtnState;
  readonly resolve: Resolve;
  readonly todo: Item | undefined;
  /** A number greater than 0: notes what was tried in vain, so many times. */
  readonly trace?: number;
  /** Leaves are taken for actions without an effect. */
  readonly leaves?: boolean;
  /** The fingerprint function of the domain. */
  readonly fingerprint?: HtnDomain['fingerprint'];
  /** The item is not to be tried. Asked before each action and task. */
  readonly isExcluded?: (item: Item) => boolean;
  /** The method of that name is not to be tried there. */
  readonly isBarred?: (item: Item, method: string) => boolean;
  /** The search ends behind the action. */
  readonly isEnough?: (item: Item) => boolean;
  /** Says which of the methods that apply is tried first. Asked when there is more than one. Another text: no matter. */
  readonly choose?: (item: Item, methods: readonly string[]) => Promise<string>;
}

/** Nodes between two looks at the signal. */
const SLICE = 4_096;
/** Down to this depth cycles are looked for at each level; deeper, each time the depth has doubled. */
const CYCLE_CHECKS = 64;
/** The last bound of ways that begin with themselves with which a search is tried again after it came to a limit. */
const MOST_RECURSIONS = 64;
const NOBODY = { kind: 'leaf', methods: [] } as const;

/** Stands for an item when there is no going on. */
const DEAD: Item = new Item([''], 'leaf', NOBODY, undefined, undefined);
/** Stands for an item when something is waited for. */
const WAITING: Item = new Item([''], 'leaf', NOBODY, undefined, undefined);

export class Search {
  readonly spec: SearchSpec;
  /** The actions so far, with the checks of goals among them. */
  readonly plan: Item[] = [];
  nodes = 0;
  /** For a search that ended early: what is left to do. */
  rest: Item | undefined;
  /** Where and why there was no going on the last time. */
  end: Item | undefined;
  why: DeadEnd = 'no_method';
  asked: Promise<unknown> | undefined;
  /** The first branch that was given up because a task led back to itself. It is reported when the search finds no plan. */
  cycle: PilotageError | undefined;
  /** The methods among which is to be chosen, when that is what was asked. */
  #choosing: readonly number[] | undefined;
  readonly #state: HtnState;
  readonly #start: number;
  readonly #maxNodes: number;
  readonly #maxDepth: number;
  /** Items of which another method may be tried. */
  readonly #choices: Item[] = [];
  /** What was come to before, when the domain has a fingerprint. */
  readonly #seen = new Set<string>();
  readonly #tails = new Map<string, number>();
  /** How many failures may still be noted for the trace. */
  #notes: number;
  /** The item that is being looked at. */
  #now: Item = DEAD;
  /** A task began with one of its name, with nothing changed. */
  #recurs = false;
  /** So often it may, when there is a bound; it is tried with more when that has cut something off. */
  #bound = Number.POSITIVE_INFINITY;
  #hasCut = false;
  /** How many nodes earlier tries have visited. */
  #before = 0;

  constructor(spec: SearchSpec) {
    this.spec = spec;
    this.rest = spec.todo;
    this.#state = spec.state;
    this.#start = spec.state.mark();
    this.#maxNodes = spec.nodes ?? Number.POSITIVE_INFINITY;
    this.#maxDepth = spec.depth ?? Number.POSITIVE_INFINITY;
    this.#notes = spec.trace ?? 0;
  }

  /** Goes on for some thousand nodes. */
  run(): SearchStatus {
    try {
      return this.#run();
    } catch (cause) {
      this.#state.undo(this.#start);
      if (PilotageError.is(cause)) throw cause;
      throw badDecomposition(this.#now, `failed: ${describeThrown(cause)}`, cause);
    }
  }

  /** @param value what `asked` came to. */
  answer(value: unknown): void {
    const item = this.#now;
    this.asked = undefined;
    if (this.#choosing !== undefined) this.rest = this.#expandChosen(item, this.#choosing, value);
    else this.rest = this.#accepts(item, value) ? item.first : this.#expand(item, item.method + 1);
  }

  /** An error about the item that is being looked at. */
  misfit(problem: string): PilotageError {
    return badDecomposition(this.#now, problem);
  }

  #run(): SearchStatus {
    let item = this.rest;
    this.rest = undefined;
    for (let left = SLICE; left > 0; left -= 1) {
      while (item === DEAD) {
        const choice = this.#choices.pop();
        if (choice !== undefined) item = this.#tryNext(choice);
        else if (this.#hasCut) item = this.#again(2 * this.#bound);
        else {
          this.#state.undo(this.#start);
          return 'none';
        }
      }
      if (item === undefined) {
        this.nodes += 1;
        return 'found';
      }
      if (item === WAITING) return 'asked';
      item = this.#take(item);
    }
    this.rest = item;
    return 'more';
  }

  /** The item that is next then. */
  #take(item: Item): Item | undefined {
    this.nodes += 1;
    this.#now = item;
    if (this.nodes - this.#before > this.#maxNodes) {
      const bound = this.#nextBound();
      if (bound !== undefined) return this.#again(bound);
      throw this.#beyond('htn_nodes', `more than ${this.#maxNodes} nodes`, 'nodes');
    }
    item.mark = this.#state.mark();
    item.at = this.plan.length;
    item.method = -1;
    item.lists = undefined;
    item.order = undefined;
    item.answer = undefined;
    item.applied = false;
    item.first = item.next;
    item.failed = undefined;
    item.why = undefined;
    if (this.spec.isExcluded?.(item) === true) return this.#dead(item, 'excluded');
    switch (item.kind) {
      case 'action':
        return this.#act(item);
      case 'task':
        return this.#isRepeated(item) ? this.#dead(item, 'repeated') : this.#decompose(item);
      case 'goal':
        return this.#holds(item) ? item.next : this.#decompose(item);
      case 'check':
        if (!this.#holds(item)) return this.#dead(item, 'goal_not_reached');
        this.plan.push(item);
        return item.next;
      case 'leaf':
        return this.spec.leaves === true ? this.#done(item) : this.#dead(item, 'no_method');
      default:
        return item.kind satisfies never;
    }
  }

  /** The same tasks in the same state as before: it went nowhere then, or it is a way back to where it came from. */
  #isRepeated(item: Item): boolean {
    if (this.spec.fingerprint === undefined) return false;
    const key = `${this.#tailOf(item)} ${this.spec.fingerprint(this.#state)}`;
    if (this.#seen.has(key)) return true;
    this.#seen.add(key);
    return false;
  }

  #tailOf(item: Item): number {
    const unnumbered: Item[] = [];
    let next: Item | undefined = item;
    for (; next !== undefined && next.tail === 0; next = next.next) unnumbered.push(next);
    let tail = next?.tail ?? 0;
    for (let at = unnumbered.pop(); at !== undefined; at = unnumbered.pop()) {
      const key = `${tail} ${at.kind} ${JSON.stringify(at.task)}`;
      tail = this.#tails.get(key) ?? this.#tails.size + 1;
      this.#tails.set(key, tail);
      at.tail = tail;
    }
    return tail;
  }

  #act(item: Item): Item | undefined {
    const { operator } = item.entry;
    const applies = operator !== undefined && call(operator, this.#state, item.task, 1);
    if (applies === true) return this.#done(item);
    if (applies !== false) throw badDecomposition(item, 'returned neither true nor false.');
    // What it has changed is taken back on the way to the choice before it.
    return this.#dead(item, 'precondition');
  }

  #done(item: Item): Item | undefined {
    this.plan.push(item);
    if (this.spec.isEnough?.(item) !== true) return item.next;
    this.rest = item.next;
    return undefined;
  }

  #decompose(item: Item): Item | undefined {
    const { depth } = item;
    if (depth <= CYCLE_CHECKS || isPowerOfTwo(depth) || this.#bound < Number.POSITIVE_INFINITY) {
      const why = this.#wayBack(item);
      if (why !== undefined) return this.#dead(item, why);
    }
    if (depth > this.#maxDepth) {
      const bound = this.#nextBound();
      if (bound !== undefined) return this.#again(bound);
      throw this.#beyond('htn_depth', `more than ${this.#maxDepth} levels`, 'depth');
    }
    const { choose } = this.spec;
    if (choose === undefined || item.entry.methods.length < 2) return this.#expand(item, 0);
    const applying = this.#applying(item);
    if (applying.length < 2) return this.#expand(item, 0);
    this.#choosing = applying;
    this.asked = choose(
      item,
      applying.map((index) => item.entry.methods[index]?.name ?? ''),
    );
    return WAITING;
  }

  /** The same task further up, with nothing changed since, would come again without end; one of its name may, up to the bound. */
  #wayBack(item: Item): DeadEnd | undefined {
    let times = 0;
    for (let above = item.parent; above !== undefined && above.mark === item.mark; above = above.parent) {
      if (above.task[0] !== item.task[0]) continue;
      if (isSame(above.task, item.task)) {
        this.cycle ??= cycleOf(item, above);
        return 'cycle';
      }
      times += 1;
    }
    if (times > 0) this.#recurs = true;
    if (times <= this.#bound) return undefined;
    this.#hasCut = true;
    return 'recursion';
  }

  /**
   * A search that has come to a limit among ways that begin with themselves may do better where these are short, or a little
   * longer.
   */
  #nextBound(): number | undefined {
    if (this.#bound === Number.POSITIVE_INFINITY) return this.#recurs ? 1 : undefined;
    return this.#hasCut && this.#bound < MOST_RECURSIONS ? 2 * this.#bound : undefined;
  }

  /** From the beginning, with a bound. */
  #again(bound: number): Item | undefined {
    this.#state.undo(this.#start);
    this.plan.length = 0;
    this.#choices.length = 0;
    this.#seen.clear();
    this.#before = this.nodes;
    this.#bound = bound;
    this.#hasCut = false;
    return this.spec.todo;
  }

  /** The methods that apply now, by their index. */
  #applying(item: Item): number[] {
    const applying: number[] = [];
    for (const [index, { run }] of item.entry.methods.entries()) {
      item.method = index;
      const given = call(run, this.#state, item.task, firstArgument(item));
      if (Array.isArray(isIterator(given) ? nextOf(given) : given)) applying.push(index);
    }
    return applying;
  }

  /** The chosen one first, the others after it in their order. */
  #expandChosen(item: Item, applying: readonly number[], answer: unknown): Item | undefined {
    this.#choosing = undefined;
    const chosen = applying.filter((index) => item.entry.methods[index]?.name === answer);
    if (chosen.length === 0) item.answer = String(answer);
    item.order = [...chosen, ...applying.filter((index) => !chosen.includes(index))];
    return this.#expand(item, 0);
  }

  /** Tries the methods from that one on. */
  #expand(item: Item, from: number): Item | undefined {
    const { entry, order } = item;
    const { methods } = entry;
    for (let index = from; index < methods.length; index += 1) {
      const method = methods[order === undefined ? index : (order[index] ?? -1)];
      if (method === undefined) break;
      item.method = index;
      if (this.spec.isBarred?.(item, method.name) === true) continue;
      let given = call(method.run, this.#state, item.task, firstArgument(item));
      item.lists = isIterator(given) ? given : undefined;
      if (item.lists !== undefined) given = nextOf(item.lists);
      if (given instanceof Promise) {
        this.asked = given;
        return WAITING;
      }
      if (this.#accepts(item, given)) return item.first;
    }
    item.method = methods.length;
    return item.applied ? DEAD : this.#dead(item, 'no_method');
  }

  /** Puts what the method gave in front of the rest. `false`: it does not apply. */
  #accepts(item: Item, given: unknown): boolean {
    if (this.#state.mark() !== item.mark) throw badDecomposition(item, 'changed the state, which only operators may.');
    if (given === undefined || given === false || given instanceof Error) {
      const message = given instanceof Error ? { message: describeThrown(given) } : {};
      this.#note(item, { name: methodOf(item) ?? '', ...message });
      return false;
    }
    if (!Array.isArray(given))
      throw badDecomposition(item, 'must return a list of tasks, or undefined when the method does not apply.');
    const { kind, task, entry, next } = item;
    const end = kind === 'goal' ? new Item(task, 'check', entry, item, next) : next;
    item.first = itemsOf(given, this.spec.resolve, item, end);
    item.applied = true;
    // For a trace also the last method is seen to fail.
    const isOpen = item.method + 1 < entry.methods.length || item.lists !== undefined;
    if (isOpen || this.#notes > 0) this.#choices.push(item);
    return true;
  }

  /** Back at an item of which a method has led nowhere. */
  #tryNext(item: Item): Item | undefined {
    this.#state.undo(item.mark);
    this.plan.length = item.at;
    this.#now = item;
    const { end, why } = this;
    if (end !== undefined) this.#note(item, { name: methodOf(item) ?? '', end, why, first: item.first });
    const given = item.lists === undefined ? undefined : nextOf(item.lists);
    if (given !== undefined && this.#accepts(item, given)) return item.first;
    return this.#expand(item, item.method + 1);
  }

  #dead(item: Item, why: DeadEnd): Item {
    item.why = why;
    this.end = item;
    this.why = why;
    return DEAD;
  }

  #note(item: Item, failure: FailedMethod): void {
    if (this.#notes === 0) return;
    this.#notes -= 1;
    item.failed ??= [];
    item.failed.push(failure);
  }

  #holds({ task }: Item): boolean {
    return jsonEquals(this.#state.get(task[1] as string, task[2] as string), task[3]);
  }

  #beyond(code: 'htn_depth' | 'htn_nodes', limit: string, option: 'depth' | 'nodes'): PilotageError {
    const task = this.#now.task[0];
    const message = `The search for a plan came to ${limit}, at ${task}. Raise \`${option}\`, or look for a task that never ends.`;
    return new PilotageError(code, message, { data: { task } });
  }
}

/** Changes the state as the action does, if it applies. Other items change nothing. */
export function applyAction({ entry: { operator }, task }: Item, state: HtnState): void {
  if (operator === undefined) return;
  const mark = state.mark();
  if (call(operator, state, task, 1) !== true) state.undo(mark);
}

/** In the task: a goal has its table in front of the key. */
function firstArgument({ kind }: Item): 1 | 2 {
  return kind === 'goal' ? 2 : 1;
}

function isIterator(given: unknown): given is Iterator<unknown> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return false;
  return 'next' in given && typeof given.next === 'function';
}

/** `undefined` at the end. */
function nextOf(lists: Iterator<unknown>): unknown {
  const { done, value } = lists.next();
  return done === true ? undefined : value;
}

/** With so many arguments as most have, without a list of them. */
function call(run: DomainFunction, state: HtnState, task: HtnTask, from: 1 | 2): unknown {
  switch (task.length - from) {
    case 0:
      return run(state);
    case 1:
      return run(state, task[from] as Json);
    case 2:
      return run(state, task[from] as Json, task[from + 1] as Json);
    case 3:
      return run(state, task[from] as Json, task[from + 1] as Json, task[from + 2] as Json);
    default:
      return run(state, ...(task.slice(from) as Json[]));
  }
}

function isPowerOfTwo(value: number): boolean {
  return (value & (value - 1)) === 0;
}

function isSame(left: HtnTask, right: HtnTask): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index += 1) {
    if (!jsonEquals(left[index], right[index])) return false;
  }
  return true;
}

/** @param first where the path begins. */
function cycleOf(item: Item, first: Item): PilotageError {
  const path = [item.task[0]];
  for (let at = item; at !== first && at.parent !== undefined; at = at.parent) path.push(at.parent.task[0]);
  path.reverse();
  const message = `The task ${item.task[0]} leads back to itself with nothing changed: ${path.join(' > ')}.`;
  return new PilotageError('htn_cycle', message, { data: { path } });
}
