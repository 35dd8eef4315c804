/** A run of a session as turns of its conversation, for whoever reads a history as such: messages, calls with their results, and files. */
import {
  AWAIT_TOOL,
  answerFiles,
  asJson,
  branchesOf,
  type CallRecord,
  type EarlierEnd,
  type EarlierRun,
  type InputArtifact,
  isRefusedReply,
  type Json,
  jsonText,
  messageFiles,
  messageWords,
  partsBefore,
  queryWords,
  SPAWN_TOOL,
  type SteeringTurn,
  type Step,
  type Summary,
  type Trajectory,
  type Turn,
  type TurnCall,
  type TurnPart,
  type TurnResult,
  textOfParts,
  unescaped,
  userAnswer,
  wordsIn,
} from '#core';

/** So many calls at each end of a longer step are told. */
const CALLS_AT_AN_END = 25;

/** The turns of the run, oldest first, from where it is told. */
export function turnsOf({ run, query, notice, inputs, trajectory, media, from = 0, end }: EarlierRun): readonly Turn[] {
  const { compaction, steering, count } = trajectory;
  const turns: Turn[] = [];
  const withBytes = (file: InputArtifact): InputArtifact => {
    const bytes = media?.bytes.get(file.artifactRef);
    return bytes === undefined ? file : { ...file, ...{ bytes } };
  };
  const hear = (text: string, files: readonly InputArtifact[] = []): void => {
    const last = turns.at(-1);
    // What a user says in several messages is one turn: some servers insist that the roles alternate.
    if (last?.role === 'user' && last.parts === undefined && files.length === 0) {
      turns[turns.length - 1] = { role: 'user', text: last.text === '' ? text : `${last.text}\n\n${text}` };
    } else turns.push(turnOf('user', text, files.map(withBytes)));
  };
  if (from === 0) hear(queryWords({ query, notice }), inputs);
  else hear(userAnswer(trajectory.step(from - 1) as Step));
  let heard = steering.findIndex(
    ({ atStep, beforeAnswer }) => atStep > from || (atStep === from && beforeAnswer !== true),
  );
  const hearUpTo = (step: number): void => {
    for (; heard >= 0 && (steering[heard]?.atStep ?? Infinity) <= step; heard += 1) {
      const turn = steering[heard] as SteeringTurn;
      const words = wordsOf(turn);
      const files = turn.control.type === 'USER_MESSAGE' ? messageFiles(turn.control.payload) : [];
      if (words !== '' || files.length > 0) hear(words, files);
    }
  };
  const start = Math.max(from, compaction?.before ?? 0);
  if (from === 0 && compaction !== undefined && start > 0)
    turns.push({ role: 'assistant', text: summaryText(compaction.summary) });
  for (let index = from; index < count; index += 1) {
    hearUpTo(index);
    const step = trajectory.step(index);
    if (step === undefined || isRefusedReply(step)) continue;
    if (index >= start) turns.push(...stepTurns(step, run, trajectory));
    const answer = userAnswer(step);
    const files = answerFiles(step);
    if (answer !== '' || files.length > 0) hear(answer, files);
  }
  hearUpTo(Number.MAX_SAFE_INTEGER);
  turns.push(endTurn(end, trajectory));
  return turns;
}

function stepTurns(step: Step, run: string, trajectory: Trajectory): readonly Turn[] {
  const { reasoning = '', files = [], calls: records, error } = step;
  const branches = callsIn(step);
  // A reply that came in pieces is told with the last of them.
  if (step.partial !== undefined && branches.length === 0) return [];
  const text = saidAt(trajectory, step.index, step.text);
  // Nothing of a reply that was not accepted was carried out.
  if (error !== undefined && records.length === 0) return [];
  const left = branches.length - 2 * CALLS_AT_AN_END;
  const isTold = (index: number): boolean =>
    left <= 0 || index < CALLS_AT_AN_END || index >= branches.length - CALLS_AT_AN_END;
  const calls: TurnCall[] = [];
  const results: TurnResult[] = [];
  for (const [index, { tool, args, callId }] of branches.entries()) {
    if (!isTold(index)) continue;
    const named = { toolCallId: callId ?? `${run}.${step.index}.${index}`, toolName: tool };
    calls.push({ type: 'tool-call', ...named, input: args });
    results.push({ type: 'tool-result', ...named, output: outputOf(records[index]) });
  }
  const words = left > 0 ? `${text}\n\n(${left} more calls between these are left out.)`.trimStart() : text;
  if (words === '' && reasoning === '' && calls.length + files.length === 0) return [];
  const parts: TurnPart[] = [
    ...(reasoning === '' ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
    ...(words === '' ? [] : [{ type: 'text' as const, text: words }]),
    ...calls,
    ...files.map((file): TurnPart => ({ type: 'file', ...file })),
  ];
  const isPlain = parts.every(({ type }) => type === 'text');
  const said: Turn = isPlain ? { role: 'assistant', text: words } : { role: 'assistant', text: words, parts };
  return results.length === 0 ? [said] : [said, { role: 'tool', text: '', parts: results }];
}

interface ToldCall {
  readonly tool: string;
  readonly args: Json;
  readonly callId?: string;
}

function callsIn({ decision }: Step): readonly ToldCall[] {
  switch (decision.kind) {
    case 'spawn_task': {
      const { description, query } = decision.spec;
      const args = { kind: decision.task, description, query };
      return [{ tool: SPAWN_TOOL, args, ...(decision.callId === undefined ? {} : { callId: decision.callId }) }];
    }
    case 'await_task': {
      const args = { task_id: decision.taskId };
      return [{ tool: AWAIT_TOOL, args, ...(decision.callId === undefined ? {} : { callId: decision.callId }) }];
    }
    case 'call_parallel':
      return branchesOf(decision).map((branch) => ({ ...branch, args: unescaped(branch.args) }));
    default:
      return branchesOf(decision);
  }
}

function outputOf(record: CallRecord | undefined): TurnResult['output'] {
  if (record === undefined) return { type: 'error-text', value: 'The call was never started.' };
  const { outcome } = record;
  switch (outcome.kind) {
    case 'value':
      return typeof outcome.value === 'string'
        ? { type: 'text', value: outcome.value }
        : { type: 'json', value: outcome.value };
    case 'verdict':
      return { type: 'text', value: `${outcome.verdict}: ${wordsIn(outcome.payload ?? {})}` };
    case 'unknown':
      return { type: 'error-text', value: `Unknown whether it happened: ${errorText(outcome.error)}` };
    default:
      return { type: 'error-text', value: errorText(outcome.error) };
  }
}

function errorText({ code, message }: { readonly code: string; readonly message: string }): string {
  return `${code} — ${message}`;
}

function saidAt(trajectory: Trajectory, step: number, text = ''): string {
  return textOfParts(partsBefore(trajectory, step)) + text;
}

/** The last words of the run, and why they are no answer. */
function endTurn({ text, answer = '', unanswered, files = [] }: EarlierEnd, trajectory: Trajectory): Turn {
  const isSilent = answer === '' && files.length === 0 && unanswered === undefined;
  const why = unanswered ?? (isSilent ? 'There is no answer.' : undefined);
  const said = unanswered === undefined ? answer : saidAt(trajectory, trajectory.count, text);
  const words = [said, why === undefined ? '' : `(${why})`].filter((each) => each !== '');
  return turnOf('assistant', words.join('\n\n'), files);
}

function turnOf(role: 'user' | 'assistant', text: string, files: readonly InputArtifact[]): Turn {
  if (files.length === 0) return { role, text };
  const parts = files.map((file): TurnPart => ({ type: 'file', ...file }));
  return { role, text, parts: text === '' ? parts : [{ type: 'text', text }, ...parts] };
}

/** What stands for turns that are not told. */
export function summaryText(summary: Summary): string {
  return `(In place of what was said and done before, a summary of it: ${jsonText(asJson(summary))})`;
}

function wordsOf({ control: { type, payload = {} } }: SteeringTurn): string {
  if (type === 'USER_MESSAGE') return messageWords(payload);
  return type === 'REDIRECT' ? jsonText(payload['goal'] ?? '') : '';
}
