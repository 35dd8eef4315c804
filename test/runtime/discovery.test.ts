/** Deferred tools: found by a call, recorded with it, listed from the next step on. */
import { describe, expect, it } from 'vitest';
import { ARTIFACT_FETCH, type Decision, local, type RunView, TOOL_GET, TOOL_SEARCH } from '#core';
import { artifactFetch } from '#runtime';
import { foldEntries } from '#state';
import { type Tool, ToolFailure, toolGet, toolSearch } from '#tools';
import { call, parallel, script, watched } from '../kit/decisions.ts';
import { entriesOf, innerState, observations, outcomes } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { advanceUntil } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const later = (name: string, more: Partial<Tool> = {}): Tool =>
  make(name, (args) => args, { loading: 'deferred', ...more });
const TOOLS: readonly Tool[] = [later('csv_read'), later('csv_write'), later('mail_send'), echo];
const BASE = ['echo', TOOL_GET, TOOL_SEARCH];
const listed = (view: RunView | undefined): string[] => (view?.tools.list() ?? []).map(({ name }) => name);

async function play(decisions: readonly Decision[], tools = TOOLS, options: Parameters<typeof start>[1] = {}) {
  const planner = watched(script(...decisions));
  const made = world({ planner, tools });
  const run = await start(made, options);
  const result = await run.result();
  const ended = await entriesOf(made.journal, run, 'call_ended');
  return { ...made, run, result, ended, lists: planner.views.map(listed), state: await innerState(made.journal, run) };
}

describe('discovery', () => {
  it('DT-01 the first step lists the tools that are always loaded, and the search; without deferred tools no search', async () => {
    expect((await play([])).lists).toEqual([BASE]);
    expect((await play([], [echo])).lists).toEqual([['echo']]);
  });

  it('DT-05 what a search gives is listed from the next step on: a union in order of first sight, none twice', async () => {
    const { lists, ended } = await play([
      call(TOOL_SEARCH, { query: 'write' }),
      call(TOOL_SEARCH, { query: 'csv' }),
      call(TOOL_GET, { name: 'csv_read' }),
      call(TOOL_GET, { name: 'mail_send' }),
    ]);
    expect(lists).toEqual([
      BASE,
      [...BASE, 'csv_write'],
      [...BASE, 'csv_write', 'csv_read'],
      [...BASE, 'csv_write', 'csv_read'],
      [...BASE, 'csv_write', 'csv_read', 'mail_send'],
    ]);
    expect(ended.map(({ discovered }) => discovered)).toEqual([['csv_write'], ['csv_read'], undefined, ['mail_send']]);
  });

  it('RA-21 a tool that is always loaded is listed once, although it was found', async () => {
    const { lists, ended } = await play([call(TOOL_SEARCH, {})]);
    expect(lists[1]).toEqual([...BASE, 'csv_read', 'csv_write', 'mail_send']);
    expect(ended[0]?.discovered).toEqual(['csv_read', 'csv_write', 'mail_send']);
  });

  it('DT-06 names that the view cannot resolve are skipped, in whatever shape they come', async () => {
    const finder = make('finder', (_, { discover }) => {
      discover(['gone', 'csv_read', 'csv_read', 'echo', 'hidden', '__proto__', 7 as never, null as never]);
      return { tools: 'no list' };
    });
    const { ended, lists } = await play([call('finder')], [...TOOLS, later('hidden', { scopes: ['x'] }), finder]);
    expect(ended[0]).toMatchObject({ outcome: { kind: 'value' }, discovered: ['csv_read'] });
    expect(lists[1]).toEqual(['echo', 'finder', TOOL_GET, TOOL_SEARCH, 'csv_read']);
  });

  it('DT-07 comes from the journal alone: the same set after a restart, and none in a new run', async () => {
    const { journal, run, state, clock } = await play([call(TOOL_SEARCH, { query: 'csv' }), call('echo')]);
    expect(foldEntries(await journal.read(run.id)).found).toEqual(state.found);
    expect(state.found).toEqual(['csv_read', 'csv_write']);

    // A second process goes on with a run that is paused after the search.
    const paused = local('ben', { run: 'restarted' });
    const decisions = [
      call(TOOL_SEARCH, { query: 'mail' }),
      { kind: 'request_pause', reason: 'await_input' } as const,
      call('echo'),
    ];
    const first = world({ planner: script(...decisions), tools: TOOLS, journal, clock });
    expect(await (await start(first, { identity: paused })).result()).toMatchObject({ status: 'paused' });
    await first.runtime.close();
    const planner = watched(script(...decisions));
    const second = world({ planner, tools: TOOLS, journal, clock });
    const resumed = second.runtime.run('restarted');
    await resumed.resume();
    await resumed.result();
    expect(planner.views.map(listed)).toEqual([
      [...BASE, 'mail_send'],
      [...BASE, 'mail_send'],
    ]);
    const fresh = watched(script());
    await (await start(world({ planner: fresh, tools: TOOLS, journal, clock }), { identity: local('ben') })).result();
    expect(listed(fresh.views[0])).toEqual(BASE);
  });

  it('DT-08 works from within a parallel call, and when the result itself is too large to be sent', async () => {
    const wide = Array.from({ length: 40 }, (_, index) => later(`wide_${index}`, { description: 'w'.repeat(2_000) }));
    const search = { tool: TOOL_SEARCH, args: { query: 'wide', limit: 40 } };
    const { ended, lists } = await play([parallel([{ tool: 'echo', args: {} }, search])], [...TOOLS, ...wide]);
    const found = ended.find(({ discovered }) => discovered !== undefined);
    expect(found?.outcome).toHaveProperty('artifact');
    expect(found?.discovered).toHaveLength(41);
    expect(found?.discovered?.at(-1)).toBe(ARTIFACT_FETCH);
    expect(lists[1]).toEqual([...BASE, ...(found?.discovered ?? [])]);
  });

  it('DT-09 a tool that is not allowed is not shown, not found, and answered as one that nobody has', async () => {
    const asks = (name: string) => [
      call(TOOL_SEARCH, { query: name }),
      call(TOOL_GET, { name }),
      call(name),
      parallel([{ tool: name, args: {} }]),
    ];
    const tools = [...TOOLS, later('secret', { scopes: ['x'] }), make('hushed', () => 1, { scopes: ['x'] })];
    const heard = async (name: string, scopes: readonly string[] = []) => {
      const { state, lists, ended } = await play(asks(name), tools, { scopes });
      const told = JSON.stringify({ observed: observations(state), lists, found: ended.map((end) => end.discovered) });
      return told.replaceAll(name, '*');
    };
    const unknown = await heard('nobody');
    expect(await heard('secret')).toBe(unknown);
    expect(await heard('hushed')).toBe(unknown);
    expect(await heard('secret', ['x'])).not.toBe(unknown);
  });

  it('DT-13 the names are those of the built-in tools', () => {
    expect([toolSearch.name, toolGet.name]).toEqual([TOOL_SEARCH, TOOL_GET]);
    const store = () => world({ planner: script() }).journal.artifacts;
    expect(artifactFetch(store).name).toBe(ARTIFACT_FETCH);
  });

  it.each([TOOL_SEARCH, TOOL_GET])('gives %s another name where the program has a tool of that name', async (name) => {
    const search = name === TOOL_SEARCH ? `pilotage_${name}` : TOOL_SEARCH;
    const decisions = [call(name), call(search, { query: 'csv' })];
    const { lists, state } = await play(decisions, [make(name, () => 'own'), later('csv_read')]);
    expect(lists[0]).toEqual([name, `pilotage_${name}`, name === TOOL_SEARCH ? TOOL_GET : TOOL_SEARCH].sort());
    expect(lists.at(-1)).toEqual([...(lists[0] ?? []), 'csv_read']);
    expect(observations(state)).toMatchObject(['own', { count: 1 }]);
  });

  it('DT-14 a deferred tool that is called before it was found runs, and is listed from then on', async () => {
    const { state, ended, lists } = await play([call('csv_read', { a: 1 }), call('csv_read', { a: 2 })]);
    expect(observations(state)).toEqual([{ a: 1 }, { a: 2 }]);
    expect(ended.map(({ discovered }) => discovered)).toEqual([['csv_read'], undefined]);
    expect(lists[1]).toEqual([...BASE, 'csv_read']);
  });

  it.each([
    ['alone', call('strict', { n: 'x' })],
    ['in a parallel call that is refused as a whole', parallel([{ tool: 'strict', args: { n: 'x' } }])],
    ['in a parallel call', parallel([{ tool: 'strict', args: { n: 'x' } }], { onInvalid: 'per_branch' })],
  ])('DT-14 is listed, too, when its arguments did not fit, so that the next try can see the schema (%s)', async (_, decision) => {
    const strict = later('strict', { inputSchema: { type: 'object', properties: { n: { type: 'number' } } } });
    const { ended, lists } = await play([decision], [strict]);
    expect(ended[0]).toMatchObject({ outcome: { kind: 'error' }, attempts: 0, discovered: ['strict'] });
    expect(lists[1]).toEqual([TOOL_GET, TOOL_SEARCH, 'strict']);
  });

  it('only what the last attempt made known counts, and only when it ended with a value', async () => {
    const names = ['csv_read', 'csv_write', 'mail_send'];
    const flaky = make('flaky', (_, { attempt, discover }) => {
      discover([names[attempt - 1] ?? '']);
      if (attempt < 3) throw new ToolFailure('not yet', { retryable: true });
      return attempt;
    });
    const failing = make('failing', (_, { discover }) => {
      discover(['csv_read']);
      throw new ToolFailure('never');
    });
    const planner = watched(script(call('flaky'), call('failing')));
    const made = world({ planner, tools: [...TOOLS, flaky, failing] });
    const run = await start(made);
    const result = run.result();
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    await result;
    const ended = await entriesOf(made.journal, run, 'call_ended');
    expect(ended.map(({ discovered }) => discovered)).toEqual([['mail_send'], undefined]);
  });

  it('the context shows the run’s own tools, without anything to call', async () => {
    const seen: string[][] = [];
    const look = make('look', (_, { tools }) => {
      seen.push(tools.all().map(({ name }) => name));
      return tools.get('hidden') === undefined;
    });
    const { state } = await play([call('look')], [look, later('hidden', { scopes: ['x'] }), echo]);
    expect(observations(state)).toEqual([true]);
    expect(seen).toEqual([[ARTIFACT_FETCH, 'echo', 'look']]);
  });
});

describe('a call that the planner knows cannot be made', () => {
  const refusal = { code: 'tool_invalid_args', message: 'The arguments are not JSON.', data: { at: 3 } };

  it('is not run, and its refusal is the outcome', async () => {
    let runs = 0;
    const counted = make('counted', () => {
      runs += 1;
      return runs;
    });
    const { ended, state } = await play([{ kind: 'call_tool', tool: 'counted', args: {}, refusal }], [counted]);
    expect(ended).toMatchObject([{ outcome: { kind: 'error', error: refusal }, attempts: 0 }]);
    expect([runs, state.totals.calls]).toEqual([0, 0]);
  });

  it('leaves the other branches alone when each counts for itself', async () => {
    const branches = [
      { tool: 'echo', args: {}, refusal },
      { tool: 'echo', args: { a: 1 } },
      { tool: 'nobody', args: {}, refusal },
    ];
    const { state } = await play([parallel(branches, { onInvalid: 'per_branch' })]);
    expect(outcomes(state)).toEqual(['error', 'value', 'error']);
    expect(state.steps[0]?.calls.map(({ attempts }) => attempts)).toEqual([0, 1, 0]);
    expect(state.steps[0]?.calls[2]?.outcome).toEqual({ kind: 'error', error: refusal });
  });

  it('counts as an invalid branch when one of them stops all', async () => {
    const branches = [
      { tool: 'echo', args: {} },
      { tool: 'echo', args: {}, refusal },
    ];
    const { state } = await play([parallel(branches)]);
    expect(outcomes(state)).toEqual(['skipped', 'error']);
    expect(state.steps[0]?.error).toMatchObject({ code: refusal.code, message: refusal.message, data: { branch: 1 } });
  });
});
