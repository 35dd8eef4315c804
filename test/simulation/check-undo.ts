/** What was done, and what was undone of it, by the entries: the account of a run that unwinds balances, in its order, and its ending says so. */
import { branchesOf, type Entry, isJsonObject, type Json } from '#core';
import { type EndedRun, endingOf, entriesOf, ownEntries, startOf } from './ended-run.ts';
import { hasToUndo, undoneTask } from './goals-by-hand.ts';
import type { Ledger } from './ledger.ts';
import { CARRIED } from './tools.ts';
import { UNDOABLE_KINDS } from './undoable-tools.ts';

type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

type Runs = ReadonlyMap<string, EndedRun>;

interface Made {
  readonly place: string;
  readonly seq: number;
  /** A task has carried it out, and nothing below that can be undone. */
  readonly mayStay: boolean;
}

/** Reasons that leave what was done as it is. */
const KEEPS: ReadonlySet<string> = new Set(['goal', 'continued', 'handed_over']);

export function checkUndo(run: EndedRun, runs: Runs, ledger: Ledger): void {
  const wrong = (what: string): void => ledger.violated('undo', what, run.id);
  const [begun, ...more] = entriesOf(run, 'unwinding');
  const undoing = entriesOf(run, 'moved').filter(({ undoes }) => undoes !== undefined);
  if (more.length > 0) wrong('it unwinds twice');
  const ending = endingOf(run);
  if (startOf(run)?.undo === undefined || ending === undefined) {
    if (begun !== undefined || undoing.length > 0) wrong('it undoes what nobody wants undone');
    return;
  }
  const made = callsMade(run, runs);
  const isKept = ending.kind === 'finished' && KEEPS.has(ending.reason);
  if (isKept) {
    if (begun !== undefined) wrong('it has reached its goal, and unwinds');
    return;
  }
  const report = reportOf(ending);
  if (begun === undefined) {
    const left = made.filter(({ mayStay }) => !mayStay);
    if (left.length > 0 && report['stopped'] !== 'cancelled') wrong(`${left.length} calls are not undone`);
    return;
  }
  const early = undoing.find(({ seq }) => seq < begun.seq);
  if (early !== undefined) wrong(`step ${early.step} undoes before that is recorded`);
  const order = undoing.map(({ undoes }) => (undoes === undefined ? '' : `${undoes.step}.${undoes.call}`));
  const reported = new Set([...order, ...placesIn(report, 'left')]);
  const wanted = made
    .filter(({ place, mayStay }) => !mayStay || reported.has(place))
    .sort((one, other) => other.seq - one.seq)
    .map(({ place }) => place);
  const isWhole = report['stopped'] === undefined;
  const expected = isWhole ? wanted : wanted.slice(0, order.length);
  if (order.join(' ') !== expected.join(' ')) wrong(`it undoes ${order.join(' ')}, and has made ${wanted.join(' ')}`);
  checkReport(run, runs, undoing, wanted.slice(order.length), report, ledger, wrong);
  if (JSON.stringify(withoutReport(ending)) !== JSON.stringify(withoutReport(begun.ending)))
    wrong('it ends otherwise than it was to end');
}

/** Its own calls that have a value, and whose tools say how they are undone. */
function callsMade(run: EndedRun, runs: Runs): Made[] {
  const moves = new Map(entriesOf(run, 'moved').map((move) => [move.step, move]));
  return valuesOf(run).flatMap(({ step, call, seq }) => {
    const move = moves.get(step);
    if (move === undefined || move.undoes !== undefined) return [];
    const tool = branchesOf(move.decision)[call]?.tool ?? '';
    const place = `${step}.${call}`;
    if (tool in CARRIED) {
      const spawned = entriesOf(run, 'spawned').find((entry) => entry.step === step && entry.call === call);
      const task = runs.get(spawned?.task ?? '');
      const carried = hasToUndo(task, () => true);
      const isDeep = hasToUndo(task, (below) => callsMade(below, runs).some(({ mayStay }) => !mayStay));
      return carried ? [{ place, seq, mayStay: !isDeep }] : [];
    }
    return UNDOABLE_KINDS[tool]?.undoneBy === undefined ? [] : [{ place, seq, mayStay: false }];
  });
}

function reportOf(ending: Of<'finished'> | Of<'failed'>): Readonly<Record<string, Json>> {
  const data: Json | undefined = ending.kind === 'failed' ? ending.error.data : ending.metadata;
  const undo = isJsonObject(data) ? data['undo'] : undefined;
  return isJsonObject(undo) ? undo : {};
}

/** What stands in the ending is what has happened: to each call that undid another in the journal, and in the world. */
function checkReport(
  run: EndedRun,
  runs: Runs,
  undoing: readonly Of<'moved'>[],
  left: readonly string[],
  report: Readonly<Record<string, Json>>,
  ledger: Ledger,
  wrong: (what: string) => void,
): void {
  const places = (list: string): string[] => placesIn(report, list);
  const done = new Set(valuesOf(run).map(({ step }) => step));
  const said: Record<'undone' | 'undo_failed', string[]> = { undone: [], undo_failed: [] };
  for (const move of undoing) {
    const { step, undoes } = move;
    if (undoes === undefined) continue;
    const isDone = done.has(step);
    const task = undoneTask(move);
    said[isDone ? 'undone' : 'undo_failed'].push(`${undoes.step}.${undoes.call}`);
    if (task !== undefined) {
      checkTaskUndone(run, runs.get(task), isDone, report['stopped'] === undefined, wrong);
      continue;
    }
    const happened = [...ledger.effects].some(([key, times]) => key.endsWith(`${run.id}/${step}.0`) && times > 0);
    if (isDone && !happened) wrong(`step ${step} says that it has undone ${undoes.step}.${undoes.call}, and has not`);
  }
  for (const list of ['undone', 'undo_failed'] as const)
    if (places(list).join() !== said[list].join())
      wrong(`its ending says ${list} ${places(list).join()}, and it is ${said[list].join()}`);
  if (report['stopped'] !== undefined && places('left').join() !== left.join())
    wrong(`its ending says that ${places('left').join()} are left, and it is ${left.join()}`);
}

function placesIn(report: Readonly<Record<string, Json>>, list: string): string[] {
  return ((report[list] ?? []) as { readonly step: number; readonly call: number }[]).map(
    ({ step, call }) => `${step}.${call}`,
  );
}

/** A task is undone when it has undone all that it did, and for nobody else than the run above it. */
function checkTaskUndone(
  run: EndedRun,
  task: EndedRun | undefined,
  isDone: boolean,
  isWhole: boolean,
  wrong: (what: string) => void,
): void {
  const begun = task && entriesOf(task, 'unwinding')[0];
  const ending = task && endingOf(task);
  if (task === undefined || startOf(task)?.task?.parent !== run.id) {
    wrong(`it has ${task?.id ?? 'nobody'} undo what it did, which is no task of it`);
    return;
  }
  if (begun === undefined || ending === undefined) {
    if (isDone || isWhole)
      wrong(`it has ${task.id} undo what it did, says that it is ${isDone ? '' : 'not '}done, and it never began`);
    return;
  }
  const report = reportOf(ending);
  const isClean = report['stopped'] === undefined && placesIn(report, 'undo_failed').length === 0;
  if (isDone && !isClean) wrong(`it says that ${task.id} has undone what it did, and not all of it was`);
  const hasUnsure = placesIn(report, 'unsure').length > 0;
  if (!isDone && isClean && isWhole && !hasUnsure)
    wrong(`${task.id} has undone what it did, and it says that it has not`);
}

/** Calls that have come to a value by themselves, or of which somebody has said so when they were in doubt. */
function valuesOf(run: EndedRun): { readonly step: number; readonly call: number; readonly seq: number }[] {
  const entries = ownEntries(run);
  return entries.flatMap((entry) => {
    const { seq } = entry;
    if (entry.kind === 'call_ended') {
      const { step, call, outcome, attempts, reuses } = entry;
      // Without an attempt nothing was done.
      return outcome.kind === 'value' && attempts > 0 && reuses === undefined ? [{ step, call, seq }] : [];
    }
    if (entry.kind !== 'resumed' || entry.verdict !== 'settle' || entry.outcome?.kind !== 'value') return [];
    const paused = entries.find((one): one is Of<'paused'> => one.kind === 'paused' && one.token === entry.token);
    const { step, call } = paused ?? {};
    return step === undefined || call === undefined ? [] : [{ step, call, seq }];
  });
}

function withoutReport(ending: Of<'finished'> | Of<'failed'> | Of<'unwinding'>['ending']): unknown {
  if (ending.kind === 'failed') return [ending.kind, ending.error.code];
  return [ending.kind, ending.reason, ending.payload ?? null];
}
