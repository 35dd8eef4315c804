/**
 * What streams have, when a history is over: all that the store has taken, once and in order; of a call that has ended each row that it has
 * written; and readers have seen each row once. Rows say themselves in which entry into a tool they were written, and as which of its rows.
 */
import { isJsonObject, type Json, type StreamRow } from '#core';
import type { Journal } from '#journal';
import { entriesOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import type { EndStored, RowsRead, TakenRow, WritingEntry } from './stream-ledger.ts';

export async function checkStreams(ledger: Ledger, journal: Journal): Promise<void> {
  const { streams } = ledger;
  for (const run of ledger.runs.keys()) {
    const names = new Set((streams.taken.get(run) ?? []).map(({ stream }) => stream));
    const listed = await journal.streams.list(run);
    for (const { name } of listed) names.add(name);
    for (const name of names) {
      const record = listed.find((stream) => stream.name === name);
      const rows = await everyRow(journal, run, name);
      checkStored(streams.of(run, name), rows, record, (what) => ledger.violated('streams', `${name} ${what}`, run));
    }
    checkWritten(run, ledger);
    checkSaid(run, ledger);
  }
  for (const end of streams.ends) checkWhole(end, ledger);
  for (const reader of streams.readers) checkRead(reader, ledger);
}

/** Few, so that there are pages. */
const PAGE = 4;

async function everyRow(journal: Journal, run: string, name: string): Promise<StreamRow[]> {
  const all: StreamRow[] = [];
  for (;;) {
    const { rows } = await journal.streams.read(run, name, all.length + 1, PAGE);
    all.push(...rows);
    if (rows.length < PAGE) return all;
  }
}

function checkStored(
  taken: readonly TakenRow[],
  rows: readonly StreamRow[],
  record: { readonly rows: number; readonly closed: boolean } | undefined,
  wrong: (what: string) => void,
): void {
  const wanted = taken.filter(({ value }) => value !== undefined);
  if (rows.length !== wanted.length || record?.rows !== wanted.length)
    wrong(`has ${rows.length} rows and says ${record?.rows}, and ${wanted.length} were taken`);
  for (const [at, { index, value, step, call, attempt }] of rows.entries()) {
    const row = wanted[at];
    if (index !== at + 1) wrong(`has the row ${index} at ${at + 1}`);
    if (!isSame(row?.value, value)) wrong(`has another row ${index} than was taken`);
    if (row?.step !== step || row.call !== call || row.attempt !== attempt)
      wrong(`says that its row ${index} is of ${step}.${call}, attempt ${attempt}`);
  }
  const isClosed = taken.length > 0 && taken.at(-1)?.value === undefined;
  if ((record?.closed ?? false) !== isClosed) wrong(`is ${isClosed ? 'closed' : 'open'}, and says otherwise`);
}

interface Written {
  readonly id: string;
  readonly entered: number;
  readonly n: number;
}

function writtenIn({ value }: Pick<TakenRow, 'value'>): Written | undefined {
  if (value === undefined || !isJsonObject(value)) return undefined;
  const { id, entered, n } = value;
  return typeof id === 'string' && typeof entered === 'number' && typeof n === 'number'
    ? { id, entered, n }
    : undefined;
}

/** Of each entry into a tool its first rows are there, each once and in order, as rows of its call. */
function checkWritten(run: string, ledger: Ledger): void {
  const counts = new Map<number, number>();
  for (const row of ledger.streams.taken.get(run) ?? []) {
    const written = writtenIn(row);
    if (written === undefined) continue;
    const { id, entered, n } = written;
    const count = counts.get(entered) ?? 0;
    if (n !== count + 1)
      ledger.violated('streams', `of ${id}, entry ${entered}, row ${n} is there after row ${count}`, run);
    counts.set(entered, n);
    const entry = ledger.streams.entries[entered - 1];
    const isIts =
      entry?.run === run &&
      entry.id === id &&
      entry.attempt === row.attempt &&
      entry.key.endsWith(`/${row.step}.${row.call}`) &&
      entry.rows[n - 1]?.stream === row.stream;
    if (!isIts)
      ledger.violated('streams', `row ${n} of ${id}, entry ${entered}, is in ${row.stream} as another's`, run);
  }
}

/** A call whose value says how many rows it has written has so many by then. */
function checkSaid(id: string, ledger: Ledger): void {
  const run = ledger.runs.get(id);
  if (run === undefined) return;
  for (const { outcome, seq, reuses } of entriesOf(run, 'call_ended')) {
    if (reuses !== undefined || outcome.kind !== 'value' || !isJsonObject(outcome.value)) continue;
    const { entered, rows } = outcome.value;
    if (typeof entered !== 'number' || typeof rows !== 'number') continue;
    const there = rowsBefore(entered, id, run.landed[seq - 1] ?? 0, ledger);
    if (there !== rows)
      ledger.violated('streams', `entry ${entered} has written ${rows} rows, and ${there} were there at its end`, id);
  }
}

/** When the end of a call is recorded, what was written by those who record it is there. */
function checkWhole({ order, run, step, call, process, fence }: EndStored, ledger: Ledger): void {
  const isIts = (entry: WritingEntry): boolean =>
    entry.run === run && entry.process === process && entry.fence === fence && entry.key.endsWith(`/${step}.${call}`);
  for (const entry of ledger.streams.entries.filter(isIts)) {
    const wanted = entry.rows.filter(({ isRefused }) => !isRefused).length;
    const there = rowsBefore(entry.entered, run, order, ledger);
    if (there < wanted)
      ledger.violated('streams', `call ${step}.${call} has ended, and ${there} of ${wanted} rows are there`, run);
  }
}

function rowsBefore(entered: number, run: string, order: number, ledger: Ledger): number {
  const taken = ledger.streams.taken.get(run) ?? [];
  return taken.filter((row) => row.order < order && writtenIn(row)?.entered === entered).length;
}

/** Each row once and in order, from the one that was asked for; and no end before the last of them. */
function checkRead(reader: RowsRead, ledger: Ledger): void {
  const { run, stream, from, follow, rows, beganAt, endedAt } = reader;
  const wrong = (what: string): void => ledger.violated('streams', `who read ${stream} from ${from} on ${what}`, run);
  const all = ledger.streams.of(run, stream);
  const there = all.filter(({ value }) => value !== undefined);
  for (const [at, { index, value }] of rows.entries()) {
    if (index !== from + at) wrong(`was given row ${index} at the place of ${from + at}`);
    if (!isSame(there[index - 1]?.value, value)) wrong(`was given another row ${index} than is there`);
  }
  if (endedAt === undefined) return;
  const seen = Math.max(from - 1, from + rows.length - 1);
  const atFirst = there.filter(({ order }) => order < beganAt).length;
  if (seen < atFirst) wrong(`has seen rows up to ${seen}, and there were ${atFirst} before`);
  const runEnded = ledger.runs.get(run)?.endedAt ?? Number.POSITIVE_INFINITY;
  const isAll = runEnded < endedAt && seen >= there.length;
  if (follow && !isAll && !wasClosed(all, rows.length === 0 ? 0 : seen, seen))
    wrong(`was told of the end at ${seen} of ${there.length} rows, and neither the run had ended nor the stream`);
}

/** Somebody had closed the stream when it had so many rows. */
function wasClosed(taken: readonly TakenRow[], least: number, most: number): boolean {
  let count = 0;
  for (const { value } of taken) {
    if (value !== undefined) count += 1;
    else if (least <= count && count <= most) return true;
  }
  return false;
}

function isSame(left: Json | undefined, right: Json | undefined): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}
