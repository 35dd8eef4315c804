/** Names and texts of waits, works and streams that are odd are refused, or kept as they are: in both stores, over a restart. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { call, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { observations, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const ODD = ['__proto__', 'constructor', 'toString', ' a b ', '🙂', 'ü'.repeat(60), '%_', "'; --", 'a/../b'];
const HALF = 'a\ud83d';

describe.each(['memory', 'sqlite'])('on %s', (store) => {
  it.each(ODD)('%j is a key, a name of a work, and a name of a stream', async (name) => {
    const path = temporaryFile();
    const journal = store === 'memory' ? memoryJournal() : sqliteJournal({ path });
    onTestFinished(() => journal.close());
    let works = 0;
    const tool = make('odd', async (_, context) => {
      const work = await context.once(name, () => {
        works += 1;
        return name;
      });
      await context.stream(name).write(name);
      return [work, await context.event({ key: name }), await context.ask({ question: name })];
    });
    const options = { planner: script(call('odd')), tools: [tool], journal };
    const first = world(options);
    const run = await start(first);
    await until(async () => (await first.runtime.waiting({ key: name })).length === 1);
    expect(await first.runtime.signal(name, { got: name }, { id: name })).toMatchObject({ runs: [run.id] });
    expect(await first.runtime.signal(name, { got: name }, { id: name })).toMatchObject({ isNew: false });
    await until(async () => (await first.runtime.waiting({ run: run.id, for: 'answer' })).length === 1);
    await first.runtime.close();
    const second = world(options);
    const again = second.runtime.run(run.id);
    expect((await pausesOf(again))[0]?.payload?.['message']).toBe(name);
    await again.answer(undefined, { kind: 'answer', value: name });
    await again.result();
    expect(observations(await again.state())).toEqual([[name, { got: name }, name]]);
    expect(works).toBe(1);
    const rows: unknown[] = [];
    for await (const { value } of again.stream(name, { follow: false })) rows.push(value);
    expect(rows).toEqual([name, name, name]);
    await second.runtime.close();
  });
});

it.each([
  ['nothing', '', ''],
  ['too much', 'x'.repeat(1_000_000), 'x'.repeat(1_000_000)],
  ['half a letter', HALF, undefined],
])('%s is refused as a key and as a name, and as a question', async (_, text, question) => {
  const journal = memoryJournal();
  const codes: unknown[] = [];
  const tool = make('odd', async (__, context) => {
    const code = async (work: () => Promise<unknown>) =>
      codes.push(
        await Promise.resolve()
          .then(work)
          .then(
            () => 'ok',
            (error) => error.code,
          ),
      );
    await code(() => context.once(text, () => 1));
    await code(() => context.event({ key: text }));
    await code(async () => context.stream(text).write(1));
    if (question !== undefined) await code(() => context.ask({ question }));
    return 'done';
  });
  const { runtime } = world({ planner: script(call('odd')), tools: [tool], journal });
  const run = await start({ runtime });
  await run.result();
  const refused = ['invalid_config', 'invalid_config', 'stream_refused', 'invalid_config'];
  expect(codes).toEqual(question === undefined ? refused.slice(0, 3) : refused);
  await expect(runtime.signal(text, 1)).rejects.toMatchObject({ code: 'payload_invalid' });
  await expect(runtime.signal('k', 1, { id: text })).rejects.toMatchObject({ code: 'payload_invalid' });
});

it('half a letter in a question, as a model may cut it off, is shown as one that is missing', async () => {
  const tool = make('asks', (_, context) => context.ask({ question: HALF }));
  const { runtime } = world({ planner: script(call('asks')), tools: [tool] });
  const run = await start({ runtime });
  expect((await pausesOf(run))[0]?.payload?.['message']).toBe(HALF.toWellFormed());
});
