/** Runs that have done their steps and wait for an answer, made through the runtime as anybody would make them. */
import { createRuntime, local, type Runtime } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { PlannerFunction } from '#pilotage/planner';
import { noteTool } from './ours.ts';
import { TOOL_NAME } from './workload.ts';

const BATCH = 100;

/** Takes as many notes as the query says, pauses, and when it is answered finishes. */
const pausing: PlannerFunction = ({ query, trajectory: { count } }) => {
  const steps = Number(query);
  if (count < steps) return { kind: 'call_tool', tool: TOOL_NAME, args: { id: count, text: `step ${count}` } };
  if (count === steps) return { kind: 'request_pause', reason: 'await_input' };
  return { kind: 'finish', reason: 'goal', payload: 'Done.' };
};

export function pausingRuntime(journal: Journal): Runtime {
  return createRuntime({ planner: pausing, tools: [noteTool('read')], journal });
}

/** Makes the runs `<prefix>_0` … and keeps nothing of them. @throws when one is not paused. */
export async function pauseRuns(
  runtime: Runtime,
  { prefix, count, steps }: { readonly prefix: string; readonly count: number; readonly steps: number },
): Promise<void> {
  const pauseRun = async (index: number): Promise<void> => {
    const identity = local('bench', { run: `${prefix}_${index}` });
    const run = await runtime.start(String(steps), { identity, limits: { steps: steps + 2 } });
    const { status, usage } = await run.result();
    if (status !== 'paused' || usage.calls !== steps) throw new Error(`The run ${run.id} is ${status}, not paused.`);
  };
  for (let first = 0; first < count; first += BATCH) {
    const size = Math.min(BATCH, count - first);
    await Promise.all(Array.from({ length: size }, (_, index) => pauseRun(first + index)));
  }
}
