/** Which runs of a journal in memory may go that ended long ago. */
import type { StoredRuns } from './memory-order.ts';
import type { StoredRun } from './memory-runs.ts';
import { PRUNE_ROOTS, PRUNE_RUNS, PRUNE_WINDOW, type Pruned, type PruneRequest, successorOf } from './prune-port.ts';
import { hasEnded } from './rules.ts';

/** Runs that go together: a tree, or all trees of a conversation. */
export interface PrunedTrees {
  readonly root: StoredRun;
  readonly runs: readonly StoredRun[];
}

/** What goes with a call, out of the runs in the order of their age, and where the next call goes on. */
export function prunable(
  runs: StoredRuns,
  request: PruneRequest,
  now: number,
): { readonly trees: readonly PrunedTrees[]; readonly next: Pruned['next'] } {
  const { tenant, after = 0 } = request;
  const stored = new Stored(runs, request, now);
  const trees: PrunedTrees[] = [];
  let [seen, roots, count] = [0, 0, 0];
  for (const run of runs.from(after)) {
    const { age, turn, identity } = run;
    if (seen === PRUNE_WINDOW || roots === PRUNE_ROOTS || count >= PRUNE_RUNS) return { trees, next: age };
    seen += 1;
    // A conversation is taken up by its first turn.
    if (run.first.task !== undefined || turn > 1 || (tenant !== undefined && identity.tenant !== tenant)) continue;
    if (!stored.isOver(run)) continue;
    roots += 1;
    if (!stored.mayGo(run)) continue;
    const own = stored.runsOf(run);
    count += own.length;
    trees.push({ root: run, runs: own });
  }
  return { trees, next: undefined };
}

class Stored {
  readonly #runs: StoredRuns;
  readonly #request: PruneRequest;
  readonly #now: number;

  constructor(runs: StoredRuns, request: PruneRequest, now: number) {
    this.#runs = runs;
    this.#request = request;
    this.#now = now;
  }

  /** The lease under which a run has ended holds nothing: nobody gives it back. */
  #isKept({ status, updatedAt }: StoredRun): boolean {
    return !hasEnded(status) || updatedAt > this.#now - this.#request.olderThanMs;
  }

  isOver(run: StoredRun): boolean {
    const chosen: readonly string[] = this.#request.status;
    return !this.#isKept(run) && (run.first.task !== undefined || chosen.includes(run.status));
  }

  mayGo(root: StoredRun): boolean {
    const session = this.#ofSession(root);
    if (root.turn > 0) return session.every((run) => this.isOver(run));
    if (this.#treeOf(root).some((run) => this.#isKept(run))) return false;
    const next = this.#runs.get(successorOf(root.entries.at(-1)) ?? '');
    if (next === undefined) return true;
    // Forks of the run that goes on read this one, too.
    return this.isOver(next) && session.every(({ status }) => hasEnded(status)) && this.mayGo(next);
  }

  runsOf(root: StoredRun): readonly StoredRun[] {
    if (root.turn === 0) return this.#treeOf(root);
    const turns = this.#ofSession(root).filter(({ turn }) => turn > 0);
    return turns.flatMap((turn) => this.#treeOf(turn));
  }

  #treeOf(run: StoredRun): readonly StoredRun[] {
    return [run, ...[...this.#runs.tasksOf(run.identity.run)].flatMap((task) => this.#treeOf(task))];
  }

  #ofSession({ identity }: StoredRun): readonly StoredRun[] {
    return [...this.#runs.ofSession(identity)];
  }
}
