/** The outside ledger: what happened in the world, in a file that no process can take back. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Json } from '#pilotage';
import { appendDurably, readLines } from '../kit/durable-lines.ts';

export interface LedgerLine {
  /** `entered`: a tool was handed the call. `done`: its effect is in the world. `left`: that attempt can do nothing more. */
  readonly what: 'entered' | 'done' | 'left';
  readonly tool: string;
  /** What the effect is about. However it is brought about, it is to happen once. */
  readonly subject: string;
  readonly args: Json;
  readonly run: string;
  readonly key: string;
  /** Of the process. */
  readonly pid: number;
  /** Unique for each time that a tool was handed a call. */
  readonly attempt: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** What the tool gives; on `done` only. */
  readonly value?: Json;
}

const fileIn = (folder: string): string => join(folder, 'ledger.jsonl');

export function note(folder: string, line: LedgerLine): void {
  appendDurably(fileIn(folder), JSON.stringify(line));
}

export function wholeLedger(folder: string): LedgerLine[] {
  const file = fileIn(folder);
  return existsSync(file) ? (readLines(file) as LedgerLine[]) : [];
}

/** The lines of a run and of all runs below it. */
export function ledgerOf(folder: string, run: string): LedgerLine[] {
  return wholeLedger(folder).filter((line) => line.run === run || line.run.startsWith(`${run}.`));
}
