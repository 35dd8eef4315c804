/** Readers that come late, in another process than the one that drives the run. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Delta, RunEvent } from '#core';
import { createRuntime, type Runtime } from '#runtime';
import { builtFile } from '../kit/built.ts';
import { finish, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { until } from '../kit/waiting.ts';

interface Driver {
  readonly kill: () => Promise<void>;
  /** What it says next. */
  readonly line: () => Promise<string>;
  /** Says it, and waits until the planner has gone on. */
  readonly say: (...deltas: readonly Delta[]) => Promise<void>;
  readonly tell: (line: string) => void;
}

function drive(journal: string, mode: 'start' | 'unread' | 'work'): Driver {
  const program = builtFile('test/runtime/late-reader-child.ts');
  const child = spawn(process.execPath, [program, journal, mode], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exit;
  };
  onTestFinished(kill);
  child.stdin.on('error', () => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => (await lines.next()).value ?? 'ended';
  const tell = (text: string): void => void child.stdin.write(`${text}\n`);
  const say = async (...deltas: readonly Delta[]): Promise<void> => {
    for (const delta of deltas) {
      tell(JSON.stringify(delta));
      expect(await line()).toBe('said');
    }
  };
  return { kill, line, say, tell };
}

interface Shown {
  readonly events: RunEvent[];
  /** What a reader has put together of the step, by channel and call, who takes back what was said at each reset. */
  readonly of: (step: number) => Record<string, string>;
  readonly over: Promise<void>;
}

function show(stream: AsyncIterable<RunEvent>): Shown {
  const events: RunEvent[] = [];
  const over = (async () => {
    for await (const event of stream) events.push(event);
  })();
  const of = (step: number): Record<string, string> => {
    const all: Record<string, string> = {};
    for (const event of events) {
      if (event.type === 'token.reset' && event.step === step) for (const name of Object.keys(all)) delete all[name];
      if ((event.type !== 'token' && event.type !== 'tool.input') || event.step !== step) continue;
      const channel = event.type === 'token' ? event.channel : event.callId;
      // Neither a gap nor a repetition.
      expect(event.offset).toBe(all[channel]?.length ?? 0);
      all[channel] = (all[channel] ?? '') + event.text;
    }
    return all;
  };
  return { events, of, over };
}

function reader(journal: string): Runtime {
  const runtime = createRuntime({ planner: script(finish()), journal });
  onTestFinished(() => runtime.close());
  return runtime;
}

const text = (words: string): Delta => ({ type: 'text', text: words });

async function comesLate(journal: string): Promise<void> {
  const driver = drive(journal, 'start');
  expect(await driver.line()).toBe('asked 0 true');
  await driver.say({ type: 'reasoning', text: 'hm' }, text('I '), text('look'));
  await driver.say({ type: 'input', callId: 'c1', tool: 'echo', text: '{' });
  const runtime = reader(journal);
  const shown = show(runtime.run('late').events());
  const leaves = new AbortController();
  const session = runtime.session('s', { identity: { tenant: 'local', user: 'ana' } });
  const inSession = show(session.events({ signal: leaves.signal }));
  const before = { reasoning: 'hm', text: 'I look', c1: '{' };
  await until(() => Object.keys(shown.of(0)).length === 3);
  expect(shown.of(0)).toEqual(before);
  await driver.say(text(' there'), { type: 'input', callId: 'c1', tool: 'echo', text: '}' });
  const whole = { reasoning: 'hm', text: 'I look there', c1: '{}' };
  await until(() => shown.of(0)['c1'] === '{}');
  expect(shown.of(0)).toEqual(whole);
  await until(() => inSession.of(0)['c1'] === '{}');
  expect(inSession.of(0)).toEqual(whole);
  driver.tell('call');
  expect(await driver.line()).toBe('asked 1 true');
  await driver.say(text('It is'));
  await until(() => shown.of(1)['text'] === 'It is');
  await driver.say({ type: 'reset' }, text('Done'));
  await until(() => shown.of(1)['text'] === 'Done');
  driver.tell('end');
  await shown.over;
  const types = shown.events.map(({ type }) => type);
  expect(types.filter((type) => !['token', 'token.reset', 'tool.input'].includes(type))).toEqual([
    'run.started',
    'planner.decision',
    'tool.invoked',
    'tool.completed',
    'planner.decision',
    'planner.finish',
  ]);
  // What was said of a step stands before its decision.
  const decided = types.indexOf('planner.decision');
  const placed = (step: number) =>
    shown.events.flatMap((event, index) => (event.type === 'token' && event.step === step ? [index] : []));
  expect(Math.max(...placed(0))).toBeLessThan(decided);
  expect(Math.min(...placed(1))).toBeGreaterThan(types.indexOf('tool.completed'));
  expect(shown.of(0)).toEqual(whole);
  expect(await driver.line()).toBe('finished');
  leaves.abort();
  await inSession.over;
}

describe('a reader in another process', () => {
  it('gets what was said so far, then the rest, and each character once (SQLite)', () => comesLate(temporaryFile()));

  it('gets the same on Postgres', async () => comesLate(await freshSchema()));

  it('takes back what a driver has said that was killed, and gets the text of the next one', async () => {
    const journal = temporaryFile();
    const first = drive(journal, 'start');
    expect(await first.line()).toBe('asked 0 true');
    await first.say(text('Hel'));
    const shown = show(reader(journal).run('late').events());
    await until(() => shown.of(0)['text'] === 'Hel');
    await first.kill();
    const second = drive(journal, 'work');
    expect(await second.line()).toBe('works');
    expect(await second.line()).toBe('asked 0 true');
    await second.say(text('Good '));
    await until(() => shown.of(0)['text'] === 'Good ');
    await second.say(text('day'));
    await until(() => shown.of(0)['text'] === 'Good day');
    second.tell('end');
    await shown.over;
    expect(shown.events.filter(({ type }) => type === 'token.reset')).toHaveLength(1);
    expect(shown.events.find(({ type }) => type === 'planner.finish')).toMatchObject({ payload: 'Good day' });
  });

  it('takes over itself, and takes back what the one before has said', async () => {
    const journal = temporaryFile();
    const first = drive(journal, 'start');
    expect(await first.line()).toBe('asked 0 true');
    await first.say(text('Hel'));
    const told: Delta[] = [text('Hello')];
    const runtime = createRuntime({
      journal,
      takeoverGraceMs: 0,
      tools: [],
      planner: {
        name: 'told',
        async *next() {
          yield* told;
          return { decision: finish('Hello'), text: 'Hello' };
        },
      },
    });
    onTestFinished(() => runtime.close());
    const shown = show(runtime.run('late').events());
    await until(() => shown.of(0)['text'] === 'Hel');
    await first.kill();
    await runtime.run('late').resume({ acceptChanges: true } as never);
    await shown.over;
    expect(shown.of(0)).toEqual({ text: 'Hello' });
    expect(shown.events.filter(({ type }) => type === 'token.reset')).toHaveLength(1);
  });

  it('has planners stream, so that whoever comes later gets what was said before', async () => {
    const journal = temporaryFile();
    const first = drive(journal, 'unread');
    // Nobody has ever read anything.
    expect(await first.line()).toBe('asked 0 false');
    const shown = show(reader(journal).run('late').events());
    expect(await first.line()).toBe('read');
    // The process hears of the reader, and then reads which run it is: a slow disk may let a step pass meanwhile.
    let step = 0;
    for (let said = 'asked 0 false'; said !== `asked ${step} true`; said = await first.line()) {
      expect(said).toBe(`asked ${step} false`);
      first.tell('call');
      step += 1;
    }
    await first.say(text('Hi'));
    await until(() => shown.of(step)['text'] === 'Hi');
    first.tell('end');
    await shown.over;
    expect(shown.of(step)).toEqual({ text: 'Hi' });
  });
});

async function freshSchema(): Promise<string> {
  return `${await postgresUrl()}?schema=late_${crypto.randomUUID().slice(0, 8)}`;
}
