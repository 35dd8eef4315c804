/** What the other rooms and the tests may use of `planners`. */
export { askFallback } from './ask-fallback.ts';
export type { GivenModels, ModelPool } from './model-pool.ts';
export { asksModels, isRegistry, listedModels, modelPool } from './model-pool.ts';
export type { DriverOptions, PlannerFactory, PlannerRegistry } from './registry.ts';
export { plannerRegistry } from './registry.ts';
