/** What must hold when everybody is well again, judged by what was acknowledged, by the ledger, and by the journal at last. */

import { local, PilotageError } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Entry } from '#pilotage/state';
import { foldEntries } from '#state';
import { foldProblems, lostEntries, treeOf } from '#testing';
import { ledgerOf, wholeLedger } from '../double-act/ledger.ts';
import { problemsOf, repeated } from '../double-act/verdict.ts';
import { isTick } from './calendar.ts';
import { type ScheduleCounts, ScheduleTestimony, scheduleProblems } from './judge-schedules.ts';
import { type StreamCounts, StreamTestimony, streamCountsOf, streamProblems } from './judge-streams.ts';
import { type TalkCounts, TalkTestimony, talkIn, talkProblems } from './judge-talk.ts';
import { type UndoCounts, undoCountsOf, undoProblems } from './judge-undo.ts';
import { asksOf, type KindName, undoAsksOf } from './kinds.ts';
import { STREAM } from './streaming.ts';
import { LEASE_MS, PAGE } from './times.ts';
import { type Acknowledged, machineMs } from './words.ts';

/** An effect that is entered later than this after somebody else has claimed the run was not its owner's any more. */
const ENTERS_WITHIN_MS = LEASE_MS + 250;

export interface Claimed {
  readonly pid: number;
  readonly at: number;
  readonly fence: number;
  readonly head: number;
}

/** What was heard of all processes. */
export class Testimony {
  /** Asked for; whether each was acknowledged stands in `acknowledged`. */
  readonly starts: Map<string, KindName> = new Map();
  readonly acknowledged: Set<string> = new Set();
  readonly signals: { readonly run: string; readonly id: string }[] = [];
  /** What has happened outside, by its id. */
  readonly happened: Map<string, string> = new Map();
  /** How many times a run was called off. */
  readonly cancels: Map<string, number> = new Map();
  readonly entries: Map<string, { readonly fence: number; readonly entry: Entry }[]> = new Map();
  readonly claims: Map<string, Claimed[]> = new Map();
  readonly entered: { readonly run: string; readonly key: string; readonly at: number; readonly pid: number }[] = [];

  readonly schedules: ScheduleTestimony = new ScheduleTestimony();
  readonly talk: TalkTestimony = new TalkTestimony();
  readonly #streams = new Map<string, StreamTestimony>();

  streamOf(run: string): StreamTestimony {
    const known = this.#streams.get(run) ?? new StreamTestimony();
    this.#streams.set(run, known);
    return known;
  }

  hear(said: Acknowledged, pid: number): void {
    if (said.said === 'passed') this.schedules.passed.push(said);
    else if (said.said === 'sent') {
      this.talk.sent.add(said.run);
      this.schedules.asked.set(said.run, said.askedAt);
    } else if (said.said === 'rows') {
      this.streamOf(said.run).acknowledged.push(...said.values.map((value) => JSON.stringify(value)));
    } else if (said.said === 'signalled') this.signals.push(said);
    else if (said.said === 'happened') this.happened.set(said.id, said.key);
    else if (said.said === 'claimed') {
      upsert(this.claims, said.run).push({ ...said, pid });
      if (said.head === 0) this.schedules.begun.set(said.run, said.at);
      if (said.askedAt !== undefined) this.schedules.asked.set(said.run, said.askedAt);
    } else {
      for (const entry of said.entries) upsert(this.entries, said.run).push({ fence: said.fence, entry });
      const { kind } = said.entries.at(-1) ?? {};
      if (kind === 'finished' || kind === 'failed') this.schedules.finished.set(said.run, machineMs());
    }
  }
}

function upsert<T>(map: Map<string, T[]>, key: string): T[] {
  const list = map.get(key) ?? [];
  map.set(key, list);
  return list;
}

/** Sentences, by what they are about. All are to be empty. */
export interface Verdict {
  /** Starts, entries and controls that were acknowledged and are gone. */
  readonly lost: string[];
  readonly onceTwice: string[];
  readonly keyedTwice: string[];
  /** Signals of the outside that a wait got twice, or that two waits of a run got of which one had waited for it. */
  readonly signalsTwice: string[];
  /** An append or an effect of a process that the run had been taken from. */
  readonly wrongFences: string[];
  /** A run that neither ended nor waits for somebody. */
  readonly stuck: string[];
  /** A journal that cannot be read, or does not hold together. */
  readonly corrupt: string[];
  /** Effects that nobody asked for, that are missing in a run that says it is done, or of which the journal says that they did not happen. */
  readonly wrongEffects: string[];
  /** What a run has done and did not undo, or did undo otherwise than from the last one to the first. */
  readonly wrongUndo: string[];
  /** Rows of streams that are gone, twice, out of order, or otherwise for a reader than in the store. */
  readonly wrongRows: string[];
  /** Fire times that have no run, and no reason; triggers and runs of schedules that were acknowledged and are gone. */
  readonly firesLost: string[];
  readonly firesTwice: string[];
  /** Fires that come early, or in the middle of the last run where that is forbidden. */
  readonly wrongFires: string[];
}

export const KINDS: readonly (keyof Verdict)[] = [
  'lost',
  'onceTwice',
  'keyedTwice',
  'signalsTwice',
  'wrongFences',
  'stuck',
  'corrupt',
  'wrongEffects',
  'wrongUndo',
  'wrongRows',
  'firesLost',
  'firesTwice',
  'wrongFires',
];

export interface Judged {
  readonly verdict: Verdict;
  /** How many runs ended with which reason, or failed with which code. */
  readonly endings: Readonly<Record<string, number>>;
  readonly undo: UndoCounts;
  readonly streams: StreamCounts;
  readonly schedules: ScheduleCounts;
  readonly talk: TalkCounts;
}

export async function judge(journal: Journal, folder: string, heard: Testimony): Promise<Judged> {
  const verdict: Verdict = {
    lost: [],
    onceTwice: [],
    keyedTwice: [],
    signalsTwice: [],
    wrongFences: wrongEntrances(heard),
    stuck: [],
    corrupt: [],
    wrongEffects: [],
    wrongUndo: [],
    wrongRows: [],
    firesLost: [],
    firesTwice: [],
    wrongFires: [],
  };
  const endings: Record<string, number> = {};
  await judgeSignals(journal, heard, verdict);
  for (const [run, kind] of heard.starts) {
    if ((await journal.get(run)) === undefined) {
      if (heard.acknowledged.has(run)) verdict.lost.push(`The run ${run} was started and is gone.`);
      continue;
    }
    const ending = await judgeRun(journal, folder, heard, run, kind, verdict);
    endings[ending] = (endings[ending] ?? 0) + 1;
  }
  const undo = await judgeUndo(journal, folder, heard, verdict);
  const streams = await judgeStreams(journal, heard, verdict);
  const schedules = await judgeSchedules(journal, folder, heard, verdict);
  const talk = await judgeTalk(journal, folder, heard, verdict);
  return { verdict, endings, undo, streams, schedules, talk };
}

async function judgeRun(
  journal: Journal,
  folder: string,
  heard: Testimony,
  run: string,
  kind: KindName,
  verdict: Verdict,
): Promise<string> {
  const ids = await treeOf(journal, run);
  const tree = [];
  for (const id of ids) {
    try {
      const entries = await journal.read(id);
      verdict.wrongFences.push(...wrongAppends(id, heard));
      verdict.lost.push(...lostIn(id, entries, heard));
      verdict.corrupt.push(...foldProblems(entries).map((problem) => `${id}: ${problem}`));
      tree.push({ entries, state: foldEntries(entries), record: await journal.get(id) });
    } catch (error) {
      const code = PilotageError.is(error) ? error.code : 'untyped';
      verdict.corrupt.push(`${id} cannot be read: ${code}: ${String(error)}`);
      return code;
    }
  }
  const [root] = tree;
  const ending = root?.state.ending ?? null;
  if (root === undefined || ending === null) {
    verdict.stuck.push(`${run} (${kind}) is ${root?.record?.status ?? 'nowhere'}: ${JSON.stringify(root?.record)}`);
    return 'none';
  }
  const wanted = asksOf(kind)(PAGE);
  const asked = [...wanted, ...undoAsksOf(kind)];
  const witness = { cut: 'chaos', ledger: ledgerOf(folder, run), asked, wanted, tree } as const;
  for (const { isKeyed, text } of repeated(witness)) {
    (isKeyed ? verdict.keyedTwice : verdict.onceTwice).push(`${run} (${kind}): ${text}`);
  }
  const { unasked, lost, denied, other } = problemsOf(witness);
  const isTyped = ending.kind === 'failed' && ending.error.code !== '';
  verdict.wrongEffects.push(...[...unasked, ...lost, ...denied].map((problem) => `${run} (${kind}): ${problem}`));
  verdict.corrupt.push(...other.filter((problem) => !(isTyped && problem.startsWith('it ended with'))));
  return ending.kind === 'failed' ? `failed: ${ending.error.code}` : ending.reason;
}

async function judgeUndo(
  journal: Journal,
  folder: string,
  { starts, claims, cancels }: Testimony,
  verdict: Verdict,
): Promise<UndoCounts> {
  const counts = { unwound: 0, unwoundOn: 0 };
  for (const [run, kind] of starts) {
    const entries = kind === 'undoing' ? await readable(journal, run) : [];
    if (entries.length === 0) continue;
    const undoing = { run, entries, ledger: ledgerOf(folder, run), cancels: cancels.get(run) ?? 0 };
    verdict.wrongUndo.push(...undoProblems(undoing));
    const { unwound, unwoundOn } = undoCountsOf(entries, claims.get(run) ?? []);
    counts.unwound += unwound;
    counts.unwoundOn += unwoundOn;
  }
  return counts;
}

async function judgeStreams(journal: Journal, heard: Testimony, verdict: Verdict): Promise<StreamCounts> {
  const counts = { rows: 0, rowsCutOff: 0 };
  for (const [run, kind] of heard.starts) {
    if (kind !== 'streaming' || (await journal.get(run)) === undefined) continue;
    const { rows } = await journal.streams.read(run, STREAM, 1, Number.MAX_SAFE_INTEGER);
    verdict.wrongRows.push(...streamProblems(run, heard.streamOf(run), rows, await readable(journal, run)));
    const { rows: count, rowsCutOff } = streamCountsOf(rows);
    counts.rows += count;
    counts.rowsCutOff += rowsCutOff;
  }
  return counts;
}

async function judgeSchedules(
  journal: Journal,
  folder: string,
  heard: Testimony,
  verdict: Verdict,
): Promise<ScheduleCounts> {
  const ledger = wholeLedger(folder);
  const { lost, twice, wrong, counts } = scheduleProblems(heard.schedules, ledger);
  verdict.firesLost.push(...lost);
  verdict.firesTwice.push(...twice);
  verdict.wrongFires.push(...wrong);
  const isTold = ({ entry }: { readonly entry: Entry }): boolean =>
    entry.kind === 'started' && (entry.schedule ?? entry.turn) !== undefined;
  const told = [...heard.entries].flatMap(([run, all]) => (all.some(isTold) ? [run] : []));
  const known = [...told, ...heard.talk.sent, ...ledger.filter(isTick).map(({ run }) => run)];
  for (const run of new Set(known)) {
    const entries = await readable(journal, run);
    verdict.firesLost.push(...lostIn(run, entries, heard));
    verdict.wrongFences.push(...wrongAppends(run, heard));
    verdict.corrupt.push(...foldProblems(entries).map((problem) => `${run}: ${problem}`));
    const end = entries.at(-1);
    if (end?.kind !== 'finished' || end.reason !== 'goal') verdict.stuck.push(`${run} has not come to its end`);
    const done = ledger.filter((line) => line.run === run && line.what === 'done').length;
    if (done !== 1) verdict.onceTwice.push(`${run} has done its one effect ${done} times`);
  }
  return counts;
}

async function judgeTalk(journal: Journal, folder: string, { talk }: Testimony, verdict: Verdict): Promise<TalkCounts> {
  const { lost, twice, wrong, counts } = talkProblems(talk, wholeLedger(folder), await talkIn(journal));
  verdict.firesLost.push(...lost);
  verdict.firesTwice.push(...twice);
  verdict.wrongFires.push(...wrong);
  return counts;
}

/** What has happened outside came to a wait, once, or is kept for the next. */
async function judgeSignals(journal: Journal, heard: Testimony, verdict: Verdict): Promise<void> {
  const entries = (await Promise.all([...heard.starts.keys()].map((run) => readable(journal, run)))).flat();
  const { tenant } = local('ana');
  for (const [id, key] of heard.happened) {
    const known = entries.filter(
      (entry) =>
        (entry.kind === 'wait_ended' || entry.kind === 'event_passed') && 'signal' in entry && entry.signal === id,
    );
    const ends = known.filter(({ kind }) => kind === 'wait_ended');
    if (ends.length > 1) verdict.signalsTwice.push(`The signal ${id} for ${key} has ended ${ends.length} waits.`);
    if (
      ends.length > 0 ||
      known.some((entry) => entry.kind === 'event_passed' && entry.error.code === 'payload_invalid')
    )
      continue;
    const kept = await journal.events.list({ tenant, key });
    if (!kept.some((one) => one.id === id)) verdict.lost.push(`The signal ${id} for ${key} was accepted and is gone.`);
  }
}

async function readable(journal: Journal, run: string): Promise<readonly Entry[]> {
  return (await journal.get(run)) === undefined ? [] : journal.read(run).catch(() => []);
}

function lostIn(run: string, entries: readonly Entry[], heard: Testimony): string[] {
  const text = JSON.stringify(entries);
  const signals = heard.signals.filter((signal) => signal.run === run && !text.includes(signal.id));
  const acknowledged = (heard.entries.get(run) ?? []).map(({ entry }) => entry);
  return [
    ...lostEntries(acknowledged, entries).map((problem) => `${run}: ${problem}`),
    ...signals.map(({ id }) => `${run}: the control ${id} was stored, and no entry knows it.`),
  ];
}

/** Entries that landed behind the claim of somebody else. */
function wrongAppends(run: string, heard: Testimony): string[] {
  const claims = heard.claims.get(run) ?? [];
  return (heard.entries.get(run) ?? []).flatMap(({ fence, entry }) => {
    const newer = claims.find((claim) => claim.fence > fence && claim.head < entry.seq);
    if (newer === undefined) return [];
    return [
      `${run}: entry ${entry.seq} landed under fence ${fence}, and fence ${newer.fence} began at ${newer.head + 1}.`,
    ];
  });
}

/** Effects that were entered when the run had long been somebody else's. */
function wrongEntrances({ entered, claims }: Testimony): string[] {
  return entered.flatMap(({ run, key, at, pid }) => {
    const before = (claims.get(run) ?? []).filter((claim) => claim.at < at - ENTERS_WITHIN_MS);
    const owner = before.toSorted((a, b) => a.fence - b.fence).at(-1);
    const own = (claims.get(run) ?? []).some((claim) => claim.pid === pid && claim.fence >= (owner?.fence ?? 0));
    if (owner === undefined || own) return [];
    const late = Math.round(at - owner.at);
    return [`${run}: ${key} was entered ${late} ms after process ${owner.pid} had claimed the run.`];
  });
}
