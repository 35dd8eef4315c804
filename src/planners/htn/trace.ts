/** How a plan was found, or why none was: the tree of tasks and methods, as a list of nodes in which each names its parent. */
import { defined, isJsonObject, type Json, type Step } from '#core';
import type { HtnTask } from './domain.ts';
import type { DeadEnd, FailedMethod, Item } from './item.ts';

/** Under this name the record of a move stands in its provenance, the trace in it. */
export const RECORD = 'htn';

/** Under a task stand the methods that were tried, the failed ones first; under a method the tasks that it gave. */
export interface HtnTraceNode {
  /** Index in the list; absent at the top. */
  readonly parent?: number;
  readonly kind: 'task' | 'goal' | 'action' | 'leaf' | 'method';
  /** The task. For a method: the task at which it led nowhere, when that is not the task of the method. */
  readonly task?: HtnTask;
  /** For a method: its name. */
  readonly method?: string;
  /** `open`: it was not looked at. */
  readonly status: 'done' | 'failed' | 'open';
  readonly why?: DeadEnd | 'not_applicable';
  /**
   * For a task or a goal: the answer when a method was to be chosen, if it names no method that applies; the first was tried
   * then. Empty: nothing was said.
   */
  readonly answer?: string;
  /** What the method itself said of its failure. */
  readonly message?: string;
}

export interface HtnTrace {
  readonly nodes: readonly HtnTraceNode[];
  /** There is more than was kept. */
  readonly cut?: true;
}

/** What comes next in the walk; the last one is taken first. */
type Walk =
  | { readonly items: Item | undefined; readonly end: Item | undefined; readonly parent: number | undefined }
  | { readonly failure: FailedMethod; readonly of: Item; readonly parent: number }
  | { readonly chosen: string; readonly of: Item; readonly parent: number };

/** @param first of the items that a search began with. */
export function traceOf(first: Item | undefined, maxNodes: number): HtnTrace {
  const nodes: HtnTraceNode[] = [];
  const open: Walk[] = [{ items: first, end: undefined, parent: undefined }];
  for (let walk = open.pop(); walk !== undefined; walk = open.pop()) {
    if ('items' in walk && walk.items === walk.end) continue;
    if (nodes.length === maxNodes) return { nodes, cut: true };
    const index = nodes.length;
    if ('failure' in walk) {
      const { failure, of, parent } = walk;
      nodes.push(failedNode(failure, of, parent));
      if (failure.end !== undefined) open.push({ items: failure.first, end: of.next, parent: index });
    } else if ('chosen' in walk) {
      const { chosen, of, parent } = walk;
      nodes.push({ parent, kind: 'method', method: chosen, status: 'done' });
      open.push({ items: of.first, end: of.next, parent: index });
    } else if (walk.items !== undefined) {
      const { items: item, end, parent } = walk;
      open.push({ items: item.next, end, parent });
      // The check of a goal is told of where it fails.
      if (item.kind === 'check') continue;
      nodes.push(itemNode(item, item.kind, parent));
      openMethods(item, index, open);
    }
  }
  return { nodes };
}

function openMethods(item: Item, parent: number, open: Walk[]): void {
  const { entry, method, order, failed = [] } = item;
  const chosen = item.applied ? entry.methods[order?.[method] ?? method] : undefined;
  if (chosen !== undefined) open.push({ chosen: chosen.name, of: item, parent });
  for (const failure of failed.toReversed()) open.push({ failure, of: item, parent });
}

function itemNode(item: Item, kind: HtnTraceNode['kind'], parent: number | undefined): HtnTraceNode {
  const { task, why } = item;
  const at = parent === undefined ? {} : { parent };
  const said = item.answer === undefined ? {} : { answer: item.answer };
  if (why !== undefined) return { ...at, kind, task, status: 'failed', why, ...said };
  const isExhausted = item.applied && item.method >= item.entry.methods.length;
  return { ...at, kind, task, status: item.at === -1 ? 'open' : isExhausted ? 'failed' : 'done', ...said };
}

function failedNode({ name, end, why, message }: FailedMethod, of: Item, parent: number): HtnTraceNode {
  return {
    parent,
    kind: 'method',
    method: name,
    status: 'failed',
    ...(end === undefined || end.task === of.task ? {} : { task: end.task }),
    why: why ?? 'not_applicable',
    ...defined({ message }),
  };
}

/** How the plan of this step was found, or why no plan was found. `undefined` when another planner decided the step. */
export function traceOfStep({ provenance }: Pick<Step, 'provenance'>): HtnTrace | undefined {
  const record = provenance?.[RECORD];
  const trace = isJsonObject(record) ? record['trace'] : undefined;
  // The provenance may be anything: the planner of the step made it.
  return isTrace(trace) ? (trace as unknown as HtnTrace) : undefined;
}

function isTrace(trace: Json | undefined): boolean {
  if (!isJsonObject(trace)) return false;
  const { nodes } = trace;
  return Array.isArray(nodes) && nodes.every(isNode);
}

function isNode(node: Json): boolean {
  if (!isJsonObject(node)) return false;
  const { kind, task, status } = node;
  return typeof kind === 'string' && typeof status === 'string' && (task === undefined || Array.isArray(task));
}

const MARKS = { done: '✓', failed: '✗', open: '·' } as const;

const REASONS: Readonly<Record<NonNullable<HtnTraceNode['why']>, string>> = {
  not_applicable: 'does not apply',
  precondition: 'its precondition does not hold',
  no_method: 'no method applies',
  goal_not_reached: 'the goal does not hold after its subgoals',
  excluded: 'it has failed before',
  repeated: 'the same was to be done in the same state before',
  cycle: 'it leads back to itself with nothing changed',
  recursion: 'it begins with itself too often, with nothing changed between',
};

/** The trace as an indented tree, one node a line. */
export function traceText({ nodes, cut }: HtnTrace): string {
  const depths: number[] = [];
  const lines = nodes.map((node) => {
    const depth = node.parent === undefined ? 0 : (depths[node.parent] ?? 0) + 1;
    depths.push(depth);
    return `${'  '.repeat(depth)}${MARKS[node.status]} ${nodeText(node)}`;
  });
  return [...lines, ...(cut === true ? ['… and more'] : [])].join('\n');
}

function nodeText({ kind, method, task, why, message, answer }: HtnTraceNode): string {
  const reason = message ?? (why === undefined ? undefined : REASONS[why]);
  if (kind !== 'method') {
    const failure = reason === undefined ? '' : `: ${reason}`;
    return `${task === undefined ? '' : taskText(task)}${answer === undefined ? '' : answerText(answer)}${failure}`;
  }
  if (reason === undefined) return `by ${method}`;
  return `by ${method}: ${task === undefined ? '' : `at ${taskText(task)}, `}${reason}`;
}

function answerText(answer: string): string {
  if (answer === '') return ', where no method was chosen';
  return `, where ${JSON.stringify(answer)} was chosen, which is not a method that applies`;
}

function taskText([name, ...args]: HtnTask): string {
  const shown = args.map((arg) => (typeof arg === 'string' ? arg : JSON.stringify(arg)));
  return `${name}(${shown.join(', ')})`;
}

const MAX_REASONS = 20;

/** Why there is no plan: each place where the search came to an end, once, in the order in which they were come to. */
export function deadEndsOf({ nodes }: HtnTrace): readonly string[] {
  const found = new Set<string>();
  for (const { kind, task, method, status, why, message } of nodes) {
    if (found.size === MAX_REASONS) break;
    if (message !== undefined && method !== undefined) found.add(`${method}: ${message}`);
    else if (status !== 'failed' || task === undefined || why === undefined || kind === 'task') continue;
    else found.add(`${taskText(task)}: ${REASONS[why]}`);
  }
  return [...found];
}
