/** What the other rooms and the tests may use of `planners/deterministic`. */
export type { DeterministicOptions } from './deterministic.ts';
export { deterministic } from './deterministic.ts';
export { lastResult, lastStep } from './recorded.ts';
export type { DeterministicStep, GroupMember, SpawnAndAwaitStep, WatchGroupStep } from './steps.ts';
