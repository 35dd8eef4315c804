/** What calls have asked that stayed open meanwhile, by the entries: each question once while an attempt lasts, and none that is answered again. */
import type { Entry } from '#core';
import { type EndedRun, entriesOf, ownEntries } from './ended-run.ts';
import { HELD_KINDS } from './held-kinds.ts';
import { endsAttempt } from './held-ledger.ts';
import type { Ledger } from './ledger.ts';
import type { SimulationScript } from './script.ts';

type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

export function checkHeld(run: EndedRun, { faults }: SimulationScript, ledger: Ledger): void {
  const asked = run.entries.filter(isHeldQuestion);
  const places = new Set(asked.map(({ step, call }) => `${step}.${call}`));
  for (const place of places) checkQuestions(place, run, ledger);
  if (faults.length > 0) return;
  for (const { outcome, step, call } of entriesOf(run, 'call_ended')) {
    const isLate = outcome.kind === 'error' && outcome.error.code === 'tool_timeout' && places.has(`${step}.${call}`);
    if (isLate) ledger.violated('waits', `call ${step}.${call} ran out of time while it asked`, run.id);
  }
}

function isHeldQuestion(entry: Entry): entry is Of<'paused'> {
  if (entry.kind !== 'paused' || entry.wait === undefined) return false;
  const { tool } = entry.payload ?? {};
  return typeof tool === 'string' && tool in HELD_KINDS;
}

function checkQuestions(place: string, run: EndedRun, ledger: Ledger): void {
  const wrong = (what: string): void => ledger.violated('waits', `call ${place} ${what}`, run.id);
  /** By token: which of its questions it is. */
  const open = new Map<string, number>();
  const answered = new Set<number>();
  const known = new Set<string>();
  for (const entry of ownEntries(run)) {
    if (endsAttempt(entry, `/${place}`)) open.clear();
    if (entry.kind === 'call_ended' && `${entry.step}.${entry.call}` === place) answered.clear();
    if (entry.kind === 'call_waits' && `${entry.step}.${entry.call}` === place && entry.held !== true)
      wrong('is parked, and was to stay open');
    if (isHeldQuestion(entry) && `${entry.step}.${entry.call}` === place) {
      const { token, wait = 0 } = entry;
      if (answered.has(wait)) wrong(`asks question ${wait} again, and has its answer`);
      if ([...open.values()].includes(wait)) wrong(`asks question ${wait} twice at once`);
      open.set(token, wait);
      known.add(token);
    }
    if (entry.kind !== 'resumed' || !known.has(entry.token)) continue;
    const wait = open.get(entry.token);
    if (wait === undefined) wrong(`has an answer in entry ${entry.seq}, when nobody asked any more`);
    else answered.add(wait);
    open.delete(entry.token);
  }
}
