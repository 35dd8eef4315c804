/** What the other rooms and the tests may use of `config`. */
export type { Config } from './config.ts';
export type { DriverPart, PipelinePart, ReactPart } from './drivers.ts';
export { loadConfig } from './load.ts';
export type { Environment, ModelEntryPart } from './models.ts';
export { isRecord } from './shape.ts';
