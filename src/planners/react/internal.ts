/** What the other rooms and the tests may use of `planners/react`. */
export type { CompactionOptions, ReactMemory, ReactOptions } from './options.ts';
export { react } from './react.ts';
