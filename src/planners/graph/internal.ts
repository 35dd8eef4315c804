/** What the other rooms and the tests may use of `planners/graph`. */
export type { GraphOptions } from './graph.ts';
export { graph } from './graph.ts';
