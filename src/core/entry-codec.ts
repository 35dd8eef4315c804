/** Entries as stored texts. */
import type { Entry, EntryKind } from './entry.ts';
import { PilotageError } from './errors.ts';
import { deepFreeze, isJsonObject, type JsonObject } from './json.ts';
import { readDecision } from './validate-decision.ts';

/** The newest version of the entry format. */
export const ENTRY_VERSION = 5;
/** The version of all entries that code of version 2 reads rightly: processes of both share a journal. */
const COMMON_VERSION = 2;

const KINDS: Readonly<Record<EntryKind, true>> = {
  started: true,
  turn_started: true,
  moved: true,
  plan_grown: true,
  call_began: true,
  call_spent: true,
  call_ended: true,
  call_away: true,
  call_waits: true,
  wait_ended: true,
  event_passed: true,
  call_kept: true,
  paused: true,
  resumed: true,
  approved: true,
  reminded: true,
  escalated: true,
  ruled: true,
  control: true,
  spawned: true,
  awaiting: true,
  task_ended: true,
  task_paused: true,
  watched: true,
  group_ended: true,
  no_progress: true,
  repinned: true,
  recalled: true,
  compacted: true,
  compaction_failed: true,
  overflowed: true,
  shortened: true,
  model_away: true,
  reopened: true,
  repaired: true,
  answering: true,
  unwinding: true,
  finished: true,
  failed: true,
};

/** The stored text of an entry. `seq` is the store's own column. */
export function encodeEntry(entry: Entry): string {
  const { seq: _, ...body } = entry;
  return JSON.stringify({ v: versionOf(entry), ...body });
}

/** Older code than that would misread the entry. */
function versionOf(entry: Entry): number {
  switch (entry.kind) {
    case 'started':
      // Code that does not know of it would end the run, and leave undone what is to be undone; or would not have the tools that are called.
      return entry.undo === undefined && entry.clientTools === undefined ? COMMON_VERSION : ENTRY_VERSION;
    case 'resumed':
      // Code that does not know these verdicts would make the call.
      return entry.verdict === 'superseded' || entry.verdict === 'answer' ? 3 : COMMON_VERSION;
    case 'paused':
      // The call that asks would be made when it is answered, as if nothing of it had been done; or when one of several people has approved it.
      return entry.wait === undefined && entry.approvals === undefined ? COMMON_VERSION : ENTRY_VERSION;
    case 'call_ended':
      // A reference would be taken for the value that it stands in.
      return entry.outcome.kind === 'value' && entry.outcome.media !== undefined ? 4 : COMMON_VERSION;
    case 'moved':
      // A part of the reply would be sent without its file, and half of a reply would be taken for the end of the run.
      return entry.files === undefined && entry.partial === undefined ? COMMON_VERSION : 4;
    default:
      return COMMON_VERSION;
  }
}

const VERSIONS: ReadonlySet<unknown> = new Set([1, COMMON_VERSION, 3, 4, ENTRY_VERSION]);

/**
 * Reads an entry back, frozen.
 * @throws PilotageError `journal_corrupt`, `journal_newer`, `journal_entry_unknown` or `unknown_decision_kind`.
 */
export function decodeEntry(text: string, seq: number): Entry {
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch (cause) {
    throw new PilotageError('journal_corrupt', `Entry ${seq} is not JSON. Restore the journal from a backup.`, {
      cause,
    });
  }
  if (!isJsonObject(stored)) {
    throw new PilotageError('journal_corrupt', `Entry ${seq} is not an object. Restore the journal from a backup.`);
  }
  const { v, kind } = stored;
  if (!VERSIONS.has(v)) {
    throw new PilotageError(
      'journal_newer',
      `Entry ${seq} has format ${String(v)}; this version of Pilotage reads up to ${ENTRY_VERSION}. Upgrade Pilotage.`,
    );
  }
  if (typeof kind !== 'string' || !Object.hasOwn(KINDS, kind)) {
    throw new PilotageError(
      'journal_entry_unknown',
      `Entry ${seq} is of the unknown kind ${JSON.stringify(kind)}; a newer version of Pilotage may have written it.`,
      { data: { seq, kind: String(kind) } },
    );
  }
  // A level takes two characters at least, so that most entries are too short to be too deep.
  if (text.length > 2 * MAX_LEVELS && isDeeper(stored, MAX_LEVELS)) {
    const message = `Entry ${seq} is nested deeper than ${MAX_LEVELS} levels, which is more than Pilotage writes. Restore the journal from a backup.`;
    throw new PilotageError('journal_corrupt', message);
  }
  if (kind === 'moved' && stored['rejected'] === undefined) readDecision(stored['decision'] ?? null);
  const { v: _, ...body } = v === 1 ? inTodaysWords(stored) : stored;
  const entry = { ...body, seq };
  return deepFreeze(entry) as unknown as Entry;
}

/** The first format named agents by their planners, the agent of a flow `flow:` and its name, and a call of an agent `called`. */
function inTodaysWords({ planner, ...stored }: JsonObject): JsonObject {
  const { called, ...rest } = stored;
  const { kind, atOnce } = stored;
  if (kind === 'spawned' && called === true) return { ...rest, agentCall: true };
  if ((kind === 'started' || kind === 'repinned') && typeof planner === 'string') {
    return { ...stored, agent: planner.replace(/^flow:/, '') };
  }
  if (!isJsonObject(atOnce) || atOnce['by'] !== 'planner') return stored;
  return { ...stored, atOnce: { ...atOnce, by: 'agent' } };
}

/** The deepest value that the JSON guard takes has 512; some more stand around it. */
const MAX_LEVELS = 600;

function isDeeper(value: unknown, levelsLeft: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levelsLeft === 0) return true;
  for (const key in value) if (isDeeper((value as Record<string, unknown>)[key], levelsLeft - 1)) return true;
  return false;
}
