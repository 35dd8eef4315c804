/** What calls wait for in the middle of their work, read off the entries by hand: nothing here asks the code that it judges. */
import type { CallPlace, CallWait, Entry, Json, WaitPlace } from '#core';

type Entries = readonly Entry[];
type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

/** How a wait has ended. */
export type EndOfWait = {
  readonly how: 'time' | 'event' | 'answer' | 'declined' | 'timeout' | 'superseded';
  readonly value?: Json;
};

export interface WaitByHand extends WaitPlace, Omit<CallWait, 'wait'> {
  /** The seq of the entry with which it begins. */
  readonly from: number;
  readonly requestedAt: number;
  readonly ends: readonly (EndOfWait & { readonly seq: number })[];
  /** The seq of the entry that ends the call itself. */
  readonly over: number;
  /** Until when it was asked last, when an attempt after the one that began it has asked anew. */
  readonly askedUntil?: number;
}

/** Every wait that a call of the run has begun, in order. A call that is carried out once more counts its waits anew. */
export function callWaitsIn(entries: Entries): WaitByHand[] {
  const waits: WaitByHand[] = [];
  const asked = new Map<string, WaitPlace>();
  const openAt = ({ step, call, wait }: WaitPlace): number =>
    waits.findLastIndex((one) => one.step === step && one.call === call && one.wait === wait && !isOver(one));
  const end = (at: WaitPlace, ended: EndOfWait, seq: number): void => {
    const index = openAt(at);
    const wait = waits[index];
    if (wait !== undefined) waits[index] = { ...wait, ends: [...wait.ends, { ...ended, seq }] };
  };
  for (const entry of entries) {
    const { seq } = entry;
    if (entry.kind === 'call_waits') {
      const { step, call, at: requestedAt } = entry;
      for (const wait of entry.waits) {
        waits.push({ ...wait, step, call, from: seq, requestedAt, ends: [], over: Number.POSITIVE_INFINITY });
      }
    }
    if (entry.kind === 'paused' && entry.wait !== undefined && entry.step !== undefined && entry.call !== undefined) {
      const place = { step: entry.step, call: entry.call, wait: entry.wait };
      asked.set(entry.token, place);
      const index = openAt(place);
      const wait = waits[index];
      const { expiresAt: askedUntil = Number.POSITIVE_INFINITY } = entry;
      if (wait !== undefined && wait.token !== entry.token) waits[index] = { ...wait, askedUntil };
    }
    if (entry.kind === 'wait_ended') end(entry, endIn(entry), seq);
    const question = entry.kind === 'resumed' ? asked.get(entry.token) : undefined;
    if (question !== undefined && entry.kind === 'resumed') end(question, answerIn(entry), seq);
    const ended = endedCall(entry, entries);
    for (const [index, wait] of waits.entries()) {
      const isEnded = ended !== undefined && wait.step === ended.step && wait.call === ended.call;
      if ((isEnded || isEnding(entry)) && !isOver(wait)) waits[index] = { ...wait, over: seq };
    }
  }
  return waits;
}

function isOver({ over }: WaitByHand): boolean {
  return over < Number.POSITIVE_INFINITY;
}

function isEnding({ kind }: Entry): boolean {
  return kind === 'finished' || kind === 'failed';
}

/** Begun, and neither ended nor given up with the call or the run. */
export function openCallWaits(entries: Entries): WaitByHand[] {
  return callWaitsIn(entries).filter((wait) => wait.ends.length === 0 && !isOver(wait));
}

/** The call that ends with this entry: by its outcome, or because somebody says what became of it. */
export function endedCall(entry: Entry, entries: Entries): CallPlace | undefined {
  if (entry.kind === 'call_ended') return entry;
  if (entry.kind !== 'resumed' || entry.outcome === undefined) return undefined;
  const pause = entries.find((one): one is Of<'paused'> => one.kind === 'paused' && one.token === entry.token);
  if (pause?.step === undefined || pause.call === undefined) return undefined;
  return { step: pause.step, call: pause.call };
}

function endIn(entry: Of<'wait_ended'>): EndOfWait {
  return entry.ended === 'event' ? { how: 'event', value: entry.payload } : { how: entry.ended };
}

function answerIn({ verdict, value }: Of<'resumed'>): EndOfWait {
  switch (verdict) {
    case 'answer':
      return { how: 'answer', value: value ?? null };
    case 'timeout':
    case 'superseded':
      return { how: verdict };
    default:
      return { how: 'declined' };
  }
}

/** What the call has recorded of its work since it was begun last: by name, in order. */
export function keptBy(entries: Entries, { step, call }: CallPlace): Of<'call_kept'>[] {
  const last = entries.findLastIndex((entry) => {
    const ended = endedCall(entry, entries);
    return ended?.step === step && ended.call === call;
  });
  const kept = entries.slice(last + 1).filter((entry): entry is Of<'call_kept'> => entry.kind === 'call_kept');
  return kept.filter((entry) => entry.step === step && entry.call === call);
}
