/** Whether the judges of schedules, sessions, undo and streams notice what they are to notice. */
import { describe, expect, it } from 'vitest';
import type { Entry } from '#pilotage/state';
import type { LedgerLine } from '../double-act/ledger.ts';
import { type ScheduleId, TICK } from './calendar.ts';
import { ScheduleTestimony, scheduleProblems } from './judge-schedules.ts';
import { StreamTestimony, streamProblems } from './judge-streams.ts';
import { type TalkStored, TalkTestimony, talkProblems } from './judge-talk.ts';
import { undoProblems } from './judge-undo.ts';
import { ROWS } from './streaming.ts';
import { UNDOABLE, undoingOf } from './undoing.ts';
import { machineMs } from './words.ts';

const line = (what: LedgerLine['what'], run: string, subject: string): LedgerLine => ({
  ...{ what, tool: TICK, subject, args: {}, run, key: `${run}/0.0`, pid: 1, attempt: run, at: 1 },
});

describe('schedules', () => {
  const FIRST = Math.ceil((Date.now() - 60_000) / 2_000) * 2_000;
  const atOf = (ms: number): number => ms + machineMs() - Date.now();
  const timeOf = (n: number): number => FIRST + n * 2_000;
  const runOf = (id: ScheduleId, n: number): string => `schedule_${id}_${n}`;

  interface Played {
    readonly heard: ScheduleTestimony;
    readonly lines: LedgerLine[];
  }
  const tick = ({ heard, lines }: Played, id: ScheduleId, n: number, run = runOf(id, n)): void => {
    const subject = `${id} ${new Date(timeOf(n)).toISOString()}`;
    lines.push(line('entered', run, subject), line('done', run, subject));
    heard.begun.set(run, atOf(timeOf(n)));
    heard.asked.set(run, atOf(timeOf(n)));
    heard.finished.set(run, atOf(timeOf(n) + 100));
  };
  /** Four fire times of the schedule, of which one may be left out. */
  const played = (id: ScheduleId, without?: number): Played => {
    const all: Played = { heard: new ScheduleTestimony(), lines: [] };
    all.heard.begins.set(id, FIRST - 1);
    all.heard.ends.set(id, timeOf(3) + 1);
    for (let n = 0; n < 4; n += 1) if (n !== without) tick(all, id, n);
    return all;
  };
  const wrong = ({ heard, lines }: Played): Record<string, number> => {
    const { lost, twice, wrong: other } = scheduleProblems(heard, lines);
    return { lost: lost.length, twice: twice.length, wrong: other.length };
  };
  const NONE = { lost: 0, twice: 0, wrong: 0 };

  it('finds nothing wrong where each fire time has its run, or was left out by a pause', () => {
    expect(wrong(played('queue'))).toEqual(NONE);
    const paused = played('queue', 2);
    paused.heard.gaps.push({ id: 'queue', why: 'paused', from: timeOf(2), to: timeOf(3) });
    expect(wrong(paused)).toEqual(NONE);
  });

  it('misses a fire time without a reason, also where only another catchUp would be one', () => {
    const left = played('queue', 2);
    expect(wrong(left)).toEqual({ ...NONE, lost: 1 });
    left.heard.gaps.push({ id: 'queue', why: 'leapt', from: timeOf(2), to: timeOf(3) });
    expect(wrong(left)).toEqual({ ...NONE, lost: 1 });
  });

  it('finds two runs of one fire time, runs at none of them, and triggers that are gone', () => {
    const twice = played('queue');
    tick(twice, 'queue', 1, 'schedule_queue_again');
    expect(wrong(twice)).toEqual({ ...NONE, twice: 1 });
    const untold = played('queue');
    untold.lines.push(line('done', 'schedule_queue_x', `queue ${new Date(FIRST + 17).toISOString()}`));
    expect(wrong(untold)).toEqual({ ...NONE, twice: 1 });
    untold.heard.triggersTold.set('queue', 1);
    expect(wrong(untold)).toEqual(NONE);
    untold.heard.triggered.add('schedule_queue_y');
    expect(wrong(untold)).toEqual({ ...NONE, lost: 1 });
  });

  it('takes a run under way for a reason, and nothing else that a process says', () => {
    const skipped = (at: number): Played => {
      const all = played('skip');
      // The schedule fires each second: these are the times between.
      for (let n = 0; n < 4; n += 1) {
        const from = timeOf(n) + 1_000;
        const look = n === 2 ? at : timeOf(n) + 50;
        all.heard.passed.push({
          ...{ id: 'skip', from, to: from + 1_000, seenAt: atOf(look), at: atOf(look), wallMs: from },
        });
      }
      return all;
    };
    expect(wrong(skipped(timeOf(2) + 50))).toEqual(NONE);
    expect(wrong(skipped(timeOf(2) + 1_000))).toEqual({ ...NONE, lost: 1 });
  });

  it('finds what is begun early, while the schedule rests, or in the middle of the last run', () => {
    const early = played('queue');
    early.heard.begun.set(runOf('queue', 3), atOf(timeOf(2)));
    expect(wrong(early)).toEqual({ ...NONE, wrong: 1 });
    early.heard.shifts.push({ ms: 5_000, at: atOf(timeOf(1)) });
    expect(wrong(early)).toEqual(NONE);
    const resting = played('queue');
    resting.heard.rests.push({ id: 'queue', from: atOf(timeOf(1) - 10), to: atOf(timeOf(1) + 10) });
    expect(wrong(resting)).toEqual({ ...NONE, wrong: 1 });
    const { heard, lines } = played('queue');
    const [first = [], second = []] = [lines.slice(0, 2), lines.slice(2, 4)];
    const mixed = [first[0], second[0], first[1], second[1], ...lines.slice(4)].filter((one) => one !== undefined);
    expect(wrong({ heard, lines: mixed })).toEqual({ ...NONE, wrong: 1 });
  });
});

describe('the session of a schedule', () => {
  const AT = 1_000_000_000_000;
  const subjectOf = (n: number): string => `talk ${new Date(AT + n * 2_000).toISOString()}`;
  const started = (n: number, id = `fire ${n}`): Entry =>
    ({
      ...{ kind: 'started', seq: 1, at: 1, turn: { messages: [{ id }] } },
      schedule: { id: 'talk', at: AT + n * 2_000 },
    }) as unknown as Entry;
  const steered = (id: string): Entry =>
    ({ kind: 'control', seq: 2, at: 1, applied: true, control: { turnMessage: { id } } }) as unknown as Entry;
  const stored = (
    order: readonly number[] = [0, 1, 2],
  ): TalkStored & { turns: { run: string; entries: Entry[] }[] } => ({
    turns: order.map((n) => ({ run: `run_${n}`, entries: [started(n)] })),
    history: ['run_2', 'run_1', 'run_0'],
  });
  const heard = (): TalkTestimony => {
    const all = new TalkTestimony();
    for (const n of [0, 1, 2]) all.sent.add(`run_${n}`);
    return all;
  };
  const LINES = [0, 1, 2].flatMap((n) => [
    line('entered', `run_${n}`, subjectOf(n)),
    line('done', `run_${n}`, subjectOf(n)),
  ]);
  const wrong = (of: TalkTestimony, lines: readonly LedgerLine[], what: TalkStored): Record<string, number> => {
    const problems = talkProblems(of, lines, what);
    return { lost: problems.lost.length, twice: problems.twice.length, wrong: problems.wrong.length };
  };
  const NONE = { lost: 0, twice: 0, wrong: 0 };

  it('finds nothing wrong where each message is in one turn, and one turn comes after the other', () => {
    expect(wrong(heard(), LINES, stored())).toEqual(NONE);
    const said = heard();
    said.spoken.set('word', 'run_1');
    const with1 = stored();
    with1.turns[1]?.entries.push(steered('word'));
    expect(wrong(said, LINES, with1)).toEqual(NONE);
    with1.turns[2]?.entries.push(steered('word'));
    expect(wrong(said, LINES, with1)).toEqual({ ...NONE, twice: 1 });
  });

  it('misses turns, messages, and what the history does not have', () => {
    const gone = stored();
    gone.turns.pop();
    expect(wrong(heard(), LINES.slice(0, 4), gone)).toEqual({ ...NONE, lost: 1 });
    const said = heard();
    said.spoken.set('word', 'run_1');
    expect(wrong(said, LINES, stored())).toEqual({ ...NONE, lost: 1 });
    expect(wrong(heard(), LINES, { ...stored(), history: ['run_1', 'run_0'] })).toEqual({ ...NONE, lost: 1 });
    expect(wrong(heard(), LINES, { ...stored(), history: ['run_2', 'run_1', 'run_1', 'run_0'] })).toEqual({
      ...NONE,
      twice: 1,
    });
  });

  it('finds turns that are begun in the middle of others, out of their order, or for another fire time', () => {
    const [first, second] = LINES;
    if (first === undefined || second === undefined) throw new Error('There are lines.');
    expect(wrong(heard(), [first, ...LINES.slice(2, 4), second, ...LINES.slice(4)], stored())).toEqual({
      ...NONE,
      wrong: 1,
    });
    expect(wrong(heard(), LINES, stored([1, 0, 2]))).toEqual({ ...NONE, wrong: 1 });
    const other = [line('entered', 'run_0', subjectOf(9)), line('done', 'run_0', subjectOf(9)), ...LINES.slice(2)];
    expect(wrong(heard(), other, stored())).toEqual({ ...NONE, wrong: 1 });
  });
});

describe('undo', () => {
  const RUN = 'run_1_1';
  const SUBJECTS = UNDOABLE.map(({ subject }) => subject);
  const entries = (reason: string): Entry[] =>
    [
      ...UNDOABLE.flatMap(({ tool, subject }, step) => [
        { kind: 'moved', step, decision: { kind: 'call_tool', tool, args: { subject } } },
        { kind: 'call_ended', step, call: 0, attempts: 1, outcome: { kind: 'value', value: {} } },
      ]),
      { kind: 'finished', reason },
    ].map((entry, index) => ({ ...entry, seq: index + 1, at: 1 }) as unknown as Entry);
  const judged = (undone: readonly string[], { reason = 'no_path', cancels = 0 } = {}): string[] => {
    const ledger = [...SUBJECTS, ...undone].map((subject) => line('done', RUN, subject));
    return undoProblems({ run: RUN, entries: entries(reason), ledger, cancels });
  };
  const ALL = SUBJECTS.map(undoingOf).reverse();

  it('finds nothing wrong where all is undone in reverse, or where the goal is reached', () => {
    expect(judged(ALL)).toEqual([]);
    expect(judged([], { reason: 'goal' })).toEqual([]);
    expect(judged(ALL.slice(0, 1), { reason: 'cancelled', cancels: 2 })).toEqual([]);
    expect(judged(ALL.slice(0, 1), { cancels: 1 })).toEqual([]);
  });

  it.each([
    ['the order in which it was done', [...ALL].reverse(), {}],
    ['something that is left', ALL.slice(1), {}],
    ['something that is left after one cancel', ALL.slice(1), { reason: 'cancelled', cancels: 1 }],
    ['an undoing where the goal is reached', ALL.slice(0, 1), { reason: 'goal' }],
  ])('finds %s', (_, undone, more) => expect(judged(undone, more)).not.toEqual([]));
});

describe('streams', () => {
  const rowsOf = (by: string, count = ROWS): { by: string; n: number }[] =>
    Array.from({ length: count }, (_, index) => ({ by, n: index + 1 }));
  const ended = [{ kind: 'call_ended', outcome: { kind: 'value', value: { by: 'a' } } }] as unknown as Entry[];

  interface Rows {
    readonly written?: { by: string; n: number }[];
    readonly stored?: { by: string; n: number }[];
    readonly given?: { by: string; n: number }[];
    readonly hasEnded?: boolean;
  }
  const judged = ({ written = rowsOf('a'), stored = written, given = stored, hasEnded = true }: Rows): string[] => {
    const heard = new StreamTestimony();
    for (const row of written) heard.meant.add(JSON.stringify(row));
    heard.acknowledged.push(...written.map((row) => JSON.stringify(row)));
    const numbered = (rows: typeof written) => rows.map((value, index) => ({ index: index + 1, value }));
    heard.read.set('one', numbered(given));
    if (hasEnded) heard.ended.add('one');
    return streamProblems('run_1', heard, numbered(stored), ended);
  };
  const CUT_OFF = [...rowsOf('b', 3), ...rowsOf('a')];

  it('finds nothing wrong with whole streams, also behind an attempt that was cut off', () => {
    expect(judged({})).toEqual([]);
    expect(judged({ written: CUT_OFF })).toEqual([]);
  });

  it.each<[string, Rows]>([
    ['a row that is gone', { stored: rowsOf('a').filter(({ n }) => n !== 5) }],
    ['a row that is there twice', { stored: [...rowsOf('a'), { by: 'a', n: ROWS }] }],
    ['rows in another order', { stored: [...rowsOf('a')].reverse() }],
    ['a row that nobody wrote', { stored: [...rowsOf('a'), { by: 'c', n: 1 }] }],
    ['rows that a reader was not given', { given: rowsOf('a', ROWS - 1) }],
    ['rows that a reader was given otherwise', { written: CUT_OFF, given: [...rowsOf('a'), ...rowsOf('b', 3)] }],
    ['a reader that does not end', { hasEnded: false }],
  ])('finds %s', (_, rows) => expect(judged(rows)).not.toEqual([]));
});
