/** Watchers on another handle: of another runtime, with a connection of its own to the same file. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { local, type PlannerFunction, type RunEvent } from '#core';
import type { Journal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, type Run, type Runtime } from '#runtime';
import { LoginRequired, type Tool } from '#tools';
import { call, finish, named, parallel, pause } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { echo, make } from '../kit/tools.ts';
import { aborted, gate, until } from '../kit/waiting.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-watchers-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** One run, on the handle of the process that drives it and on that of another. */
async function twoHandles(
  planner: PlannerFunction,
  tools: readonly Tool[],
): Promise<{ run: Run; other: Run; journal: Journal }> {
  const path = join(folder, `${crypto.randomUUID()}.db`);
  const journals = [sqliteJournal({ path }), sqliteJournal({ path })] as const;
  const [first, second] = journals.map((journal) => {
    const runtime = createRuntime({ planner, tools, journal, leaseMs: 600 });
    closing.push(async () => {
      await runtime.close();
      await journal.close();
    });
    return runtime;
  }) as [Runtime, Runtime];
  const run = await first.start('q', { identity: local('ana') });
  return { run, other: second.run(run.id), journal: journals[1] };
}

function lastWords(events: readonly RunEvent[]): string[] {
  const words = ['planner.finish', 'planner.error', 'run.paused'];
  return events.map(({ type }) => type).filter((type) => words.includes(type));
}

const login = make('login', () => {
  throw new LoginRequired('https://login.example');
});
const fails = make('fails', () => {
  throw new Error('no');
});

describe('a watcher on another handle when a run is aborted, suspended, failed', () => {
  it.each<[string, string]>([
    ['aborted through the other handle', 'planner.finish'],
    ['aborted through its own', 'planner.finish'],
    ['suspended by its planner', 'run.paused'],
    ['suspended by a tool', 'run.paused'],
    ['suspended by an operator on the other handle', 'run.paused'],
    ['failed', 'planner.error'],
    ['finished, after every tool of a step has failed', 'planner.finish'],
  ])('%s: each gets exactly one last word, and its stream closes', async (how, word) => {
    const opened = gate();
    const wait = make('wait', (_, { signal }) => Promise.race([opened.opened, aborted(signal)]));
    const { run, other, journal } = await twoHandles(
      ({ trajectory }) => {
        if (trajectory.count === 0) return call('wait');
        if (trajectory.count > 1) return finish();
        if (how === 'failed') throw new Error('no idea');
        if (how === 'suspended by its planner') return pause;
        if (how === 'suspended by a tool') return call('login');
        return parallel(named('fails', 'fails'));
      },
      [wait, login, fails],
    );
    const watching = [collect(run), collect(run), collect(other), collect(other, { from: 2 })];
    await until(async () => (await other.state()).open !== null);
    if (how.startsWith('aborted')) await (how.endsWith('its own') ? run : other).cancel();
    else if (how.includes('operator')) {
      const paused = other.pause();
      await until(async () => (await journal.inbox(run.id)).length > 0);
      await twoBeats(journal, run.id);
      opened.open();
      await paused;
    } else opened.open();
    for (const events of await Promise.all(watching)) {
      expect(lastWords(events)).toEqual([word]);
      expect(events.at(-1)?.type).toBe(word);
    }
    expect(await other.result()).toEqual(await run.result());
  });

  it('a stream that goes on after the answer, which the other handle gave, closes with the next last word', async () => {
    const { run, other } = await twoHandles(
      ({ trajectory: { count } }) => [pause, call('echo'), pause][count] ?? finish(),
      [echo],
    );
    const words: string[] = [];
    for (const [answers, reads] of [
      [other, run],
      [run, other],
    ] as const) {
      words.push(...lastWords(await collect(reads)).slice(-1));
      await until(async () => (await reads.result()).status === 'paused');
      await answers.resume();
      words.push(...lastWords(await collect(answers)).slice(-1));
    }
    expect(words).toEqual(['run.paused', 'run.paused', 'run.paused', 'planner.finish']);
  });
});

/** Until the process that drives the run has renewed its lease twice, and so heard of what is in the inbox. */
async function twoBeats(journal: Journal, run: string): Promise<void> {
  const renewed = async (): Promise<number> => (await journal.get(run))?.lease?.until ?? 0;
  for (let beat = 0; beat < 2; beat += 1) {
    const before = await renewed();
    await until(async () => (await renewed()) > before);
  }
}
