/** One flow of every kind of node, and runs of it that end well, fail, are cancelled, or are read by somebody. */
import { EventEmitter, once } from 'node:events';
import { edge, type Flow, FlowError, flow, join, map, node, predicateRouter } from '#flow';
import { type Identity, type Json, local, type Runtime } from '#pilotage';

interface Job {
  readonly n: number;
  /** What its risky node does. `wait`: until it is let go, or stopped. */
  readonly mood: 'plain' | 'fine' | 'fail' | 'wait';
}

interface Seen {
  readonly n: number;
  readonly user: string;
}

type Soaked = Flow<Job, Json>;

/** Nodes that wait, by the number of their run. */
export class Waiting {
  readonly #inside = new Map<number, () => void>();
  readonly #news = new EventEmitter();

  /** Returns when the run is let go. */
  enter(n: number): Promise<void> {
    return new Promise((resolve) => {
      this.#inside.set(n, resolve);
      this.#news.emit('entered');
    });
  }

  /** Returns when so many wait. */
  async until(count: number): Promise<void> {
    while (this.#inside.size < count) await once(this.#news, 'entered');
  }

  letGo(): void {
    for (const go of this.#inside.values()) go();
    this.#inside.clear();
  }
}

export function soakFlow(waiting: Waiting): Soaked {
  const seen = (n: number, { user }: Identity): Seen => ({ n, user });
  const open = node('open', {
    effect: 'pure',
    execute: (job: Job, { emit, identity }): Job => {
      emit({ opened: job.n, user: identity.user });
      return job;
    },
  });
  const short = node('short', { effect: 'pure', execute: ({ n }: Job, { identity }) => [seen(n, identity)] });
  const begin = node('begin', { effect: 'pure', execute: (job: Job): Job => job });
  const parts = node('parts', { effect: 'pure', execute: ({ n }: Job) => [n, n + 1, n + 2] });
  const mapped = map('mapped', {
    effect: 'pure',
    concurrency: 2,
    execute: (n: number, { emit, identity }) => {
      emit({ mapped: n, user: identity.user });
      return seen(n, identity);
    },
  });
  const first = node('first', { effect: 'read', execute: ({ n }: Job) => n });
  const second = node('second', { effect: 'read', execute: (n: number, { identity }) => seen(n, identity) });
  const inner = flow({ name: 'inner', inputSchema: {}, entry: first, exit: second, edges: [edge(first, second)] });
  const below = inner.asNode('below');
  const risky = node('risky', {
    effect: 'keyed',
    policy: { timeoutMs: 600_000 },
    execute: async ({ n, mood }: Job, { identity, signal }) => {
      if (mood === 'fail') throw new Error(`No ${n}.`);
      if (mood === 'wait') {
        const stopped = signal.aborted ? Promise.resolve() : once(signal, 'abort');
        await Promise.race([waiting.enter(n), stopped]);
        signal.throwIfAborted();
      }
      return seen(n, identity);
    },
  });
  const total = join('total', {
    of: [mapped, below, risky],
    effect: 'pure',
    execute: ({ mapped: items, below: sub, risky: last }) => [...items, sub, last],
  });
  const router = predicateRouter<Job>({
    branches: [{ when: ({ mood }) => mood === 'plain', to: short }],
    default: begin,
  });
  const made = flow({
    name: 'soaked',
    inputSchema: {},
    entry: open,
    exit: [short, total],
    edges: [
      edge(open, router.asNode('by_mood')),
      edge(begin, parts),
      edge(parts, mapped),
      edge(begin, below as never),
      edge(begin, risky),
    ],
  });
  return made as unknown as Soaked;
}

function expected({ n, mood }: Job, user: string): Json {
  const numbers = mood === 'plain' ? [n] : [n, n + 1, n + 2, n, n];
  return numbers.map((number) => ({ n: number, user }));
}

export interface Place {
  readonly runtime: Runtime;
  readonly flow: Soaked;
  readonly waiting: Waiting;
}

/** The run with this number, in a sequence of them. @throws Error when it does not end as it should. */
export async function runInTurn(place: Place, n: number): Promise<void> {
  const identity = local(`user_${n}`);
  if (n % 10 === 3) return failed(place, n, identity);
  if (n % 25 === 7) return cancelled(place, n, identity);
  const job: Job = { n, mood: n % 4 === 0 ? 'plain' : 'fine' };
  if (n % 5 !== 1) {
    same(await place.flow.run(place.runtime, job, { identity }), expected(job, identity.user));
    return;
  }
  const run = await place.flow.start(place.runtime, job, { identity });
  for await (const { type } of run.events()) {
    // Some readers do not stay.
    if (n % 2 === 0 && type === 'tool.invoked') break;
  }
  await run.result();
  same(await run.payload(), expected(job, identity.user));
}

async function failed({ flow: made, runtime }: Place, n: number, identity: Identity): Promise<void> {
  try {
    await made.run(runtime, { n, mood: 'fail' }, { identity });
  } catch (error) {
    if (error instanceof FlowError && error.code === 'node_exception' && error.node === 'risky') return;
    throw error;
  }
  throw new Error(`The run ${n} did not fail.`);
}

async function cancelled({ flow: made, runtime, waiting }: Place, n: number, identity: Identity): Promise<void> {
  const run = await made.start(runtime, { n, mood: 'wait' }, { identity });
  await waiting.until(1);
  await run.cancel();
  const result = await run.result();
  waiting.letGo();
  if (result.status !== 'finished' || result.reason !== 'cancelled') throw new Error(`The run ${n} was not cancelled.`);
}

/**
 * So many runs at once, each with a user and a reader of its own. All stand in the same node before any goes on; every
 * hundredth is cancelled there.
 * @throws Error when one gets what is another's, or does not end as it should.
 */
export async function runAtOnce({ flow: made, runtime, waiting }: Place, count: number): Promise<void> {
  const started = Array.from({ length: count }, async (_, n) => {
    const identity = local(`user_${n}`);
    const job: Job = { n, mood: 'wait' };
    const run = await made.start(runtime, job, { identity });
    const chunks: Json[] = [];
    const reading = (async () => {
      for await (const event of run.events()) if (event.type === 'tool.chunk') chunks.push(event.chunk);
    })();
    return { run, reading, chunks, job, user: identity.user, isCancelled: n % 100 === 50 };
  });
  const runs = await Promise.all(started);
  await waiting.until(count);
  for (const { run, isCancelled } of runs) if (isCancelled) await run.cancel();
  waiting.letGo();
  for (const { run, reading, chunks, job, user, isCancelled } of runs) {
    const result = await run.result();
    await reading;
    const reason = result.status === 'finished' ? result.reason : result.status;
    if (reason !== (isCancelled ? 'cancelled' : 'goal')) throw new Error(`The run ${job.n} ended with ${reason}.`);
    if (!isCancelled) same(await run.payload(), expected(job, user));
    const strange = chunks.filter((chunk) => (chunk as { user?: Json }).user !== user);
    if (strange.length > 0) throw new Error(`The reader of run ${job.n} was told ${JSON.stringify(strange)}.`);
  }
}

function same(actual: Json | undefined, wanted: Json): void {
  const [given, due] = [JSON.stringify(actual), JSON.stringify(wanted)];
  if (given !== due) throw new Error(`A run gave ${given}, not ${due}.`);
}
