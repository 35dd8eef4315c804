/** A journal that says what it has acknowledged: claims, entries and messages. */

import { isControl } from '#core';
import type { ClaimedRun, Journal, ScheduleStore } from '#pilotage/journal';
import { type Acknowledged, machineMs } from './words.ts';

export function witnessed(inner: Journal, say: (line: Acknowledged) => void): Journal {
  const toldOf = (claimed: ClaimedRun[]): ClaimedRun[] => {
    for (const { claim } of claimed) say({ said: 'claimed', ...claim, at: machineMs() });
    return claimed;
  };
  const own: Partial<Journal> = {
    async create(run) {
      const askedAt = machineMs();
      const claim = await inner.create(run);
      if (claim === undefined) return claim;
      say({ said: 'claimed', run: claim.run, fence: claim.fence, head: 0, at: machineMs(), askedAt });
      say({ said: 'appended', run: claim.run, fence: claim.fence, entries: run.entries });
      return claim;
    },
    async send(sending) {
      const askedAt = machineMs();
      const sent = await inner.send(sending);
      const { starts, tells = [] } = sending;
      if ('run' in sent) return sent;
      for (const { run, message } of tells) if (isControl(message)) say({ said: 'signalled', run, id: message.id });
      if (starts === undefined) return sent;
      say({ said: 'sent', run: starts.identity.run, askedAt });
      const { claim } = sent;
      if (claim === undefined) return sent;
      say({ said: 'claimed', run: claim.run, fence: claim.fence, head: 0, at: machineMs(), askedAt });
      say({ said: 'appended', run: claim.run, fence: claim.fence, entries: starts.entries });
      return sent;
    },
    async claim(request) {
      const claim = await inner.claim(request);
      if (claim !== undefined) say({ said: 'claimed', ...claim, at: machineMs() });
      return claim;
    },
    claimDue: async (request) => toldOf(await inner.claimDue(request)),
    claimParked: async (request) => toldOf(await inner.claimParked(request)),
    async append(append) {
      await inner.append(append);
      say({ said: 'appended', run: append.run, fence: append.fence, entries: append.entries });
    },
    async signal(run, message, priority) {
      const isNew = await inner.signal(run, message, priority);
      if (isNew && isControl(message)) say({ said: 'signalled', run, id: message.id });
      return isNew;
    },
  };
  const streams: Partial<Journal['streams']> = {
    async append(append) {
      await inner.streams.append(append);
      const values = append.rows.flatMap((row) => ('value' in row ? [row.value] : []));
      say({ said: 'rows', run: append.run, values });
    },
  };
  const schedules = witnessedSchedules(inner.schedules, say);
  return over(inner, { ...own, schedules, streams: over(inner.streams, streams) });
}

/** Says which fire times were left out. */
function witnessedSchedules(inner: ScheduleStore, say: (line: Acknowledged) => void): ScheduleStore {
  const seen = new Map<string, { readonly nextAt: number; readonly at: number; readonly wallMs: number }>();
  return over<ScheduleStore>(inner, {
    async due(...asked) {
      const at = machineMs();
      const due = await inner.due(...asked);
      for (const { mark, nextAt } of due.due) if (nextAt !== null) seen.set(mark, { nextAt, at, wallMs: Date.now() });
      return due;
    },
    async get(tenant, id) {
      const at = machineMs();
      const found = await inner.get(tenant, id);
      if (found !== undefined && found.nextAt !== null && !seen.has(found.mark))
        seen.set(found.mark, { nextAt: found.nextAt, at, wallMs: Date.now() });
      return found;
    },
    async move(move) {
      const { id, nextAt, mark, isPaused, run } = move;
      const isDone = await inner.move(move);
      const before = seen.get(mark);
      if (isDone && before !== undefined && nextAt !== null && isPaused === undefined && run === undefined)
        say({
          ...{ said: 'passed', id, from: before.nextAt, to: nextAt, seenAt: before.at, at: machineMs() },
          wallMs: Math.max(before.wallMs, Date.now()),
        });
      return isDone;
    },
  });
}

/** It, with other members in the place of some. */
function over<T extends object>(inner: T, own: Partial<T>): T {
  return new Proxy(inner, {
    get: (target, name) => {
      if (name in own) return Reflect.get(own, name);
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
