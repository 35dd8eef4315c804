/** Chooses the best of several valid plans, by a verdict on each: a score, or a rejection. */
import { defined, describeThrown, type ErrorData, isJsonObject, type Json, type JsonObject, type Remark } from '#core';
import { BrokenReply, type Reply, structuredFormat, Watch } from '#model';
import { JsonStream, withoutThoughts } from '#parse';
import type { ReadyPlan } from '#plans';
import { aboutFrames, enclose, encloseJson, userTurn } from '#prompt';
import type { PlanVerdict } from './options.ts';
import type { PlanMaking } from './request.ts';
import type { Judged } from './tries.ts';

/** A plan that may run, and the number of the try that gave it. */
export interface Candidate {
  readonly plan: ReadyPlan;
  readonly number: number;
}

/** All of them were rejected. */
export interface Rejected {
  /** Each with the plan that it is about. */
  readonly reasons: readonly { readonly candidate: Candidate; readonly reason: string }[];
}

const TIMEOUT_MS = 60_000;
const MAX_MESSAGE_CHARS = 256;

/**
 * Returns the plan with the highest score among those that are not rejected, the first of equal ones. When verdicts do not come in
 * time, or are not valid, the first plan is taken, unverified.
 * @param valid at least one. @throws the signal's reason.
 */
export async function chooseBest(valid: readonly Candidate[], making: PlanMaking): Promise<Candidate | Rejected> {
  const { setup, signal, tries } = making;
  const first = valid[0] as Candidate;
  if (setup.options.verifier === undefined) return first;
  const about = { candidates: setup.options.candidates, valid: valid.length };
  const tell = (more: Partial<Remark<'plan.verified'>>): void => {
    tries.remarks.push({ type: 'plan.verified', ...about, ...more } satisfies Remark<'plan.verified'>);
  };
  let verdicts: readonly PlanVerdict[];
  try {
    verdicts = readVerdicts(await verdictsInTime(valid, making), valid.length);
  } catch (error) {
    signal.throwIfAborted();
    tell({ chosen: first.number, error: failureOf(error, making) });
    return first;
  }
  signal.throwIfAborted();
  const scores = verdicts.map((verdict) => (typeof verdict === 'number' ? verdict : null));
  const reasons = valid.flatMap((candidate, index) => {
    const verdict = verdicts[index];
    return typeof verdict === 'object' ? [{ candidate, reason: shortened(verdict.reject, making) }] : [];
  });
  const rejected = reasons.map(({ candidate, reason }) => ({ try: candidate.number, reason }));
  const told = { scores, ...(rejected.length === 0 ? {} : { rejected }) };
  const best = valid[scores.indexOf(Math.max(...scores.filter((score) => score !== null)))];
  if (best === undefined) {
    tell(told);
    return { reasons };
  }
  tell({ chosen: best.number, ...told });
  return best;
}

function shortened(text: string, { setup }: PlanMaking): string {
  return setup.redact(text).slice(0, MAX_MESSAGE_CHARS);
}

function failureOf(error: unknown, making: PlanMaking): ErrorData {
  const { verifierTimeoutMs = TIMEOUT_MS } = making.setup.options;
  if (error instanceof BrokenReply) {
    return { code: 'verifier_timeout', message: `The verifier gave nothing within ${verifierTimeoutMs} ms.` };
  }
  return { code: 'verifier_failed', message: shortened(describeThrown(error), making) };
}

/** @throws BrokenReply when the verdicts do not come in time; the signal's reason; every error of the verifier. */
async function verdictsInTime(valid: readonly Candidate[], making: PlanMaking): Promise<unknown> {
  const { setup, run, signal } = making;
  const { verifier, verifierTimeoutMs: stallMs = TIMEOUT_MS } = setup.options;
  const plans = valid.map(({ plan }) => plan);
  const watch = new Watch({ signal, clock: setup.clock, stallMs });
  const ask = async (): Promise<unknown> =>
    typeof verifier === 'function' ? verifier(plans, run, watch.signal) : askForVerdicts(plans, making, watch.signal);
  const asked = ask();
  try {
    return await watch.until(asked);
  } catch (error) {
    // The call of a model ends with its signal, and is a try that is to be recorded.
    if (typeof verifier !== 'function') await asked.catch(() => {});
    throw error;
  } finally {
    watch.end(true);
  }
}

/** @throws Error for anything but a verdict for each plan. */
function readVerdicts(given: unknown, count: number): readonly PlanVerdict[] {
  if (!Array.isArray(given) || given.length !== count || !given.every(isVerdict)) {
    throw new Error(`The verifier is to give ${count} verdicts, one for each plan: a number or { reject: "why" }.`);
  }
  return given;
}

function isVerdict(given: unknown): given is PlanVerdict {
  if (Number.isFinite(given)) return true;
  return isJsonObject(given) && typeof given['reject'] === 'string' && given['reject'].trim() !== '';
}

const SCORES_SCHEMA: JsonObject = {
  type: 'object',
  required: ['scores'],
  additionalProperties: false,
  properties: {
    scores: {
      type: 'array',
      items: {
        anyOf: [
          { type: 'number' },
          {
            type: 'object',
            required: ['reject'],
            additionalProperties: false,
            properties: { reject: { type: 'string' } },
          },
        ],
      },
    },
  },
};

interface Scored extends Judged {
  readonly verdicts?: readonly PlanVerdict[];
}

/** @throws Error when the model gives no verdicts. */
async function askForVerdicts(
  plans: readonly ReadyPlan[],
  { setup, run, tries }: PlanMaking,
  signal: AbortSignal,
): Promise<readonly PlanVerdict[]> {
  const { judge: model, options } = setup;
  if (model === undefined) throw new Error('There is no verifier.');
  if (tries.isSpent) throw new Error('Nothing is left to pay a verifier with.');
  const { responseFormat, instruction } = structuredFormat(model.structuredOutput, SCORES_SCHEMA, 'scores');
  const request = {
    prompt: [userTurn([scorePrompt(run.goal, plans), ...(instruction === undefined ? [] : [instruction])].join('\n'))],
    temperature: 0,
    ...defined({ seed: options.seed, responseFormat }),
  };
  const call = { purpose: 'verify', model, request, previous: tries.count, signal } as const;
  const { judged } = await tries.ask<Scored>(call, (reply) => judgeScores(reply, plans.length));
  if (judged.result === 'valid' && 'verdicts' in judged && judged.verdicts !== undefined) return judged.verdicts;
  throw new Error(judged.faults[0]?.message ?? 'The model gave no scores.');
}

function scorePrompt(goal: string, plans: readonly ReadyPlan[]): string {
  return [
    'Plans were made for one goal. Give each a score from 0 to 10: does it reach the goal, in the right order, and without a step that is not needed? Reject one that must not be carried out.',
    aboutFrames('text'),
    enclose('goal', goal),
    ...plans.map(({ steps }, index) => encloseJson('candidate_plan', JSON.stringify(steps), { number: index + 1 })),
    `Answer with {"scores": […]}: for each of the ${plans.length} plans, in their order, a number, or {"reject": "<why>"}.`,
  ].join('\n');
}

function judgeScores({ text }: Reply, count: number): Scored {
  const value = objectIn(text);
  const given = isJsonObject(value) ? value['scores'] : undefined;
  try {
    return { result: 'valid', faults: [], verdicts: readVerdicts(given, count) };
  } catch (error) {
    return { result: 'unreadable', faults: [{ code: 'verifier_failed', message: describeThrown(error) }] };
  }
}

/** The first object of the text behind its thoughts; models like to say something before it. */
function objectIn(text: string): Json | undefined {
  const words = withoutThoughts(text) ?? '';
  const from = words.indexOf('{');
  if (from < 0) return undefined;
  const json = new JsonStream();
  json.push(words.slice(from));
  return json.state === 'complete' ? json.value() : undefined;
}
