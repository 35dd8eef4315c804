/** For tests of planners, tools, journals and whole agents. Nothing here needs a test runner or a network. */
export type { CrashOptions, CrashReport, CrashViolation } from './crash-everywhere.ts';
export { assertCrashProof, crashEverywhere } from './crash-everywhere.ts';
export { foldProblems } from './crash-check.ts';
export type { CrashScenario, CrashWorld } from './crash-scenario.ts';
export type { ConformanceCase, JournalConformanceOptions } from './journal-conformance.ts';
export { journalConformance } from './journal-conformance.ts';
export { seededRandom } from './seeded-random.ts';
export { VirtualClock } from './virtual-clock.ts';
