/** `pilotage/state`: what the entries of a run say, for whoever reads runs: its state, its plan, its trajectory, two runs compared. */
export type { Entry, EntryBody, EntryKind, EventPayloads, StreamRow, Turn } from '#core';
export type { RunComparison } from './compare-runs.ts';
export { compareRuns } from './compare-runs.ts';
export type { Redact } from './events.ts';
export { foldEntries } from './fold.ts';
export { type PlanNodeStatus, type PlanNodeView, type PlanView, planOf } from './plan-view.ts';
export type { OpenStepSnapshot, RunSnapshot } from './snapshot.ts';
export type { RunState } from './state.ts';
export type { RunTrajectory, TrajectorySource } from './trajectory.ts';
export { readTrajectory, trajectoryOf } from './trajectory.ts';
