/** How the command answers: data on stdout, lines about the way there on stderr, and an exit code. */
import { styleText } from 'node:util';
import { type ErrorCode, PilotageError } from '#core';
import type { RunResult } from '#runtime';

/** A line for people, and what it is to them. */
export type Tone = 'plain' | 'good' | 'bad' | 'quiet' | 'strong';

export interface Line {
  readonly text: string;
  readonly tone: Tone;
}

export function line(tone: Tone, text: string): Line {
  return { tone, text };
}

export interface Terminal {
  /** Somebody reads stdout as it comes. */
  readonly isLive: boolean;
  /** Data, exactly as given. */
  write(text: string): void;
  /** A line about what happens. Colours only where the stream takes them and NO_COLOR is not set. */
  note(text: string, tone?: Tone): void;
}

const STYLES = { plain: 'reset', good: 'green', bad: 'red', quiet: 'dim', strong: 'bold' } as const;

export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  return {
    isLive: stdout.isTTY === true,
    write: (text) => void stdout.write(text),
    note: (text, tone = 'plain') => {
      const styled = tone === 'plain' ? text : styleText(STYLES[tone], text, { stream: stderr });
      stderr.write(`${styled}\n`);
    },
  };
}

// What the exit code of the command says.

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
  terminated: 143;
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
  terminated: 143,
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
  'package_missing',
  'driver_unknown',
  'payload_invalid',
  'unserializable',
  'identity_required',
]);
const REFUSED: ReadonlySet<ErrorCode> = new Set([
  'run_ended',
  'run_unwound',
  'run_changed',
  'pause_not_found',
  'pause_expired',
  'call_not_found',
  'call_ended',
  'call_in_doubt',
  'approver_refused',
  'scope_mismatch',
  'inbox_full',
  'signals_full',
  'superseded',
  'session_busy',
]);

export function isRefusal(error: unknown): error is PilotageError {
  return PilotageError.is(error) && (REFUSED.has(error.code) || isUnfit(error));
}

/** What was said is well-formed, and does not fit what the run asks, or waits for: the error names the question, or the key of the event. */
function isUnfit({ code, data }: PilotageError): boolean {
  return code === 'payload_invalid' && (data?.['token'] !== undefined || data?.['key'] !== undefined);
}

export function codeOfError(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (isRefusal(error)) return EXIT.refused;
  if (!PilotageError.is(error)) return EXIT.failed;
  if (error.code.startsWith('journal_')) return EXIT.journal;
  return WRONG_USE.has(error.code) ? EXIT.usage : EXIT.failed;
}
