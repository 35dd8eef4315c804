/** What the other rooms and the tests may use of `journal`. */
export { MAX_LEASE_MS } from './lease-watch.ts';
export { memoryJournal } from './memory.ts';
export {
  appendAgain,
  cleanArtifacts,
  isJournalGone,
  isTransientStoreError,
  mayComeBack,
  patientArtifacts,
  patiently,
} from './patience.ts';
export { isPostgresUrl } from './place-name.ts';
export {
  type Append,
  type ArtifactStore,
  type Claim,
  type Claimant,
  type ClaimedRun,
  type ClaimRequest,
  DEFAULT_JOURNAL_PATH,
  type DueRequest,
  ENDED_STATUSES,
  type Examined,
  type Journal,
  type LeaseRequest,
  type LongTermStore,
  type NewRun,
  type NewSnapshot,
  type Park,
  type ParkedRequest,
  type Pruned,
  type PruneRequest,
  type Received,
  type Renewal,
  type RepairRequest,
  RUN_STATUSES,
  type RunQuery,
  type RunRecord,
  type RunStatus,
  type SeenItem,
  type Sending,
  type Sent,
  type SessionQuery,
  type SessionRecord,
  type SessionStore,
  type SignalOptions,
  type SnapshotStore,
  type StartedByKey,
  type StoredMessage,
  type StoredSnapshot,
  type Told,
} from './port.ts';
export type { NewPassing, PassingStore } from './port-passing.ts';
export type { NewStreamRow, StreamAppend, StreamRecord, StreamStore } from './port-streams.ts';
export {
  artifactDigest,
  assertInTime,
  assertJournal,
  assertLease,
  hasEnded,
  ownedBy,
  pauseExpired,
  runNotFound,
} from './rules.ts';
export type { ScheduleMove, ScheduleQuery, ScheduleStore, StoredSchedule } from './schedules-port.ts';
export { MIGRATIONS } from './sqlite/migrations.ts';
export { openDatabase, SCHEMA_VERSION } from './sqlite/schema.ts';
export { endSharedReads } from './sqlite/shared-read.ts';
export { addToLayer, assertStoreIndex, type StoreIndex, type StoreLayer, StoreView } from './store-view.ts';
export { storedJson, storedJsonIfAny, storeIfLarge, storeValue } from './stored-json.ts';
export type { EventStore, NewSignal, OpenWait, Signalled, WaitIndex, WaitQuery } from './waits-port.ts';
export { isWhole, wholeJournal } from './whole.ts';
