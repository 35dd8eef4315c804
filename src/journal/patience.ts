/** Keeps what is to be stored while the store cannot take it for now. */
import {
  type ArtifactRef,
  type Clock,
  type Entry,
  ERROR_CONSEQUENCES,
  type ErrorCode,
  encodeEntry,
  type Json,
  jsonEquals,
  PilotageError,
  type Redaction,
  Thrown,
} from '#core';
import type { Append, ArtifactStore, Journal } from './port.ts';

interface Deps {
  readonly journal: Journal;
  readonly clock: Clock;
}

/** Waits between tries: about 6 s in all, after which the run is let go of with the store's own error. */
const RETRY_DELAYS_MS = [50, 200, 800, 2_000, 3_000];
/** What is held longer than that is tried again so often. */
const HELD_DELAY_MS = 3_000;

/** Whether it is tried again although the store could not take it for some seconds, because of this error. */
type Holds = (error: unknown) => boolean;

/**
 * Appends again what was refused with the error `first`.
 * @throws PilotageError of the store: at once for a refusal, after some tries for what may pass and is not held.
 */
export function appendAgain({ journal, clock }: Deps, request: Append, first: unknown, holds?: Holds): Promise<void> {
  const append = async (): Promise<void> => {
    try {
      await journal.append(request);
    } catch (error) {
      // The fence is ours, and the head moved: the try before had landed, if these are the entries that are there.
      if (!PilotageError.is(error, 'journal_conflict') || !(await hasLanded(journal, request))) throw error;
    }
  };
  return tryAgain(clock, first, append, holds);
}

async function hasLanded(journal: Journal, { run, expected, entries }: Append): Promise<boolean> {
  const there = await journal.read(run, expected + 1, entries.length);
  return there.length === entries.length && there.every((entry, index) => isSame(entry, entries[index]));
}

/** As stored; what came from an artifact may stand in another order. */
function isSame(one: Entry, other: Entry | undefined): boolean {
  return (
    other !== undefined && jsonEquals(JSON.parse(encodeEntry(one)) as Json, JSON.parse(encodeEntry(other)) as Json)
  );
}

/** Does it, and again for some seconds while the store cannot. @throws PilotageError of the store. */
export async function patiently<T>(clock: Clock, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    return tryAgain(clock, error, write);
  }
}

/** Wraps the store, so that no written text has a secret. */
export function cleanArtifacts(store: ArtifactStore, redaction: Redaction): ArtifactStore {
  return {
    put: (scope, bytes, about) => {
      const { mime, fileName } = about;
      const named = fileName === undefined ? {} : { fileName: redaction.known(fileName) };
      return store.put(scope, redaction.bytes(bytes, mime), { ...about, ...named });
    },
    get: (scope, artifactRef) => store.get(scope, artifactRef),
    list: (scope, limit) => store.list(scope, limit),
    erase: (owner) => store.erase(owner),
  };
}

/** Wraps the store, so that artifacts are kept while it cannot take them. */
export function patientArtifacts(store: ArtifactStore, clock: Clock): ArtifactStore {
  return {
    put(scope, bytes, about) {
      return patiently(clock, (): Promise<ArtifactRef> => store.put(scope, bytes, about));
    },
    get: (scope, artifactRef) => store.get(scope, artifactRef),
    list: (scope, limit) => store.list(scope, limit),
    erase: (owner) => store.erase(owner),
  };
}

async function tryAgain<T>(
  clock: Clock,
  first: unknown,
  write: () => Promise<T>,
  holds: Holds = () => false,
): Promise<T> {
  let error = first;
  for (let tries = 0; isTransientStoreError(error); tries += 1) {
    if (tries >= RETRY_DELAYS_MS.length && !holds(error)) break;
    const delayMs = RETRY_DELAYS_MS[tries] ?? HELD_DELAY_MS;
    await new Promise<void>((resolve) => clock.after(delayMs, resolve));
    try {
      return await write();
    } catch (again) {
      error = again;
    }
  }
  throw error;
}

/** The store could not do it now, and may later. It is asked of what tools throw, too, which may be anything. */
export function isTransientStoreError(error: unknown): boolean {
  const { isOurs, code } = Thrown.of(error);
  return (
    isOurs &&
    code !== undefined &&
    Object.hasOwn(ERROR_CONSEQUENCES, code) &&
    ERROR_CONSEQUENCES[code as ErrorCode] === 'retry'
  );
}

const GONE: ReadonlySet<ErrorCode> = new Set(['journal_closed', 'journal_replaced', 'journal_unsynced']);

/** Whether this process cannot use its journal any more: trying again is useless, for every run. */
export function isJournalGone(error: unknown): boolean {
  if (!PilotageError.is(error)) return false;
  if (error.code === 'journal_newer') return error.data?.['run'] === undefined;
  return GONE.has(error.code);
}

/** The store cannot take it now; a disk that cannot be written may be one day. */
export function mayComeBack(error: unknown): boolean {
  return isTransientStoreError(error) || PilotageError.is(error, 'journal_read_only');
}
