/** A planner's own events: remarks with a name of its own, recorded with the move and read back by everybody. */
import { describe, expect, it } from 'vitest';
import type { Json, Move, Planner, Remark } from '#core';
import { call, finish, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { entriesOf } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { echo } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const SCORED: Remark = { type: 'acme/plan.scored', data: { score: 0.7, of: ['a', 'b'] } };

/** A planner that remarks this at its first move, which calls `echo`, and then finishes. */
function remarking(remarks: unknown, more: Partial<Planner> = {}): Planner & { readonly views: readonly unknown[] } {
  const next = watched((run): Move => {
    const decision = script(call('echo'))(run, new AbortController().signal);
    return run.trajectory.count === 0
      ? { decision: decision as never, remarks: remarks as never }
      : ({ decision } as never);
  });
  return { name: 'p', next, ...more, views: next.views };
}

async function played(remarks: unknown, more: Partial<Planner> = {}) {
  const made = world({ planner: remarking(remarks, more), tools: [echo] });
  const run = await start(made);
  const events = await collect(run);
  return { ...made, run, events, result: await run.result() };
}

describe('an event of a planner’s own', () => {
  it('is recorded with the move, and told at its place to every reader, also of another process', async () => {
    const path = temporaryFile();
    const journal = await openJournal(path);
    const made = world({ planner: remarking([SCORED]), tools: [echo], journal });
    const run = await start(made);
    const events = await collect(run);
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'done' });
    const [moved] = await entriesOf(journal, run, 'moved');
    expect(moved?.remarks).toEqual([SCORED]);
    const told = { ...SCORED, seq: moved?.seq, occurredAt: moved?.at, identity: { user: 'ana' } };
    expect(only(events, 'acme/plan.scored')).toMatchObject([told]);
    expect(events.findIndex(({ type }) => type === 'acme/plan.scored')).toBe(1);
    const elsewhere = world({ planner: script(), journal: await openJournal(path), clock: made.clock });
    expect(await collect(elsewhere.runtime.run(run.id))).toEqual(events);
  });

  it('stands in the step that the planner sees, in a fork, and in no way of a replay', async () => {
    const { run, runtime } = await played([SCORED]);
    expect((await run.state()).steps[0]?.remarks).toEqual([SCORED]);
    const fork = await run.fork({ step: 1 });
    expect(only(await collect(fork), 'acme/plan.scored')).toHaveLength(1);
    expect(await run.replay()).toMatchObject({ compared: 2 });
    expect(await run.replay()).not.toHaveProperty('divergence');
    await runtime.close();
  });

  it('is told of a plan that grows, with the end of it', async () => {
    const planner: Planner = {
      name: 'grows',
      async *next(run) {
        if (run.trajectory.count > 0) return finish('done');
        const first = { id: 'a', tool: 'echo', args: {} };
        yield { type: 'branches', plan: 'p', branches: [first] };
        return {
          decision: { kind: 'call_parallel', plan: 'p', branches: [first], onInvalid: 'per_branch' },
          remarks: [SCORED],
        };
      },
    };
    const made = world({ planner, tools: [echo] });
    expect(only(await collect(await start(made)), 'acme/plan.scored')).toMatchObject([SCORED]);
  });

  it('passes through the redaction of a reader as every event', async () => {
    const { run } = await played([{ type: 'acme/key.used', data: { key: 'sk-1', 'sk-1': ['sk-1'] } }]);
    const redact = (text: string): string => text.replaceAll('sk-1', '***');
    const seen = [];
    for await (const event of run.events({ redact })) if (event.type === 'acme/key.used') seen.push(event.data);
    expect(seen).toEqual([{ key: '***', '***': ['***'] }]);
  });

  it.each([
    'acme/x',
    'acme/plan.scored/v2',
    'a-1/b_2.C',
  ])('may be named %s, and have any JSON as data', async (type) => {
    for (const data of [null, 0, 'text', [1, { a: null }]] satisfies Json[]) {
      const { events } = await played([{ type, data }]);
      expect(events.filter((event) => event.type === type)).toMatchObject([{ data }]);
    }
  });
});

/** What each is told in its place. */
const REFUSED: readonly (readonly [string, unknown, RegExp])[] = [
  [
    'a name without a slash',
    [{ type: 'scored', data: 1 }],
    /"scored" is neither a remark type .* Write \{ type: "yourname\/what\.happened", data \}/,
  ],
  [
    'a name as ours are',
    [{ type: 'planner.scored', data: 1 }],
    /"planner\.scored" is neither a remark type of Pilotage/,
  ],
  [
    'the name of an event of ours',
    [{ type: 'planner.finish', reason: 'goal' }],
    /"planner\.finish" is neither a remark type/,
  ],
  ['a slash with nothing before it', [{ type: '/x', data: 1 }], /nor a name with a slash/],
  ['a slash with nothing behind it', [{ type: 'acme/', data: 1 }], /nor a name with a slash/],
  ['a name with a line break', [{ type: 'acme/x\ny', data: 1 }], /letters, digits/],
  ['a name that is too long', [{ type: `acme/${'x'.repeat(100)}`, data: 1 }], /100 characters/],
  ['no data', [{ type: 'acme/x' }], /The remark has no data/],
  [
    'fields beside the data',
    [{ type: 'acme/x', data: 1, seq: 99 }],
    /the field "seq"; only type and data are kept\. Put everything into data/,
  ],
  ['data that is too large', [{ type: 'acme/x', data: 'é'.repeat(16_384) }], /32770 bytes of JSON; the most is 32768/],
  ['data that is no JSON', [{ type: 'acme/x', data: { at: () => 1 } }], /remark\.data\.at/],
  [
    'a remark of ours without what its readers need',
    [{ type: 'model.fallback', from: 'a', to: 'b' }],
    /The field error of the remark/,
  ],
  [
    'a remark of ours with another shape',
    [{ type: 'planner.reply_repaired', issues: [7] }],
    /The field issues of the remark/,
  ],
  ['nothing', [null], /A remark is an object with a type/],
  ['a hole', new Array(1), /not JSON/],
  ['a text', ['oops'], /A remark is an object with a type/],
  ['no list', 'oops', /The remarks of a move are a list/],
];

describe('what is no remark', () => {
  it.each(REFUSED)('EV-06 is dropped, and told, and the run goes on: %s', async (_, remarks, why) => {
    for (const more of [{}, { modelDriven: true }]) {
      const { events, result, journal, run } = await played(remarks, more);
      expect(result).toMatchObject({ status: 'finished', answer: 'done' });
      const dropped = only(events, 'planner.remark_dropped');
      expect(dropped).toHaveLength(1);
      expect(dropped[0]?.why).toMatch(why);
      expect(only(events, 'tool.completed')).toHaveLength(1);
      // Whoever reads the journal later finds what was dropped there.
      expect((await entriesOf(journal, run, 'moved'))[0]?.remarks).toHaveLength(1);
    }
  });

  it('EV-06 has no place of its own in the order: the journal gives it, without gaps, and the identity is the run’s', async () => {
    const own = { type: 'acme/x', data: { seq: 99, identity: 'bo' } };
    const { events, journal, run } = await played([own, { ...own, seq: 99 }, { ...own, identity: { user: 'bo' } }]);
    const entries = await journal.read(run.id);
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
    const [moved] = entries.filter(({ kind }) => kind === 'moved');
    const told = events.filter(({ seq }) => seq === moved?.seq);
    expect(told.map(({ type }) => type).slice(0, 3)).toEqual([
      'acme/x',
      'planner.remark_dropped',
      'planner.remark_dropped',
    ]);
    for (const { identity } of told) expect(identity).toMatchObject({ user: 'ana', run: run.id });
  });

  it('takes nothing from the remarks beside it', async () => {
    const { events } = await played([SCORED, { type: 'scored' }, { ...SCORED, data: 2 }]);
    const told = events.filter(({ type }) => type === 'acme/plan.scored' || type === 'planner.remark_dropped');
    expect(told).toMatchObject([SCORED, { remark: 'scored' }, { data: 2 }]);
  });

  it('is told once for all that are too many', async () => {
    const { events } = await played(Array.from({ length: 1_000 }, (_, data) => ({ type: 'acme/x', data })));
    expect(only(events, 'acme/x').map(({ data }) => data)).toEqual(Array.from({ length: 100 }, (_, data) => data));
    expect(only(events, 'planner.remark_dropped')).toMatchObject([
      { why: '900 more: a move has 100 remarks of its own at most.' },
    ]);
  });
});
