/** The stream of events: complete, in order, the same for everybody, and readable again. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Delta, local, type Planner, type RunEvent } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { VirtualClock } from '#testing';
import { call, finish, pause, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { echo, make } from '../kit/tools.ts';
import { aborted, gate, quiet, turn, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-events-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A planner that streams the chunks and then finishes with the whole. */
function streaming(...chunks: string[]): Planner {
  return {
    name: 'streaming',
    async *next(run) {
      if (run.streaming) for (const text of chunks) yield { type: 'text', text } satisfies Delta;
      return { decision: finish(chunks.join('')), text: chunks.join('') };
    },
  };
}

const typesOf = (events: readonly RunEvent[]) => events.map((event) => event.type);

describe('a stream', () => {
  it('ends when its reader aborts it, also while nothing happens; the run goes on', async () => {
    const held = gate();
    const hold = make('hold', async () => held.opened);
    const run = await start(world({ planner: script(call('hold'), finish('done')), tools: [hold] }));
    const left = new AbortController();
    const seen: string[] = [];
    for await (const { type } of run.events({ signal: left.signal })) {
      seen.push(type);
      if (type === 'tool.invoked') setImmediate(() => left.abort());
    }
    expect(seen.at(-1)).toBe('tool.invoked');
    for await (const _ of run.events({ signal: left.signal })) seen.push('more');
    for await (const _ of run.stream('rows', { signal: left.signal })) seen.push('row');
    expect(seen).not.toContain('more');
    held.open();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('EV-04, EV-05 has one decision for each move, and exactly one ending', async () => {
    const run = await start(world({ planner: script(call('echo'), pause, call('nobody')), tools: [echo] }));
    const before = await collect(run);
    expect(typesOf(before)).toEqual([
      'run.started',
      'planner.decision',
      'tool.invoked',
      'tool.completed',
      'planner.decision',
      'pause.requested',
      'run.paused',
    ]);
    await run.resume();
    const all = await collect(run);
    // Where a reading stopped is no fact of the run.
    expect(typesOf(all.slice(before.length - 1))).toEqual([
      'control.received',
      'control.applied',
      'pause.resumed',
      'planner.decision',
      'tool.invoked',
      'tool.failed',
      'planner.decision',
      'planner.finish',
    ]);
    expect(only(all, 'planner.decision').map((event) => [event.step, event.decisionKind, event.tool])).toEqual([
      [0, 'CallTool', 'echo'],
      [1, 'RequestPause', undefined],
      [2, 'CallTool', 'nobody'],
      [3, 'Finish', undefined],
    ]);
  });

  it.each([
    ['a cancel', { steps: 9 }, true, 'planner.finish'],
    ['the step limit', { steps: 2 }, false, 'planner.finish'],
    ['an error', { steps: 9 }, false, 'planner.error'],
  ] as const)('EV-04 ends once, also by %s', async (why, limits, cancels, ending) => {
    const entered = gate();
    const made = world({
      planner: (run, signal) => {
        if (run.trajectory.count < 2) return call('echo');
        if (why === 'an error') throw new Error('no idea');
        entered.open();
        return aborted(signal);
      },
      tools: [echo],
    });
    const run = await start(made, { limits });
    const events = collect(run);
    if (cancels) {
      await entered.opened;
      await run.cancel();
    }
    const types = typesOf(await events);
    expect(types.filter((type) => type === 'planner.finish' || type === 'planner.error')).toEqual([ending]);
    expect(types.at(-1)).toBe(ending);
    expect(types.filter((type) => type === 'planner.decision')).toHaveLength(2);
  });

  it('ID-08 carries the whole identity in every event', async () => {
    const identity = { tenant: 't', user: 'u', session: 's', run: 'r' };
    const run = await start(world({ planner: script(call('echo')), tools: [echo] }), { identity });
    for (const event of await collect(run)) expect(event.identity).toEqual(identity);
  });

  it('EV-14 is the same when it is read again, live or later, by one reader or another', async () => {
    const made = world({ planner: script(call('echo'), call('echo')), tools: [echo] });
    const run = await start(made);
    const [live, beside] = await Promise.all([collect(run), collect(run)]);
    const again = await collect(run);
    const elsewhere = await collect(
      world({ planner: script(), journal: made.journal, clock: made.clock }).runtime.run(run.id),
    );
    expect(beside).toEqual(live);
    expect(again).toEqual(live);
    expect(elsewhere).toEqual(live);
    expect(new Set(live.map((event) => JSON.stringify([event.seq, event.type]))).size).toBe(live.length);
  });

  it('begins at the position that was asked for', async () => {
    const run = await start(world({ planner: script(call('echo'), call('echo')), tools: [echo] }));
    const all = await collect(run);
    for (let from = 1; from <= (all.at(-1)?.seq ?? 0); from += 1) {
      expect(await collect(run, { from })).toEqual(all.filter((event) => event.seq >= from));
    }
  });

  it('goes on where a reader left it', async () => {
    const entered = gate();
    const held = gate();
    const made = world({
      planner: script(call('echo'), call('hold')),
      tools: [
        echo,
        make('hold', async () => {
          entered.open();
          await held.opened;
        }),
      ],
    });
    const run = await start(made);
    const first: RunEvent[] = [];
    for await (const event of run.events()) {
      first.push(event);
      if (event.type === 'tool.completed') break;
    }
    await entered.opened;
    held.open();
    await run.result();
    const rest = await collect(run, { from: (first.at(-1)?.seq ?? 0) + 1 });
    expect([...first, ...rest]).toEqual(await collect(run));
  });

  it('EV-11 gives every reader the events of ten runs in order', async () => {
    const made = world({ planner: script(...Array(33).fill(call('echo'))), tools: [echo], limits: { steps: 100 } });
    const runs = await Promise.all(
      Array.from({ length: 10 }, (_, index) => start(made, { identity: local(`u${index}`) })),
    );
    const streams = await Promise.all(runs.flatMap((run) => [collect(run), collect(run)]));
    for (const events of streams) {
      expect(events.length).toBeGreaterThan(100);
      const seqs = events.map((event) => event.seq);
      expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
    }
  });

  it('EV-12 is untouched by a reader that throws, or leaves, or never reads', async () => {
    const made = world({ planner: script(call('echo'), call('echo')), tools: [echo] });
    const run = await start(made);
    run.events();
    const bad = (async () => {
      for await (const event of run.events()) throw new Error(`not for me: ${event.type}`);
    })();
    const good = collect(run);
    await expect(bad).rejects.toThrow('not for me: run.started');
    expect((await good).at(-1)?.type).toBe('planner.finish');
    expect(made.faults).toEqual([]);
  });
});

describe('tokens', () => {
  it('PC-11, W120 stream only while somebody reads, and the decision is the same without', async () => {
    const made = world({ planner: streaming('Hel', 'lo') });
    const unread = await start(made);
    const quietly = await unread.result();
    const run = await start(made);
    const events = await collect(run);
    expect(only(events, 'token').map((event) => [event.step, event.channel, event.offset, event.text])).toEqual([
      [0, 'text', 0, 'Hel'],
      [0, 'text', 3, 'lo'],
    ]);
    expect(only(await collect(unread), 'token')).toEqual([]);
    expect(await run.result()).toEqual(quietly);
  });

  it('come before the decision that they lead to', async () => {
    const run = await start(world({ planner: streaming('a', 'b') }));
    expect(typesOf(await collect(run))).toEqual([
      'run.started',
      'token',
      'token',
      'planner.decision',
      'planner.finish',
    ]);
  });

  it('come before the step that they led to, also when the journal had it when it was first read', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const held = gate();
    const journal = changed(base, {
      read: async (run, from) => {
        await held.opened;
        return base.read(run, from);
      },
    });
    const run = await start(world({ planner: streaming('a', 'b'), journal, clock }));
    const events = collect(run);
    await until(async () => (await base.get(run.id))?.status === 'finished');
    held.open();
    expect(typesOf(await events)).toEqual(['run.started', 'token', 'token', 'planner.decision', 'planner.finish']);
  });

  it('count text and reasoning apart', async () => {
    const planner: Planner = {
      name: 'thinks',
      async *next() {
        yield { type: 'reasoning', text: 'hm' };
        yield { type: 'text', text: 'so' };
        yield { type: 'reasoning', text: 'mm' };
        return finish();
      },
    };
    const events = await collect(await start(world({ planner })));
    expect(only(events, 'token').map((event) => [event.channel, event.offset])).toEqual([
      ['reasoning', 0],
      ['text', 0],
      ['reasoning', 2],
    ]);
  });

  it('EV-15 a slow reader sees the gap by the offsets, loses no other event, and reads the text from the step', async () => {
    const chunks = Array.from({ length: 10_000 }, (_, index) => `${index} `);
    const made = world({ planner: streaming(...chunks) });
    const run = await start(made);
    const seen: RunEvent[] = [];
    for await (const event of run.events()) {
      seen.push(event);
      // It looks away while the whole answer streams by.
      if (event.type === 'run.started') await until(async () => (await run.state()).ending !== null);
    }
    const tokens = only(seen, 'token');
    const whole = chunks.join('');
    expect(tokens.length).toBeLessThan(chunks.length);
    for (const token of tokens) expect(whole.slice(token.offset, token.offset + token.text.length)).toBe(token.text);
    expect(only(seen, 'planner.decision')[0]?.text).toBe(whole);
    expect(seen.at(-1)?.type).toBe('planner.finish');
  });

  it('stop with a hard cancel, and the planner’s generator is closed', async () => {
    const entered = gate();
    let closed = false;
    const planner: Planner = {
      name: 'endless',
      async *next() {
        try {
          for (;;) {
            yield { type: 'text', text: 'more ' };
            entered.open();
            await turn();
          }
        } finally {
          closed = true;
        }
      },
    };
    const run = await start(world({ planner }));
    const events = collect(run);
    await entered.opened;
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect((await events).at(-1)?.type).toBe('planner.finish');
    expect(closed).toBe(true);
  });
});

describe('a run that somebody else drives', () => {
  it.each(['memory', 'sqlite'] as const)('is followed to its end through the journal (%s)', async (store) => {
    const clock = new VirtualClock();
    const path = join(folder, `${store}.db`);
    const open = () => sqliteJournal({ path, clock, watchIntervalMs: 5 });
    const shared = memoryJournal({ clock });
    const journals = store === 'memory' ? [shared, shared] : [open(), open()];
    const entered = gate();
    const held = gate();
    const tools = [
      echo,
      make('hold', async () => {
        entered.open();
        await held.opened;
      }),
    ];
    const [driving, watching] = journals.map((journal) =>
      world({ planner: script(call('echo'), call('hold'), call('echo')), tools, journal, clock }),
    );
    if (driving === undefined || watching === undefined) throw new Error('two runtimes are needed');
    const { id } = await start(driving);
    const run = watching.runtime.run(id);
    const events = collect(run);
    const result = run.result();
    await entered.opened;
    held.open();
    expect(await result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(await events).toEqual(await collect(driving.runtime.run(id)));
    expect((await events).at(-1)?.type).toBe('planner.finish');
    await Promise.all([driving.runtime.close(), watching.runtime.close()]);
    await Promise.all(journals.map((journal) => journal.close()));
  });

  it('is followed on when this process takes it over, without a gap, though news of the other’s last writes came late', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const planner = script(call('echo'), pause, call('echo'));
    const first = world({ planner, tools: [echo], journal, clock });
    const held = gate();
    // A reader that is never told by the journal what other processes write: it is as late as can be.
    const deaf = new Proxy(journal, {
      get(target, key) {
        if (key === 'watch') return () => () => {};
        const own: unknown = Reflect.get(target, key);
        return typeof own === 'function' ? own.bind(target) : own;
      },
    });
    const second = world({ planner, tools: [make('echo', () => held.opened)], journal: deaf, clock });
    await journal.create({
      identity: local('ana', { run: 'r' }),
      priority: 0,
      entries: [
        {
          kind: 'started',
          seq: 1,
          at: clock.now(),
          identity: local('ana', { run: 'r' }),
          query: 'q',
          agent: 'function',
          limits: {},
          scopes: [],
        },
      ],
    });
    const reader = collect(second.runtime.run('r'));
    await quiet();
    const stop = first.runtime.work();
    await until(async () => (await journal.get('r'))?.status === 'paused');
    stop();
    await until(async () => (await journal.get('r'))?.lease === undefined);
    await second.runtime.run('r').resume();
    held.open();
    const events = await reader;
    expect(events.at(-1)?.type).toBe('planner.finish');
    expect(events).toEqual(await collect(first.runtime.run('r')));
  });

  it('ends with an error for its readers when this runtime is closed', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const held = gate();
    const entered = gate();
    const hold = make('hold', async () => {
      entered.open();
      await held.opened;
    });
    const driving = world({ planner: script(call('hold')), tools: [hold], journal, clock });
    const watching = world({ planner: script(), journal, clock });
    const { id } = await start(driving);
    await entered.opened;
    const run = watching.runtime.run(id);
    const result = expect(run.result()).rejects.toMatchObject({ code: 'runtime_closed' });
    const events = expect(collect(run)).rejects.toMatchObject({ code: 'runtime_closed' });
    await quiet();
    await watching.runtime.close();
    await Promise.all([result, events]);
    await expect(run.result()).rejects.toMatchObject({ code: 'runtime_closed' });
    held.open();
    expect(await driving.runtime.run(id).result()).toMatchObject({ status: 'finished' });
  });
});
