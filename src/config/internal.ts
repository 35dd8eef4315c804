/** What the other rooms and the tests may use of `config`. */
export type { Config } from './config.ts';
export { defineConfig } from './config.ts';
export type {
  DeterministicPart,
  DriverDependencies,
  DriverPart,
  FinishPart,
  PipelinePart,
  ReactPart,
} from './drivers.ts';
export { shippedPlanners } from './drivers.ts';
export { loadConfig } from './load.ts';
export type { Environment, ModelEntryPart, ModelPart, ModelServer, ModelsPart } from './models.ts';
export { isRecord } from './shape.ts';
