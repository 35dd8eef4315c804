/** A session's memory is read from its runs: in the order in which the user asked, with what is still open, and with what was attached. */
import { describe, expect, it } from 'vitest';
import { local, type PlannerFunction, type RunView, type Turn } from '#core';
import type { Journal } from '#journal';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { react } from '#planners/react';
import type { MemoryOptions, Run, StartOptions } from '#runtime';
import { scriptedModel } from '#testing';
import { asks, call, finish, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { entriesOf } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

const WINDOW: MemoryOptions = { strategy: 'window' };
const TALK = { tenant: 'local', user: 'ana', session: 'talk' };
let runs = 0;
const talk = () => {
  runs += 1;
  return { ...TALK, run: `run-${runs}` };
};

const ask = (made: World, query: string, more: Partial<StartOptions> = {}): Promise<Run> =>
  start(made, { ...more, identity: talk(), query });

/** What is said; calls and their results by the names of tools. */
const words = (turns: readonly Turn[] | undefined): string[] =>
  (turns ?? []).map(({ role, text, parts = [] }) => {
    const tools = parts.flatMap((part) => ('toolName' in part ? [part.toolName] : []));
    return `${role}: ${[text, ...tools].filter((said) => said !== '').join(' ')}`;
  });

/** Does what the query says, and answers `re <query>`. */
const obeying: PlannerFunction = ({ query, trajectory: { count } }) => {
  if (query.startsWith('hold') && count === 0) return call('hold');
  if (query.startsWith('approve') && count === 0) return call('pay');
  if (query.startsWith('wait') && count === 0) return asks;
  return finish(`re ${query}`);
};
const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });

function session(options: Partial<WorldOptions> = {}) {
  const planner = watched(obeying);
  const held = holding();
  const made = world({ planner, tools: [echo, pay, held.tool], memory: WINDOW, ...options });
  /** What a further run is told, and how long the journal's first entry of it is. */
  const told = async (): Promise<string[]> => {
    await (await ask(made, 'now')).result();
    return words(planner.views.at(-1)?.history);
  };
  return { ...made, planner, held, told };
}

describe('the memory of a session', () => {
  it('is in the order in which the user asked, whatever ended first', async () => {
    const made = session();
    const slow = await ask(made, 'hold: book a table');
    await made.held.entered;
    await (await ask(made, 'no wait, cancel that')).result();
    made.held.release();
    await slow.result();
    expect(await made.told()).toEqual([
      'user: hold: book a table',
      'assistant: hold',
      'tool: hold',
      'assistant: re hold: book a table',
      'user: no wait, cancel that',
      'assistant: re no wait, cancel that',
    ]);
  });

  it('tells a run of what is still open before it: that it is at work, and what it waits for', async () => {
    const made = session();
    await ask(made, 'hold: book a table');
    await made.held.entered;
    await (await ask(made, 'approve the deposit')).result();
    await (await ask(made, 'wait for me')).result();
    expect(await made.told()).toEqual([
      'user: hold: book a table',
      'assistant: hold',
      'tool: hold',
      'assistant: (This is not finished: it is being worked on.)',
      'user: approve the deposit',
      'assistant: pay',
      'tool: pay',
      'assistant: (This is not finished: it waits for an approval of pay.)',
      'user: wait for me',
      "assistant: (This is not finished: it waits for the user's next message.)",
    ]);
    made.held.release();
    await made.runtime.close();
  });

  it('tells of an open run also when the window is past it', async () => {
    const made = session({ memory: { strategy: 'window', turns: 2 } });
    await (await ask(made, 'approve the deposit')).result();
    for (const query of ['1', '2', '3']) await (await ask(made, query)).result();
    expect(await made.told()).toEqual([
      'user: approve the deposit',
      'assistant: pay',
      'tool: pay',
      'assistant: (This is not finished: it waits for an approval of pay.)',
      ...['2', '3'].flatMap((said) => [`user: ${said}`, `assistant: re ${said}`]),
    ]);
  });

  it('is what was known at the start, also for a replay, a fork and a process that goes on later', async () => {
    const path = temporaryFile();
    const seen: string[][] = [];
    const last: string[] = [];
    const planner: PlannerFunction = (view, signal) => {
      if (view.query === 'now') last.push(...words(view.history));
      if (view.query === 'echo') seen.push(words(view.history));
      return view.query === 'echo' && view.trajectory.count < 2 ? asks : obeying(view, signal);
    };
    const life = () => session({ planner, journal: sqliteJournal({ path }) });
    const first = life();
    const open = await ask(first, 'wait here');
    await open.result();
    const run = await ask(first, 'echo');
    await run.result();
    await open.resume({ payload: { message: 'go' } });
    expect(await open.result()).toMatchObject({ status: 'finished' });
    await first.runtime.close();
    await first.journal.close();
    const second = life();
    const later = second.runtime.run(run.id);
    await later.resume({ payload: { message: 'on' } });
    await later.result();
    expect(await later.replay()).toMatchObject({ compared: 2 });
    const fork = await later.fork({ step: 1 });
    await fork.result();
    expect(seen.length).toBeGreaterThanOrEqual(5);
    expect(new Set(seen.map(String))).toEqual(
      new Set(["user: wait here,assistant: (This is not finished: it waits for the user's next message.)"]),
    );
    await second.told();
    expect(last).toEqual([
      'user: wait here\n\ngo',
      'assistant: re wait here',
      'user: echo\n\non',
      "assistant: (This is not finished: it waits for the user's next message.)",
    ]);
    await second.runtime.close();
    await second.journal.close();
  });

  it('has the turns of a run that talked with its user, the last ones of it when there are many', async () => {
    const made = world({
      planner: react({
        model: scriptedModel(({ prompt }) => ({
          text: `reply ${prompt.filter(({ role }) => role === 'user').length}`,
        })),
        converse: true,
      }),
      memory: { strategy: 'window', turns: 3 },
    });
    const run = await ask(made, 'one');
    await run.result();
    for (const message of ['two', 'three', 'four']) {
      await run.resume({ payload: { message } });
      await run.result();
    }
    const next = await ask(made, 'five');
    await next.result();
    const [started] = await entriesOf(made.journal, next, 'started');
    expect(started?.continues).toEqual({ runs: [{ run: run.id, head: expect.any(Number) }], turns: 3 });
    const replayed: string[][] = [];
    const reading = world({
      planner: (view: RunView) => {
        replayed.push(words(view.history));
        return finish();
      },
      memory: { strategy: 'window', turns: 3 },
      journal: made.journal,
    });
    await (await ask(reading, 'six')).result();
    expect(replayed[0]).toEqual([
      'user: four',
      "assistant: reply 4\n\n(This is not finished: it waits for the user's next message.)",
      'user: five',
      "assistant: reply 2\n\n(This is not finished: it waits for the user's next message.)",
    ]);
  });

  it('of a run that a user spoke to while it was at work has the message where it was heard', async () => {
    const made = session();
    const run = await ask(made, 'hold: a table');
    await made.held.entered;
    await run.steer('USER_MESSAGE', { message: 'for two' });
    made.held.release();
    await run.result();
    expect((await made.told()).slice(0, 4)).toEqual([
      'user: hold: a table',
      'assistant: hold',
      'tool: hold',
      'user: for two',
    ]);
  });

  it('goes on without what a damaged run said', async () => {
    const base = memoryJournal();
    let damaged = '';
    const journal = new Proxy(base, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (key === 'read')
          return async (run: string, ...rest: number[]) => {
            const entries = await target.read(run, ...rest);
            return run === damaged ? entries.map((entry) => ({ ...entry, seq: entry.seq + 1 })) : entries;
          };
        return typeof value === 'function' ? value.bind(target) : value;
      },
    }) as Journal;
    const made = session({ journal });
    const run = await ask(made, 'secret');
    await run.result();
    damaged = run.id;
    expect(await made.told()).toEqual([
      'user: (a message that cannot be read any more)',
      'assistant: (The run is damaged.)',
    ]);
  });

  it('stores nothing of it a second time', async () => {
    const made = session({ planner: watched(({ query }) => finish(query === 'now' ? 'x' : 'y'.repeat(30_000))) });
    await (await ask(made, 'z'.repeat(30_000))).result();
    const next = await ask(made, 'now');
    await next.result();
    expect(JSON.stringify(await made.journal.read(next.id)).length).toBeLessThan(2_000);
  });
});

describe('what was attached', () => {
  const photo = { bytes: new Uint8Array([137, 80, 78, 71]), mime: 'image/png', fileName: 'photo.png' } as const;

  it('is sent again in later steps, in later turns, and in the next run of the session', async () => {
    const model = scriptedModel(({ prompt }, index) =>
      index < 4 ? { calls: [{ tool: 'echo', args: { index } }] } : { text: `said ${prompt.length}` },
    );
    const made = world({ planner: react({ model, converse: true }), tools: [echo], memory: WINDOW });
    const run = await ask(made, 'What is this?', { inputs: [photo] });
    await run.result();
    await run.resume({ payload: { message: 'Are you sure?' } });
    await run.result();
    await (await ask(made, 'And the photo of before?')).result();
    const shown = model.calls.map(({ prompt }) =>
      prompt.flatMap(({ content }) =>
        typeof content === 'string' ? [] : content.filter(({ type }) => type === 'file'),
      ),
    );
    expect(shown).toHaveLength(7);
    for (const files of shown) {
      expect(files).toEqual([
        { type: 'file', mediaType: 'image/png', filename: 'photo.png', data: { type: 'data', data: photo.bytes } },
      ]);
    }
    const last = model.calls.at(-1)?.prompt ?? [];
    expect(last[1]?.content).toMatchObject([{ type: 'text', text: 'What is this?' }, { type: 'file' }]);
  });

  it('of a session that others have is not told to them, and what is gone is named', async () => {
    const made = session();
    const run = await ask(made, 'look', {
      inputs: [photo, { artifactRef: 'art_gone', mime: 'image/png', sizeBytes: 3 }],
    });
    await run.result();
    await made.told();
    const parts = made.planner.views.at(-1)?.history[0]?.parts ?? [];
    expect(parts).toMatchObject([{ type: 'text', text: 'look' }, { bytes: photo.bytes }, { artifactRef: 'art_gone' }]);
    expect(parts[2]).not.toHaveProperty('bytes');
    await (await start(made, { identity: local('ben', { session: 'talk' }), query: 'now' })).result();
    expect(made.planner.views.at(-1)?.history).toEqual([]);
  });
});
