/** A plan for people, in 80 columns: as a tree, and as a graph of levels. Plans of a thousand levels are drawn without recursion. */
import { dependentsOf, FINISH_TOOL, MESSAGE_TOOL, needsOf, topologicalOrder } from '#core';
import type { PlanNodeStatus, PlanNodeView, PlanView } from '#state';
import { count, grouped, shortArgs, shortLine, terminalJson } from './text.ts';

const WIDTH = 80;
/** More nodes than this are counted, not drawn. */
const MAX_NODES = 1000;
/** Nodes that stand deeper are drawn at this depth, and name the node they stand under. */
const MAX_DEPTH = 8;
/** Longer lists of ids are cut short: in the tree, and in the graph. */
const MAX_PARENTS = 3;
const MAX_IDS = 8;
const ID_CHARS = 32;
/** Arguments that would get less room than this are left out. */
const LEAST_ARGS = 16;

const MARKS: Readonly<Record<PlanNodeStatus, string>> = {
  waiting: '·',
  ready: '○',
  running: '▶',
  paused: '‖',
  done: '✓',
  failed: '✗',
  skipped: '–',
  cancelled: '⊘',
  unknown: '?',
};

/** Heading, tree, and below them the graph. */
export function planLines(view: PlanView): string[] {
  return [...treeLines(view), '', ...graphLines(view)];
}

/** Each node under the last of those that it comes after; others are named. The first line tells how far the plan is. */
export function treeLines(view: PlanView): string[] {
  const plan = ordered(view);
  const lines = [headingOf(view)];
  const stack = nested(plan.roots, '', 0);
  for (let branch = stack.pop(); branch !== undefined; branch = stack.pop()) {
    if (lines.length > MAX_NODES) return [...lines, more(view)];
    const { node, prefix, isLast, depth } = branch;
    const isDeep = depth > MAX_DEPTH;
    const stem = isDeep ? `${prefix}…  ` : `${prefix}${isLast ? '└─' : '├─'} `;
    const parent = isDeep ? undefined : plan.parents[node];
    lines.push(nodeLine(plan, node, stem, parent));
    const below = isDeep ? prefix : `${prefix}${isLast ? '   ' : '│  '}`;
    stack.push(...nested(plan.children[node] ?? [], below, depth + 1));
  }
  return lines;
}

/** Level by level: the nodes that may run side by side, and under them which nodes wait for which. */
export function graphLines(view: PlanView): string[] {
  const plan = ordered(view);
  const rows: number[][] = [];
  for (const [node, level] of plan.levels.slice(0, MAX_NODES).entries()) {
    rows[level] ??= [];
    rows[level].push(node);
  }
  const width = String(rows.length).length;
  const lines: string[] = [];
  for (const [level, row = []] of rows.entries()) {
    const states = row.flatMap((node) => (plan.nodes[node] === undefined ? [] : [stateOf(plan.nodes[node])]));
    lines.push(...wrapped(`${String(level + 1).padStart(width)}  `, states, '   '));
    for (const { from, to } of edgesFrom(plan, row)) {
      lines.push(
        ...wrapped(' '.repeat(width + 2), [...ids(plan, from, MAX_IDS), '──▶', ...ids(plan, to, MAX_IDS)], ' '),
      );
    }
  }
  return view.nodes.length > MAX_NODES ? [...lines, more(view)] : lines;
}

/** A plan with what its drawing needs. Nodes are known by their index. */
interface Ordered {
  readonly nodes: readonly PlanNodeView[];
  /** How many nodes the longest way to it has. */
  readonly levels: readonly number[];
  readonly needs: readonly (readonly number[])[];
  readonly dependents: readonly (readonly number[])[];
  /** The last node that it comes after. */
  readonly parents: readonly (number | undefined)[];
  readonly children: readonly (readonly number[])[];
  readonly roots: readonly number[];
}

function ordered({ nodes }: PlanView): Ordered {
  const indexById = new Map(nodes.map(({ id }, index) => [id, index]));
  const needs = nodes.map(({ after }) => after.flatMap((id) => indexById.get(id) ?? []));
  const dependents = dependentsOf(needs);
  const levels = levelsOf(dependents);
  const parents = needs.map((list) => lastOf(list, levels));
  const children = nodes.map((): number[] => []);
  for (const [node, parent] of parents.entries()) if (parent !== undefined) children[parent]?.push(node);
  const roots = nodes.flatMap((_, node) => (parents[node] === undefined ? [node] : []));
  return { nodes, levels, needs, dependents, parents, children, roots };
}

function levelsOf(dependents: readonly (readonly number[])[]): number[] {
  const levels = dependents.map(() => 0);
  for (const node of topologicalOrder(dependents)) {
    for (const dependent of dependents[node] ?? []) {
      levels[dependent] = Math.max(levels[dependent] ?? 0, (levels[node] ?? 0) + 1);
    }
  }
  return levels;
}

function lastOf(needs: readonly number[], levels: readonly number[]): number | undefined {
  let last: number | undefined;
  for (const need of needs) {
    if (last === undefined || (levels[need] ?? 0) >= (levels[last] ?? 0)) last = need;
  }
  return last;
}

interface Drawn {
  readonly node: number;
  readonly prefix: string;
  readonly isLast: boolean;
  readonly depth: number;
}

/** Ready for a stack: the first is taken first. */
function nested(nodes: readonly number[], prefix: string, depth: number): Drawn[] {
  return nodes.map((node, index) => ({ node, prefix, depth, isLast: index === nodes.length - 1 })).reverse();
}

function headingOf({ plan, growing, nodes }: PlanView): string {
  const counts = new Map<PlanNodeStatus, number>();
  for (const { status } of nodes) counts.set(status, (counts.get(status) ?? 0) + 1);
  const states = [...counts].map(([status, number]) => `${grouped(number)} ${status}`);
  const growth = growing ? ', and more to come' : '';
  return `plan ${shortLine(plan, ID_CHARS)}: ${count(nodes.length, 'node')}${growth} (${states.join(', ')})`;
}

/** @param parent the node that is seen from where the line stands. */
function nodeLine(plan: Ordered, index: number, stem: string, parent: number | undefined): string {
  const node = plan.nodes[index];
  if (node === undefined) return stem;
  const conditions = node.routes === undefined ? conditionsOf(plan, index, parent) : [waysText(node.routes)];
  const start = `${stem}${MARKS[node.status]} ${shortId(node.id)}  ${toolText(node.tool)}`;
  const end = `${conditions.length === 0 ? '' : `  (${conditions.join(', ')})`}  ${statusText(plan, node)}`;
  const room = WIDTH - start.length - end.length - 1;
  const isKnown = node.routes === undefined || node.args !== null;
  const args = room < LEAST_ARGS || !isKnown ? '' : shortArgs(node.args, room);
  return `${start}${args === '' ? '' : ` ${args}`}${end}`;
}

/** What it waits for beside its parent, and its condition. */
function conditionsOf(plan: Ordered, index: number, parent: number | undefined): string[] {
  const others = (plan.needs[index] ?? []).filter((need) => need !== parent);
  const order = others.length === 0 ? [] : [`after ${ids(plan, others, MAX_PARENTS).join(' ')}`];
  const when = plan.nodes[index]?.when;
  return when === undefined ? order : [...order, conditionText(when)];
}

/** The first open one is gone. */
function waysText(routes: NonNullable<PlanNodeView['routes']>): string {
  const ways = routes.slice(0, MAX_PARENTS).map((route) => {
    const { when } = route;
    const needs = [...needsOf(route)].filter((id) => id !== when?.branch).slice(0, MAX_PARENTS);
    const order = needs.length === 0 ? [] : [`after ${needs.map(shortId).join(', ')}`];
    return [...order, ...(when === undefined ? [] : [conditionText(when)])].join(' ') || 'at once';
  });
  const rest = routes.length - ways.length;
  return [...ways, ...(rest > 0 ? [count(rest, 'more way')] : [])].join(', or ');
}

function conditionText({ branch, equals }: NonNullable<PlanNodeView['when']>): string {
  return `if ${shortId(branch)} is ${shortLine(terminalJson(equals), 24)}`;
}

function statusText({ nodes }: Ordered, { status, error, when, routes }: PlanNodeView): string {
  if (error === undefined || status === 'cancelled' || status === 'unknown') return status;
  if (status !== 'skipped') return `${status}: ${shortLine(error.code, 40)}`;
  const cause = nodes[Number(error.data?.['branch'])];
  if (cause === undefined) return `${status}: ${shortLine(error.message, 60)}`;
  const asked = routes?.map((route) => route.when?.branch) ?? [when?.branch];
  if (cause.status === 'done' && asked.includes(cause.id)) return `${status}: ${shortId(cause.id)} is something else`;
  return `${status}: ${shortId(cause.id)} ${cause.status}`;
}

/** The name of a tool; nodes that no tool carries out have the name of what they do. */
export function toolText(tool: string): string {
  if (tool === MESSAGE_TOOL) return 'message';
  return tool === FINISH_TOOL ? 'finish' : shortLine(tool, 40);
}

function stateOf({ id, status }: PlanNodeView): string {
  return `${MARKS[status]} ${shortId(id)} ${status}`;
}

interface Edges {
  readonly from: readonly number[];
  readonly to: readonly number[];
}

/** Nodes of a level before which the same ones wait are told together. */
function edgesFrom({ dependents }: Ordered, row: readonly number[]): Edges[] {
  const groups = new Map<string, { from: number[]; to: readonly number[] }>();
  for (const node of row) {
    const to = dependents[node] ?? [];
    const group = groups.get(to.join());
    if (group !== undefined) group.from.push(node);
    else if (to.length > 0) groups.set(to.join(), { from: [node], to });
  }
  return [...groups.values()];
}

function shortId(id: string): string {
  return shortLine(id, ID_CHARS);
}

/** At most `most`, with their commas, so that the list can be wrapped. */
function ids({ nodes }: Ordered, list: readonly number[], most: number): string[] {
  const shown = list.slice(0, most).flatMap((index) => (nodes[index] === undefined ? [] : shortId(nodes[index].id)));
  const words = list.length > most ? [...shown, `… ${grouped(list.length - most)} more`] : shown;
  return words.map((word, index) => (index === words.length - 1 ? word : `${word},`));
}

function wrapped(first: string, words: readonly string[], gap: string): string[] {
  const lines: string[] = [];
  const indent = ' '.repeat(first.length);
  let line = '';
  for (const word of words) {
    const start = lines.length === 0 ? first : indent;
    if (line === '') line = start + word;
    else if (line.length + gap.length + word.length <= WIDTH) line += gap + word;
    else {
      lines.push(line);
      line = indent + word;
    }
  }
  return [...lines, line];
}

function more({ nodes }: PlanView): string {
  return `… ${count(nodes.length - MAX_NODES, 'more node')}; --json has all of them`;
}
