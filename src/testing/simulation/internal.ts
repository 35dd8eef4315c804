/** What the other rooms and the tests may use of `testing/simulation`. */
export { checkSessions } from './check-session.ts';
export { generateScript } from './generate.ts';
export type { Violation } from './ledger.ts';
export { Ledger } from './ledger.ts';
export { Machines } from './machines.ts';
export { ODD } from './odd.ts';
export { ShownGroups } from './planner.ts';
export { SimulatedProcess } from './process.ts';
export type { Plan, SimulationScript } from './script.ts';
export { AGENTS, FLOWS } from './script.ts';
export { shrink } from './shrink.ts';
export type { SimulatedHistory } from './simulate.ts';
export { historyOf, shortestHistory, simulate } from './simulate.ts';
export { openStorage } from './storage.ts';
export { SimulatedTime } from './time.ts';
export { violationText } from './timeline.ts';
export { Worker } from './worker.ts';
