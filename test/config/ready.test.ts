import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, local, type Planner, tool } from '#pilotage';
import { type Config, defineConfig, readyConfig, shippedPlanners } from '#pilotage/config';
import { finish } from '#planners/finish';
import { runView, scriptedModel } from '#testing';
import { ask } from '../kit/ask.ts';
import { ready, refusalOf } from '../kit/config.ts';
import { innerState } from '../kit/run-record.ts';

const planner = finish();
const clock = tool({
  name: 'clock',
  description: 'Tells the hour.',
  inputSchema: { type: 'object' },
  effect: 'read',
  execute: () => 12,
});

const watch = tool({
  name: 'watch',
  description: 'Tells the hour.',
  inputSchema: { type: 'object' },
  execute: () => 12,
});

describe('a configuration that is made ready', () => {
  it('is what a runtime takes: the run it describes comes to its end', async () => {
    const model = scriptedModel([{ calls: [{ tool: 'clock', args: {} }] }, { text: 'Noon.' }]);
    const migrate = (): undefined => undefined;
    const config = defineConfig({
      planner: { model, maxSteps: 4, parallelToolCalls: false },
      tools: [clock],
      limits: { tokens: 5_000, onCeiling: 'pause' },
      memory: { strategy: 'window', turns: 3 },
      journal: memoryJournal(),
      maxLiveRuns: 2,
      maxLiveRunsPerTenant: 1,
      leaseMs: 4_000,
      takeoverGraceMs: 9_000,
      progress: { hintAfter: 2 },
      migrate,
    });
    const { runtime: options } = await readyConfig(config);
    expect(options).toEqual({
      planner: expect.objectContaining({ name: 'react' }),
      tools: [clock],
      limits: { steps: 4, tokens: 5_000, onCeiling: 'pause' },
      memory: { strategy: 'window', turns: 3 },
      journal: config.journal,
      maxLiveRuns: 2,
      maxLiveRunsPerTenant: 1,
      leaseMs: 4_000,
      takeoverGraceMs: 9_000,
      progress: { hintAfter: 2 },
      migrate,
    });
    const runtime = createRuntime(options);
    try {
      const run = await runtime.start('What time is it?', { identity: local('ana') });
      expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', payload: 'Noon.' });
    } finally {
      await runtime.close();
    }
  });

  it('has planners beside its own, whose runs have their own tools', async () => {
    const other = {
      name: 'other',
      next: () => ({ kind: 'finish' as const, reason: 'goal' as const, payload: 'other' }),
    };
    const config = defineConfig({
      planner,
      tools: [clock],
      agents: [{ name: 'other', planner: other, tools: [watch], limits: { calls: 2 } }],
      limits: { calls: 5 },
      journal: memoryJournal(),
    });
    const { runtime: options } = await readyConfig(config);
    expect(options.agents).toBe(config.agents);
    const journal = memoryJournal();
    const runtime = createRuntime({ ...options, journal });
    try {
      const run = await runtime.start('q', { identity: local('ana'), agent: 'other' });
      expect(await run.result()).toMatchObject({ status: 'finished', payload: 'other' });
      const { limits, pin } = await innerState(journal, run);
      expect(limits).toEqual({ calls: 2 });
      expect(Object.keys(pin?.tools ?? {})).toEqual(['artifact_fetch', 'watch']);
    } finally {
      await runtime.close();
    }
  });

  it('RG-09 ends a run at the step limit that its planner part states', async () => {
    const model = scriptedModel(() => ({ calls: [{ tool: 'clock', args: {} }] }));
    const { runtime: options } = await readyConfig({
      planner: { model, maxSteps: 2 },
      tools: [clock],
      journal: memoryJournal(),
    });
    const runtime = createRuntime(options);
    try {
      const run = await runtime.start('What time is it?', { identity: local('ana') });
      expect(await run.result()).toMatchObject({
        reason: 'max_steps',
        metadata: { max_steps_exceeded: true },
      });
      expect(model.calls).toHaveLength(2);
    } finally {
      await runtime.close();
    }
  });

  it.each([
    {},
    undefined,
    { constraints: '' },
    { constraints: ' ', preferredTools: [] },
  ])('RG-15 has no hints when there is nothing in them: %j', async (planningHints) => {
    expect(await ready({ planner, planningHints })).not.toHaveProperty('hints');
  });

  it('RG-15 has the hints of constraints and preferred tools, and takes no others', async () => {
    const hintsOf = async (planningHints: object): Promise<unknown> => (await ready({ planner, planningHints })).hints;
    const both = { constraints: 'Spend nothing.', preferredTools: ['clock'] };
    expect(await hintsOf(both)).toEqual(both);
    expect(await hintsOf({ preferredTools: ['clock'] })).toEqual({ preferredTools: ['clock'] });
    expect(await hintsOf({ constraints: 'Spend nothing.', preferredTools: [] })).toEqual({
      constraints: 'Spend nothing.',
    });
    for (const key of ['disallowedTools', 'preferredOrder', 'parallelGroups', 'budget']) {
      expect(await refusalOf({ planner, planningHints: { [key]: [] } })).toMatchObject({
        code: 'invalid_config',
        data: { path: `planningHints.${key}` },
      });
    }
  });

  it('RG-13 leaves the hints to the runs: the planner and the runtime know nothing of them', async () => {
    const model = scriptedModel([{ text: 'done' }, { text: 'done' }]);
    const { runtime, hints } = await readyConfig({
      planner: { model },
      planningHints: { constraints: 'Spend nothing.' },
    });
    expect(Object.keys(runtime)).toEqual(['planner']);
    await ask(runtime.planner as Planner, runView());
    await ask(runtime.planner as Planner, runView({ context: hints === undefined ? {} : { hints } }));
    const prompts = model.calls.map(({ prompt }) => JSON.stringify(prompt).includes('Spend nothing.'));
    expect(prompts).toEqual([false, true]);
  });

  it('RG-13 hands a driver what stands in its own part, and nothing else of the file', async () => {
    // Every key that there is beside the planner: a new one does not compile before it is named here.
    const beside: Required<Omit<Config, 'planner'>> = {
      planningHints: { constraints: 'Spend nothing.', preferredTools: ['clock'] },
      agents: [],
      tools: [clock],
      limits: { steps: 9 },
      memory: { strategy: 'window', turns: 3 },
      store: {},
      history: { load: async () => [], save: async () => undefined },
      onFail: 'keep',
      undo: { calls: 1 },
      parallelCalls: 2,
      maxLiveRuns: 2,
      maxLiveRunsPerTenant: 1,
      leaseMs: 4_000,
      takeoverGraceMs: 9_000,
      goesOn: true,
      patienceMs: 5,
      progress: { hintAfter: 2 },
      files: {},
      policy: () => 'allow',
      redact: {},
      migrate: () => undefined,
      telemetry: {
        parent: () => undefined,
        of: () => ({ within: (_, work) => work(), traceparent: () => '', recorded: () => undefined }),
      },
      server: {},
      journal: memoryJournal(),
    };
    const planners = shippedPlanners();
    const given: unknown[] = [];
    planners.register('house', (options) => {
      given.push(options);
      return planner;
    });
    await ready({ planner: { driver: 'house', own: 1 }, ...beside }, { planners });
    expect(given).toEqual([{ own: 1 }]);
  });

  it.each([
    ['limits', { limits: 5 }],
    ['limits', { limits: null }],
    ['limits.steps', { limits: { steps: -1 } }],
    ['limits.tokens', { limits: { tokens: 'many' } }],
    ['limits.onCeiling', { limits: { onCeiling: 'shout' } }],
    ['memory', { memory: 'window' }],
    ['memory.strategy', { memory: { strategy: 'all' } }],
    ['memory.turns', { memory: { strategy: 'window', turns: 0 } }],
    ['memory.strategy', { memory: { strategy: 'summary' } }],
    ['maxLiveRuns', { maxLiveRuns: 0 }],
    ['maxLiveRunsPerTenant', { maxLiveRunsPerTenant: 1.5 }],
    ['leaseMs', { leaseMs: '5s' }],
    ['takeoverGraceMs', { takeoverGraceMs: -1 }],
    ['progress', { progress: true }],
    ['progress.hintAfter', { progress: { hintAfter: 1 } }],
    ['migrate', { migrate: 'always' }],
    ['policy', { policy: ['read'] }],
    ['tools', { tools: 'clock' }],
    ['agents', { agents: planner }],
    ['agents[1]', { agents: [{ name: 'other', planner, tools: [] }, null] }],
    ['The agent "other"', { agents: [{ name: 'other', planner, tools: [], limits: { calls: -1 } }] }],
    ['limits.calls', { limits: { calls: -1 } }],
    ['planningHints', { planningHints: 'none' }],
    ['planningHints.constraints', { planningHints: { constraints: ['none'] } }],
    ['planningHints.preferredTools', { planningHints: { preferredTools: [5] } }],
    ['journal', { journal: '' }],
    ['journal', { journal: 5 }],
    ['journal', { journal: {} }],
  ])('RG-17 refuses what is malformed, naming %s', async (path, part) => {
    const error = await refusalOf({ planner, ...part });
    expect(error.code).toBe('invalid_config');
    expect(error.message.startsWith(path)).toBe(true);
  });

  it.each([
    ['plannr', 'planner'],
    ['max_live_runs', 'maxLiveRuns'],
    ['limit', 'limits'],
    ['Journal', 'journal'],
    ['hints', 'planningHints'],
    ['onFault', 'onFail'],
  ])('RG-18 refuses the unknown key %s, and names the one that may be meant', async (key, meant) => {
    const { code, message, data } = await refusalOf({ planner, [key]: {} });
    expect({ code, data }).toEqual({ code: 'invalid_config', data: { path: key } });
    expect(message).toMatch(new RegExp(`^${key} is not a key of the configuration\\. .*\\b${meant}\\b`));
  });

  it.each([
    ['limits.step', { limits: { step: 3 } }],
    ['progress.after', { progress: { after: 3 } }],
    ['memory.turn', { memory: { strategy: 'window', turn: 3 } }],
  ])('RG-18 refuses unknown keys further in: %s', async (path, part) => {
    expect(await refusalOf({ planner, ...part })).toMatchObject({ code: 'invalid_config', data: { path } });
  });

  it.each([5, null, []])('RG-17 refuses %j for a configuration', async (config) => {
    expect(await refusalOf(config)).toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('The configuration is'),
    });
  });

  it('refuses tools as their registration does', async () => {
    expect(await refusalOf({ planner, tools: [clock, clock] })).toMatchObject({ code: 'tool_name_taken' });
    expect(await refusalOf({ planner, tools: [{ ...clock, name: '' }] })).toMatchObject({ code: 'tool_name_empty' });
  });
});

describe('a journal by its path', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pilotage-config-'));
    path = join(folder, 'deep', 'runs.db');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is a SQLite file, which another process finds its runs in', async () => {
    const runs: string[] = [];
    for (const _ of [1, 2]) {
      const { runtime: options } = await readyConfig({ planner, journal: path });
      const runtime = createRuntime(options);
      const run = await runtime.start('q', { identity: local('ana') });
      await run.result();
      runs.push(run.id);
      const listed = await runtime.list();
      expect(listed.map(({ identity }) => identity.run).sort()).toEqual([...runs].sort());
      await runtime.close();
    }
  });

  it('is not opened, nor made, when anything else is wrong', async () => {
    await refusalOf({ planner, journal: path, maxLiveRuns: 0 });
    await refusalOf({ planner, journal: path, tools: [clock, clock] });
    await refusalOf({ planner: { driver: 'unknown' }, journal: path });
    expect(existsSync(join(folder, 'deep'))).toBe(false);
  });

  it('is refused by the runtime when the file is something else, and named', async () => {
    const other = join(folder, 'notes.txt');
    writeFileSync(other, 'Buy bread, butter and everything else that a hundred bytes have room for.'.repeat(3));
    const { runtime: options } = await readyConfig({ planner, journal: other });
    const started = createRuntime(options).start('q', { identity: local('ana') });
    await expect(started).rejects.toMatchObject({ code: 'journal_corrupt', data: { path: other } });
  });
});
