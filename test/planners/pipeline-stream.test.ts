import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '#core';
import { type PipelineOptions, pipeline } from '#planners/pipeline';
import { runView, type ScriptedReply, scriptedModel, toolView } from '#testing';
import { listen } from '../kit/ask.ts';
import { collect } from '../kit/events.ts';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { until } from '../kit/waiting.ts';
import { start } from '../kit/world.ts';
import {
  branchesIn,
  call,
  end,
  type GivenStep,
  lines,
  pipelineWorld,
  play,
  row,
  saidIn,
  search,
  unavailable,
  words,
} from './pipeline-play.ts';

const FINISH = '{"type":"finish"}';

/** A model whose stream is written by the test, as it goes. */
function writtenModel(): { model: LanguageModelV4; write(text: string): void; close(): void; isAborted(): boolean } {
  const { readable, writable } = new TransformStream<LanguageModelV4StreamPart>(
    {},
    { highWaterMark: 1_000 },
    { highWaterMark: 1_000 },
  );
  const writer = writable.getWriter();
  let aborted = false;
  const send = (part: LanguageModelV4StreamPart): void => void writer.write(part).catch(() => {});
  writer.closed.catch(() => {
    aborted = true;
  });
  const model: LanguageModelV4 = {
    ...scriptedModel([]),
    async doStream() {
      send({ type: 'stream-start', warnings: [] });
      send({ type: 'text-start', id: 't' });
      return { stream: readable };
    },
  };
  return {
    model,
    write: (delta) => send({ type: 'text-delta', id: 't', delta }),
    close() {
      const usage = {
        inputTokens: { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 1, text: undefined, reasoning: undefined },
      };
      send({ type: 'text-end', id: 't' });
      send({ type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage });
      writer.close().catch(() => {});
    },
    isAborted: () => aborted,
  };
}

const streamed = (model: PipelineOptions['model'], more: Partial<PipelineOptions> = {}) =>
  play({ pipeline: { model, stream: true, ...more } });

describe('AG-32 lines', () => {
  const steps = [search('a'), search('b', { $from: 'a', path: '/about' }, { after: ['a'] }), search('c'), end()];
  const text = [...steps.map(row), FINISH].join('\n');

  it.each<[string, string]>([
    ['as they are', text],
    ['with \\r\\n and blank lines', text.replaceAll('\n', '\r\n\r\n')],
    ['with words and a fence around them', `Here is the plan:\n\`\`\`json\n${text}\n\`\`\``],
    ['without the line that ends the plan', text.slice(0, -FINISH.length - 1)],
    ['as steps without a frame', steps.map((step) => JSON.stringify(step)).join('\n')],
  ])('%s: the steps run', async (_, reply) => {
    const { ran, result } = await streamed(scriptedModel([words(reply)]));
    expect(result).toMatchObject({ reason: 'goal', payload: 'the end' });
    expect(ran.toSorted()).toEqual(['search a', 'search a', 'search c']);
  });

  it('are joined over chunks of any size', async () => {
    for (const size of [1, 2, 7, 50, 1_000]) {
      const written = writtenModel();
      for (let at = 0; at < text.length; at += size) written.write(text.slice(at, at + size));
      written.close();
      const { ran, steps: taken } = await streamed(written.model);
      expect(ran.toSorted()).toEqual(['search a', 'search a', 'search c']);
      expect(branchesIn(taken[0]).map(({ id }) => id)).toEqual(['a', 'b', 'c', 'end']);
    }
  });
});

describe('running as the lines arrive', () => {
  it('a step runs as soon as what it waits for is there, while the model goes on; a finish waits for the whole plan', async () => {
    const written = writtenModel();
    const made = pipelineWorld({ pipeline: { model: written.model, stream: true } });
    const run = await start(made, { query: 'Find it' });
    written.write(`${row(end({ $from: 'late' }))}\n`);
    written.write(`${row(search('b', { $from: 'late', path: '/about' }))}\n`);
    written.write(`${row(search('a', 'a', { after: [] }))}\n`);
    await until(() => made.ran.length === 1);
    expect(made.ran).toEqual(['search a']);
    written.write(`${row(search('late', 'x', { after: [] }))}\n`);
    await until(() => made.ran.length === 3);
    expect(made.ran).toEqual(['search a', 'search x', 'search x']);
    expect((await run.state()).ending).toBeNull();
    written.close();
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: { about: 'x' } });
    const [step] = (await run.state()).steps;
    expect(branchesIn(step).map(({ id }) => id)).toEqual(['a', 'late', 'b', 'end']);
  });

  it('steps follow one another, but for those that say what they wait for', async () => {
    const given = [
      search('a'),
      search('b'),
      search('c', 'c', { after: ['a'] }),
      search('d'),
      { ...call('read', 'm'), type: 'message', input: 'hi' },
    ];
    const { steps } = await streamed(scriptedModel([lines(...(given as GivenStep[]), end())]));
    const after = Object.fromEntries(branchesIn(steps[0]).map(({ id, after: before = [] }) => [id, before]));
    expect(after).toEqual({ a: [], b: ['a'], c: ['a'], d: ['c'], m: ['b', 'd'], end: ['m'] });
  });

  it('AG-05 without `stream` nothing runs before the whole plan is there and valid, also in lines', async () => {
    const written = writtenModel();
    const seen: number[] = [];
    const model: LanguageModelV4 = {
      ...written.model,
      async doGenerate(request) {
        seen.push(made.ran.length);
        return scriptedModel([lines(search('a'), search('b'), end())]).doGenerate(request);
      },
    };
    const made = pipelineWorld({ pipeline: { model, template: 'plan-ndjson' } });
    const run = await start(made, { query: 'Find it' });
    expect(await run.result()).toMatchObject({ reason: 'goal' });
    expect(seen).toEqual([0]);
    const entries = await made.journal.read(run.id);
    expect(entries.map(({ kind }) => kind)).not.toContain('plan_grown');
  });

  it('AG-22 a forbidden step is not run, and neither is what hangs on it', async () => {
    const model = scriptedModel([
      lines(search('a'), call('erase', 'e', { after: [] }), search('b', { $from: 'e', path: '/about' }), end()),
      lines(search('e', 'instead')),
    ]);
    const { ran, tries, result, steps } = await play({
      pipeline: { model, stream: true },
      policy: ({ tool }) => (tool === 'erase' ? { deny: 'no erasing' } : 'allow'),
    });
    expect(ran.toSorted()).toEqual(['search a', 'search instead', 'search instead']);
    expect(tries.map(({ result: came }) => came)).toEqual(['forbidden', 'valid']);
    expect(steps.flatMap(branchesIn).map(({ tool }) => tool)).not.toContain('erase');
    expect(result).toMatchObject({ reason: 'goal' });
  });

  it('concurrency is that of the whole plan', async () => {
    const model = scriptedModel([lines(search('a'), end())]);
    const { steps } = await streamed(model, { concurrency: 20 });
    expect(steps[0]?.decision).toMatchObject({ concurrency: 20 });
    expect(steps[0]).not.toHaveProperty('error');
  });
});

describe('AG-33 a bad line', () => {
  const BAD_LINE = '{"type":"step","step":{"id":"three", oops}}';

  it('keeps what is good, which runs, and asks once for the rest', async () => {
    const model = scriptedModel([
      lines(search('one'), search('two'), BAD_LINE, search('four', { $from: 'three', path: '/about' }), end()),
      lines(search('three', 'x', { after: [] })),
    ]);
    const { ran, tries, result, steps } = await streamed(model);
    expect(result).toMatchObject({ reason: 'goal', payload: 'the end' });
    expect(ran).toEqual(['search one', 'search two', 'search x', 'search x']);
    expect(tries.map(({ purpose, previous, result: came }) => [purpose, previous, came])).toEqual([
      ['plan', undefined, 'invalid'],
      ['repair', 1, 'valid'],
    ]);
    expect(tries[0]?.faults).toMatchObject([{ code: 'plan_line' }]);
    const asked = saidIn(model.calls[1] as never);
    const kept = asked.slice(asked.indexOf('<kept_steps>'), asked.indexOf('</kept_steps>'));
    for (const id of ['one', 'two', 'four', 'end']) expect(kept).toContain(`"id":"${id}"`);
    expect(asked).toContain('Line 3');
    expect(steps).toHaveLength(1);
    expect(branchesIn(steps[0]).map(({ id }) => id)).toEqual(['one', 'two', 'three', 'four', 'end']);
  });

  it('kept steps that are given again as they are change nothing; with other content they are a fault', async () => {
    const again = scriptedModel([lines(search('one'), BAD_LINE, end()), lines(search('one'), search('three'), end())]);
    expect((await streamed(again)).ran).toEqual(['search one', 'search three']);
    const other = scriptedModel([
      lines(search('one'), BAD_LINE, end()),
      lines(search('one', 'other'), search('three')),
    ]);
    const { tries, ran } = await streamed(other, { replans: 0 });
    expect(tries.at(-1)?.faults).toMatchObject([{ code: 'step_id_duplicate', step: 'one' }]);
    expect(ran).not.toContain('search other');
  });

  it('the rest is asked for once; then the plan is closed without it, and the rest is planned when what runs has ended', async () => {
    const model = scriptedModel([
      lines(search('one'), BAD_LINE, end({ $from: 'one' })),
      lines(BAD_LINE),
      lines(search('three', { $from: 'one', path: '/about' }), end('second end', 'end2')),
    ]);
    const unasked = scriptedModel([], { modelId: 'unasked' });
    const { ran, steps, result, tries } = await streamed([model, unasked], { repairRetries: 3 });
    expect(steps[0]?.error).toMatchObject({ code: 'plan_invalid' });
    expect(steps[0]?.remarks).toHaveLength(2);
    expect(ran).toEqual(['search one', 'search one']);
    expect(result).toMatchObject({ reason: 'goal', payload: 'second end' });
    expect(tries.map(({ purpose }) => purpose)).toEqual(['plan', 'repair', 'rest']);
  });

  it('a plan of which nothing is good is tried as any other', async () => {
    const a = scriptedModel(() => lines(call('teleport', 'x')), { modelId: 'a' });
    const b = scriptedModel([lines(search('b'), end())], { modelId: 'b' });
    const { ran, tries } = await streamed([a, b]);
    expect(ran).toEqual(['search b']);
    expect(tries.map(({ model, purpose }) => [model, purpose])).toEqual([
      ['a', 'plan'],
      ['a', 'repair'],
      ['b', 'plan'],
    ]);
  });

  it('a stream that breaks off after steps of it run is not begun anew: the next model is asked for the rest', async () => {
    const first = lines(search('one'), search('two'));
    const a = scriptedModel([{ ...first, error: unavailable() }], { modelId: 'a' });
    const b = scriptedModel([lines(search('three'), end())], { modelId: 'b' });
    const { ran, tries, result } = await streamed([a, b]);
    expect(a.calls).toHaveLength(1);
    expect(ran).toEqual(['search one', 'search two', 'search three']);
    expect(tries.map(({ result: came }) => came)).toEqual(['failed', 'valid']);
    expect(saidIn(b.calls[0] as never)).toContain('<kept_steps>');
    expect(result).toMatchObject({ reason: 'goal' });
  });

  it('one that breaks off before that is begun anew, as any call', async () => {
    const model = scriptedModel([
      { text: '{"type":"reasoning","text":"hm"}\n{"type":', error: unavailable() },
      lines(search('one'), end()),
    ]);
    const { ran, tries } = await streamed(model);
    expect(ran).toEqual(['search one']);
    expect(tries.map(({ result }) => result)).toEqual(['valid']);
  });

  it('a reply that is cut off says so, unless it says that the plan is whole', async () => {
    const cut: ScriptedReply = { ...words(`${row(search('one'))}\n{"type":"step","st`), finish: 'length' };
    const { tries, ran } = await streamed(scriptedModel([cut, lines(search('two'), end())]));
    expect(tries[0]?.faults.map(({ code }) => code)).toEqual(['plan_line', 'plan_cut']);
    expect(ran).toEqual(['search one', 'search two']);
    const whole: ScriptedReply = { ...lines(search('one'), end()), finish: 'length' };
    expect((await streamed(scriptedModel([whole]))).tries).toHaveLength(1);
  });

  it('steps that wait for each other, or for nobody, never run', async () => {
    const model = scriptedModel([
      lines(
        search('a'),
        search('x', 'x', { after: ['y'] }),
        search('y', 'y', { after: ['x'] }),
        search('z', 'z', { after: ['nowhere'] }),
        search('w', 'w', { after: ['w'] }),
        end(),
      ),
      lines(FINISH),
    ]);
    const { ran, tries, result } = await streamed(model, { replans: 0 });
    expect(ran).toEqual(['search a']);
    expect(tries[0]?.faults).toMatchObject([
      { code: 'plan_cycle', path: ['w', 'w'] },
      { code: 'plan_cycle', path: ['x', 'y', 'x'] },
    ]);
    expect(tries[1]?.faults).toMatchObject(
      expect.arrayContaining([
        expect.objectContaining({ code: 'plan_cycle', path: ['x', 'y', 'x'] }),
        expect.objectContaining({ code: 'edge_unknown', step: 'z' }),
      ]),
    );
    expect(result).toMatchObject({ reason: 'no_path' });
  });
});

describe('ends of a plan', () => {
  it('of two that name nothing the first stays, and the other is asked about', async () => {
    const model = scriptedModel([lines(search('a'), end('one', 'f1'), end('two', 'f2')), lines(FINISH)]);
    const { result, tries } = await streamed(model);
    expect(tries.map(({ faults }) => faults)).toMatchObject([[{ code: 'after_finish', step: 'f2' }], []]);
    expect(result).toMatchObject({ reason: 'goal', payload: 'one' });
  });

  it.each([
    ['after', [search('a'), end('one', 'f1'), search('b', 'b', { after: ['f1'] })]],
    ['before', [search('a'), search('b', 'b', { after: ['f1'] }), end('one', 'f1')]],
  ])('nothing comes after one: a step that stands %s it', async (_, given) => {
    const { ran, tries } = await streamed(
      scriptedModel(() => lines(...given)),
      { replans: 0 },
    );
    expect(ran).toEqual(['search a']);
    expect(tries[0]?.faults).toMatchObject([{ code: 'after_finish', step: 'b' }]);
  });

  it('a finish step that waits can be given again, mended', async () => {
    const model = scriptedModel([
      lines(search('a'), { ...end({ $from: 'b' }), after: ['b'] }),
      lines({ ...end({ $from: 'a' }), after: ['a'] }),
    ]);
    const { result, tries } = await streamed(model);
    expect(tries.map(({ result: came }) => came)).toEqual(['invalid', 'valid']);
    expect(result).toMatchObject({ reason: 'goal', payload: { about: 'a' } });
  });
});

describe('AG-34 bounds and observers', () => {
  it('reasoning lines reach who listens, and not the plan', async () => {
    const model = scriptedModel([lines('{"type":"reasoning","text":"First I look."}', search('a'), end())]);
    const made = pipelineWorld({ pipeline: { model, stream: true } });
    const run = await start(made, { query: 'Find it' });
    const events: readonly RunEvent[] = await collect(run);
    const told = events.flatMap((event) => (event.type === 'token' ? [[event.channel, event.text]] : []));
    expect(told).toEqual([['reasoning', 'First I look.\n']]);
    expect(made.ran).toEqual(['search a']);
    expect(branchesIn((await run.state()).steps[0]).map(({ id }) => id)).toEqual(['a', 'end']);
  });

  it('a line over 1 MB ends the stream; what was good stays, and no more is asked of this plan', async () => {
    const written = writtenModel();
    const made = pipelineWorld({ pipeline: { model: written.model, stream: true, replans: 0 } });
    const run = await start(made, { query: 'Find it' });
    written.write(`${row(search('a'))}\n{"type":"step","step":{"id":"`);
    for (let count = 0; count < 11; count += 1) written.write('x'.repeat(100_000));
    const result = await run.result();
    expect(written.isAborted()).toBe(true);
    expect(result).toMatchObject({ reason: 'no_path' });
    expect(JSON.stringify(result)).toContain('1000000 characters');
    expect(made.ran).toEqual(['search a']);
  });

  it('more than 1,000 steps end the stream', async () => {
    const many = Array.from({ length: 1_001 }, (_, index) => search(`s${index}`, 'x', { after: [] }));
    const played = await streamed(scriptedModel([lines(...many)]), { replans: 0 });
    expect(played.result).toMatchObject({ reason: 'no_path' });
    expect(played.tries).toMatchObject([{ result: 'invalid', faults: [{ code: 'plan_too_long' }] }]);
    expect(branchesIn(played.steps[0])).toHaveLength(1_000);
    expect(played.ran).toHaveLength(1_000);
  }, 30_000);

  it('a consumer that leaves early aborts the call', async () => {
    const written = writtenModel();
    const planner = pipeline({ model: written.model, stream: true, clock: new ImpatientClock() });
    const view = runView({ query: 'Find it', tools: toolView(['search']) });
    const source = planner.next(view, new AbortController().signal);
    if (!(Symbol.asyncIterator in source)) throw new Error('it does not stream');
    written.write(`${row(search('a'))}\n`);
    expect(await source.next()).toMatchObject({ value: { type: 'branches', branches: [{ id: 'a' }] }, done: false });
    await source.return(undefined as never);
    await until(written.isAborted);
  });

  it('a cancel of the run aborts the call, and the run ends', async () => {
    const written = writtenModel();
    const made = pipelineWorld({ pipeline: { model: written.model, stream: true } });
    const run = await start(made, { query: 'Find it' });
    written.write(`${row(search('a'))}\n`);
    await until(() => made.ran.length === 1);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    await until(written.isAborted);
  });

  it('a listener of a planner that does not stream sees no lines', async () => {
    const planner = pipeline({ model: scriptedModel([lines(search('a'), end())]), clock: new ImpatientClock() });
    const view = runView({ query: 'Find it', tools: toolView(['search']), streaming: true });
    const { deltas, move } = await listen(planner, view);
    expect(deltas).toEqual([]);
    expect(move.decision).toMatchObject({ kind: 'call_parallel' });
  });
});

describe('a run that is killed while the model writes', () => {
  it('goes on with what was given, and plans the rest', async () => {
    const written = writtenModel();
    const first = pipelineWorld({ pipeline: { model: written.model, stream: true } });
    const run = await start(first, { query: 'Find it' });
    written.write(`${row(search('a'))}\n`);
    await until(() => first.ran.length === 1);
    await first.runtime.close();
    const model = scriptedModel([
      lines(call('broken', 'x')),
      lines(search('b', { $from: 'a', path: '/about' }), end({ $from: 'b' })),
    ]);
    const second = pipelineWorld({
      // The one that there is goes to the failure: to be killed costs none.
      pipeline: { model, stream: true, replans: 1 },
      journal: first.journal,
      clock: first.clock,
    });
    const again = second.runtime.run(run.id);
    await again.resume().catch(() => {});
    second.runtime.work();
    expect(await again.result()).toMatchObject({ reason: 'goal', payload: { about: 'a' } });
    expect([first.ran, second.ran]).toEqual([['search a'], ['broken x', 'search a']]);
    expect(saidIn(model.calls[0] as never)).toContain('plan_interrupted');
  });
});
