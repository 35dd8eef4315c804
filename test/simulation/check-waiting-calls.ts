/** What must hold while a call that waits is run, again and again: it goes on only when it may, with what is recorded, and does nothing anew that is. */
import type { CallPlace, Effect, Entry, Json } from '#core';
import { callWaitsIn, endedCall, keptBy } from './call-waits-by-hand.ts';
import { placesOf } from './check-calls.ts';
import type { Ledger, LedgerRun } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';

interface RunningCall {
  readonly run: string;
  /** Of its arguments. */
  readonly id: string;
  readonly key: string;
  readonly effect: Effect;
}

/** Where the call is now, in a run that this process has; a process that stands still may be at one that others have gone on with. */
function placeIn({ run, id }: RunningCall, process: SimulatedProcess, ledger: Ledger): Known | undefined {
  const known = ledger.runs.get(run);
  if (known === undefined || known.holder !== process) return undefined;
  const place = placesOf(known.entries, id).at(-1);
  return place && { place, known, entries: sinceBegun(known.entries, place) };
}

interface Known {
  readonly place: CallPlace;
  readonly known: LedgerRun;
  /** Of the run, since the call was begun last. */
  readonly entries: readonly Entry[];
}

/** Without those before the end of an earlier time that the call was made. */
function sinceBegun(entries: readonly Entry[], { step, call }: CallPlace): readonly Entry[] {
  const last = entries.findLastIndex((entry) => {
    const ended = endedCall(entry, entries);
    return ended?.step === step && ended.call === call;
  });
  return entries.slice(last + 1);
}

/** A call that was parked is run again only after something that it waits for has ended, and, if it must, only after that it begins again is recorded. */
export function checkGoesOn(call: RunningCall, process: SimulatedProcess, ledger: Ledger): void {
  const { run, id, effect } = call;
  const found = placeIn(call, process, ledger);
  if (found === undefined) return;
  const { place, entries } = found;
  const isOwn = (entry: Entry): boolean =>
    'step' in entry && entry.step === place.step && 'call' in entry && entry.call === place.call;
  const parked = entries.findLast((entry) => entry.kind === 'call_waits' && isOwn(entry));
  const began = entries.findLast((entry) => entry.kind === 'call_began' && isOwn(entry));
  if (effect === 'once' && (began?.seq ?? 0) <= (parked?.seq ?? 0))
    ledger.violated('once', `${id} is run, and that it begins is not recorded since it waited`, run);
  if (parked?.kind !== 'call_waits') return;
  if (parked.later !== undefined) {
    ledger.violated('once', `${id} has been made, and is made again while its value is waited for`, run);
    return;
  }
  const ends = callWaitsIn(entries)
    .filter(isAt(place))
    .flatMap((wait) => wait.ends);
  // What has ended while the call was under way, before it was parked, it has not heard of.
  const unheard = ends.filter(({ seq }) => seq < parked.seq).length > (parked.seen ?? 0);
  if (unheard || ends.some(({ seq }) => seq > parked.seq)) return;
  ledger.violated('waits', `${id} is run again, and nothing has ended that it waits for`, run);
}

function isAt({ step, call }: CallPlace): (other: CallPlace) => boolean {
  return (other) => other.step === step && other.call === call;
}

/** The n-th wait of the call gives what is recorded as the end of its n-th wait. */
export function checkEndGiven({ run, id }: RunningCall, wait: number, got: Json, ledger: Ledger): void {
  const entries = ledger.runs.get(run)?.entries ?? [];
  const places = placesOf(entries, id);
  const isRecorded = callWaitsIn(entries).some((one) => {
    if (one.wait !== wait || !places.some(isAt(one))) return false;
    return one.ends.some(({ seq: _, ...end }) => JSON.stringify(end) === JSON.stringify(got));
  });
  if (!isRecorded)
    ledger.violated('waits', `wait ${wait} of ${id} gave ${JSON.stringify(got)}, which is not recorded`, run);
}

/** What is recorded of the work is not done again. */
export function checkPartEntered(call: RunningCall, part: string, process: SimulatedProcess, ledger: Ledger): void {
  const { run, id } = call;
  const found = placeIn(call, process, ledger);
  // A process that stands still in the middle of its call and has lost the run is heard out: what it does is counted as an effect.
  if (found === undefined) return;
  ledger.partEntered(call, part);
  const isKept = keptBy(found.known.entries, found.place).some(({ name }) => name === part);
  if (isKept) ledger.violated('once', `${part} of ${id} is done again, and it is recorded`, run);
}

/** The call goes on with a part of its work only when it is recorded, and with what is recorded. */
export function checkKept({ run, id }: RunningCall, part: string, value: unknown, ledger: Ledger): void {
  const entries = ledger.runs.get(run)?.entries ?? [];
  const places = placesOf(entries, id);
  const isRecorded = entries.some((entry) => {
    if (entry.kind !== 'call_kept' || entry.name !== part || !places.some(isAt(entry))) return false;
    return entry.stored === true || JSON.stringify(entry.value) === JSON.stringify(value);
  });
  if (!isRecorded) ledger.violated('waits', `${id} goes on behind ${part} with what is not recorded`, run);
}

/** Only when the time has come at which it is looked after. */
export function checkPolled(call: RunningCall, process: SimulatedProcess, ledger: Ledger): void {
  const found = placeIn(call, process, ledger);
  if (found === undefined) return;
  const last = callWaitsIn(found.known.entries).filter(isAt(found.place)).at(-1);
  if (last?.ends.at(-1)?.how !== 'timeout') ledger.violated('waits', `${call.id} is polled before its time`, call.run);
}
