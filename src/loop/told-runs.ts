/** What runs of sessions are told of earlier ones, as far as this process has read it: a turn here reads nothing that the turn before had read. */
import {
  asJson,
  deepFreeze,
  type EarlierRun,
  type Entry,
  isJsonObject,
  jsonEquals,
  type LoadedInput,
  PilotageError,
  type Scope,
  scopeKey,
} from '#core';
import type { ArtifactStore, Journal } from '#journal';
import { foldEntries, type RunState, toldRun } from '#state';
import { answerOf } from '../calls/large-values.ts';
import { loadInputs } from './inputs.ts';

/** A run up to one of its entries, with what it says of the turns before it. */
export interface KnownRun extends Pick<RunState, 'compaction' | 'continues' | 'heard'> {
  readonly told: EarlierRun;
  /** The step before which each exchange with the user begins; the first is 0. */
  readonly exchanges: readonly number[];
}

export interface ToldSources {
  readonly journal: Pick<Journal, 'read'>;
  readonly artifacts: ArtifactStore;
}

/** The bytes of what is kept, all runs together. */
const KEPT_BYTES = 32 * 1024 * 1024;

interface Kept {
  readonly known: KnownRun;
  /** The first entry. Another process may have erased the run, or deleted it, and then another one may have its id. */
  readonly first: Entry | undefined;
  readonly session: string;
  readonly bytes: number;
}

/** Entries of a run do not change, so that what was read up to one of them holds as long as the run is there as it was. */
export class ToldRuns {
  /** Those that were used last come last. */
  readonly #kept = new Map<string, Kept>();
  /** Looks, under way, whether what is kept of a session still stands in the journal. */
  readonly #looks = new Map<string, Promise<void>>();
  #bytes = 0;

  /**
   * @param head how many of its entries count.
   * @returns of a damaged run that it is one.
   * @throws PilotageError of the journal or of a store that cannot be read for now.
   */
  async of(run: string, head: number, scope: Scope, sources: ToldSources): Promise<KnownRun> {
    const key = `${head}/${run}`;
    try {
      if (this.#kept.has(key)) await this.#look(run, scope, key, sources);
      const kept = this.#kept.get(key);
      if (kept !== undefined) {
        this.#keep(key, kept);
        return kept.known;
      }
      const read = await readRun(run, head, scope, sources);
      if (read.isWhole && read.bytes <= KEPT_BYTES / 2) this.#keep(key, read);
      return read.known;
    } catch (error) {
      // A damaged run must not stop all later ones of its session.
      if (!isOfRun(error)) throw error;
      return { told: { ...DAMAGED, run }, exchanges: [0], compaction: null, continues: null, heard: NONE };
    }
  }

  /** Sessions are deleted, and erased, as a whole: whoever reads several of its runs looks at one of them. */
  #look(run: string, scope: Scope, key: string, sources: ToldSources): Promise<void> {
    const session = scopeKey(scope);
    const under = this.#looks.get(session);
    if (under !== undefined) return under;
    const look = this.#looked(run, session, key, sources).finally(() => this.#looks.delete(session));
    this.#looks.set(session, look);
    return look;
  }

  async #looked(run: string, session: string, key: string, { journal }: ToldSources): Promise<void> {
    const [now] = await journal.read(run, 1, 1).catch(unlessOfRun);
    const first = this.#kept.get(key)?.first;
    if (first !== undefined && now !== undefined && jsonEquals(asJson(first), asJson(now))) return;
    for (const [each, kept] of this.#kept) if (kept.session === session) this.#drop(each);
  }

  /** Forgets the run, as whoever erases it asks for. */
  forget(run: string): void {
    for (const key of this.#kept.keys()) if (key.endsWith(`/${run}`)) this.#drop(key);
  }

  /** Forgets all runs. */
  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }

  #keep(key: string, kept: Kept): void {
    this.#drop(key);
    this.#kept.set(key, kept);
    this.#bytes += kept.bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= KEPT_BYTES) return;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0;
    this.#kept.delete(key);
  }
}

/** Then reading it whole says what is wrong with it. */
function unlessOfRun(error: unknown): readonly Entry[] {
  if (isOfRun(error)) return [];
  throw error;
}

async function readRun(
  run: string,
  head: number,
  scope: Scope,
  { journal, artifacts }: ToldSources,
): Promise<Kept & { readonly isWhole: boolean }> {
  const entries = await journal.read(run, 1, head);
  const state = foldEntries(entries);
  const { inputs, end, answer, exchanges, shown, ...plain } = toldRun(state);
  const [given, made, inSteps, said] = await Promise.all([
    loadInputs(inputs, scope, artifacts),
    loadInputs(end.files ?? [], scope, artifacts),
    loadInputs(shown.all, scope, artifacts),
    answer === undefined ? undefined : answerOf(answer, scope, artifacts),
  ]);
  const { files: _, ...ended } = end;
  const all = [...given, ...made, ...inSteps];
  const bytes = new Map(
    [...made, ...inSteps].flatMap(({ artifactRef, bytes: read }) => (read === undefined ? [] : [[artifactRef, read]])),
  );
  const told: EarlierRun = Object.freeze({
    ...plain,
    inputs: given,
    end: Object.freeze({
      ...ended,
      ...(said === undefined ? {} : { answer: said }),
      ...(made.length === 0 ? {} : { files: made }),
    }),
    ...(made.length + inSteps.length === 0 ? {} : { media: Object.freeze({ from: shown.from, bytes }) }),
  });
  const { compaction, continues, heard } = state;
  return {
    known: { told, exchanges, compaction, continues: deepFreeze(continues), heard },
    first: entries[0],
    session: scopeKey(scope),
    bytes: sizeOf(told) + all.reduce((sum, { bytes: read }) => sum + (read?.byteLength ?? 0), 0),
    isWhole: all.every(isLoaded),
  };
}

function isLoaded({ bytes }: LoadedInput): boolean {
  return bytes !== undefined;
}

const VALUE_BYTES = 32;

/** About how much memory the texts and values of the run take. */
function sizeOf({ trajectory, query, end: { answer = '', providerState, text = '' } }: EarlierRun): number {
  let sum = 0;
  const open: unknown[] = [
    trajectory.steps,
    trajectory.steering,
    trajectory.background,
    providerState,
    query,
    answer,
    text,
  ];
  while (open.length > 0) {
    const value = open.pop();
    sum += VALUE_BYTES;
    if (typeof value === 'string') sum += value.length * 2;
    else if (Array.isArray(value)) for (const item of value) open.push(item);
    else if (isJsonObject(value)) for (const item of Object.values(value)) open.push(item);
  }
  return sum;
}

const NONE: readonly never[] = Object.freeze([]);
const DAMAGED: Omit<EarlierRun, 'run'> = {
  query: '(a message that cannot be read any more)',
  inputs: NONE,
  trajectory: {
    count: 0,
    step: () => undefined,
    steps: NONE,
    steering: NONE,
    tasks: NONE,
    groups: new Map(),
    background: NONE,
  },
  end: { unanswered: 'The run is damaged.' },
};

/** Whether something is wrong with the run alone: its entries are damaged, or a newer version has written them. */
function isOfRun(error: unknown): boolean {
  if (PilotageError.is(error, 'journal_newer')) return error.data?.['run'] !== undefined;
  return PilotageError.is(error, 'journal_corrupt') || PilotageError.is(error, 'journal_entry_unknown');
}
