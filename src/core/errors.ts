/**
 * One error class with a stable `code`. One table says what follows from each code, so that the loop never reads
 * messages to decide.
 */
import type { JsonObject } from './json.ts';

/**
 * What follows from an error of each code.
 * - `caller`: the error is thrown to the caller; nothing was written.
 * - `planner`: the error is an outcome that the planner sees; the run goes on.
 * - `run`: the error ends the run: as failed, or, for `model_refused`, as `refused`.
 * - `retry`: the store could not write now; the same append is tried again.
 */
export const ERROR_CONSEQUENCES = {
  identity_required: 'caller',
  invalid_config: 'caller',
  no_planner: 'caller',
  runtime_closed: 'caller',
  run_not_found: 'caller',
  run_ended: 'caller',
  run_unwound: 'caller',
  payload_invalid: 'caller',
  url_refused: 'caller',
  url_failed: 'caller',
  history_failed: 'caller',
  pause_not_found: 'caller',
  pause_expired: 'caller',
  call_not_found: 'caller',
  call_ended: 'caller',
  call_in_doubt: 'caller',
  scope_mismatch: 'caller',
  scope_invalid: 'caller',
  approver_refused: 'caller',
  run_changed: 'caller',
  idempotency_conflict: 'caller',
  task_not_found: 'planner',
  task_limit: 'planner',
  task_id_taken: 'planner',
  await_timeout: 'planner',
  await_cycle: 'planner',
  group_ended: 'planner',
  tool_rejected: 'planner',
  approval_timeout: 'planner',
  superseded: 'planner',
  question_declined: 'planner',
  question_expired: 'planner',
  event_timeout: 'planner',
  result_expired: 'planner',
  wait_changed: 'planner',
  approval_failed: 'planner',
  effect_held_back: 'planner',
  auth_required: 'planner',
  deterministic_step: 'run',
  policy_refused: 'planner',
  agent_unknown: 'caller',
  price_missing: 'run',
  flow_invalid: 'caller',
  package_missing: 'caller',
  engine_unavailable: 'caller',
  route_not_found: 'run',
  node_timeout: 'run',
  node_exception: 'run',
  validation_failed: 'run',
  flow_budget_exceeded: 'run',
  run_cancelled: 'caller',
  run_paused: 'caller',
  invalid_concurrency: 'caller',
  invalid_k: 'caller',
  join_k_short_read: 'caller',
  plan_invalid: 'run',
  plan_failed: 'run',
  plan_interrupted: 'planner',
  plan_redirected: 'planner',
  node_removed: 'planner',
  template_invalid: 'caller',
  template_variable_missing: 'run',
  rule_failed: 'run',
  htn_depth: 'run',
  htn_nodes: 'run',
  htn_cycle: 'run',
  htn_invalid_decomposition: 'run',
  hddl_invalid: 'caller',
  driver_empty_name: 'caller',
  driver_nil_factory: 'caller',
  driver_duplicate: 'caller',
  driver_unknown: 'caller',
  inbox_changed: 'caller',
  unknown_control_type: 'caller',
  inbox_full: 'caller',
  signals_full: 'caller',
  tool_name_empty: 'caller',
  tool_without_execute: 'caller',
  tool_name_taken: 'caller',
  tool_schema_invalid: 'caller',
  tool_example_invalid: 'caller',
  artifact_not_found: 'planner',
  invalid_decision: 'run',
  parallel_cap_exceeded: 'run',
  parallel_invalid_join: 'run',
  planner_failed: 'run',
  call_failed: 'run',
  context_window_exceeded: 'run',
  model_refused: 'run',
  memory_block_unserializable: 'caller',
  unknown_decision_kind: 'caller',
  unserializable: 'planner',
  parallel_branch_invalid_args: 'planner',
  parallel_threshold_unmet: 'planner',
  parallel_all_failed: 'planner',
  branch_not_started: 'planner',
  reference_unresolved: 'planner',
  tool_not_found: 'planner',
  tool_not_offered: 'planner',
  tool_invalid_args: 'planner',
  tool_invalid_output: 'planner',
  tool_failed: 'planner',
  tool_timeout: 'planner',
  tool_retries_exhausted: 'planner',
  tool_abandoned: 'planner',
  handle_failed: 'planner',
  handle_lost: 'planner',
  outcome_unknown: 'planner',
  not_sent: 'planner',
  undo_failed: 'planner',
  tool_wait_too_long: 'planner',
  store_refused: 'planner',
  stream_refused: 'planner',
  embedding_failed: 'planner',
  budget_exceeded: 'planner',
  workspace_refused: 'planner',
  model_unavailable: 'planner',
  cancelled: 'planner',
  lease_lost: 'caller',
  journal_conflict: 'caller',
  session_changed: 'caller',
  session_busy: 'caller',
  schedule_changed: 'caller',
  schedule_not_found: 'caller',
  rate_limited: 'caller',
  entry_refused: 'caller',
  journal_newer: 'caller',
  journal_corrupt: 'caller',
  journal_read_only: 'caller',
  journal_older: 'caller',
  journal_replaced: 'caller',
  journal_unsynced: 'caller',
  journal_closed: 'caller',
  journal_entry_unknown: 'caller',
  journal_full: 'retry',
  journal_busy: 'retry',
  journal_unavailable: 'retry',
} as const;

export type ErrorCode = keyof typeof ERROR_CONSEQUENCES;
export type ErrorConsequence = (typeof ERROR_CONSEQUENCES)[ErrorCode];

/** An error as it stands in the journal. `code` may be a tool's own word, so it is not limited to `ErrorCode`. */
export interface ErrorData {
  readonly code: string;
  readonly message: string;
  readonly data?: JsonObject;
}

const MOST_CODE_CHARS = 100;

/**
 * What somebody says of a call that has failed.
 * @throws PilotageError `payload_invalid`.
 */
export function assertErrorData(given: unknown): asserts given is ErrorData {
  const { code, message, data, ...others } = (typeof given === 'object' && given !== null ? given : {}) as ErrorData;
  const isCode = typeof code === 'string' && code.trim() !== '' && code.length <= MOST_CODE_CHARS;
  const isData = data === undefined || (typeof data === 'object' && data !== null && !Array.isArray(data));
  if (isCode && typeof message === 'string' && isData && Object.keys(others).length === 0) return;
  throw new PilotageError(
    'payload_invalid',
    `The error of a call must be { code, message }, and may have data: a code of 1 to ${MOST_CODE_CHARS} characters such as no_camera, the message as a text, and an object.`,
  );
}

const BRAND = Symbol.for('pilotage.error');

export interface PilotageErrorOptions {
  readonly data?: JsonObject | undefined;
  readonly cause?: unknown;
}

/** Every error that Pilotage throws. Recognise it with `PilotageError.is`, which works across two copies of the package. */
export class PilotageError extends Error {
  override readonly name: string = 'PilotageError';
  readonly code: ErrorCode;
  readonly data: JsonObject | undefined;

  constructor(code: ErrorCode, message: string, options: PilotageErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data;
    Object.defineProperty(this, BRAND, { value: true });
  }

  static is(value: unknown, code?: ErrorCode): value is PilotageError {
    if (fieldOf(value, BRAND) !== true) return false;
    return code === undefined || fieldOf(value, 'code') === code;
  }

  /** Reads an error back from its journal form. A code this version does not know becomes `tool_failed` with that word. */
  static fromData(error: ErrorData): PilotageError {
    if (Object.hasOwn(ERROR_CONSEQUENCES, error.code)) {
      return new PilotageError(error.code as ErrorCode, error.message, { data: error.data });
    }
    return new PilotageError('tool_failed', error.message, { data: { ...error.data, code: error.code } });
  }

  toJSON(): ErrorData {
    return this.data === undefined
      ? { code: this.code, message: this.message }
      : { code: this.code, message: this.message, data: this.data };
  }
}

/** A field of any value. `undefined` also when reading it throws, as a getter or a proxy may. */
export function fieldOf(value: unknown, name: PropertyKey): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
  try {
    return Reflect.get(value, name);
  } catch {
    return undefined;
  }
}

const MAX_WORDS_CHARS = 32_768;

/**
 * The message of a thrown value, without its stack, also for `throw "x"` and `throw null`. Always a string of at most 32,768
 * characters, also when reading the value throws.
 */
export function describeThrown(thrown: unknown): string {
  const words = wordsOf(thrown);
  return words.length <= MAX_WORDS_CHARS ? words : `${words.slice(0, MAX_WORDS_CHARS - 1)}…`;
}

function wordsOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return textOf(thrown);
    const { message }: { readonly message: unknown } = thrown;
    return (message !== undefined && textOf(message)) || textOf(thrown.name);
  } catch {
    return unreadable(thrown);
  }
}

/** A list is not written out: it may have a length of billions. Byte arrays share the method of lists. */
function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const { toString: write }: { readonly toString: unknown } = value;
  if (!Array.isArray(value) && write !== Array.prototype.toString) return String(value);
  return `a list of ${String(fieldOf(value, 'length'))} items`;
}

function unreadable(thrown: unknown): string {
  try {
    return Object.prototype.toString.call(thrown);
  } catch {
    return 'a value that cannot be read';
  }
}
