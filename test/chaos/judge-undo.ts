/** What a run has done, and what was undone of it, by the ledger: each value that was recorded is undone once, the last one first. */
import { branchesOf } from '#core';
import type { Entry } from '#pilotage/state';
import type { LedgerLine } from '../double-act/ledger.ts';
import { UNDOABLE, undoingOf } from './undoing.ts';
import type { Claimed } from './verdict.ts';

export interface Undoing {
  readonly run: string;
  readonly entries: readonly Entry[];
  readonly ledger: readonly LedgerLine[];
  /** How many times somebody has called it off. A run that unwinds already stops undoing over it. */
  readonly cancels: number;
}

/** Sentences on what is wrong. */
export function undoProblems(undoing: Undoing): string[] {
  const { run, entries, ledger, cancels } = undoing;
  const end = entries.at(-1);
  const done = ledger.filter(({ what }) => what === 'done').map(({ subject }) => subject);
  const undone = [...new Set(UNDOABLE.map(({ subject }) => undoingOf(subject)))].filter((name) => done.includes(name));
  if (end?.kind === 'finished' && end.reason === 'goal')
    return undone.map((name) => `${run} has reached its goal, and did ${name}`);
  const recorded = valuesIn(entries);
  const wanted = recorded.map(undoingOf).reverse();
  const stray = undone.filter((name) => !wanted.includes(name)).map((name) => `${run}: ${name} without a value of it`);
  const order = undone.sort((one, other) => done.indexOf(one) - done.indexOf(other));
  const inOrder = wanted.filter((name) => done.includes(name));
  const turned =
    order.join() === inOrder.join() ? [] : [`${run} did ${order.join(', ')}; in order: ${inOrder.join(', ')}`];
  const mayStop = cancels > (end?.kind === 'finished' && end.reason === 'cancelled' ? 1 : 0);
  return [...stray, ...turned, ...(mayStop ? [] : leftOf(undoing, wanted, done))];
}

/** What is recorded, and what has happened once, is undone. */
function leftOf({ run }: Undoing, wanted: readonly string[], done: readonly string[]): string[] {
  const happened = UNDOABLE.filter(({ tool, subject }) => tool === 'charge' && done.includes(subject));
  const names = new Set([...wanted, ...happened.map(({ subject }) => undoingOf(subject))]);
  return [...names].filter((name) => !done.includes(name)).map((name) => `${run}: ${name} never happened`);
}

/** The subjects of calls that have come to a value, in the order in which that was recorded. */
function valuesIn(entries: readonly Entry[]): string[] {
  const subjects = new Map<string, string>();
  const asked = new Map<string, string>();
  const values: string[] = [];
  for (const entry of entries) {
    if (entry.kind === 'moved' && entry.undoes === undefined) {
      for (const [call, { args }] of branchesOf(entry.decision).entries())
        subjects.set(`${entry.step}.${call}`, String(Object(args).subject));
    }
    if (entry.kind === 'paused') asked.set(entry.token, `${entry.step}.${entry.call}`);
    const isValue = (entry.kind === 'call_ended' || entry.kind === 'resumed') && entry.outcome?.kind === 'value';
    if (!isValue) continue;
    const place = entry.kind === 'resumed' ? asked.get(entry.token) : `${entry.step}.${entry.call}`;
    const subject = subjects.get(place ?? '') ?? '';
    if (UNDOABLE.some((one) => one.subject === subject)) values.push(subject);
  }
  return values;
}

export interface UndoCounts {
  /** Runs that have unwound. */
  readonly unwound: number;
  /** Times that somebody has gone on with one in the middle of that. */
  readonly unwoundOn: number;
}

export function undoCountsOf(entries: readonly Entry[], claims: readonly Claimed[]): UndoCounts {
  const begun = entries.find(({ kind }) => kind === 'unwinding');
  if (begun === undefined) return { unwound: 0, unwoundOn: 0 };
  return { unwound: 1, unwoundOn: claims.filter(({ head }) => head >= begun.seq).length };
}
