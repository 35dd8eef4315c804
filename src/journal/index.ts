/** `pilotage/journal`: the port of a store, for whoever writes one. The stores that are there have subpaths of their own. */
export type { ArtifactRef, Message } from '#core';
export type {
  Append,
  ArtifactAbout,
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
export type { MemoryHealth, SessionMemory, SessionMemoryStore, SessionSummary, SessionTurn } from './session-memory.ts';
