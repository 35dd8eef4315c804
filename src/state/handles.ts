/** Live handles as the journal knows them: the fold of the notes in the ends of calls, and their events. */
import type { CallEnded, Entry, HandleNote, HandleState, RunEvent } from '#core';
import { event } from './event.ts';
import type { RunState } from './state.ts';

/** What is known after a call of this step has ended with these notes. */
export function withNotes(
  known: readonly HandleState[],
  notes: readonly HandleNote[],
  step: number,
): readonly HandleState[] {
  return notes.reduce((before, note) => (isNews(before, note) ? noted(before, note, step) : before), known);
}

function noted(known: readonly HandleState[], { name, opening, lost }: HandleNote, step: number): HandleState[] {
  const others = known.filter((each) => each.name !== name);
  return [...others, lost === true ? { name, opening, lostAt: step } : { name, opening }];
}

/** Calls side by side note the same. */
function isNews(known: readonly HandleState[], { name, opening, lost }: HandleNote): boolean {
  const before = known.find((each) => each.name === name);
  if (before === undefined || opening > before.opening) return true;
  return lost === true && opening === before.opening && before.lostAt === undefined;
}

/** That a handle is gone is told once: when a call is refused for it, or when it is opened again. */
export function handleEvents(entry: Entry, ended: CallEnded, { handles, identity }: RunState): RunEvent[] {
  const { step, call, handles: notes = [] } = ended;
  return notes
    .filter((note) => isNews(handles, note))
    .flatMap(({ name, opening, lost }) => {
      const of = { step, call, handle: name };
      const gone = (which: number) => event('handle.lost', entry, identity, { ...of, opening: which });
      if (lost === true) return [gone(opening)];
      const wasTold = handles.some((each) => each.name === name && each.lostAt !== undefined);
      const opened = event('handle.opened', entry, identity, { ...of, opening });
      return opening === 1 || wasTold ? [opened] : [gone(opening - 1), opened];
    });
}
