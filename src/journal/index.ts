/** `pilotage/journal`: the port of a store, for whoever writes one. The stores that are there have subpaths of their own. */
export type { ArtifactRef, Message } from '#core';
export {
  type Append,
  type ArtifactAbout,
  type ArtifactStore,
  type Claim,
  type ClaimRequest,
  type Examined,
  type Journal,
  type LeaseRequest,
  type NewRun,
  type Park,
  type Received,
  type Renewal,
  type RepairRequest,
  RUN_STATUSES,
  type RunQuery,
  type RunRecord,
  type RunStatus,
  type SignalOptions,
  type StoredMessage,
  type Told,
} from './port.ts';
export { wholeJournal } from './whole.ts';
