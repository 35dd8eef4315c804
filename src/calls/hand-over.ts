/** Whether a run can hand its conversation over. */
import type { ErrorData } from '#core';
import type { RunState } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';

/** Why the run cannot hand its conversation over to the agent. */
export function whyNotTo(agent: string, { task }: RunState, { agentNamed }: DriverDeps): ErrorData | undefined {
  if (task !== null) {
    const message =
      'A task cannot hand over: another run waits for its result. Finish with what the other agent has to know.';
    return { code: 'handoff_refused', message };
  }
  if (agentNamed(agent) !== undefined) return undefined;
  return { code: 'agent_unknown', message: `There is no agent ${JSON.stringify(agent)} here. Answer without it.` };
}
