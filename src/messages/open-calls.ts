/** The calls of a run that have no outcome yet, for a client that is to show them, or to ask for an approval. */
import { branchesOf, defined, type Json, type JsonObject } from '#core';
import type { RunSnapshot } from '#state';
import { isListOfObjects, refusal } from './assert-turns.ts';
import { clientCallId } from './call-id.ts';
import type { OpenCall } from './ui-messages.ts';

/**
 * Their ids are those that the run's turns have, for `toUIMessages`.
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
    const ofClient = pauses.find(({ call, reason }) => call === index && reason === 'client_tool');
    const approval = pause && { id: pause.token, ...defined({ requestReason }) };
    return [
      {
        toolCallId: callId ?? `${identity.run}.${step}.${index}`,
        toolName: tool,
        input: ofClient?.payload?.['args'] ?? args,
        ...defined({ approval, token: ofClient?.token }),
      },
    ];
  });
}

/** A call that a client is to carry out. */
export interface ClientCall {
  /** The pause, which an answer names: `run.answer(token, { kind: 'answer', value })`. */
  readonly token: string;
  /** The id of the call in the messages of its chat: its run and the id that it has there, as in `run_1.call_1`. */
  readonly toolCallId: string;
  readonly toolName: string;
  /** The arguments, as whoever approved the call has changed them; `null` when they are stored. */
  readonly input: Json;
  /** The reference of the artifact that has the arguments, where they are large. */
  readonly stored?: JsonObject;
  /** JSON Schema of the value. */
  readonly schema?: JsonObject;
  /** When it is waited for no more. Milliseconds since the epoch. */
  readonly expiresAt?: number;
  /** The run of the call: the run itself, or a task below it. An answer may be given through either. */
  readonly run: string;
}

/**
 * The calls of the run, and of its tasks, that clients are to carry out now.
 * @param run as `run.state()` gives it.
 * @throws PilotageError `invalid_config`.
 */
export function clientCalls(run: Pick<RunSnapshot, 'identity' | 'pauses' | 'tasks'>): ClientCall[] {
  if (!isListOfObjects(run?.pauses)) throw refusal('clientCalls needs a run as it is: clientCalls(await run.state()).');
  const own = run.pauses.map((pause) => ({ ...pause, run: run.identity.run }));
  return [...own, ...run.tasks.flatMap(({ pauses }) => pauses)].flatMap((pause): ClientCall[] => {
    const { token, payload = {}, schema, expiresAt, run: of } = pause;
    const { tool, args = null, args_stored: stored } = payload;
    const toolCallId = clientCallId(pause);
    if (toolCallId === undefined || typeof tool !== 'string') return [];
    const more = defined({ stored: stored as JsonObject | undefined, schema, expiresAt });
    return [{ token, toolCallId, toolName: tool, input: args, ...more, run: of }];
  });
}
