/** The workload as a user of Pilotage would write it. */

import { memoryJournal } from '#journal';
import { createRuntime, local, type Planner, type Runtime, react, tool } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Effect } from '#pilotage/tools';
import { callId, INPUT_SCHEMA, keepNote, QUERY, scriptedModel, TOOL_DESCRIPTION, TOOL_NAME } from './workload.ts';

export function noteTool(effect: Effect): ReturnType<typeof tool<typeof INPUT_SCHEMA>> {
  return tool({
    name: TOOL_NAME,
    description: TOOL_DESCRIPTION,
    inputSchema: INPUT_SCHEMA,
    effect,
    execute: ({ id, text }) => keepNote({ id: Number(id), text: String(text) }),
  });
}

/** The planner of runs of `steps` steps. */
export function ourPlanner(steps: number): Planner {
  return react({ model: scriptedModel(steps) });
}

/** It keeps nothing of the runs unless its journal does. */
export function ourRuntime(planner: Planner, journal: Journal = memoryJournal(), effect: Effect = 'read'): Runtime {
  return createRuntime({ planner, tools: [noteTool(effect)], journal });
}

/** One whole run. @throws when it did not carry out its `steps` calls and answer. */
export async function runOnce(runtime: Runtime, steps: number): Promise<string> {
  const run = await runtime.start(QUERY, { identity: local('bench'), limits: { steps: steps + 1 } });
  const result = await run.result();
  if (result.status !== 'finished' || result.answer !== 'Done.' || result.usage.calls !== steps) {
    throw new Error(`The run of ${steps} steps, last call ${callId(steps)}, went wrong: ${JSON.stringify(result)}`);
  }
  return run.id;
}

/** Starts `count` runs at once and waits for all. */
export async function runTogether(runtime: Runtime, steps: number, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => runOnce(runtime, steps)));
}
