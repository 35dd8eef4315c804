export type { DeterministicOptions } from './deterministic.ts';
export { deterministic } from './deterministic.ts';
export { lastResult, lastStep } from './ready-step.ts';
export type {
  CallStep,
  DecideStep,
  DeterministicStep,
  FinishStep,
  Given,
  GroupMember,
  ObjectStep,
  OnResolved,
  ParallelStep,
  PauseStep,
  SpawnAndAwaitStep,
  WatchGroupStep,
} from './steps.ts';
