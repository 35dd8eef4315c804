/** What a call gives on its way: told to whoever reads its run or a run above it, and to nobody else. */
import { describe, expect, it } from 'vitest';
import { type Json, local, type PlannerFunction, type RunEvent } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, type EventOptions, type Run, type Runtime } from '#runtime';
import { VirtualClock } from '#testing';
import type { Tool, ToolContext } from '#tools';
import { call, parallel, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { kindsOf, observations, outcomes } from '../kit/run-record.ts';
import { PARENT, plays, spawning, spawns } from '../kit/tasks.ts';
import { echo, make } from '../kit/tools.ts';
import { type Gate, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

interface Reader {
  readonly events: RunEvent[];
  readonly over: Promise<void>;
}

/** A reader that listens when this returns. */
async function reading(run: Run, options: EventOptions = {}): Promise<Reader> {
  const stream = run.events(options);
  const events: RunEvent[] = [];
  const first = await stream.next();
  if (first.value !== undefined) events.push(first.value);
  const rest = async (): Promise<void> => {
    for await (const event of stream) events.push(event);
  };
  return { events, over: rest() };
}

/** Which chunks a reader was told of: of which run, attempt and index. */
const told = ({ events }: Pick<Reader, 'events'>) =>
  only(events, 'tool.chunk').map(({ run, attempt, index, chunk }) => [run, attempt, index, chunk]);

interface Speaking {
  readonly tool: Tool;
  readonly entered: Promise<void>;
  readonly go: Gate;
}

/** A tool that waits until it is let go, and then speaks. */
function speaking(speak: (context: ToolContext) => unknown, more: Partial<Tool> = {}): Speaking {
  const entered = gate();
  const go = gate();
  const tool = make(
    'speaks',
    async (_, context) => {
      entered.open();
      await go.opened;
      return speak(context);
    },
    more,
  );
  return { tool, entered: entered.opened, go };
}

const twice = ({ emit }: ToolContext): string => {
  emit('one');
  emit({ two: [2] });
  return 'value';
};

/** On a database in a file, and the clock of the system. */
async function stored(planner: PlannerFunction, tools: readonly Tool[], use: (runtime: Runtime) => Promise<void>) {
  const runtime = createRuntime({
    planner: { name: 'function', next: planner },
    tools,
    journal: temporaryFile(),
    random: () => 0,
  });
  try {
    await use(runtime);
  } finally {
    await runtime.close();
  }
}

describe('a chunk', () => {
  it('RT-19 EV-13 is told between the beginning and the end of its call, numbered from 1, and is not recorded', async () => {
    const { tool, entered, go } = speaking(twice);
    await stored(script(call('speaks')), [tool], async (runtime) => {
      const run = await start({ runtime }, { identity: PARENT });
      await entered;
      const reader = await reading(run);
      go.open();
      await reader.over;
      const at = { type: 'tool.chunk', run: 'p', step: 0, call: 0, tool: 'speaks', attempt: 1 };
      expect(only(reader.events, 'tool.chunk')).toMatchObject([
        { ...at, index: 1, chunk: 'one', identity: { run: 'p', user: 'ana' } },
        { ...at, index: 2, chunk: { two: [2] } },
      ]);
      const types = reader.events.map(({ type }) => type);
      expect(types.slice(types.indexOf('tool.invoked'))).toEqual([
        'tool.invoked',
        'tool.chunk',
        'tool.chunk',
        'tool.completed',
        'planner.decision',
        'planner.finish',
      ]);
      // Read again, there is all but the chunks.
      const later = await collect(run);
      expect(later).toEqual(reader.events.filter(({ type }) => type !== 'tool.chunk'));
    });
  });

  it('RT-23 is told to readers of the run and of each run above it, and to no others', async () => {
    const { tool, entered, go } = speaking(twice);
    const planner = plays({
      q: script(spawns('child', { task: 'foreground' })),
      child: script(parallel([{ tool: 'echo', args: {} }, spawning('grandchild', { kind: 'foreground' })])),
      grandchild: script(call('speaks')),
      stranger: script(call('holds')),
    });
    const held = gate();
    const holds = make('holds', () => held.opened);
    await stored(planner, [tool, echo, holds], async (runtime) => {
      const root = await start({ runtime }, { identity: PARENT });
      const stranger = await start({ runtime }, { query: 'stranger', identity: local('ana', { run: 'p.1' }) });
      await entered;
      const grandchild = 'p.0.0.0.1';
      const ids = ['p', 'p.0.0', grandchild];
      const readers = await Promise.all(ids.map((id) => reading(runtime.run(id))));
      const beside = await reading(stranger);
      go.open();
      await Promise.all(readers.map(({ over }) => over));
      held.open();
      await beside.over;
      const chunks = [
        [grandchild, 1, 1, 'one'],
        [grandchild, 1, 2, { two: [2] }],
      ];
      expect(readers.map(told)).toEqual([chunks, chunks, chunks]);
      expect(readers.map(({ events }) => only(events, 'tool.chunk')[0]?.identity.run)).toEqual(ids);
      expect(told(beside)).toEqual([]);
      expect((await root.result()).status).toBe('finished');
    });
  });

  it('RT-23 W90 never becomes an input of another node, nor anything else of the run', async () => {
    const given: Json[] = [];
    const takes = make('takes', (args) => {
      given.push(args);
      return args;
    });
    const { tool, entered, go } = speaking(twice);
    const plan = script({
      kind: 'call_parallel',
      plan: 'p',
      branches: [
        { id: 'a', tool: 'speaks', args: {} },
        { id: 'b', tool: 'takes', args: { of: { $from: 'a' } } },
      ],
    });
    const made = world({ planner: plan, tools: [tool, takes] });
    const run = await start(made);
    await entered;
    const reader = await reading(run);
    go.open();
    await reader.over;
    expect(told(reader)).toHaveLength(2);
    expect(given).toEqual([{ of: 'value' }]);
    expect(JSON.stringify(await made.journal.read(run.id))).not.toContain('"one"');
    expect(await kindsOf(made.journal, run)).toEqual([
      'started',
      'moved',
      'call_ended',
      'call_ended',
      'moved',
      'finished',
    ]);
  });

  it('is what it was when it was given, whatever becomes of the object', async () => {
    const { tool, entered, go } = speaking(({ emit }) => {
      const chunk = { words: ['a'], at: new Date(0) };
      emit(chunk);
      chunk.words.push('b');
      return 1;
    });
    const run = await start(world({ planner: script(call('speaks')), tools: [tool] }));
    await entered;
    const reader = await reading(run);
    go.open();
    await reader.over;
    const [event] = only(reader.events, 'tool.chunk');
    expect(event?.chunk).toEqual({ words: ['a'], at: '1970-01-01T00:00:00.000Z' });
    expect(Object.isFrozen(event?.chunk)).toBe(true);
  });

  it.each([true, false])('that is no JSON is an error of the tool (somebody reads: %s)', async (isRead) => {
    const { tool, entered, go } = speaking(({ emit }) => emit({ deep: [() => 1] }));
    const run = await start(world({ planner: script(call('speaks')), tools: [tool] }));
    await entered;
    const reader = isRead ? await reading(run) : undefined;
    go.open();
    await run.result();
    await reader?.over;
    expect(observations(await run.state())).toMatchObject([{ error: { code: 'unserializable' } }]);
  });

  it('is dropped while nobody reads; its number says what a later reader has missed', async () => {
    const { tool, entered, go } = speaking(async ({ emit }) => {
      emit('later');
      return 1;
    });
    const early: Tool = {
      ...tool,
      execute: (args, context) => {
        context.emit('early');
        context.emit('early, too');
        return tool.execute(args, context);
      },
    };
    const run = await start(world({ planner: script(call('speaks')), tools: [early] }));
    await entered;
    const reader = await reading(run);
    go.open();
    await reader.over;
    expect(told(reader)).toEqual([[run.id, 1, 3, 'later']]);
  });

  it('is not told to those who only wait for the result', async () => {
    const { tool, entered, go } = speaking(twice);
    const run = await start(world({ planner: script(call('speaks')), tools: [tool] }));
    await entered;
    const result = run.result();
    go.open();
    expect(await result).toMatchObject({ status: 'finished' });
  });
});

describe('an attempt', () => {
  it('that is made again begins anew with its numbers', async () => {
    const { tool, entered, go } = speaking(
      ({ emit, attempt }) => {
        emit(`a${attempt}`);
        if (attempt === 1) emit('b1');
        if (attempt < 3) throw Object.assign(new Error('busy'), { retryable: true });
        return attempt;
      },
      { effect: 'read' },
    );
    await stored(script(call('speaks')), [tool], async (runtime) => {
      const run = await start({ runtime }, { identity: PARENT });
      await entered;
      const reader = await reading(run);
      go.open();
      await reader.over;
      expect(told(reader)).toEqual([
        ['p', 1, 1, 'a1'],
        ['p', 1, 2, 'b1'],
        ['p', 2, 1, 'a2'],
        ['p', 3, 1, 'a3'],
      ]);
    });
  });

  it('that has ended is heard no more, and what it says is still checked', async () => {
    let emit: ToolContext['emit'] = () => {};
    const says = make('says', (_, context) => {
      emit = context.emit;
      emit('in time');
      return 1;
    });
    const { tool, entered, go } = speaking(twice);
    const run = await start(world({ planner: script(call('says'), call('speaks')), tools: [says, tool] }));
    await entered;
    const reader = await reading(run);
    emit('too late');
    expect(() => emit(() => 1)).toThrow(expect.objectContaining({ code: 'unserializable' }));
    go.open();
    await reader.over;
    expect(told(reader).map(([, , , chunk]) => chunk)).toEqual(['one', { two: [2] }]);
  });

  it('that was given up is heard no more, not even while the next one runs', async () => {
    const second = gate();
    const emits: ToolContext['emit'][] = [];
    const slow = make(
      'slow',
      (_, { emit, attempt, signal }) => {
        emits.push(emit);
        signal.addEventListener('abort', () => emit('aborted'));
        emit(`begin ${attempt}`);
        if (attempt === 1) return new Promise(() => {});
        return second.opened;
      },
      { effect: 'read', timeoutMs: 1_000 },
    );
    const made = world({ planner: script(call('echo'), call('slow')), tools: [echo, slow], random: () => 0 });
    const run = await start(made);
    await until(() => emits.length === 1);
    const reader = await reading(run);
    emits[0]?.('in time');
    made.clock.advance(1_000);
    await quiet();
    made.clock.advance(0);
    await until(() => emits.length === 2);
    emits[0]?.('too late');
    emits[1]?.('of the second');
    second.open();
    await reader.over;
    expect(told(reader)).toEqual([
      [run.id, 1, 2, 'in time'],
      [run.id, 2, 1, 'begin 2'],
      [run.id, 2, 2, 'of the second'],
    ]);
    expect(outcomes(await run.state(), 1)).toEqual(['value']);
  });
});

describe('readers', () => {
  it('RT-19 who are slow hold up nobody, and miss the oldest', async () => {
    const count = 5_000;
    const { tool, entered, go } = speaking(({ emit }) => {
      for (let index = 1; index <= count; index += 1) emit(index);
      return 'done';
    });
    const run = await start(world({ planner: script(call('speaks')), tools: [tool] }));
    await entered;
    const slow = run.events();
    await slow.next();
    const quick = await reading(run);
    go.open();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    await quick.over;
    const late: RunEvent[] = [];
    for await (const event of slow) late.push(event);
    const indexes = only(late, 'tool.chunk').map(({ index }) => index);
    expect(indexes.at(-1)).toBe(count);
    expect(indexes).toEqual(Array.from({ length: 4_096 }, (_, at) => count - 4_095 + at));
    expect(late.at(-1)?.type).toBe('planner.finish');
  });

  it('RT-23 of a run that waits for its task get the last chunk before the end of the task, however slow they are', async () => {
    const said = gate();
    const last = gate();
    const says = make('says', async (_, { emit }) => {
      await said.opened;
      emit('first');
      await last.opened;
      emit('last');
      return 1;
    });
    const planner = plays({ q: script(spawns('child', { task: 'foreground' })), child: script(call('says')) });
    await stored(planner, [says], async (runtime) => {
      const run = await start({ runtime }, { identity: PARENT });
      const stream = run.events();
      const next = async (): Promise<RunEvent | undefined> => (await stream.next()).value ?? undefined;
      while ((await next())?.type !== 'task.spawned');
      said.open();
      expect(await next()).toMatchObject({ type: 'tool.chunk', chunk: 'first' });
      last.open();
      await run.result();
      expect(await next()).toMatchObject({ type: 'tool.chunk', chunk: 'last' });
      expect(await next()).toMatchObject({ type: 'task.completed' });
      await stream.return();
    });
  });

  it('get those that they have heard before its end, also when the journal had that when it was first read', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const read = gate();
    let isSlow = false;
    const journal = changed(shared, {
      read: async (run, from) => {
        if (isSlow) await read.opened;
        return shared.read(run, from);
      },
    });
    const { tool, entered, go } = speaking(twice);
    const held = gate();
    const holds = make('holds', () => held.opened);
    const made = world({ planner: script(call('speaks'), call('holds')), tools: [tool, holds], journal, clock });
    const run = await start(made);
    await entered;
    isSlow = true;
    const reader = reading(run);
    go.open();
    await until(async () => (await shared.read(run.id)).length === 4);
    read.open();
    held.open();
    const { events, over } = await reader;
    await over;
    const types = events.map(({ type }) => type).filter((type) => type === 'tool.chunk' || type === 'tool.completed');
    expect(types.slice(0, 3)).toEqual(['tool.chunk', 'tool.chunk', 'tool.completed']);
  });

  it('with redact get none, as a secret may be cut in two by them; others do', async () => {
    const { tool, entered, go } = speaking(({ emit }) => {
      emit('pass');
      emit('word');
      return 'password';
    });
    const run = await start(world({ planner: script(call('speaks')), tools: [tool] }));
    await entered;
    const redact = (text: string): string => text.replaceAll('password', '***');
    const [plain, careful] = [await reading(run), await reading(run, { redact })];
    go.open();
    await Promise.all([plain.over, careful.over]);
    expect(told(plain)).toHaveLength(2);
    expect(told(careful)).toEqual([]);
    expect(only(careful.events, 'tool.completed')[0]?.outcome).toEqual({ kind: 'value', value: '***' });
  });
});

describe('context.meta', () => {
  it('is what the run was started with, frozen, and empty without', async () => {
    const seen: unknown[] = [];
    const looks = make('looks', (_, { meta }) => {
      seen.push(meta, Object.isFrozen(meta));
      return 1;
    });
    const made = world({ planner: script(call('looks')), tools: [looks] });
    await (await start(made, { context: { meta: { route_policy: { by: 'refund' } } } })).result();
    await (await start(made)).result();
    expect(seen).toEqual([{ route_policy: { by: 'refund' } }, true, {}, true]);
  });
});
