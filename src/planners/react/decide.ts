/** What a model's reply decides. Every reply decides something: a call, an answer, or that there is no way on. */
import type { Branch, Decision, Finish } from '../../core/decision.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import type { ModelCall, Reply, StopReason } from '../../model/reply.ts';
import { FINISH_TOOL } from '../../prompt/transcript.ts';

export interface DecideOptions {
  /** Makes ids that are unique in the run, one for each given. */
  readonly callIds: (wanted: readonly string[]) => readonly string[];
  readonly converse: boolean;
  /** Several calls of one reply run one after another, inside the one step. */
  readonly oneByOne: boolean;
}

export interface Decided {
  readonly decision: Decision;
  /** The tool of a last call that the reply broke off in; it is not carried out. */
  readonly droppedCall?: string;
}

/** The reply ended before the model was done: its text is not an answer, and its last call may be half a call. */
const CUT_OFF: ReadonlySet<StopReason> = new Set(['length', 'interrupted', 'error']);

export function decide(reply: Reply, options: DecideOptions): Decided {
  const { finish, calls } = reply;
  if (finish === 'content-filter') return { decision: stopped(reply) };
  const last = calls.at(-1);
  if (last === undefined) return { decision: decideText(reply, options) };
  if (CUT_OFF.has(finish) && parse(last.input) === undefined) {
    const whole = calls.slice(0, -1);
    const decision = whole.length === 0 ? stopped(reply) : decideCalls(whole, reply, options);
    return { decision, droppedCall: last.tool };
  }
  return { decision: decideCalls(calls, reply, options) };
}

function decideText(reply: Reply, { converse }: DecideOptions): Decision {
  if (CUT_OFF.has(reply.finish)) return stopped(reply);
  if (reply.text === '') return end('no_path', { via: 'react.reply', followup: true });
  if (converse) return { kind: 'request_pause', reason: 'await_input' };
  return end('goal', { via: 'react.reply' }, reply.text);
}

function decideCalls(calls: readonly ModelCall[], reply: Reply, { callIds, oneByOne }: DecideOptions): Decision {
  const [only] = calls;
  if (calls.length === 1 && only?.tool === FINISH_TOOL) {
    const args = argumentsOf(only);
    if (isJsonObject(args) && args['answer'] !== undefined) {
      if (CUT_OFF.has(reply.finish)) return stopped({ ...reply, text: String(args['answer']) });
      return end('goal', { via: 'react.finish' }, args['answer']);
    }
  }
  const ids = callIds(calls.map((call) => call.callId));
  const branches = calls.map(
    (call, index): Branch => ({ tool: call.tool || 'unnamed', args: argumentsOf(call), callId: ids[index] as string }),
  );
  const [branch] = branches;
  if (branches.length === 1 && branch !== undefined) return { kind: 'call_tool', ...branch };
  const parallel = { kind: 'call_parallel' as const, branches, onInvalid: 'per_branch' as const };
  return oneByOne ? { ...parallel, concurrency: 1 } : parallel;
}

/**
 * The call's arguments. Text that is not JSON is kept as a string: no schema of arguments takes a string, so that call
 * alone is answered with an error.
 */
function argumentsOf({ input }: ModelCall): Json {
  return input.trim() === '' ? {} : (parse(input) ?? input);
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** What there is of the text is kept, but it is never called the goal. */
function stopped({ finish, text }: Reply): Finish {
  return end('no_path', { via: 'react.reply', stop_reason: finish }, text === '' ? undefined : text);
}

function end(reason: Finish['reason'], metadata: JsonObject, payload?: Json): Finish {
  return payload === undefined ? { kind: 'finish', reason, metadata } : { kind: 'finish', reason, payload, metadata };
}
