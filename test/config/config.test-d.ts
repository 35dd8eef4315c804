import { describe, it } from 'vitest';
import type { LanguageModel } from '#model';
import { defineConfig, readyConfig } from '#pilotage/config';

declare const model: LanguageModel;

describe('RG-18 what the types of a configuration refuse', () => {
  it('keys that nobody knows', () => {
    // @ts-expect-error a misspelt key at the top
    defineConfig({ plannr: { model } });
    // @ts-expect-error a misspelt key of react
    defineConfig({ planner: { modle: model } });
    // @ts-expect-error a key of another driver
    defineConfig({ planner: { driver: 'finish', model } });
    // @ts-expect-error a plan in the place of the planner
    defineConfig({ planner: { driver: 'graph', steps: [] } });
    // @ts-expect-error an unknown driver
    defineConfig({ planner: { driver: 'house', rules: 3 } });
    // @ts-expect-error a planner without its tools
    defineConfig({ agents: [{ name: 'other', next: () => ({ kind: 'finish', reason: 'goal' }) }] });
    // @ts-expect-error a hint that does not come from a file
    defineConfig({ planningHints: { disallowedTools: [] } });
  });

  it('but they take every shipped driver, models in every form, and drivers that are named to them', () => {
    defineConfig({ planner: { model, maxSteps: 3 } });
    defineConfig({ planner: { driver: 'react', model: [model, { baseUrl: 'http://127.0.0.1/v1', model: 'm' }] } });
    defineConfig({ planner: { driver: 'deterministic', steps: [{ do: 'finish', reason: 'goal' }] } });
    defineConfig({ planner: { driver: 'finish', reason: 'goal' } });
    defineConfig({ planner: { driver: 'graph', plan: { steps: [{ id: 'end', type: 'finish' }] } } });
    const server = { baseUrl: 'http://127.0.0.1/v1', model: 'm' };
    defineConfig({ planner: { driver: 'pipeline', model: server, candidates: 2, verifier: { model: server } } });
    defineConfig({ planner: () => ({ kind: 'finish', reason: 'goal' }) });
    const other = { name: 'other', next: () => ({ kind: 'finish' as const, reason: 'goal' as const }) };
    defineConfig({
      planner: { model },
      agents: [{ name: 'other', planner: other, tools: [], limits: { deadlineMs: 5 } }],
    });
    const own = defineConfig<{ driver: 'house'; rules: number }>({ planner: { driver: 'house', rules: 3 } });
    readyConfig(own) satisfies Promise<unknown>;
  });
});
