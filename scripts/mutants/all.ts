/** All known faults. */
import { APPROVALS } from './approvals.ts';
import { BACKGROUND } from './background.ts';
import { CORE } from './core.ts';
import { CORE_VALUES } from './core-values.ts';
import { FLOW } from './flow.ts';
import { GATES_AND_LIMITS } from './gates-and-limits.ts';
import { HELD_QUESTIONS } from './held-questions.ts';
import { JOURNAL } from './journal.ts';
import type { Mutant } from './mutant.ts';
import { PLANNERS } from './planners.ts';
import { PROCESSES } from './processes.ts';
import { RUNTIME } from './runtime.ts';
import { SCHEDULED_MESSAGES } from './scheduled-messages.ts';
import { SCHEDULES_AND_UNDO } from './schedules-and-undo.ts';
import { SESSIONS_AND_FORKS } from './sessions-and-forks.ts';
import { SQLITE } from './sqlite.ts';
import { STARTS } from './starts.ts';
import { STATE } from './state.ts';
import { STREAMS } from './streams.ts';
import { TOOLS } from './tools.ts';
import { WAITS } from './waits.ts';

export const MUTANTS: readonly Mutant[] = [
  ...RUNTIME,
  ...JOURNAL,
  ...CORE,
  ...STATE,
  ...PROCESSES,
  ...SQLITE,
  ...CORE_VALUES,
  ...GATES_AND_LIMITS,
  ...SESSIONS_AND_FORKS,
  ...TOOLS,
  ...FLOW,
  ...PLANNERS,
  ...WAITS,
  ...SCHEDULES_AND_UNDO,
  ...SCHEDULED_MESSAGES,
  ...STREAMS,
  ...HELD_QUESTIONS,
  ...BACKGROUND,
  ...APPROVALS,
  ...STARTS,
];
