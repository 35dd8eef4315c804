/** A call whose reply is judged when it is whole: nothing of a plan runs before all of it is valid. */
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import { referencesIn } from '../../core/reference.ts';
import type { PlanFault, Remark } from '../../core/remark.ts';
import type { Reply } from '../../model/reply.ts';
import type { ParseIssue } from '../../parse/index.ts';
import { judgePlan } from './judge.ts';
import type { Ask, Read } from './make-plan.ts';
import type { Making } from './making.ts';
import { readPlan } from './read-plan.ts';

export function wholeReplies(making: Making): Ask {
  // Nothing is said on the way.
  return async function* ask(call, kept) {
    return await making.tries.ask<Read>(call, (reply) => judgeReply(reply, kept, making));
  };
}

async function judgeReply(reply: Reply, kept: readonly Json[], { prompt, judging }: Making): Promise<Read> {
  const read = readPlan(reply, prompt.form);
  if ('fault' in read) return { result: 'unreadable', faults: [read.fault], kept };
  const { missing = [] } = read;
  const value = kept.length === 0 ? read.value : withKept(read.value, kept);
  const judged = await judgePlan(value, judging);
  const remarks = repairedRemarks(read.repaired);
  if (judged.result === 'valid' && missing.length === 0) return { ...judged, remarks };
  const faults = [...missing, ...judged.faults];
  const result = judged.result === 'forbidden' ? 'forbidden' : 'invalid';
  return { result, faults, remarks, ...(prompt.form === 'ndjson' ? { kept: goodSteps(value, faults) } : {}) };
}

/**
 * A step that is given again takes the place of the one that was kept. Where the kept ones follow one another, as nothing else
 * was said, they go on to do so, and the new ones follow them; whatever the new ones say of their own order.
 */
function withKept(value: JsonObject, kept: readonly Json[]): JsonObject {
  const given = Array.isArray(value['steps']) ? (value['steps'] as readonly Json[]) : [];
  const ids = new Set(given.map(idOf));
  const steps = [...kept.filter((step) => !ids.has(idOf(step))), ...given];
  const isChain = !kept.some(saysOrder);
  const inOrder = [...steps.filter((step) => !isFinish(step)), ...steps.filter(isFinish)];
  return { ...value, steps: isChain && steps.some(saysOrder) ? chained(inOrder) : inOrder };
}

/** Each step that says nothing of its order comes after the one before it. */
function chained(steps: readonly Json[]): readonly Json[] {
  return steps.map((step, index) => {
    const before = index === 0 ? undefined : idOf(steps[index - 1] as Json);
    if (before === undefined || !isJsonObject(step) || saysOrder(step) || isFinish(step)) return step;
    return { ...step, after: [before] };
  });
}

function saysOrder(step: Json): boolean {
  if (!isJsonObject(step)) return false;
  return step['after'] !== undefined || step['when'] !== undefined || referencesIn(step['input'] ?? null).size > 0;
}

function isFinish(step: Json): boolean {
  return isJsonObject(step) && step['type'] === 'finish';
}

function goodSteps({ steps }: JsonObject, faults: readonly PlanFault[]): readonly Json[] {
  const bad = new Set(faults.flatMap(({ step, path = [] }) => [...path, ...(step === undefined ? [] : [step])]));
  const seen = new Set<string>();
  return (Array.isArray(steps) ? (steps as readonly Json[]) : []).filter((step) => {
    const id = idOf(step);
    if (id === undefined || bad.has(id) || seen.has(id)) return false;
    seen.add(id);
    return true;
  });
}

function idOf(step: Json): string | undefined {
  const id = isJsonObject(step) ? step['id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

const MAX_ISSUES = 10;
const MAX_MESSAGE_CHARS = 256;

/** What was repaired to read a reply, as one remark. */
export function repairedRemarks(repaired: readonly ParseIssue[]): readonly Remark[] {
  if (repaired.length === 0) return [];
  const issues = repaired.slice(0, MAX_ISSUES).map(({ code, message }) => ({
    code,
    message: message.slice(0, MAX_MESSAGE_CHARS),
  }));
  return [{ type: 'planner.reply_repaired', issues }];
}
