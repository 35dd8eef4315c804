/** A journal that says what it has acknowledged: claims, entries and messages. */

import { isControl } from '#core';
import type { Journal } from '#pilotage/journal';
import { type Acknowledged, machineMs } from './words.ts';

export function witnessed(inner: Journal, say: (line: Acknowledged) => void): Journal {
  const own: Partial<Journal> = {
    async create(run) {
      const claim = await inner.create(run);
      if (claim === undefined) return claim;
      say({ said: 'claimed', run: claim.run, fence: claim.fence, head: 0, at: machineMs() });
      say({ said: 'appended', run: claim.run, fence: claim.fence, entries: run.entries });
      return claim;
    },
    async claim(request) {
      const claim = await inner.claim(request);
      if (claim !== undefined) say({ said: 'claimed', ...claim, at: machineMs() });
      return claim;
    },
    async claimParked(request) {
      const claimed = await inner.claimParked(request);
      for (const { claim } of claimed) say({ said: 'claimed', ...claim, at: machineMs() });
      return claimed;
    },
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
  return new Proxy(inner, {
    get: (target, name) => {
      if (name in own) return Reflect.get(own, name);
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
