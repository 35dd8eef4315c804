/** The rows of streams, by what was acknowledged, by what readers in other processes were given, and by what the tools say that they wrote. */
import type { Json } from '#pilotage';
import type { Entry } from '#pilotage/state';
import { ROWS, type WrittenRow } from './streaming.ts';

/** A row as a reader got it, or as the store has it. */
export interface NumberedRow {
  readonly index: number;
  readonly value: Json;
}

/** What was heard of the one stream of a run. */
export class StreamTestimony {
  /** What a tool was about to write. */
  readonly meant: Set<string> = new Set();
  /** What the store has acknowledged. */
  readonly acknowledged: string[] = [];
  /** What readers were given, by the reader: one that was cut off went on elsewhere, behind the last row that it had. */
  readonly read: Map<string, NumberedRow[]> = new Map();
  /** Readers that have come to the end. */
  readonly ended: Set<string> = new Set();
}

export interface StreamCounts {
  /** Of all streams. */
  readonly rows: number;
  /** Attempts that were cut off behind some of their rows, and had others behind them. */
  readonly rowsCutOff: number;
}

export function streamCountsOf(rows: readonly NumberedRow[]): StreamCounts {
  const written = rows.map(({ value }) => value as unknown as WrittenRow);
  const whole = written.filter(({ n }) => n === ROWS).length;
  return { rows: rows.length, rowsCutOff: new Set(written.map(({ by }) => by)).size - whole };
}

/** Sentences on what is wrong. @param rows what the store has at last. */
export function streamProblems(
  run: string,
  heard: StreamTestimony,
  rows: readonly NumberedRow[],
  entries: readonly Entry[],
): string[] {
  const texts = rows.map(({ value }) => JSON.stringify(value));
  return [
    ...gaps('the store', rows),
    ...twice(texts).map((text) => `${text} is there twice`),
    ...texts.filter((text) => !heard.meant.has(text)).map((text) => `nobody wrote ${text}`),
    ...heard.acknowledged.filter((text) => !texts.includes(text)).map((text) => `${text} was stored and is gone`),
    ...twice(heard.acknowledged).map((text) => `${text} was stored twice`),
    ...attempts(rows, entries),
    ...[...heard.read].flatMap(([name, got]) => readProblems(name, got, heard.ended.has(name), texts)),
  ].map((problem) => `${run}: ${problem}`);
}

function readProblems(
  name: string,
  got: readonly NumberedRow[],
  hasEnded: boolean,
  stored: readonly string[],
): string[] {
  const reader = `the reader ${name}`;
  const others = got.filter(({ index, value }) => stored[index - 1] !== JSON.stringify(value));
  return [
    ...gaps(reader, got),
    ...others.map(({ index }) => `${reader} was given another row ${index} than the store has`),
    ...(hasEnded ? [] : [`${reader} has not come to the end`]),
    ...(hasEnded && got.length < stored.length ? [`${reader} ended after ${got.length} of ${stored.length} rows`] : []),
  ];
}

/** Numbers are 1, 2, 3, and so on. */
function gaps(of: string, rows: readonly NumberedRow[]): string[] {
  const place = rows.findIndex(({ index }, before) => index !== before + 1);
  return place === -1 ? [] : [`${of} has row ${rows[place]?.index} in the place of ${place + 1}`];
}

function twice(texts: readonly string[]): string[] {
  return [...new Set(texts.filter((text, place) => texts.indexOf(text) !== place))];
}

/** Those of one attempt are in order and without gaps, and those of a call that has a value are all there. */
function attempts(rows: readonly NumberedRow[], entries: readonly Entry[]): string[] {
  const byAttempt = Map.groupBy(
    rows.map(({ value }) => value as unknown as WrittenRow),
    ({ by }) => by,
  );
  const broken = [...byAttempt].filter(([, written]) => written.some(({ n }, before) => n !== before + 1));
  const whole = entries.flatMap((entry) => {
    const isValue = entry.kind === 'call_ended' && entry.outcome.kind === 'value';
    return isValue ? [String(Object(entry.outcome.value).by)] : [];
  });
  const short = whole.filter((by) => byAttempt.get(by)?.length !== ROWS);
  return [
    ...broken.map(([by, written]) => `the attempt ${by} has the rows ${written.map(({ n }) => n).join()}`),
    ...short.map((by) => `the attempt ${by} has its value, and ${byAttempt.get(by)?.length ?? 0} of ${ROWS} rows`),
  ];
}
