/**
 * Sets a run right that cannot be read, or not be folded: an entry that is damaged, missing, of an unknown kind, or that cannot
 * follow those before it. Each is set aside, byte for byte, in an artifact, and `repaired` stands in its place, with who did it;
 * those after it stay where they still follow. The run is paused then, so that somebody looks before it goes on.
 */
import {
  type CallPlace,
  decodeEntry,
  deepFreeze,
  defined,
  type Entry,
  type EntryBody,
  type ErrorData,
  PilotageError,
  type Repaired,
} from '#core';
import type { Examined, Journal, StoredMessage, StoredSnapshot } from '#journal';
import {
  applyEntry,
  endedStatus,
  FOLD_VERSION,
  foldEntries,
  openState,
  openWaitsOf,
  parkedCalls,
  type RunState,
  unpackState,
} from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';

/** An entry that cannot stand. */
export interface Refused {
  readonly seq: number;
  readonly problem: ErrorData;
  /** What it says, as far as it can be read. */
  readonly entry?: Entry;
}

/** What is wrong with a run, and what a repair would do. Nothing was changed yet. */
export interface Diagnosis {
  readonly run: string;
  /** Entries up to here can be read and folded as they stand. 0: not even the first, and nothing can be repaired. */
  readonly goodUpTo: number;
  readonly head: number;
  /** What would be set aside, in order. */
  readonly refused: readonly Refused[];
  /** Messages in the inbox that cannot be read; they would be set aside, too. */
  readonly messages: readonly StoredMessage[];
  /** The last entry that the run's snapshot covers, when it says something else than the entries; it would be thrown away. */
  readonly snapshot?: number;
  /** Calls of steps that would not be there any more: they may have been made. */
  readonly lostCalls: readonly { readonly step: number; readonly call: number }[];
  /** Entries of which nothing is known: they may have begun or ended calls, also of steps that nobody knows of any more. */
  readonly unreadable: readonly number[];
  /** Calls of the open step that may have been made: each is looked up, or held until somebody settles it. */
  readonly begun: readonly number[];
}

export interface RepairOptions {
  /** Who does it; it is recorded. */
  readonly by: string;
  readonly reason?: string;
}

type RepairDeps = Pick<DriverDeps, 'journal' | 'clock' | 'redaction' | 'newToken'>;

interface Looked {
  readonly examined: Examined;
  readonly state: RunState | undefined;
  readonly kept: readonly Entry[];
  readonly diagnosis: Diagnosis;
}

/** @returns `undefined` when nothing is wrong. @throws PilotageError `run_not_found`. */
export async function diagnose(journal: Journal, run: string): Promise<Diagnosis | undefined> {
  const { diagnosis } = await lookAt(journal, run);
  return isWhole(diagnosis) ? undefined : diagnosis;
}

/** Whoever takes over due runs picks this one up, finds that it cannot be read, and gives it back: asked again after this time. */
const PICKED_UP_MS = 50;
const REPAIR_ATTEMPTS = 20;

/**
 * @returns what was done; `undefined` when nothing is wrong, and nothing was changed.
 * @throws PilotageError `run_not_found`, `invalid_config` without a name, `journal_conflict` while a process has the run for longer
 * than a second, or `journal_corrupt` for a run whose first entry cannot be read.
 */
export async function repairRun(deps: RepairDeps, run: string, options: RepairOptions): Promise<Diagnosis | undefined> {
  if (typeof options.by !== 'string' || options.by.trim() === '') {
    throw new PilotageError('invalid_config', 'Say who repairs the run: by. It is recorded.');
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await repairOnce(deps, run, options);
    } catch (error) {
      if (!PilotageError.is(error, 'journal_conflict') || attempt === REPAIR_ATTEMPTS) throw error;
    }
    await new Promise<void>((resolve) => void deps.clock.after(PICKED_UP_MS, resolve));
  }
}

async function repairOnce(
  { journal, clock, redaction, newToken }: RepairDeps,
  run: string,
  { by, reason }: RepairOptions,
): Promise<Diagnosis | undefined> {
  const { examined, state, kept, diagnosis } = await lookAt(journal, run);
  if (isWhole(diagnosis)) return undefined;
  if (state === undefined) {
    const message = `The first entry of run ${run} cannot be read, and nothing can be repaired without it: ${diagnosis.refused[0]?.problem.message} Restore the journal from a backup.`;
    throw new PilotageError('journal_corrupt', message, { data: { run } });
  }
  if (diagnosis.snapshot !== undefined) {
    await journal.snapshots.forget(run);
    return diagnosis;
  }
  const artifact = await journal.artifacts.put(state.identity, setAside(examined, diagnosis), {
    mime: 'application/x-ndjson',
    fileName: `${run}.set-aside.ndjson`,
    source: 'repair',
  });
  const at = clock.now();
  const { messages, refused, begun } = diagnosis;
  const left = examined.inbox.length - messages.length;
  const taken = Math.max(0, examined.signals - left - state.messagesTaken);
  const last = refused.at(-1)?.seq ?? examined.head + 1;
  const problems = refused.length > 0 ? refused : [{ seq: last, problem: messageProblem(messages) }];
  const repaired = problems.map(({ seq, problem }): Entry => {
    const body: Repaired = {
      kind: 'repaired',
      by,
      ...defined({ reason }),
      problem,
      kept: artifact,
      ...(seq === last && taken > 0 ? { taken } : {}),
      ...(seq === last && begun.length > 0 ? { begun } : {}),
    };
    return { ...redaction.entry(body), seq, at };
  });
  const entries = [...kept, ...repaired].toSorted((one, other) => one.seq - other.seq);
  const next = { seq: (entries.at(-1)?.seq ?? 0) + 1, at };
  if (state.ending === null) entries.push({ ...pausedBy(diagnosis, newToken(), pauseLost(state)), ...next } as Entry);
  for (const entry of entries) deepFreeze(entry);
  const keep = diagnosis.goodUpTo;
  await journal.repair({
    run,
    head: examined.head,
    signals: examined.signals,
    keep,
    entries: entries.slice(keep),
    status: state.ending === null ? 'paused' : endedStatus(state.ending),
    agent: state.agent,
    drops: messages.map(({ id }) => id),
    waits: openWaitsOf(assertFolds(run, entries)),
  });
  return diagnosis;
}

function isWhole({ refused, messages, snapshot }: Diagnosis): boolean {
  return refused.length === 0 && messages.length === 0 && snapshot === undefined;
}

/** A fault of ours is found before anything is written. */
function assertFolds(run: string, [first, ...rest]: readonly Entry[]): RunState {
  if (first === undefined) throw new PilotageError('entry_refused', `Nothing is left of run ${run}.`);
  const state = openState(first);
  for (const entry of rest) applyEntry(state, entry);
  return state;
}

/** Entries of which each can stand may still not be read as a run: what points from one to the next is broken. */
async function lookAt(journal: Journal, run: string): Promise<Looked> {
  const looked = look(run, await journal.examine(run));
  const { state, kept, diagnosis, examined } = looked;
  if (!isWhole(diagnosis) || state === undefined) return looked;
  // Before the entries: a process that has the run may keep another one meanwhile, of entries behind those that were read.
  const stored = await journal.snapshots.newest(run, FOLD_VERSION);
  const read = await journal.read(run).then((entries) => ({ entries }), asProblem);
  if ('entries' in read) {
    const snapshot = stored && wrongSnapshot(stored, read.entries);
    return { ...looked, diagnosis: { ...diagnosis, ...defined({ snapshot }) } };
  }
  // Behind the last, because none of them is to blame; what was there may be lost.
  const refused = [{ seq: examined.head + 1, problem: read }];
  return { ...looked, diagnosis: { ...diagnosis, refused, ...callsIn(state, kept, refused) } };
}

/** The entries are the truth. @returns its head. */
function wrongSnapshot({ head, body, blocks }: StoredSnapshot, entries: readonly Entry[]): number | undefined {
  const folded = foldEntries(entries.slice(0, head));
  const isRight = JSON.stringify(unpackState(body, blocks)) === JSON.stringify(folded);
  return isRight ? undefined : head;
}

function asProblem(error: unknown): ErrorData {
  if (PilotageError.is(error, 'journal_corrupt')) return error.toJSON();
  throw error;
}

function look(run: string, examined: Examined): Looked {
  const texts = new Map(examined.entries.map(({ seq, text }) => [seq, text]));
  const kept: Entry[] = [];
  const refused: Refused[] = [];
  let state: RunState | undefined;
  const stored = examined.entries.at(-1)?.seq ?? 0;
  const isLikely = examined.head - stored <= MOST_MISSING;
  const last = isLikely ? Math.max(stored, examined.head) : stored;
  for (let seq = 1; seq <= last; seq += 1) {
    const read = readText(texts.get(seq), seq);
    const { entry } = read;
    const after: After = entry === undefined ? read : added(state, entry, kept);
    state = after.state ?? state;
    if (entry !== undefined && after.problem === undefined) {
      kept.push(entry);
      continue;
    }
    refused.push({ seq, problem: after.problem ?? MISSING, ...defined({ entry }) });
    // Without its beginning there is no run.
    if (state === undefined) break;
    state.head = seq;
  }
  const hasNoBeginning = refused.length > 0 && state === undefined;
  if (examined.head !== last && !hasNoBeginning) {
    refused.push({ seq: last + 1, problem: otherCount(examined.head, stored) });
    if (state !== undefined) state.head = last + 1;
  }
  const messages = examined.inbox.filter(({ text }) => !isJson(text));
  const goodUpTo = (refused[0]?.seq ?? examined.head + 1) - 1;
  const made = state === undefined ? NO_CALLS : callsIn(state, kept, refused);
  const diagnosis = { run, goodUpTo, head: examined.head, refused, messages, ...made };
  return { examined, state, kept, diagnosis };
}

/** Behind the last entry that is there. When more are said to be missing, what says so is wrong, and one entry tells of it. */
const MOST_MISSING = 10_000;

function otherCount(head: number, last: number): ErrorData {
  const message = `The record of the run counts ${head} entries, but the journal holds entries up to ${last}.`;
  return { code: 'journal_corrupt', message };
}

const MISSING: ErrorData = { code: 'journal_corrupt', message: 'The entry is missing.' };
const NO_CALLS: Calls = { lostCalls: [], begun: [], unreadable: [] };

type Calls = Pick<Diagnosis, 'lostCalls' | 'begun' | 'unreadable'>;

interface After {
  readonly entry?: Entry;
  readonly state?: RunState;
  readonly problem?: ErrorData;
}

function readText(text: string | undefined, seq: number): After {
  if (text === undefined) return { problem: MISSING };
  try {
    return { entry: decodeEntry(text, seq) };
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    return { problem: error.toJSON() };
  }
}

/** The state with the entry, or why it cannot follow, with the state as it was. */
function added(state: RunState | undefined, entry: Entry, kept: readonly Entry[]): After {
  try {
    if (state === undefined) return { state: openState(entry) };
    applyEntry(state, entry);
    return { state };
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    return { problem: error.toJSON(), ...(error.data?.['half'] === true ? anew(kept) : {}) };
  }
}

function anew([first, ...rest]: readonly Entry[]): After {
  if (first === undefined) return {};
  const state = openState(first);
  for (const entry of rest) {
    state.head = entry.seq - 1;
    applyEntry(state, entry);
  }
  return { state };
}

/** What was set aside may have made calls. Of one that cannot be read nobody knows which. */
function callsIn(state: RunState, kept: readonly Entry[], refused: readonly Refused[]): Calls {
  const unreadable = refused.flatMap(({ seq, entry }) => (entry === undefined ? [seq] : []));
  const named = refused.flatMap(({ entry }) => {
    if (entry?.kind !== 'call_began' && entry?.kind !== 'call_ended' && entry?.kind !== 'call_away') return [];
    return [{ step: entry.step, call: entry.call }];
  });
  const steps = new Set(kept.flatMap((entry) => (entry.kind === 'moved' ? [entry.step] : [])));
  const isFirst = ({ step, call }: CallPlace, at: number): boolean =>
    named.findIndex((place) => place.step === step && place.call === call) === at;
  const lostCalls = named.filter((place, at) => !steps.has(place.step) && isFirst(place, at));
  const { open } = state;
  // What a step of the kind request_pause waits for is an answer, and no call.
  if (open === null || open.move.decision.kind === 'request_pause') return { lostCalls, begun: [], unreadable };
  const { step } = open.move;
  const movedAt = kept.findLast((entry) => entry.kind === 'moved' && entry.step === step)?.seq ?? 0;
  const since = refused.filter(({ seq }) => seq > movedAt);
  const isUnreadable = since.some(({ entry }) => entry === undefined);
  // What waits for its next attempt begins without a word of anybody.
  const parked = parkedCalls(state, { ...open, away: [] });
  const mayBe = (record: unknown, call: number): boolean => {
    if (record !== null || parked.has(call) || open.began.some((begun) => begun.call === call)) return false;
    return isUnreadable || named.some((place) => place.step === step && place.call === call);
  };
  return { lostCalls, unreadable, begun: open.calls.flatMap((record, call) => (mayBe(record, call) ? [call] : [])) };
}

/** A line of JSON each: where it stood, and its text as it was. */
function setAside({ entries }: Examined, { refused, messages }: Diagnosis): Uint8Array {
  const texts = new Map(entries.map(({ seq, text }) => [seq, text]));
  const lines = [
    ...refused.map(({ seq }) => ({ seq, text: texts.get(seq) ?? null })),
    ...messages.map(({ id, text }) => ({ message: id, text })),
  ];
  return new TextEncoder().encode(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

function messageProblem(messages: readonly StoredMessage[]): ErrorData {
  const ids = messages.map(({ id }) => id).join(', ');
  return { code: 'journal_corrupt', message: `Messages of the inbox are not JSON: ${ids}.` };
}

/** The open step, if it is a pause of the planner's that is not there any more: who answers the repair's answers that one. */
function pauseLost({ open, pauses }: RunState): number | undefined {
  if (open?.move.decision.kind !== 'request_pause') return undefined;
  const { step } = open.move;
  return pauses.some((pause) => pause.step === step) ? undefined : step;
}

const MAX_LISTED = 100;

/** What whoever answers has to know: once it goes on, the run may make calls again that it does not remember. */
const MAY_BE_AGAIN =
  'Calls that these entries record may have been made, and would be made again: check what they have changed before the run goes on.';

function pausedBy(
  { refused, messages, lostCalls, unreadable }: Diagnosis,
  token: string,
  step: number | undefined,
): EntryBody {
  const payload = {
    by: 'repair',
    setAside: refused.length + messages.length,
    ...(unreadable.length === 0 ? {} : { unreadable: unreadable.slice(0, MAX_LISTED), warning: MAY_BE_AGAIN }),
    ...(lostCalls.length === 0 ? {} : { lostCalls: lostCalls.map((place) => ({ ...place })) }),
  };
  return { kind: 'paused', token, reason: 'external_event', payload, ...defined({ step }) };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
