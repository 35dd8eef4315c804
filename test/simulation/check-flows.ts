/** What a flow comes to: the way that its input says, by hand, and an error only when something was in it. */
import type { Json } from '#core';
import { type EndedRun, entriesOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import { type FlowInput, isFlow } from './script.ts';

type Runs = ReadonlyMap<string, EndedRun>;

export function checkFlow(run: EndedRun, runs: Runs, ledger: Ledger): void {
  const [first] = run.entries;
  const last = run.entries.at(-1);
  if (first?.kind !== 'started' || !isFlow(first.agent) || first.fork !== undefined) return;
  const input = first.context?.args as unknown as FlowInput;
  const name = first.agent;
  const wanted = wayOf(name, input);
  if (last?.kind === 'finished' && last.reason === 'goal') {
    const path = (last.payload as { readonly path?: Json } | undefined)?.path;
    if (JSON.stringify(path) === JSON.stringify(wanted.path) && wanted.failed === undefined) return;
    ledger.violated(
      'flows',
      `${name} came to ${JSON.stringify(path)}, and its way is ${JSON.stringify(wanted)}`,
      run.id,
    );
    return;
  }
  if (last?.kind !== 'failed' || wanted.failed === last.error.code || wasHindered(run, runs)) return;
  ledger.violated(
    'flows',
    `${name} failed: ${last.error.code}, ${last.error.message}; its way is ${JSON.stringify(wanted)}`,
    run.id,
  );
}

interface Way {
  readonly path: readonly string[];
  /** The code of the error that it ends with. */
  readonly failed?: string;
}

function wayOf(name: string, input: FlowInput): Way {
  const { path, way, rounds, items, fails, failsOnce } = input;
  const nodes = nodesOf(name, input);
  // What failed once is tried again; a `once` node is not.
  const isTriedAgain = failsOnce === true && fails !== undefined && !(NEVER_AGAIN[name] ?? []).includes(fails);
  if (name === 'inner' || name === 'ways' || name === 'nested') {
    if (way === 'nowhere') return { path, failed: failsFirst(nodes, input, 'route_not_found') };
    if (way === 'odd') return { path, failed: failsFirst(nodes, input, 'node_exception') };
  }
  if (fails !== undefined && nodes.includes(fails) && !isTriedAgain) return { path, failed: 'node_exception' };
  if (name !== 'list') return { path: [...path, ...nodes, ...(rounds < 0 ? ['never'] : [])] };
  const each = Array.from({ length: items }, (_, item) => [...path, 'a', String(item), 'each']);
  return { path: [...each.flat(), 'z'] };
}

/** What comes before the choice may fail sooner. */
function failsFirst(nodes: readonly string[], { fails, failsOnce }: FlowInput, code: string): string {
  const before = nodes.slice(0, nodes.indexOf('a') + 1);
  return fails !== undefined && before.includes(fails) && failsOnce !== true ? 'node_exception' : code;
}

/** Nodes that are `once`, or that nobody has try again. */
const NEVER_AGAIN: Readonly<Record<string, readonly string[]>> = {
  line: ['c'],
  ways: ['left'],
  inner: ['left'],
  both: ['left', 'both'],
  round: ['again', 'z'],
  list: ['a', 'each', 'z'],
  nested: ['left', 'last'],
};

function nodesOf(name: string, { way, rounds, items }: FlowInput): string[] {
  switch (name) {
    case 'line':
      return ['a', 'b', 'c'];
    case 'both':
      return ['a', 'left', 'right', 'both'];
    case 'round':
      return ['a', ...Array.from({ length: Math.max(rounds, 0) }, () => 'again'), 'z'];
    case 'list':
      // Of an empty list nothing is handed on, so that nothing says that the end fails.
      return ['a', ...(items === 0 ? [] : ['each', 'z'])];
    case 'nested':
      return ['first', 'a', way, 'z', 'last'];
    default:
      return ['a', way, 'z'];
  }
}

/** Somebody said no, a call is in doubt, or the budget has no room: in the run, or in one below it. */
function wasHindered(run: EndedRun, runs: Runs): boolean {
  const text = JSON.stringify(run.entries);
  const isHindered =
    entriesOf(run, 'resumed').some(({ verdict, args }) => verdict !== 'approve' || args !== undefined) ||
    [
      '"unknown"',
      'effect_unknown',
      'CANCEL',
      'budget_exceeded',
      'held_back',
      'task_id_taken',
      'another run has that id',
      'the cap is 4',
    ].some((word) => text.includes(word));
  return (
    isHindered ||
    entriesOf(run, 'spawned').some(({ task }) => {
      const child = runs.get(task);
      return child !== undefined && wasHindered(child, runs);
    })
  );
}
