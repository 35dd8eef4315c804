/** The sessions of the one journal as a process sees them; what the store takes of them is noted in its order. */
import { type Scope, scopeKey } from '#core';
import type { Journal, Sending, Sent } from '#journal';
import { firing, type SchedulesBehind } from './store-schedules.ts';
import { entryText, messageText } from './text.ts';

export function simulatedSessions(behind: SchedulesBehind): Journal['sessions'] {
  const { inner, isInOrder, ledger, operation, tell } = behind;
  const landedAt = (asked: number): number => (isInOrder ? asked : ledger.next());
  return {
    get: (scope) => operation('get', () => inner.sessions.get(scope)),
    list: (query) => operation('read', () => inner.sessions.list(query)),
    set: (scope, facts) =>
      operation('append', async () => {
        const asked = ledger.next();
        await inner.sessions.set(scope, facts);
        const { branch } = facts;
        if (branch === undefined) return;
        ledger.sessions.branches.push({ order: landedAt(asked), scope, branch });
        tell(() => `session ${scope.session}: goes on from ${branch}`);
      }),
    delete: (scope) =>
      operation('append', async () => {
        const asked = ledger.next();
        const count = await inner.sessions.delete(scope);
        const runs = ledger.forget(scopeKey(scope), scope, landedAt(asked));
        tell(() => `session ${scope.session}: is gone with ${[...runs.keys()].join(', ') || 'nothing'}`);
        if (count !== runs.size)
          ledger.violated('session', `${count} runs are gone with ${scope.session}, and there were ${runs.size}`);
        return count;
      }),
  };
}

/** Asks the store to take a message, and notes what became of it. */
export async function sendingIn(behind: SchedulesBehind, sending: Sending): Promise<Sent> {
  const { inner, isInOrder, process, ledger, tell } = behind;
  const { starts, tells = [], known } = sending;
  const asked = ledger.next();
  const at = ledger.now();
  const send = async (): Promise<Sent> => {
    const sent = await inner.send(sending);
    // Noted as soon as it is done: in the same moment another process may claim it, and hear of that first.
    const order = isInOrder ? asked : ledger.next();
    ledger.sessions.sends.push({ order, at, sending, answer: sent });
    if ('run' in sent) return sent;
    if (starts !== undefined) ledger.created(starts, order);
    for (const { run, message } of tells) ledger.stored(run, message, order);
    if (sent.claim !== undefined && starts?.claim !== undefined) ledger.claimed(sent.claim, starts.claim, process);
    return sent;
  };
  const sent = await firing(behind, sending.fires, send, (value) => !('run' in value));
  tell(() => {
    if ('run' in sent) return `${known.run}: the message is known, in ${sent.run}`;
    const begun = (starts?.entries ?? []).map(entryText).join(', ');
    const told = tells.map(({ run, message }) => `${run} is told ${messageText(message)}`).join(', ');
    return `${known.run}: ${begun} ${told}`;
  });
  return sent;
}

export function isOf(scope: Scope, other: Scope): boolean {
  return scopeKey(scope) === scopeKey(other);
}
