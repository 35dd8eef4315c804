/** What the other rooms and the tests may use of `config`. */
export { type Config, hasAgentsAlone, loadConfig } from './config.ts';
export type { DriverPart, PipelinePart, ReactPart } from './drivers.ts';
export type { Environment, ModelEntryPart } from './models.ts';
export { isRecord } from './shape.ts';
