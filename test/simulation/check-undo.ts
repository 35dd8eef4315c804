/** What was done, and what was undone of it, by the entries: the account of a run that unwinds balances, in its order, and its ending says so. */
import { branchesOf, type Entry, isJsonObject, type Json } from '#core';
import { type EndedRun, endingOf, entriesOf, ownEntries, startOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import { UNDOABLE_KINDS } from './undoable-tools.ts';

type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

interface Made {
  readonly place: string;
  readonly seq: number;
}

/** Reasons that leave what was done as it is. */
const KEEPS: ReadonlySet<string> = new Set(['goal', 'continued', 'handed_over']);

export function checkUndo(run: EndedRun, ledger: Ledger): void {
  const wrong = (what: string): void => ledger.violated('undo', what, run.id);
  const [begun, ...more] = entriesOf(run, 'unwinding');
  const undoing = entriesOf(run, 'moved').filter(({ undoes }) => undoes !== undefined);
  if (more.length > 0) wrong('it unwinds twice');
  const ending = endingOf(run);
  if (startOf(run)?.undo === undefined || ending === undefined) {
    if (begun !== undefined || undoing.length > 0) wrong('it undoes what nobody wants undone');
    return;
  }
  const made = callsMade(run);
  const isKept = ending.kind === 'finished' && KEEPS.has(ending.reason);
  if (isKept) {
    if (begun !== undefined) wrong('it has reached its goal, and unwinds');
    return;
  }
  const report = reportOf(ending);
  if (begun === undefined) {
    if (made.length > 0 && report['stopped'] !== 'cancelled') wrong(`${made.length} calls are not undone`);
    return;
  }
  const early = undoing.find(({ seq }) => seq < begun.seq);
  if (early !== undefined) wrong(`step ${early.step} undoes before that is recorded`);
  const order = undoing.map(({ undoes }) => (undoes === undefined ? '' : `${undoes.step}.${undoes.call}`));
  const wanted = made.sort((one, other) => other.seq - one.seq).map(({ place }) => place);
  const isWhole = report['stopped'] === undefined;
  const expected = isWhole ? wanted : wanted.slice(0, order.length);
  if (order.join(' ') !== expected.join(' ')) wrong(`it undoes ${order.join(' ')}, and has made ${wanted.join(' ')}`);
  checkReport(run, undoing, wanted.slice(order.length), report, ledger, wrong);
  if (JSON.stringify(withoutReport(ending)) !== JSON.stringify(withoutReport(begun.ending)))
    wrong('it ends otherwise than it was to end');
}

/** Its own calls that have a value, and whose tools say how they are undone. */
function callsMade(run: EndedRun): Made[] {
  const moves = new Map(entriesOf(run, 'moved').map((move) => [move.step, move]));
  return valuesOf(run).flatMap(({ step, call, seq }) => {
    const move = moves.get(step);
    if (move === undefined || move.undoes !== undefined) return [];
    const tool = branchesOf(move.decision)[call]?.tool ?? '';
    return UNDOABLE_KINDS[tool]?.undoneBy === undefined ? [] : [{ place: `${step}.${call}`, seq }];
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
  undoing: readonly Of<'moved'>[],
  left: readonly string[],
  report: Readonly<Record<string, Json>>,
  ledger: Ledger,
  wrong: (what: string) => void,
): void {
  const places = (list: string): string[] =>
    ((report[list] ?? []) as { readonly step: number; readonly call: number }[]).map(
      ({ step, call }) => `${step}.${call}`,
    );
  const done = new Set(valuesOf(run).map(({ step }) => step));
  const said: Record<'undone' | 'undo_failed', string[]> = { undone: [], undo_failed: [] };
  for (const { step, undoes } of undoing) {
    if (undoes === undefined) continue;
    const isDone = done.has(step);
    said[isDone ? 'undone' : 'undo_failed'].push(`${undoes.step}.${undoes.call}`);
    const happened = [...ledger.effects].some(([key, times]) => key.endsWith(`${run.id}/${step}.0`) && times > 0);
    if (isDone && !happened) wrong(`step ${step} says that it has undone ${undoes.step}.${undoes.call}, and has not`);
  }
  for (const list of ['undone', 'undo_failed'] as const)
    if (places(list).join() !== said[list].join())
      wrong(`its ending says ${list} ${places(list).join()}, and it is ${said[list].join()}`);
  if (report['stopped'] !== undefined && places('left').join() !== left.join())
    wrong(`its ending says that ${places('left').join()} are left, and it is ${left.join()}`);
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
