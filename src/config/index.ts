/** `pilotage/config`: a configuration, read from a file or written in a program, and the planners that it names. */
export type { DriverOptions, PlannerFactory, PlannerRegistry } from '#planners';
export { plannerRegistry } from '#planners';
export { type Config, defineConfig, loadConfig, type ServerPart } from './config.ts';
export type {
  DeterministicPart,
  DriverDependencies,
  DriverPart,
  FinishPart,
  PipelinePart,
  ReactPart,
} from './drivers.ts';
export { shippedPlanners } from './drivers.ts';
export type { ModelEntryPart, ModelPart, ModelServer, ModelsPart } from './models.ts';
export type { ReadyConfig, ReadyOptions } from './ready.ts';
export { readyConfig } from './ready.ts';
