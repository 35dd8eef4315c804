/** The last move of a run at a limit: what it says is the answer, and what else it decides is not carried out. */
import { defined, type EntryBody, type ErrorData, type Finished, type Moved } from '#core';
import type { RunState } from '#state';
import { ceiling } from './next.ts';

/** @param made the entries of the planner's move. */
export function lastMove(state: RunState, made: readonly EntryBody[]): readonly EntryBody[] {
  const { answering } = state;
  const last = made.at(-1);
  // Its history was made shorter: it is asked once more.
  if (answering === null || last === undefined || SHORTENS.has(last.kind)) return made;
  const end = ceiling(state, answering.axis);
  if (last.kind === 'finished') return [...made.slice(0, -1), answered(last, end)];
  return [...made.flatMap((body) => unmade(body, state)), end];
}

const SHORTENS: ReadonlySet<EntryBody['kind']> = new Set(['compacted', 'compaction_failed', 'shortened']);

/** The reason stays the limit's. */
function answered({ payload, stored, files, metadata }: Finished, end: Finished): Finished {
  const given = payload === undefined ? {} : { answered: true };
  return { ...end, ...defined({ payload, stored, files }), metadata: { ...metadata, ...end.metadata, ...given } };
}

/** What was used counts. */
function unmade(body: EntryBody, state: RunState): readonly EntryBody[] {
  switch (body.kind) {
    case 'moved': {
      const { growing: _, ...move } = body;
      return [move.rejected === undefined && move.fault === undefined ? { ...move, rejected: NO_CALLS } : move];
    }
    case 'failed': {
      const moved: Moved = {
        kind: 'moved',
        step: state.answering?.step ?? 0,
        decision: { kind: 'finish', reason: 'no_path' },
        startedAt: state.updatedAt,
        fault: body.error,
        ...defined({ usage: body.usage }),
      };
      return [moved];
    }
    // Nobody waits for a model, or for whoever helps.
    case 'paused':
      return [];
    default:
      return [body];
  }
}

/** The error of a last move that was to be more than an answer. */
export const NO_CALLS: ErrorData = {
  code: 'budget_exceeded',
  message:
    'A limit of the run is reached, and this was its last move: only an answer could be given. Nothing was carried out.',
};
