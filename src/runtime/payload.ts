/** What a run has finished with, and whether it is what somebody expects. */
import { type Json, PilotageError, type Scope } from '#core';
import { type ArtifactStore, storedJson } from '#journal';
import { checkOf, type InputSchema } from '#tools';
import type { RunResult } from './result.ts';

type Finished = Extract<RunResult, { status: 'finished' }>;
type ReadPayload = (result: Finished, scope: () => Promise<Scope>) => Promise<unknown>;

/**
 * Reads a payload in full, and gives what the schema makes of it.
 * @param schema absent: anything fits, and is given as it is stored.
 * @throws PilotageError `tool_schema_invalid`; reading throws `artifact_not_found` and `payload_invalid`.
 */
export function payloadReader(run: string, artifacts: ArtifactStore, schema: InputSchema | undefined): ReadPayload {
  const check = schema === undefined ? undefined : checkOf(schema, 'run.payload()');
  return async ({ payload: given, stored, reason }, scope) => {
    if (given === undefined) return undefined;
    const payload: Json = stored === undefined ? given : await storedJson(given, await scope(), artifacts);
    if (check === undefined) return payload;
    const checked = await check(payload);
    if (checked.ok) return checked.value;
    const { why } = checked;
    const message = `The payload of the run ${run}, which ended with ${reason}, does not fit the schema that payload() was given: ${why}`;
    throw new PilotageError('payload_invalid', message, { data: { run, reason, why } });
  };
}
