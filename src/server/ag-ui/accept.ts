/** Does what a client's input asks of its thread: sends a message, or answers questions. An input that was accepted before changes nothing. */
import { createHash } from 'node:crypto';
import { type EventPayloads, isJsonObject, PilotageError, type TaskPause } from '#core';
import { clientCallId } from '#messages';
import type { BusyMode, PauseAnswer, SentMessage, TurnView } from '#runtime';
import { RequestRefused } from '../problem.ts';
import { untilAnswered } from '../until-answered.ts';
import { clientTools, newestMessage, toolAnswers, toolValue, userMessage } from './input.ts';
import { isSameAnswer, pauseAnswerOf } from './interrupts.ts';
import type { AgUiMessage, ResumeEntry, RunAgentInput } from './protocol.ts';
import type { Known } from './telling.ts';
import type { RecordedTurn, Thread } from './thread.ts';

/** What came of the input: the turn that the client is told of. */
export interface AcceptedInput {
  readonly run: string;
  /** How far the client knows the turn. Empty: the client is told of it from its beginning. */
  readonly known: Known;
  /** The id of a message that was sent to the turn while it was under way. It may have begun a turn of its own. */
  readonly said?: string;
  /** Set when the input answers what the turn waits for. Resolves once the turn has taken it: before that it would still seem to wait. */
  readonly taken?: (signal: AbortSignal) => Promise<unknown>;
}

type Answered = RecordedTurn['answered'];
type Closed = EventPayloads['pause.resumed'];

const NOTHING: Known = new Map();
/** The longest label that a run may have. */
const MOST_LABEL_CHARS = 256;

/** The label by which the run of a client's `runId` is found again. */
export function labelOf(runId: string): string {
  return runId.length <= MOST_LABEL_CHARS ? runId : createHash('sha256').update(runId).digest('hex');
}

/** @param signal aborted when the client is gone. @throws PilotageError, RequestRefused. Then nothing was done, and the client is to be told why. */
export async function accept(
  thread: Thread,
  input: RunAgentInput,
  busy: BusyMode,
  signal: AbortSignal,
): Promise<AcceptedInput> {
  const current = await thread.current();
  const { runId } = input;
  const answering = await answered(thread, current, input, signal);
  if (answering !== undefined) return answering;
  const before = await thread.startedAs(labelOf(runId));
  if (before !== undefined) return { run: await thread.firstOf(before), known: NOTHING };
  return sent(thread, current, input, busy);
}

async function sent(
  thread: Thread,
  current: TurnView | undefined,
  input: RunAgentInput,
  busy: BusyMode,
): Promise<AcceptedInput> {
  const message = newestMessage(input);
  if (message === undefined)
    throw new RequestRefused('request_invalid', 'The input has no message of the user, and answers nothing.');
  const pauses = current === undefined ? [] : await thread.pauses(current.turn);
  assertUninterrupted(pauses);
  // When the user writes, the turn no longer waits for calls that the client has not carried out.
  const isForgotten = pauses.some(isOfClient);
  const mode = isForgotten ? 'steer' : busy;
  const begun =
    current && (isForgotten || pauses.length > 0 || busy === 'steer') ? await thread.firstOf(current.turn) : undefined;
  const { known } = begun === undefined ? { known: NOTHING } : await thread.read(begun);
  const { turn, as } = await send(thread, message, mode, input);
  const run = await thread.firstOf(turn);
  if (as !== 'steered' || run !== begun) return { run, known: NOTHING };
  const taken = (signal: AbortSignal): Promise<unknown> => thread.untilHeard(turn, message.id, signal);
  return { run, known, said: message.id, ...(pauses.length > 0 && { taken }) };
}

/** Sends the message with the client's tools. A tool of a name that the agent has itself is left out. */
async function send(thread: Thread, message: AgUiMessage, busy: BusyMode, input: RunAgentInput): Promise<SentMessage> {
  for (let tools = clientTools(input); ; ) {
    const given = tools.length === 0 ? {} : { clientTools: tools };
    try {
      return await thread.session.send(userMessage(message), { id: message.id, busy, ...given });
    } catch (error) {
      const taken = PilotageError.is(error, 'tool_name_taken') ? error.data?.['name'] : undefined;
      const left = tools.filter(({ name }) => name !== taken);
      if (left.length === tools.length) throw error;
      tools = left;
    }
  }
}

/** A message answers a question in words. Every other question has to be answered by `resume`. */
function assertUninterrupted(pauses: readonly TaskPause[]): void {
  const open = pauses.filter(
    (pause) => !isOfClient(pause) && !(pause.reason === 'await_input' && pause.wait === undefined),
  );
  if (open.length === 0) return;
  throw new PilotageError(
    'run_paused',
    `The thread waits for an answer to ${open.length} interrupts. Send resume with an entry for each: ${open.map(({ token }) => token).join(', ')}.`,
    { data: { interrupts: open.map(({ token }) => token) } },
  );
}

function isOfClient({ reason }: { readonly reason: string }): boolean {
  return reason === 'client_tool';
}

/** The answers to calls of the client's own tools, which it has carried out. */
function toolResults(input: RunAgentInput, open: readonly TaskPause[]): readonly GivenAnswer[] {
  return toolAnswers(input).flatMap((message): GivenAnswer[] => {
    const pause = open.find((each) => clientCallId(each) === message.toolCallId);
    return pause === undefined ? [] : [[pause.token, answerWith(message)]];
  });
}

function answerWith(message: AgUiMessage): PauseAnswer {
  const { error } = message;
  if (error === undefined) return { kind: 'answer', value: toolValue(message) };
  return { kind: 'settle', happened: true, error: { code: 'tool_failed', message: error } };
}

/** An answer by the token of its pause. It is `undefined` when the user refuses to answer what takes no refusal. */
type GivenAnswer = readonly [token: string, answer: PauseAnswer | undefined];

/** Takes the answers in `resume`, and results of the client's own tools. `undefined`: the input has none that are open. */
async function answered(
  thread: Thread,
  current: TurnView | undefined,
  input: RunAgentInput,
  signal: AbortSignal,
): Promise<AcceptedInput | undefined> {
  const { resume = [] } = input;
  if (current === undefined && resume.length > 0) throw unknownInterrupt(resume[0]?.interruptId);
  if (current === undefined || (resume.length === 0 && toolAnswers(input).length === 0)) return undefined;
  assertOnce(resume);
  const run = await thread.firstOf(current.turn);
  for (;;) {
    const waiting = await thread.pauses(current.turn);
    const { known, answered } = await thread.read(run);
    const open = waiting.filter(({ token }) => !answered.has(token));
    const { given, before } = answersIn(resume, open, answered);
    const answers = [...given, ...toolResults(input, open.filter(isOfClient))];
    // The same input was sent before: what has come of it is told once more.
    if (answers.length === 0 && resume.length === 0) return undefined;
    if (answers.length === 0) return { run, known: before ?? known, ...(await alsoSaid(thread, input)) };
    try {
      await answerOpen(thread, current.turn, answers);
      const tokens = answers.map(([token]) => token);
      const taken = (client: AbortSignal): Promise<boolean> => untilAnswered(thread.runOf(run), tokens, client);
      return { run, known: before ?? known, taken, ...(await alsoSaid(thread, input)) };
    } catch (error) {
      // Somebody else was faster, perhaps with the same answer, which the run may not have taken yet.
      const late = tooLate(error, answers);
      if (late.length === 0 || !(await untilAnswered(thread.runOf(run), late, signal))) throw error;
    }
  }
}

/** The answers in `resume` to questions that are open; the others are checked. @returns with `before` as far as the client knows the turn when it has not heard what came of those. */
function answersIn(
  resume: readonly ResumeEntry[],
  open: readonly TaskPause[],
  answered: Answered,
): { readonly given: readonly GivenAnswer[]; readonly before: Known | undefined } {
  const asked = open.filter((pause) => !isOfClient(pause));
  const pauseOf = ({ interruptId }: ResumeEntry) => asked.find(({ token }) => token === interruptId);
  const before = assertAnsweredSo(
    resume.filter((entry) => pauseOf(entry) === undefined),
    answered,
  );
  const given = resume.flatMap((entry): GivenAnswer[] => {
    const pause = pauseOf(entry);
    return pause === undefined ? [] : [[pause.token, pauseAnswerOf(entry, pause)]];
  });
  if (given.length > 0) assertWhole(given, asked);
  return { given, before };
}

async function answerOpen(thread: Thread, turn: string, answers: readonly GivenAnswer[]): Promise<void> {
  const handle = thread.runOf(turn);
  const known = answers.flatMap(([token, answer]) => (answer === undefined ? [] : [[token, answer] as const]));
  // Such a question cannot be left unanswered, so that the run that asks it is ended.
  if (known.length < answers.length) return handle.cancel({ reason: 'The user did not answer.' });
  return handle.answerAll(Object.fromEntries(known));
}

/** The tokens of the answers that were not taken since their questions, or the run, were over. */
function tooLate(error: unknown, answers: readonly GivenAnswer[]): readonly string[] {
  if (!PilotageError.is(error)) return [];
  const refused = error.data?.['refused'] ?? null;
  const codeOf = (token: string) => (isJsonObject(refused) ? refused[token] : error.code);
  return answers.flatMap(([token]) => (TOO_LATE.has(codeOf(token)) ? [token] : []));
}

const TOO_LATE: ReadonlySet<unknown> = new Set(['pause_not_found', 'run_ended']);

/**
 * Checks answers to questions that are closed: they have to be the ones that were given.
 * @returns how far the client knows the turn when it has not heard what came of the first of them.
 * @throws PilotageError `pause_not_found`.
 */
function assertAnsweredSo(entries: readonly ResumeEntry[], answered: Answered): Known | undefined {
  let first: Known | undefined;
  for (const entry of entries) {
    const was = answered.get(entry.interruptId);
    if (was === undefined) throw unknownInterrupt(entry.interruptId);
    const { answer, before } = was;
    first ??= before;
    if (answer.verdict === 'timeout' || answer.verdict === 'superseded') {
      assertIsNo(entry, answer);
      continue;
    }
    const pause = { ...answer, run: answer.token, ...(answer.verdict === 'answer' && { wait: 1 }) };
    const said = pauseAnswerOf(entry, pause);
    if (!isSameAnswer(said, answer)) {
      const message = `The interrupt ${entry.interruptId} was answered already, and otherwise (${answer.verdict}).`;
      throw new PilotageError('pause_not_found', message);
    }
  }
  return first;
}

/** A refusal agrees with a question that nobody has answered. @throws PilotageError `pause_expired` or `superseded` for anything else. */
function assertIsNo({ interruptId, status, payload }: ResumeEntry, { verdict, payload: why }: Closed): void {
  if (status === 'cancelled') return;
  if (verdict === 'timeout') {
    const message = `The interrupt ${interruptId} has expired and was not answered in time. Cancel it to go on.`;
    throw new PilotageError('pause_expired', message);
  }
  if (isJsonObject(payload) && payload['approved'] === false) return;
  const reason = typeof why?.['reason'] === 'string' ? `, since ${why['reason']}` : '';
  const message = `The interrupt ${interruptId} is not asked any more, and nobody had answered it${reason}. Cancel it to go on.`;
  throw new PilotageError('superseded', message);
}

/** When a question has two answers, nobody knows which one holds. */
function assertOnce(resume: readonly ResumeEntry[]): void {
  const ids = resume.map(({ interruptId }) => interruptId);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice === undefined) return;
  throw new PilotageError('payload_invalid', `resume answers the interrupt ${twice} twice. Give one entry for each.`);
}

function assertWhole(given: readonly GivenAnswer[], open: readonly TaskPause[]): void {
  const missing = open.filter(({ token }) => given.every(([each]) => each !== token));
  if (missing.length === 0) return;
  const names = missing.map(({ token }) => token);
  const message = `resume has to answer all open interrupts; ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} missing.`;
  throw new PilotageError('payload_invalid', message, { data: { missing: names } });
}

function unknownInterrupt(id: string | undefined): PilotageError {
  return new PilotageError('pause_not_found', `The thread has no interrupt ${id}.`);
}

/** Sends a message that the user wrote beside the answers to the turn that goes on. */
async function alsoSaid(thread: Thread, input: RunAgentInput): Promise<Pick<AcceptedInput, 'said'>> {
  const { messages } = input;
  const last = messages.findLastIndex(({ role }) => role === 'assistant' || role === 'tool');
  const message = messages.slice(last + 1).findLast(({ role }) => role === 'user');
  if (last < 0 || message === undefined) return {};
  const { as } = await send(thread, message, 'steer', input);
  return as === 'known' ? {} : { said: message.id };
}
