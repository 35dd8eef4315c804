/**
 * Which run each start under a key is to be, replayed by hand in the order in which the store was asked, with one rule for each kind. And of all
 * that begin later: not before their time.
 */
import type { StartKey } from '#core';
import { type EndedRun, startOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import type { StartAsked } from './start-ledger.ts';

type Runs = ReadonlyMap<string, EndedRun>;
type Wrong = (what: string) => void;

export function checkStarts(runs: Runs, isInOrder: boolean, ledger: Ledger): void {
  for (const run of runs.values()) checkTime(run, ledger);
  // Where it is not known in which order the store was asked, nobody can say what it was to answer.
  if (!isInOrder) return;
  const asked = [...ledger.starts].sort((one, other) => one.order - other.order);
  const named = Map.groupBy(asked, ({ tenant, key }) => JSON.stringify([tenant, key.kind, key.key]));
  const known = new Set<string>();
  for (const starts of named.values()) {
    const [first] = starts;
    if (first === undefined) continue;
    const newest = new Map<string, Newest>();
    const expects = EXPECTS[first.key.kind](runs, newest);
    for (const start of starts) {
      const { run, answer, key } = start;
      const wrong: Wrong = (what) => ledger.violated('starts', `${key.kind} ${key.key}: ${what}`, run);
      if (known.has(run)) {
        if (!('run' in answer) || answer.run !== run)
          wrong(`it was there, and the answer is ${JSON.stringify(answer)}`);
        continue;
      }
      const wanted = expects(start, wrong);
      if (JSON.stringify(wanted) !== JSON.stringify(answer))
        wrong(`the answer is ${JSON.stringify(answer)}, and by hand ${JSON.stringify(wanted)}`);
      if ('run' in answer && answer.run === run) known.add(run);
    }
    if (first.key.kind === 'singleton') checkAlone(starts, runs, ledger);
    for (const [id, { query, begins }] of newest) {
      const stored = startOf(runs.get(id) ?? { entries: [] });
      if (stored?.query !== query || stored.startsAt !== Math.ceil(begins))
        ledger.violated(
          'starts',
          `it works by ${stored?.query} from ${stored?.startsAt}, and by hand by ${query} from ${begins}`,
          id,
        );
    }
  }
}

type Answer = StartAsked['answer'];
/** What the last start of a burst has said, and when it is to begin. */
interface Newest {
  readonly query: string;
  readonly begins: number;
}

/** Says what the answer to the next start is. */
type Expects = (runs: Runs, newest: Map<string, Newest>) => (start: StartAsked, wrong: Wrong) => Answer;

const EXPECTS: Readonly<Record<StartKey['kind'], Expects>> = {
  singleton: (runs) => {
    let last: string | undefined;
    return ({ run, order }) => {
      if (last !== undefined && isUnderWay(runs.get(last), order)) return { run: last };
      last = run;
      return { run };
    };
  },
  debounce: (runs, newest) => {
    let burst: { readonly run: string; readonly since: number; readonly owner: string; begins: number } | undefined;
    return ({ run, order, at, owner, key, query }) => {
      if (key.kind !== 'debounce') return { run };
      const { waitMs, maxWaitMs = Number.POSITIVE_INFINITY } = key;
      const isOpen = burst !== undefined && at < burst.begins && !isTold(runs.get(burst.run), order);
      if (isOpen && burst !== undefined && burst.owner !== owner) return { code: 'scope_mismatch' };
      const since = isOpen && burst !== undefined ? burst.since : at;
      const begins = Math.max(at, Math.min(at + waitMs, since + maxWaitMs));
      burst = { run: isOpen && burst !== undefined ? burst.run : run, since, owner, begins };
      newest.set(burst.run, { query, begins });
      return { run: burst.run };
    };
  },
  throttle: (runs) => {
    const begun: number[] = [];
    return ({ run, at, key }, wrong) => {
      if (key.kind !== 'throttle') return { run };
      const { limit, perMs } = key;
      const begins = startOf(runs.get(run) ?? { entries: [] })?.startsAt ?? at;
      const last = begun.at(-1) ?? at;
      if (begins < last) wrong(`it begins at ${begins}, before what came first, at ${last}`);
      const within = begun.filter((time) => time > begins - perMs).length;
      if (within >= limit) wrong(`${within} others begin within ${perMs} ms of it, and ${limit} may`);
      const soonest = Math.max(at, last, (begun.at(-limit) ?? Number.NEGATIVE_INFINITY) + perMs);
      if (begins > Math.ceil(soonest)) wrong(`it begins at ${begins}, and may at ${soonest}`);
      begun.push(begins);
      return { run };
    };
  },
  rate: () => {
    const begun: number[] = [];
    return ({ run, at, key }) => {
      if (key.kind !== 'rate') return { run };
      const { limit, perMs } = key;
      const within = begun.filter((time) => time > at - perMs);
      // Stores say whole milliseconds; a clock that drifts shows parts of one.
      const allowedAt = Math.ceil((within.at(-limit) ?? at) + perMs);
      if (within.length >= limit) return { code: 'rate_limited', allowedAt };
      begun.push(at);
      return { run };
    };
  },
};

function isUnderWay(run: EndedRun | undefined, order: number): boolean {
  return run !== undefined && (run.endedAt === undefined || run.endedAt > order);
}

/** Somebody has said something to it by then. */
function isTold(run: EndedRun | undefined, order: number): boolean {
  return [...(run?.messages.values() ?? [])].some((stored) => stored.order < order);
}

/** No two of them at any time. */
function checkAlone(starts: readonly StartAsked[], runs: Runs, ledger: Ledger): void {
  const own = [...new Set(starts.flatMap(({ answer }) => ('run' in answer ? [answer.run] : [])))];
  const spans = own.flatMap((id) => {
    const run = runs.get(id);
    return run === undefined ? [] : [{ id, from: run.landed[0] ?? 0, until: run.endedAt ?? Number.POSITIVE_INFINITY }];
  });
  spans.sort((one, other) => one.from - other.from);
  for (const [index, { id, from }] of spans.entries()) {
    const before = spans.slice(0, index).find(({ until }) => until > from);
    if (before !== undefined) ledger.violated('starts', `${before.id} is under way beside it under its key`, id);
  }
}

/** Nothing of it is decided or done before its time, by the store's clock. */
function checkTime(run: EndedRun, ledger: Ledger): void {
  const { startsAt } = startOf(run) ?? {};
  if (startsAt === undefined || startOf(run)?.fork !== undefined) return;
  const moved = run.entries.find(({ kind }) => kind === 'moved');
  const landed =
    moved && ledger.appends.find(({ run: id, from, to }) => id === run.id && from <= moved.seq && moved.seq <= to);
  if (landed !== undefined && landed.at < startsAt)
    ledger.violated('starts', `it begins at ${landed.at}, and its time is ${startsAt}`, run.id);
}
