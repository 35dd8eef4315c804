/** Answers of a client to what its chat waits for. What is asked, and of which call, the journal says; a client names the question alone. */
import { isDeepStrictEqual } from 'node:util';
import { defined, PilotageError, readRemember } from '#core';
import { hasEnded } from '#journal';
import { clientCallId, NOT_ANSWERED, UNANSWERED_WORDS } from '#messages';
import type { Run, Session, TurnView } from '#runtime';
import { openPauses } from '../open-pauses.ts';
import { untilAnswered } from '../until-answered.ts';
import type { Visit } from '../visit.ts';
import { withinTime } from '../within-time.ts';
import { type ClientToolOutput, type GivenAnswer, runOfMessage } from './request.ts';

/** A question, as the messages of the chat show it. */
interface ChatQuestion {
  readonly turn: number;
  readonly isOpen: boolean;
  /** Whether the answer was a yes. Absent: there is no answer. */
  readonly approved?: boolean;
  /** Why the question was closed without an answer. Of an approval the journal says whether it was. */
  readonly unanswered?: string;
  /** What the chat shows as the reason of a no. */
  readonly reason?: string;
  /** The arguments of the call that it is about. */
  readonly args?: unknown;
}

/** What came of the answers of a request. */
export interface Answered {
  /** The questions that were to be answered, whoever has answered them. The client waits for what comes of them. */
  readonly tokens: ReadonlySet<string>;
  /** Set when a question had another answer already: what is to be said, and the number of the turn that has asked. */
  readonly conflict?: { readonly turn: number; readonly text: string };
}

/** What becomes of an answer that does not fit, or that somebody else has to give. A page keeps it and sends it each time: beside new words, which take its place, it is passed over. */
export type Unfit = 'thrown' | 'passed over';

const TAKEN_MS = 5_000;

/** The turn that has not ended and waits behind no other. */
export function turnUnderWay(turns: readonly TurnView[]): TurnView | undefined {
  return turns.find(({ status, waits }) => waits !== true && !hasEnded(status));
}

/** The questions that the chat shows, by their tokens. */
async function questionsOf(session: Session): Promise<ReadonlyMap<string, ChatQuestion>> {
  const found = new Map<string, ChatQuestion>();
  for (const { metadata, parts } of await session.uiMessages()) {
    const { turn = 0 } = metadata ?? {};
    for (const part of parts) {
      if (part.type === 'data-pause' && 'data' in part) {
        const { token, status, verdict } = part.data as { token: string; status: string; verdict?: string };
        const unanswered = UNANSWERED_WORDS[status === 'withdrawn' ? 'superseded' : (verdict ?? '')];
        const approved = verdict === undefined || unanswered !== undefined ? undefined : verdict !== 'reject';
        found.set(token, { turn, isOpen: status === 'open', ...defined({ approved, unanswered }) });
      } else if ('approval' in part && part.approval !== undefined) {
        const { id, approved, reason } = part.approval as { id: string; approved?: boolean; reason?: string };
        const args = 'input' in part ? part.input : undefined;
        found.set(id, { turn, isOpen: approved === undefined, ...defined({ approved, args, reason }) });
      }
    }
  }
  return found;
}

/**
 * Gives the answers to the runs. An answer that was given before changes nothing.
 * @throws PilotageError `pause_not_found`, before any answer is given, for a question that the chat has never asked; and as `Run.answer`.
 */
export async function giveAnswers(
  visit: Visit,
  session: Session,
  turns: readonly TurnView[],
  given: readonly GivenAnswer[],
  unfit: Unfit = 'thrown',
): Promise<Answered> {
  const tokens = new Set<string>();
  if (given.length === 0) return { tokens };
  let questions = await questionsOf(session);
  for (const answer of given) {
    if (questions.has(answer.approvalId)) tokens.add(answer.approvalId);
    else if (!(await wasAsked(visit, session, answer)))
      throw new PilotageError('pause_not_found', 'This chat has not asked that.');
  }
  let conflict: Answered['conflict'];
  for (const answer of given) {
    const question = questions.get(answer.approvalId);
    // Nobody waits for it any more.
    if (question === undefined) continue;
    const { turn, isOpen } = question;
    const asked = turns.find(({ number }) => number === turn);
    const asking = asked?.turn;
    if (isOpen && asking !== undefined) {
      const give = async (): Promise<boolean> => giveAnswer((await visit.run(asking, 'answer')).run, answer);
      if (await unlessUnfit(give, unfit)) continue;
      // Somebody else was faster. What they have said is known once the run has taken it.
      await taken(visit.runtime.run(asking), [answer.approvalId], visit.signal);
      questions = await questionsOf(session);
    }
    const shown = questions.get(answer.approvalId) ?? question;
    const { approved, args, reason = NOT_ANSWERED } = shown;
    const isNobodys = approved === false && asked !== undefined && !(await wasRefused(visit, session, asked, answer));
    const unanswered = shown.unanswered ?? (isNobodys ? reason : undefined);
    if (unanswered !== undefined && answer.approved !== false) conflict = { turn, text: unanswered };
    if (approved === undefined || unanswered !== undefined) continue;
    if (approved !== (answer.approved ?? true))
      conflict = { turn, text: `It was answered before, with ${approved ? 'yes' : 'no'}.` };
    else if (approved && answer.args !== undefined && !isDeepStrictEqual(answer.args, args))
      conflict = { turn, text: 'It was answered before, with other arguments.' };
  }
  return { tokens, ...defined({ conflict }) };
}

/** Whether a message that the chat no longer shows has asked it: one of long ago, or one that was left for an edit or another answer. */
async function wasAsked(visit: Visit, session: Session, { approvalId, message = '' }: GivenAnswer): Promise<boolean> {
  const run = runOfMessage(message);
  if (run === undefined || (await visit.seen(run))?.identity.session !== session.id) return false;
  for await (const event of visit.handle(run, session.id).events({ tasks: true, follow: false }))
    if (event.type === 'pause.requested' && event.token === approvalId) return true;
  return false;
}

/** Whether somebody has said no to a question that the turn has asked, which the chat shows as denied. */
async function wasRefused(
  visit: Visit,
  session: Session,
  { turn, succeeds = turn }: TurnView,
  { approvalId }: GivenAnswer,
): Promise<boolean> {
  let isRefused = false;
  for await (const event of visit.handle(succeeds, session.id).events({ tasks: true, follow: false }))
    if (event.type === 'pause.resumed' && event.token === approvalId)
      isRefused = event.verdict !== 'timeout' && event.verdict !== 'superseded';
  return isRefused;
}

/** @returns false when somebody else was faster. */
async function giveAnswer(run: Run, answer: GivenAnswer): Promise<boolean> {
  const { approvalId: token, approved, reason, args, remember, value, happened, payload } = answer;
  const why = defined({ reason });
  const word = { ...why, ...defined({ remember: remember && readRemember(remember) }) };
  return unlessTooLate(async () => {
    if (happened === true) await run.settle(token, { happened, value: value ?? null, ...why });
    else if (happened === false) await run.settle(token, { happened, ...why });
    else if (value !== undefined) await run.answer(token, { kind: 'answer', value, ...why });
    else if (payload !== undefined) await run.answer(token, { kind: 'payload', payload });
    else if (approved === true) await run.approve(token, { ...word, ...defined({ args }) });
    else await run.reject(token, word);
  });
}

/** @returns false when somebody else was faster. */
async function unlessTooLate(give: () => Promise<void>): Promise<boolean> {
  try {
    await give();
    return true;
  } catch (error) {
    if (PilotageError.is(error, 'pause_not_found') || PilotageError.is(error, 'run_ended')) return false;
    throw error;
  }
}

/** @returns what `give` gives; true for an answer that was refused and is passed over. */
async function unlessUnfit(give: () => Promise<boolean>, unfit: Unfit): Promise<boolean> {
  try {
    return await give();
  } catch (error) {
    const isUnfit = PilotageError.is(error, 'payload_invalid') || PilotageError.is(error, 'approver_refused');
    if (isUnfit && unfit === 'passed over') return true;
    throw error;
  }
}

/**
 * Gives the results of the client's own tools. Results of other calls are ignored.
 * @returns the tokens of the questions that were answered, by whomever.
 */
export async function giveOutputs(
  visit: Visit,
  turns: readonly TurnView[],
  given: readonly ClientToolOutput[],
  unfit: Unfit = 'thrown',
): Promise<ReadonlySet<string>> {
  const tokens = new Set<string>();
  const live = given.length === 0 ? undefined : turnUnderWay(turns);
  if (live === undefined || !(await visit.sees(live.turn))) return tokens;
  const { run } = await visit.run(live.turn);
  for (const pause of openPauses(await run.state())) {
    const { token } = pause;
    const call = clientCallId(pause);
    const output = given.find(({ toolCallId }) => toolCallId === call);
    if (call === undefined || output === undefined) continue;
    await visit.run(live.turn, 'answer');
    tokens.add(token);
    const give = (): Promise<boolean> => unlessTooLate(() => giveOutput(run, token, output));
    // Somebody else was faster. What comes of it is told once the run has taken it.
    if (!(await unlessUnfit(give, unfit))) await taken(run, [token], visit.signal);
  }
  return tokens;
}

/**
 * Waits until the run has taken the answers to these questions; no longer than so, since a question may have been withdrawn in place of that, or nobody can go on with the run.
 * @returns whether it has.
 */
export async function taken(run: Run, tokens: readonly string[], signal: AbortSignal): Promise<boolean> {
  try {
    return (await withinTime(TAKEN_MS, signal, (over) => untilAnswered(run, tokens, over))) === true;
  } catch (error) {
    if (!PilotageError.is(error, 'run_changed')) throw error;
    return false;
  }
}

/** The answers that are stored, and that nobody has taken: this process cannot, whose code is not that of the run. */
export async function untaken(
  { runtime, owner }: Visit,
  session: Session,
  tokens: ReadonlySet<string>,
): Promise<readonly string[]> {
  if (tokens.size === 0) return [];
  const waiting = await runtime.waiting({ ...owner, session: session.id });
  return waiting.flatMap(({ token = '', answered }) => (answered === true && tokens.has(token) ? [token] : []));
}

/** The questions about these calls of the client's own tools that were answered before, by whomever: by this page, or by one that was faster. */
export async function answersOfCalls(run: Run, calls: ReadonlySet<unknown>): Promise<readonly string[]> {
  const asked = new Set<string>();
  const answered: string[] = [];
  if (calls.size === 0) return answered;
  for await (const event of run.events({ follow: false })) {
    if (event.type === 'pause.requested' && calls.has(clientCallId({ ...event, run: event.identity.run })))
      asked.add(event.token);
    if (event.type === 'pause.resumed' && asked.has(event.token)) answered.push(event.token);
  }
  return answered;
}

/** What a request with results of the client's own tools finds. */
interface Found {
  /** The calls of which the client knows no more than what it has said itself. */
  readonly calls: ReadonlySet<string>;
  /** The turn had ended, or waited for somebody, when the request came, and the request has answered nothing. */
  readonly isStill: boolean;
}

/**
 * Finds a result of the client that nothing comes of: its call had another one, was withdrawn, or the turn has ended there. A client that is told nothing of it
 * sends it again for ever (`lastAssistantMessageIsCompleteWithToolCalls`).
 * @returns what is to be said.
 */
export async function lateOutput(
  session: Session,
  message: string,
  given: readonly ClientToolOutput[],
  { calls, isStill }: Found,
): Promise<string | undefined> {
  const late = given.filter(({ toolCallId }) => calls.has(toolCallId));
  if (late.length === 0) return undefined;
  const shown = (await session.uiMessages()).find(({ id }) => id === message)?.parts ?? [];
  for (const output of late) {
    const part = shown.find((each) => 'toolCallId' in each && each.toolCallId === output.toolCallId);
    if (part === undefined || !('state' in part)) continue;
    if (part.state === 'output-error' && 'output' in output) return 'It came too late: the call was over.';
    const value = 'output' in part ? part.output : undefined;
    if (part.state === 'output-available' && !('output' in output && isDeepStrictEqual(output.output, value)))
      return 'It was answered before, with another result.';
  }
  const isLast = shown
    .slice(shown.findLastIndex(({ type }) => type === 'step-start'))
    .some((each) => 'toolCallId' in each);
  return isStill && isLast && late.length === calls.size ? 'Nothing more comes of this answer.' : undefined;
}

async function giveOutput(run: Run, token: string, output: ClientToolOutput): Promise<void> {
  if ('output' in output) return run.answer(token, { kind: 'answer', value: output.output });
  const error = { code: 'client_failed', message: output.errorText };
  return run.settle(token, { happened: true, error });
}
