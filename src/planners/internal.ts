/** What the other rooms and the tests may use of `planners`. */
export {
  askFallback,
  asksModels,
  type GivenModels,
  isRegistry,
  leftFor,
  listedModels,
  type ModelPool,
  modelPool,
} from './models.ts';
export type { DriverOptions, PlannerFactory, PlannerRegistry } from './registry.ts';
export { plannerRegistry } from './registry.ts';
