/** The scenario's agent as one of the AI SDK. */
import { onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, type Runtime } from '#runtime';
import { asAgent } from '#server/ai-sdk';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';

export interface Scenario {
  readonly effects: Effects;
  readonly runtime: Runtime;
  readonly agent: ReturnType<typeof asAgent>;
}

export function scenario(): Scenario {
  const effects = new Effects();
  const made = scenarioAgent(effects);
  const runtime = createRuntime({ agents: [made], journal: memoryJournal() });
  onTestFinished(() => runtime.close());
  return { effects, runtime, agent: asAgent(runtime, { agent: made }) };
}
