/** What the exit code of the command says. */
import { type ErrorCode, PilotageError } from '#core';
import type { RunResult } from '#runtime';

export const EXIT: Readonly<{
  goal: 0;
  otherEnd: 1;
  usage: 2;
  failed: 3;
  journal: 4;
  paused: 5;
  refused: 6;
  diverged: 7;
  interrupted: 130;
  brokenPipe: 141;
}> = {
  goal: 0,
  otherEnd: 1,
  usage: 2,
  failed: 3,
  journal: 4,
  paused: 5,
  refused: 6,
  diverged: 7,
  interrupted: 130,
  brokenPipe: 141,
};

/** Wrong arguments. The command says how it is used. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
}

export function codeOfResult(result: RunResult): number {
  switch (result.status) {
    case 'finished':
      return result.reason === 'goal' ? EXIT.goal : EXIT.otherEnd;
    case 'failed':
      return EXIT.failed;
    case 'paused':
      return EXIT.paused;
    default:
      return result satisfies never;
  }
}

const WRONG_USE: ReadonlySet<ErrorCode> = new Set([
  'run_not_found',
  'invalid_config',
  'driver_unknown',
  'payload_invalid',
  'identity_required',
]);
const REFUSED: ReadonlySet<ErrorCode> = new Set([
  'run_ended',
  'run_changed',
  'pause_not_found',
  'pause_expired',
  'approver_refused',
  'scope_mismatch',
  'inbox_full',
]);

export function isRefusal(error: unknown): error is PilotageError {
  return PilotageError.is(error) && REFUSED.has(error.code);
}

export function codeOfError(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (isRefusal(error)) return EXIT.refused;
  if (!PilotageError.is(error)) return EXIT.failed;
  if (error.code.startsWith('journal_')) return EXIT.journal;
  return WRONG_USE.has(error.code) ? EXIT.usage : EXIT.failed;
}
