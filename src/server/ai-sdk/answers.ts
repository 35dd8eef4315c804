/** Answers of a client to what its chat waits for. What is asked, and of which call, the journal says; a client names the question alone. */
import { isDeepStrictEqual } from 'node:util';
import { defined, PilotageError } from '#core';
import { hasEnded } from '#journal';
import type { Run, Session, TurnView } from '#runtime';
import { openPauses } from '../open-pauses.ts';
import type { Visit } from '../visit.ts';
import { type ClientToolOutput, type GivenAnswer, runOfMessage } from './request.ts';

/** A question, as the messages of the chat show it. */
interface ChatQuestion {
  readonly turn: number;
  readonly isOpen: boolean;
  /** Whether the answer was a yes. Absent: there is no answer yet. */
  readonly approved?: boolean;
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
        found.set(token, {
          turn,
          isOpen: status === 'open',
          ...defined({ approved: verdict === undefined ? undefined : verdict !== 'reject' }),
        });
      } else if ('approval' in part && part.approval !== undefined) {
        const { id, approved } = part.approval as { id: string; approved?: boolean };
        const args = 'input' in part ? part.input : undefined;
        found.set(id, { turn, isOpen: approved === undefined, ...defined({ approved, args }) });
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
): Promise<Answered> {
  const tokens = new Set<string>();
  if (given.length === 0) return { tokens };
  const questions = await questionsOf(session);
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
    const { turn, isOpen, approved, args } = question;
    const run = turns.find(({ number }) => number === turn)?.turn;
    const isTaken = isOpen && run !== undefined && (await giveAnswer((await visit.run(run, 'answer')).run, answer));
    if (isTaken || approved === undefined) continue;
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

/** @returns false when somebody else was faster. */
async function giveAnswer(run: Run, answer: GivenAnswer): Promise<boolean> {
  const { approvalId: token, approved, reason, args, value, payload } = answer;
  const why = defined({ reason });
  try {
    if (value !== undefined) await run.answer(token, { kind: 'answer', value, ...why });
    else if (payload !== undefined) await run.answer(token, { kind: 'payload', payload });
    else if (approved === true) await run.approve(token, { ...why, ...defined({ args }) });
    else await run.reject(token, why);
    return true;
  } catch (error) {
    if (PilotageError.is(error, 'pause_not_found') || PilotageError.is(error, 'run_ended')) return false;
    throw error;
  }
}

/** Gives the results of the client's own tools. Results of other calls are ignored. @returns the tokens of the questions that were answered. */
export async function giveOutputs(
  visit: Visit,
  turns: readonly TurnView[],
  given: readonly ClientToolOutput[],
): Promise<ReadonlySet<string>> {
  const tokens = new Set<string>();
  const live = given.length === 0 ? undefined : turnUnderWay(turns);
  if (live === undefined || !(await visit.sees(live.turn))) return tokens;
  const { run } = await visit.run(live.turn);
  for (const { token, reason, payload } of openPauses(await run.state())) {
    const output = given.find(({ toolCallId }) => toolCallId === payload?.['tool_call_id']);
    if (reason !== 'client_tool' || output === undefined) continue;
    await visit.run(live.turn, 'answer');
    tokens.add(token);
    await giveOutput(run, token, output);
  }
  return tokens;
}

async function giveOutput(run: Run, token: string, output: ClientToolOutput): Promise<void> {
  if ('output' in output) return run.answer(token, { kind: 'answer', value: output.output });
  const error = { code: 'client_failed', message: output.errorText };
  return run.settle(token, { happened: true, error });
}
