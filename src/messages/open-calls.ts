/** The calls of a run that have no outcome yet, for a client that is to show them, or to ask for an approval. */
import { branchesOf, defined } from '#core';
import type { RunSnapshot } from '#state';
import { isListOfObjects, refusal } from './assert-turns.ts';
import type { OpenCall } from './ui-messages.ts';

/**
 * @param run as `run.state()` gives it. The calls of its tasks are theirs.
 * @throws PilotageError `invalid_config`.
 */
export function openCalls(run: Pick<RunSnapshot, 'identity' | 'open' | 'pauses'>): OpenCall[] {
  if (!isListOfObjects(run?.pauses)) throw refusal('openCalls needs a run as it is: openCalls(await run.state()).');
  const { identity, open, pauses } = run;
  if (open === null || !(open.decision.kind === 'call_tool' || open.decision.kind === 'call_parallel')) return [];
  const { step, decision, calls } = open;
  return branchesOf(decision).flatMap(({ tool, args, callId }, index): OpenCall[] => {
    if (calls[index] !== null) return [];
    const pause = pauses.find(({ call, reason }) => call === index && reason === 'approval_required');
    const asked = pause?.payload?.['reason'];
    const requestReason = typeof asked === 'string' ? asked : undefined;
    const approval = pause && { id: pause.token, ...defined({ requestReason }) };
    return [
      {
        toolCallId: callId ?? `${identity.run}.${step}.${index}`,
        toolName: tool,
        input: args,
        ...defined({ approval }),
      },
    ];
  });
}
