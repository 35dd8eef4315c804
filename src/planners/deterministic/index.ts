export type { DeterministicOptions } from './deterministic.ts';
export { deterministic } from './deterministic.ts';
export {
  type CallStep,
  type DecideStep,
  type DeterministicStep,
  type FinishStep,
  type Given,
  type GroupMember,
  lastResult,
  lastStep,
  type ObjectStep,
  type OnResolved,
  type ParallelStep,
  type PauseStep,
  type SpawnAndAwaitStep,
  type WatchGroupStep,
} from './steps.ts';
