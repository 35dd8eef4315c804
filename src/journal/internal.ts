/** What the other rooms and the tests may use of `journal`. */
export { artifactDigest } from './artifact-id.ts';
export { DEFAULT_JOURNAL_PATH } from './default-path.ts';
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
export type {
  Append,
  ArtifactStore,
  Claim,
  ClaimRequest,
  Examined,
  Journal,
  LeaseRequest,
  NewRun,
  Park,
  Received,
  Renewal,
  RepairRequest,
  RunQuery,
  RunRecord,
  RunStatus,
  SignalOptions,
  StoredMessage,
  Told,
} from './port.ts';
export { RUN_STATUSES } from './port.ts';
export { assertInTime, assertJournal, hasEnded, ownedBy, pauseExpired, runNotFound } from './rules.ts';
export type { SessionMemory, SessionMemoryStore, SessionSummary, SessionTurn } from './session-memory.ts';
export { FIND_DUE } from './sqlite-rows.ts';
export { MIGRATIONS, openDatabase, SCHEMA_VERSION } from './sqlite-schema.ts';
