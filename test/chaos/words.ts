/** What is said between the process that plays and the processes that act, one line of JSON each. */
import type { ControlType, Json } from '#pilotage';
import type { Entry } from '#pilotage/state';
import type { Settlement } from '#runtime';
import type { Passed } from './judge-schedules.ts';
import type { NumberedRow } from './judge-streams.ts';
import type { KindName } from './kinds.ts';
import type { WrittenRow } from './streaming.ts';

/** What is said to a pause. */
export type Answer = 'approve' | 'reject' | 'resume' | { readonly says: Json } | Settlement;

export type Command =
  | { readonly do: 'start'; readonly id: string; readonly kind: KindName; readonly deadlineMs?: number }
  | { readonly do: 'control'; readonly id: string; readonly type: ControlType }
  | { readonly do: 'answer'; readonly id: string; readonly token: string; readonly answer: Answer }
  /** Something has happened outside. The same again has the same id. */
  | { readonly do: 'signal'; readonly key: string; readonly id: string; readonly payload: Json }
  /** Reads the rows of a run's stream from that one on, until there are no more. */
  | { readonly do: 'read'; readonly run: string; readonly reader: string; readonly from: number }
  /** Somebody goes on with the run, whose process may have died. */
  | { readonly do: 'goOn'; readonly id: string }
  | { readonly do: 'schedule'; readonly id: string; readonly op: 'pause' | 'resume' | 'trigger' }
  /** Somebody says something in the session. The same again has the same id. */
  | { readonly do: 'say'; readonly id: string; readonly busy: 'queue' | 'steer' }
  /** The event loop stands still for so long. */
  | { readonly do: 'block'; readonly ms: number }
  /** The wall clock of this process is so far ahead of the machine's from now on; 0 sets it right. */
  | { readonly do: 'shift'; readonly ms: number }
  /** Only answers: then it is awake. */
  | { readonly do: 'wake' }
  /** Closes what is open, and ends. */
  | { readonly do: 'close' };

/** What a store acknowledged. `at`: milliseconds of the machine's own clock, which nobody sets. */
export type Acknowledged =
  | {
      readonly said: 'claimed';
      readonly run: string;
      readonly fence: number;
      readonly head: number;
      readonly at: number;
      /** Of a run that was created: when that was asked of the store. */
      readonly askedAt?: number;
    }
  | { readonly said: 'appended'; readonly run: string; readonly fence: number; readonly entries: readonly Entry[] }
  /** Fire times of a schedule were left out. */
  | ({ readonly said: 'passed' } & Passed)
  | { readonly said: 'rows'; readonly run: string; readonly values: readonly Json[] }
  /** A message that begins a turn, which may have to wait. `askedAt`: as of a claim. */
  | { readonly said: 'sent'; readonly run: string; readonly askedAt: number }
  | { readonly said: 'signalled'; readonly run: string; readonly id: string }
  /** A signal of the outside. */
  | { readonly said: 'happened'; readonly key: string; readonly id: string };

export type Said =
  | Acknowledged
  | { readonly said: 'ready' }
  | { readonly said: 'started'; readonly run: string }
  /** An effect was entered, for the run that it stands in. */
  | { readonly said: 'entered'; readonly run: string; readonly key: string; readonly at: number }
  /** A schedule is there. `wallMs`: by the clock of this process. */
  | { readonly said: 'put'; readonly id: string; readonly wallMs: number }
  | { readonly said: 'triggered'; readonly run: string }
  /** A message of somebody was accepted, in this turn. */
  | { readonly said: 'spoken'; readonly id: string; readonly turn: string }
  /** A schedule was paused or resumed. `nextAt`: its next fire time; absent when that has failed. */
  | {
      readonly said: 'scheduled';
      readonly id: string;
      readonly op: 'pause' | 'resume';
      readonly nextAt?: number;
      readonly wallMs: number;
    }
  /** A tool is about to write a row. */
  | { readonly said: 'writes'; readonly run: string; readonly row: WrittenRow }
  | { readonly said: 'row'; readonly reader: string; readonly row: NumberedRow }
  | { readonly said: 'read'; readonly reader: string; readonly isWhole: boolean }
  | { readonly said: 'did'; readonly what: Command['do'] }
  | { readonly said: 'fault'; readonly code: string; readonly message: string };

/** The machine's own clock in milliseconds, the same for all processes. */
export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

export function faultOf(error: unknown): Extract<Said, { said: 'fault' }> {
  const { code = '', message = String(error) } = Object(error) as { code?: string; message?: string };
  return { said: 'fault', code, message };
}
