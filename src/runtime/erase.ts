/**
 * Erases what belongs to one person: their schedules, the content of runs, artifacts, titles of sessions, and long-term memory. Each run is one commit, so
 * that nothing is half done; what is left can be erased by doing it again.
 */
import {
  assertTenantAndUser,
  decodeEntry,
  deepFreeze,
  type Entry,
  type EntryBody,
  isJsonObject,
  type Namespace,
  PilotageError,
  type StoreItem,
  type StoreWrite,
  skeletonOf,
} from '#core';
import { hasEnded, type Journal, patiently, type RunQuery, type RunRecord, type SessionRecord } from '#journal';
import { endedStatus, foldEntries } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { endCancelled } from '../loop/next.ts';
import { OF_USERS } from './part-store.ts';
import { forgetRules } from './rules.ts';
import { definitionOf } from './schedule-definition.ts';
import type { StoreOwner } from './store.ts';

export interface Erased {
  /** How many runs have lost their content now. */
  readonly runs: number;
  readonly artifacts: number;
  /** Items of long-term memory, and rules of approvals. */
  readonly items: number;
  readonly schedules: number;
  /** Runs that a process has under way, or that cannot be read, and why. The artifacts and titles of the person are kept as long as there are any. */
  readonly left: readonly { readonly run: string; readonly error: PilotageError }[];
}

interface Deps extends Pick<DriverDeps, 'memory' | 'clock'> {
  readonly journal: Journal;
  /** What is kept of the run here is forgotten. */
  readonly forget?: (run: string) => void;
}

const PAGE = 200;
const ITEMS = 1_000;
/** So many runs that have ended are erased side by side, and share commits. */
const AT_ONCE = 32;

/** @param settle is asked to end a run that a process has. @throws PilotageError `identity_required`, or a store error. */
export async function eraseUser(
  deps: Deps,
  owner: StoreOwner,
  settle: (run: string) => Promise<void> = async () => {},
): Promise<Erased> {
  assertTenantAndUser(owner);
  const { tenant, user } = owner;
  const { journal, clock, memory, forget } = deps;
  const left: { run: string; error: PilotageError }[] = [];
  const own = new Set<string>();
  // First, so that none starts another run of theirs meanwhile.
  const schedules = await eraseSchedules(journal, owner);
  let runs = 0;
  const eraseOne = async (run: string): Promise<void> => {
    try {
      await patiently(clock, () => eraseRun(journal, run, clock.now())).catch(async (error: unknown) => {
        if (!PilotageError.is(error, 'journal_conflict')) throw error;
        await settle(run);
        await patiently(clock, () => eraseRun(journal, run, clock.now()));
      });
      forget?.(run);
      runs += 1;
    } catch (error) {
      if (!PilotageError.is(error)) throw error;
      left.push({ run, error });
    }
  };
  const ended: string[] = [];
  const eraseEnded = (): Promise<unknown> => Promise.all(ended.splice(0).map(eraseOne));
  for await (const { identity, erased, status } of allRunsOf(journal, { tenant, user })) {
    own.add(identity.run);
    if (erased !== undefined) continue;
    // What is under way goes by itself: to end it may end, or wake, others.
    if (!hasEnded(status)) await eraseOne(identity.run);
    else if (ended.push(identity.run) === AT_ONCE) await eraseEnded();
  }
  await eraseEnded();
  // Such as where a client of theirs wants to be told of a run.
  const isOf = ({ value }: StoreItem): boolean => isJsonObject(value) && value['user'] === user;
  const rules = await forgetRules(deps, { tenant, user });
  let items = rules + (await eraseItems(deps, [tenant, user], () => true));
  for (const place of OF_USERS) items += await eraseItems(deps, [place, tenant], isOf);
  // Where the program has put the memory of several users together, it is known by its runs what this one has said.
  const root = memory.rootOf({ tenant, user });
  const shared = await eraseItems(deps, root, ({ source }) => source !== undefined && own.has(source.run));
  if (left.length > 0) return { runs, artifacts: 0, items: items + shared, schedules, left };
  await eraseTitles(journal, { tenant, user });
  const artifacts = await patiently(clock, () => journal.artifacts.erase({ tenant, user }));
  return { runs, artifacts, items: items + shared, schedules, left };
}

async function eraseSchedules({ schedules }: Journal, { tenant, user }: StoreOwner): Promise<number> {
  let count = 0;
  for (let after: string | undefined; ; ) {
    const page = await schedules.list({ tenant, limit: PAGE, ...(after === undefined ? {} : { after }) });
    const own = page.filter((schedule) => definitionOf(schedule).user === user);
    for (const { id } of own) if (await schedules.delete(tenant, id)) count += 1;
    after = page.at(-1)?.id;
    if (page.length < PAGE) return count;
  }
}

/** What people have called their sessions. */
async function eraseTitles(journal: Journal, owner: StoreOwner): Promise<void> {
  for (let after: SessionRecord | undefined; ; ) {
    const page = await journal.sessions.list({ ...owner, limit: PAGE, ...(after === undefined ? {} : { after }) });
    for (const session of page) if (session.title !== undefined) await journal.sessions.set(session, { title: null });
    after = page.at(-1);
    if (page.length < PAGE) return;
  }
}

/** Tasks are runs too. */
export async function* allRunsOf(journal: Pick<Journal, 'list'>, owner: RunQuery): AsyncGenerator<RunRecord> {
  for (let after: string | undefined; ; ) {
    const page = await journal.list({ ...owner, limit: PAGE, ...(after === undefined ? {} : { after }) });
    yield* page;
    after = page.at(-1)?.identity.run;
    if (page.length < PAGE) return;
  }
}

/** A run that has not ended is cancelled by it. @throws PilotageError `journal_conflict` while a process has the run. */
async function eraseRun(journal: Journal, run: string, now: number): Promise<void> {
  const { head, signals, entries: texts, inbox } = await journal.examine(run);
  const entries = texts.map(({ seq, text }) => skeletonOf(decodeEntry(text, seq), now));
  let state = foldEntries(entries);
  if (state.ending === null) {
    const cancel: EntryBody = { kind: 'control', control: { id: 'erased', type: 'CANCEL' }, applied: true };
    entries.push(following(entries, cancel, now));
    for (const body of endCancelled(foldEntries(entries))) entries.push(following(entries, body, now));
    // A fault of ours is found before anything is written.
    state = foldEntries(entries);
  }
  if (state.ending === null)
    throw new PilotageError('entry_refused', `Run ${run} could not be ended: nothing was erased.`);
  for (const entry of entries) deepFreeze(entry);
  const drops = inbox.map(({ id }) => id);
  const status = endedStatus(state.ending);
  await journal.repair({
    run,
    head,
    signals,
    keep: 0,
    entries,
    status,
    agent: state.agent,
    drops,
    waits: [],
    erases: true,
  });
}

function following(entries: readonly Entry[], body: EntryBody, at: number): Entry {
  return { ...body, seq: entries.length + 1, at };
}

async function eraseItems(
  { journal, clock }: Deps,
  namespace: Namespace,
  isTheirs: (item: StoreItem) => boolean,
): Promise<number> {
  let count = 0;
  for (let after: StoreItem | undefined; ; ) {
    const page = await journal.store.list({ namespace, limit: ITEMS }, after);
    const writes = page.filter(isTheirs).map(({ namespace: within, key }): StoreWrite => ({ namespace: within, key }));
    if (writes.length > 0) await patiently(clock, () => journal.store.write(writes));
    count += writes.length;
    after = page.at(-1);
    if (page.length < ITEMS) return count;
  }
}
