/** A call of a tool without an implementation here: it is parked until whoever carries it out says what it came to. */
import {
  capture,
  defined,
  describeThrown,
  type ErrorData,
  type Json,
  type Outcome,
  timeAfter,
  type WaitEnd,
} from '#core';
import { jsonSchemaOf, type ReadyFunction } from '#tools';
import type { Call, DispatchPorts, WaitsAsk } from './call-ports.ts';
import { shownArgs } from './gates.ts';
import { outcomeOfValue } from './model-output.ts';

interface ClientCall {
  readonly call: Call;
  readonly tool: ReadyFunction;
  readonly args: unknown;
  readonly startedAt: number;
}

/** Nothing of it happens here, so that nothing is in doubt when this process dies: the call is given to whoever reads the run, once. */
export async function clientCall(of: ClientCall, ports: DispatchPorts): Promise<Outcome | WaitsAsk> {
  const { call, tool, args, startedAt } = of;
  const last = call.waiting?.waits.at(-1);
  if (last?.end !== undefined) return outcomeOf(last.end, of, ports);
  if (last !== undefined) return { kind: 'waits', waits: [], startedAt };
  let given: Json;
  try {
    // As a function would get them: with the defaults and transforms of the schema.
    given = capture(args, 'args').json;
  } catch (thrown) {
    const message = `The arguments of ${tool.schema.name}, as its schema gives them, cannot be recorded: ${describeThrown(thrown)}`;
    return { kind: 'error', error: { code: 'tool_invalid_args', message } };
  }
  const { name } = tool.schema;
  const shown = {
    tool_call_id: toolCallId(call),
    ...(await shownArgs(given, name, call.identity, ports.artifacts)),
  };
  const { outputSchema } = tool.source;
  const { timeoutMs } = tool.client ?? {};
  const until = timeoutMs === undefined ? undefined : timeAfter(ports.clock.now(), timeoutMs);
  const schema = outputSchema && jsonSchemaOf(outputSchema, `The tool ${name}`);
  const wait = { wait: 1, for: 'answer' as const, ...defined({ until, schema }) };
  return { kind: 'waits', waits: [{ ...wait, question: { reason: 'client_tool', shown } }], startedAt };
}

/** The id by which transcripts know the call. */
function toolCallId({ branch, identity, open, index }: Call): string {
  return branch.callId ?? `${identity.run}.${open.move.step}.${index}`;
}

function outcomeOf(end: WaitEnd, of: ClientCall, ports: DispatchPorts): Outcome | Promise<Outcome> {
  const { name } = of.tool.schema;
  switch (end.ended) {
    case 'answer':
      return ports.turns.read(() => outcomeOfValue(end.value, of, ports));
    case 'failed':
      return { kind: 'error', error: end.error };
    case 'declined': {
      const why = end.reason === undefined ? '' : ` The reason: ${end.reason}`;
      const data = end.reason === undefined ? {} : { data: { reason: end.reason } };
      return { kind: 'error', error: { code: 'tool_rejected', message: `Nobody carries out ${name}.${why}`, ...data } };
    }
    case 'timeout':
      return unheard(of, { code: 'tool_timeout', message: `Nobody said in time what ${name} came to.` });
    case 'superseded':
      return unheard(of, {
        code: 'superseded',
        message: `${name} was waited for no more, since the user wrote or the goal was changed.`,
      });
    default:
      return { kind: 'error', error: { code: 'wait_changed', message: `${name} waited for something else before.` } };
  }
}

/** Whoever was to carry it out may have done so all the same: what has an effect is not taken for undone. */
function unheard({ tool: { effect } }: ClientCall, error: ErrorData): Outcome {
  return { kind: effect === 'once' ? 'unknown' : 'error', error };
}
