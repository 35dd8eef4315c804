/** What passes in a run, from one runtime to another on the same journal: what it costs, and what it never does to the run. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { local, PilotageError, type Planner, type RunEvent } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type RuntimeOptions } from '#runtime';
import { VirtualClock } from '#testing';
import type { ToolContext } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, gate, turn, until } from '../kit/waiting.ts';

const identity = local('ana', { run: 'r1', session: 's1' });

/** Says words, and waits before each of them until it may. */
function speaking(...words: readonly string[]) {
  const gates = words.map(() => gate());
  let said = 0;
  const planner: Planner = {
    name: 'speaks',
    async *next() {
      for (const [index, text] of words.entries()) {
        await gates[index]?.opened;
        yield { type: 'text', text };
        said = index + 1;
      }
      return { decision: finish(words.join('')), text: words.join('') };
    },
  };
  const goOn = async (count: number): Promise<void> => {
    for (const each of gates.slice(0, count)) each.open();
    await until(() => said >= Math.min(count, words.length));
  };
  return { planner, goOn };
}

function open(options: RuntimeOptions) {
  const runtime = createRuntime(options);
  onTestFinished(() => runtime.close());
  return runtime;
}

const reading = (journal: Journal) => open({ planner: script(finish()), journal });

const textOf = (events: readonly RunEvent[]): string => {
  let text = '';
  for (const event of only(events, 'token')) {
    expect(event.offset).toBe(text.length);
    text += event.text;
  }
  return text;
};

async function shown(stream: AsyncIterable<RunEvent>, events: RunEvent[]): Promise<readonly RunEvent[]> {
  for await (const event of stream) events.push(event);
  return events;
}

/** Notes what is asked of the store. */
function noting(inner: Journal, put: Journal['passing']['put'] = (rows) => inner.passing.put(rows)) {
  const asked: string[] = [];
  const { passing } = inner;
  const journal = changed(inner, {
    passing: {
      want: (runs, forMs) => {
        asked.push('want');
        return passing.want(runs, forMs);
      },
      wanted: () => passing.wanted(),
      put: (rows) => {
        asked.push('put');
        return put(rows);
      },
      read: (run, after) => passing.read(run, after),
      watch: (run, wake) => passing.watch(run, wake),
      watchWanted: (wake) => passing.watchWanted(wake),
    },
  });
  return { journal, asked };
}

describe('what passes in a run', () => {
  it('is written nowhere while nobody reads it elsewhere', async () => {
    const { journal, asked } = noting(memoryJournal());
    const { planner, goOn } = speaking('Hel', 'lo');
    const run = await open({ planner, journal }).start('q', { identity });
    const events = collect(run);
    await goOn(2);
    expect(textOf(await events)).toBe('Hello');
    expect(asked).toEqual([]);
  });

  it('is written while it is read elsewhere, and gone when its step is decided', async () => {
    const base = memoryJournal();
    const { journal, asked } = noting(base);
    const { planner, goOn } = speaking('Hel', 'lo', ' you');
    const run = await open({ planner, journal }).start('q', { identity });
    const here = collect(run);
    await goOn(1);
    const events: RunEvent[] = [];
    const there = shown(reading(base).run('r1').events(), events);
    await until(() => textOf(events) === 'Hel');
    expect(await base.passing.read('r1', 0)).toHaveLength(1);
    await goOn(2);
    await until(() => textOf(events) === 'Hello');
    await goOn(3);
    await there;
    await here;
    expect(events.at(-1)?.type).toBe('planner.finish');
    await until(async () => (await base.passing.read('r1', 0)).length === 0);
    expect(asked).toContain('put');
    expect(asked).not.toContain('want');
  });

  it('does not slow or fail the run when the store does not take it', async () => {
    for (const put of [() => new Promise<never>(() => {}), () => Promise.reject(new Error('no room'))]) {
      const base = memoryJournal();
      const { journal, asked } = noting(base, put);
      const { planner, goOn } = speaking('Hel', 'lo');
      const faults: unknown[] = [];
      const run = await open({ planner, journal, onFault: (fault) => faults.push(fault) }).start('q', { identity });
      const here = collect(run);
      await goOn(1);
      const there = collect(reading(base).run('r1'));
      await until(() => asked.length > 0);
      await goOn(2);
      expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Hello' });
      expect(textOf(await here)).toBe('Hello');
      const events = await there;
      expect(events.at(-1)?.type).toBe('planner.finish');
      expect(only(events, 'planner.decision')[0]?.text).toBe('Hello');
      expect(faults).toEqual([]);
    }
  });

  it('is whole for the reader although the store has lost some of it', async () => {
    const base = memoryJournal();
    let puts = 0;
    const { journal } = noting(base, async (rows) => {
      puts += 1;
      if (puts === 2) throw new Error('no room');
      // It is there, and the driver does not hear of it.
      await base.passing.put(rows);
      if (puts === 4) throw new Error('no answer');
    });
    const { planner, goOn } = speaking('one ', 'two ', 'three ', 'four ', 'five ', 'six');
    const run = await open({ planner, journal }).start('q', { identity });
    const here = collect(run);
    const events: RunEvent[] = [];
    await goOn(1);
    const there = shown(reading(base).run('r1').events(), events);
    let whole = 'one ';
    await until(() => textOf(events) === whole);
    for (const [index, word] of ['two ', 'three ', 'four ', 'five '].entries()) {
      await goOn(index + 2);
      whole += word;
      await until(() => textOf(events) === whole);
    }
    expect(puts).toBeGreaterThan(4);
    await goOn(6);
    await there;
    await here;
  });

  it('does not wait for a reader that stands still', async () => {
    const base = memoryJournal();
    const { planner, goOn } = speaking(...Array.from({ length: 50 }, (_, index) => `${index} `));
    const run = await open({ planner, journal: base }).start('q', { identity });
    const here = collect(run);
    await goOn(1);
    const frozen = reading(base).run('r1').events();
    await frozen.next();
    await until(async () => (await base.passing.read('r1', 0)).length > 0);
    await goOn(50);
    expect((await run.result()).status).toBe('finished');
    await here;
    await frozen.return(undefined);
  });

  it('keeps no fault from the process that drives the run', async () => {
    const base = memoryJournal();
    const faults: unknown[] = [];
    const held = gate();
    const planner: Planner = {
      name: 'is broken',
      async *next() {
        yield { type: 'text', text: 'Hel' };
        await held.opened;
        throw new PilotageError('model_unavailable', 'The model is away.');
      },
    };
    const driving = open({ planner, journal: base, onFault: (fault) => faults.push(fault) });
    await driving.start('q', { identity });
    await base.passing.want(['r1'], 15_000);
    await until(async () => (await base.passing.read('r1', 0)).length > 0);
    held.open();
    await until(() => faults.length > 0);
    expect(faults[0]).toMatchObject({ code: 'model_unavailable' });
  });

  it('is streamed from the first step on by a process that has just begun, when it is read elsewhere', async () => {
    const base = memoryJournal();
    const journal = changed(base, {
      passing: {
        ...noting(base).journal.passing,
        // A store that is far away.
        wanted: async () => {
          for (let count = 0; count < 3; count += 1) await turn();
          return base.passing.wanted();
        },
      },
    });
    const { planner, goOn } = speaking('Hel', 'lo');
    const writer = open({ planner, journal: base });
    const first = await writer.start('q', { identity: local('ana', { run: 'r0', session: 's0' }) });
    await base.passing.want(['r0'], 15_000);
    await goOn(2);
    await first.result();
    expect(await base.passing.wanted()).toHaveLength(1);
    let streaming: boolean | undefined;
    const fresh = open({
      journal,
      planner: (view) => {
        streaming = view.streaming;
        return finish();
      },
    });
    await (await fresh.start('q', { identity })).result();
    expect(streaming).toBe(true);
  });

  it('is written no more when its readers are gone without a word', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const { journal, asked } = noting(base);
    const { planner, goOn } = speaking('one ', 'two ', 'three');
    const run = await open({ planner, journal, clock }).start('q', { identity });
    const here = collect(run);
    await goOn(1);
    // Somebody who dies then.
    await base.passing.want(['r1'], 15_000);
    await advanceUntil(clock, async () => (await base.passing.read('r1', 0)).length > 0);
    clock.advance(15_000);
    await goOn(2);
    await advanceUntil(clock, async () => (await base.passing.read('r1', 0)).length === 0);
    const before = asked.length;
    await goOn(3);
    clock.advance(1_000);
    await here;
    expect(asked.length).toBe(before);
  });

  it('has pieces of results too', async () => {
    const base = memoryJournal();
    const [go, end] = [gate(), gate()];
    const tool = make('speaks', async (_, context: ToolContext) => {
      await go.opened;
      context.emit('half');
      await end.opened;
      return 'done';
    });
    const run = await open({ planner: script(call('speaks'), finish()), tools: [tool], journal: base }).start('q', {
      identity,
    });
    const here = collect(run);
    const events: RunEvent[] = [];
    const there = shown(reading(base).run('r1').events(), events);
    await until(async () => (await base.passing.wanted()).length > 0);
    await until(() => only(events, 'tool.invoked').length > 0);
    go.open();
    await until(() => only(events, 'tool.chunk').length > 0);
    end.open();
    await there;
    await here;
    expect(only(events, 'tool.chunk').map(({ chunk }) => chunk)).toEqual(['half']);
  });

  it('is asked for by no reader with a redaction of its own, who gets no tokens', async () => {
    const base = memoryJournal();
    const { journal, asked } = noting(base);
    const { planner, goOn } = speaking('Hel', 'lo');
    const run = await open({ planner, journal: base }).start('q', { identity });
    const here = collect(run);
    const events: RunEvent[] = [];
    const there = shown(
      reading(journal)
        .run('r1')
        .events({ redact: () => '-' }),
      events,
    );
    await until(() => events.length > 0);
    await goOn(2);
    await there;
    await here;
    expect(asked).toEqual([]);
    expect(only(events, 'token')).toEqual([]);
  });
});
