/** Runs that begin later, and runs under a key: one at a time, the last of a burst, not too many. */
import { createRuntime, local, PilotageError, type Planner } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { VirtualClock } from '../src/testing/index.ts';

const clock = new VirtualClock();
const planner: Planner = { name: 'echo', next: ({ query }) => ({ kind: 'finish', reason: 'goal', payload: query }) };
const runtime = createRuntime({ planner, journal: memoryJournal({ clock }), clock });
const as = (run: string) => ({ identity: local('ana', { run }) });
const timeOf = (ms: number): string => new Date(ms).toISOString().slice(11, 19);

// A time, with its zone: the run is stored now, and survives restarts.
const at = '2026-01-01T01:00:00+01:00';
const later = await runtime.start('Remind Ana', { ...as('ana'), at, singleton: { key: 'reminder' } });
const tomorrow = await runtime.start('Remind Ben', { ...as('ben'), at: clock.now() + 60_000 });
const [waiting] = await runtime.list({ status: ['pending'] });
console.log(waiting?.query, waiting?.status, timeOf(waiting?.wakeAt ?? 0));
await tomorrow.cancel().catch(({ code }) => console.log(code));
console.log((await later.result()).status, (await tomorrow.result()).status);

// Typing: the last query of a burst runs, once, a second after it.
const drafts = ['f', 'fo', 'forecast'].map((query) =>
  runtime.start(query, { ...as(query), debounce: { key: 'search', waitMs: 1_000 } }),
);
const [first, , last] = await Promise.all(drafts);
clock.advance(1_100);
console.log(first?.id === last?.id, await first?.payload());

// Two in a minute: a third one waits for its time.
const limit = { key: 'mail', limit: 2, perMs: 60_000 };
for (const query of ['one', 'two']) await (await runtime.start(query, { ...as(query), throttle: limit })).result();
await runtime.start('three', { ...as('three'), throttle: limit });
const [third] = await runtime.list({ text: 'three' });
console.log(third?.query, 'begins', timeOf(third?.wakeAt ?? 0));
// Or is refused.
const rate = { key: 'mail', limit: 1, perMs: 60_000 };
await (await runtime.start('four', { ...as('four'), rate })).result();
const refused = await runtime.start('five', { ...as('five'), rate }).catch((error: unknown) => error);
if (PilotageError.is(refused)) console.log(refused.code, timeOf(Number(refused.data?.['allowedAt'])));
await runtime.close();
