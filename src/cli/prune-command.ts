/** `pilotage prune`: retention. */
import { defined } from '#core';
import { ENDED_STATUSES, type Journal, type PruneRequest, type RunStatus } from '#journal';
import type { Options } from './options.ts';
import { openJournal, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { count, terminalJson } from './text.ts';

/** Who waits for a file that another process holds looks for it less often than this. */
const REST_MS = 40;

/** @returns the exit code. */
export async function pruneCommand(options: Options, terminal: Terminal): Promise<number> {
  const { olderThanMs, tenant, dryRun, json } = options;
  if (olderThanMs === undefined) {
    throw new UsageError('prune needs --older-than: how long ago a run has ended at least, such as 30d.');
  }
  const request = { olderThanMs, status: endedOf(options.status), dryRun, ...defined({ tenant }) };
  return withJournal(await openJournal(options, dryRun ? 'look' : 'write'), async (journal) => {
    const runs = await pruneAll(journal, request);
    if (json) terminal.write(`${terminalJson({ runs, dryRun })}\n`);
    else terminal.write(`${dryRun ? 'Would delete' : 'Deleted'} ${count(runs, 'run')}.\n`);
    return EXIT.goal;
  });
}

function endedOf(status: readonly RunStatus[] = ENDED_STATUSES): PruneRequest['status'] {
  return status.map((given) => {
    const known = ENDED_STATUSES.find((ended) => ended === given);
    if (known === undefined) throw new UsageError(`--status takes ${ENDED_STATUSES.join(', ')}: others are alive.`);
    return known;
  });
}

/** Others have the journal for at least as long as each part has had it. */
async function pruneAll(journal: Journal, request: PruneRequest): Promise<number> {
  let runs = 0;
  for (let after = 0; ; ) {
    const startedAt = performance.now();
    const pruned = await journal.prune({ ...request, after });
    runs += pruned.runs;
    if (pruned.next === undefined) return runs;
    after = pruned.next;
    const tookMs = performance.now() - startedAt;
    if (request.dryRun !== true) await new Promise((resolve) => setTimeout(resolve, Math.max(REST_MS, tookMs)));
  }
}
