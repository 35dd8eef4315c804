/** A call that a task has carried out: what the task's end is as the outcome of the call. */
import type { Identity, Outcome, TaskEnd } from '#core';
import type { ArtifactStore } from '#journal';
import type { ReadyTool } from '#tools';
import { storedJson } from './large-values.ts';
import { errorData, valueOutcome } from './outcome.ts';

export interface AgentTaskPorts {
  readonly identity: Identity;
  readonly artifacts: ArtifactStore;
}

/** @param tool whose call it is. Absent: somebody has accepted that it is gone, and nothing checks its value. */
export async function outcomeOfTask(
  end: TaskEnd,
  name: string,
  tool: ReadyTool | undefined,
  ports: AgentTaskPorts,
): Promise<Outcome> {
  const { status, result = null, stored, error = { code: status, message: `The task ended as ${status}.` } } = end;
  if (status !== 'complete') {
    if (error.data?.['in_doubt'] !== undefined) return { kind: 'unknown', error };
    return { kind: status === 'cancelled' ? 'cancelled' : 'error', error };
  }
  const { identity, artifacts } = ports;
  try {
    const value = stored === undefined ? result : await storedJson(result, identity, artifacts);
    return await valueOutcome(value, ports, tool ?? { schema: { name }, checkValue: undefined }, ports);
  } catch (thrown) {
    return { kind: 'error', error: errorData(thrown) };
  }
}
