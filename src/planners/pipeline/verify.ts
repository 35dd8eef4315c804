/** Of several valid plans the best one, by a score for each. */
import { describeThrown, type ErrorData } from '../../core/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import type { Remark } from '../../core/remark.ts';
import type { Reply } from '../../model/reply.ts';
import { structuredFormat } from '../../model/structured.ts';
import { JsonStream } from '../../parse/index.ts';
import { aboutFrames, enclose, encloseJson } from '../../prompt/frame.ts';
import { userTurn } from '../../prompt/messages.ts';
import type { ReadyPlan } from '../graph/plan.ts';
import type { Making } from './making.ts';
import type { Judged } from './tries.ts';

/** A plan that may run, and the number of the try that gave it. */
export interface Candidate {
  readonly plan: ReadyPlan;
  readonly number: number;
}

/**
 * The one with the highest score, of equal ones the first. Scores that do not come, or are none, leave the first one.
 * @param valid at least one. @throws the signal's reason.
 */
export async function chooseBest(valid: readonly Candidate[], making: Making): Promise<Candidate> {
  const { setup, signal, tries } = making;
  const { candidates } = setup.numbers;
  const first = valid[0] as Candidate;
  if (candidates === 1) return first;
  const tell = (chosen: Candidate, more: { scores?: readonly number[]; error?: ErrorData }): Candidate => {
    const remark = { candidates, valid: valid.length, chosen: chosen.number, ...more };
    tries.remarks.push({ type: 'plan.verified', ...remark } satisfies Remark<'plan.verified'>);
    return chosen;
  };
  if (valid.length === 1) return tell(first, {});
  let scores: readonly number[];
  try {
    scores = readScores(await scoresOf(valid, making), valid.length);
  } catch (error) {
    signal.throwIfAborted();
    const message = setup.redact(describeThrown(error)).slice(0, MAX_MESSAGE_CHARS);
    return tell(first, { error: { code: 'verifier_failed', message } });
  }
  signal.throwIfAborted();
  const best = scores.indexOf(Math.max(...scores));
  return tell(valid[best] ?? first, { scores });
}

const MAX_MESSAGE_CHARS = 256;

async function scoresOf(valid: readonly Candidate[], making: Making): Promise<unknown> {
  const { setup, run, signal } = making;
  const { verifier } = setup.options;
  const plans = valid.map(({ plan }) => plan);
  return typeof verifier === 'function' ? await verifier(plans, run, signal) : await askForScores(plans, making);
}

/** @throws Error for anything but a finite number for each plan. */
function readScores(given: unknown, count: number): readonly number[] {
  if (!Array.isArray(given) || given.length !== count || !given.every((score) => Number.isFinite(score))) {
    throw new Error(`The verifier is to give ${count} numbers, one for each plan.`);
  }
  return given as readonly number[];
}

const SCORES_SCHEMA: JsonObject = {
  type: 'object',
  required: ['scores'],
  additionalProperties: false,
  properties: { scores: { type: 'array', items: { type: 'number' } } },
};

interface Scored extends Judged {
  readonly scores?: readonly number[];
}

/** @throws Error when the model gives no scores. */
async function askForScores(plans: readonly ReadyPlan[], { setup, run, tries }: Making): Promise<readonly number[]> {
  const { judge: model, options } = setup;
  if (model === undefined) throw new Error('There is no verifier.');
  if (tries.isCeilingReached) throw new Error('Nothing is left to pay a verifier with.');
  const { responseFormat, instruction } = structuredFormat(model.structuredOutput, SCORES_SCHEMA, 'scores');
  const request = {
    prompt: [userTurn([scorePrompt(run.goal, plans), ...(instruction === undefined ? [] : [instruction])].join('\n'))],
    temperature: 0,
    ...(options.seed === undefined ? {} : { seed: options.seed }),
    ...(responseFormat === undefined ? {} : { responseFormat }),
  };
  const call = { purpose: 'verify', model, request, previous: tries.count } as const;
  const { judged } = await tries.ask<Scored>(call, (reply) => judgeScores(reply, plans.length));
  if (judged.result === 'valid' && 'scores' in judged && judged.scores !== undefined) return judged.scores;
  throw new Error(judged.faults[0]?.message ?? 'The model gave no scores.');
}

function scorePrompt(goal: string, plans: readonly ReadyPlan[]): string {
  return [
    'Several plans were made for one goal. Give each a score from 0 to 10: does it reach the goal, in the right order, and without a step that is not needed?',
    aboutFrames('text'),
    enclose('goal', goal),
    ...plans.map(({ steps }, index) => encloseJson('candidate_plan', JSON.stringify(steps), { number: index + 1 })),
    `Answer with {"scores": […]}: ${plans.length} numbers, in the order of the plans.`,
  ].join('\n');
}

function judgeScores({ text }: Reply, count: number): Scored {
  const value = objectIn(text);
  const given = isJsonObject(value) ? value['scores'] : undefined;
  try {
    return { result: 'valid', faults: [], scores: readScores(given, count) };
  } catch (error) {
    return { result: 'unreadable', faults: [{ code: 'verifier_failed', message: describeThrown(error) }] };
  }
}

/** The first object of the text; models like to say something before it. */
function objectIn(text: string): Json | undefined {
  const from = text.indexOf('{');
  if (from < 0) return undefined;
  const json = new JsonStream();
  json.push(text.slice(from));
  return json.state === 'complete' ? json.value() : undefined;
}
