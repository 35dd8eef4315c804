/** Reads a stream of a run: the rows that are there, and then those that come, from whichever process. */
import { assertOptions, assertStreamName, type OptionShape, PilotageError, type StreamRow } from '#core';
import { hasEnded, type Journal, runNotFound } from '#journal';
import { keptAlive } from './follow.ts';
import type { RunHost } from './run-host.ts';

export interface RowOptions {
  /** The number of the first row, from 1. Default 1. */
  readonly from?: number;
  /** False: the reader ends with the rows that are there, and waits for none. Default true. */
  readonly follow?: boolean;
  /** Ends the stream when it is aborted. */
  readonly signal?: AbortSignal;
}

const OPTIONS: OptionShape<RowOptions> = { from: 'whole?', follow: 'flag?', signal: 'signal?' };
const PAGE = 500;

interface StreamName {
  readonly run: string;
  readonly name: string;
}

/** @throws PilotageError `invalid_config`, `stream_refused`; the first `next()` also `run_not_found`. */
export function readStream(
  { deps: { journal, clock }, fleet }: RunHost,
  { run, name }: StreamName,
  options: RowOptions,
  mayRead: () => Promise<void> | undefined,
): AsyncGenerator<StreamRow, void> {
  assertOptions('stream', options, OPTIONS);
  assertStreamName(name);
  const { from = 1 } = options;
  if (from < 1) {
    throw new PilotageError('invalid_config', `The option from of stream is ${from}; rows are numbered from 1.`);
  }
  const waiting = (news: Promise<void>): Promise<void> => fleet.waiting(run, keptAlive(news, clock));
  return (async function* rows() {
    await mayRead();
    yield* followRows({ journal, waiting }, { run, name }, options);
  })();
}

/** Where a stream is read, and how its reader waits for what comes. */
interface StreamSource {
  readonly journal: Pick<Journal, 'get' | 'watch' | 'streams'>;
  waiting(news: Promise<void>): Promise<void>;
}

/** The rows that are there, and with `follow` those that come until the stream is closed or the run has ended. @throws PilotageError `run_not_found`. */
export async function* followRows(
  { journal, waiting }: StreamSource,
  { run, name }: StreamName,
  { from = 1, follow = true, signal }: RowOptions,
): AsyncGenerator<StreamRow, void> {
  let next = from;
  let isDirty = true;
  let wake: (() => void) | undefined;
  const look = (): void => {
    isDirty = true;
    wake?.();
  };
  const stop = journal.watch(run, look);
  signal?.addEventListener('abort', look);
  try {
    while (signal?.aborted !== true) {
      isDirty = false;
      // Before the rows are read: the last of them are stored before the run ends.
      const record = await journal.get(run);
      if (record === undefined) throw runNotFound(run);
      const { rows, closed } = await journal.streams.read(run, name, next, PAGE);
      yield* rows;
      next += rows.length;
      if (rows.length === PAGE) continue;
      if (closed || hasEnded(record.status) || !follow) return;
      if (isDirty) continue;
      const news = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await waiting(news);
      wake = undefined;
    }
  } finally {
    signal?.removeEventListener('abort', look);
    stop();
  }
}
