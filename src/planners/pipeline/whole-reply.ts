/** A call whose reply is judged when it is whole: nothing of a plan runs before all of it is valid. */
import { isJsonObject, type Json, type JsonObject, type PlanFault, type Remark } from '#core';
import type { Reply } from '#model';
import type { ParseIssue } from '#parse';
import { judgePlan } from './judge.ts';
import type { ModelTry, Read } from './make-plan.ts';
import type { PlanMaking } from './making.ts';
import { readPlan } from './read-plan.ts';

export function wholeReplies(making: PlanMaking): ModelTry {
  // The order of the steps in the last reply, bad ones included: repaired steps take their places.
  let order: readonly string[] = [];
  // Nothing is said on the way.
  return async function* ask(call, kept) {
    return await making.tries.ask<Read>(call, async (reply) => {
      const judged = await judgeReply(reply, kept, order, making);
      order = judged.order;
      return judged.read;
    });
  };
}

async function judgeReply(
  reply: Reply,
  kept: readonly Json[],
  order: readonly string[],
  { prompt, judging }: PlanMaking,
): Promise<{ readonly read: Read; readonly order: readonly string[] }> {
  const read = readPlan(reply, prompt.form);
  if ('fault' in read) return { read: { result: 'unreadable', faults: [read.fault], kept }, order };
  const { missing = [] } = read;
  const value = kept.length === 0 ? read.value : withKept(read.value, kept, order);
  const ids = stepsIn(value).flatMap((step) => idOf(step) ?? []);
  const judged = await judgePlan(value, judging);
  const remarks = repairedRemarks(read.repaired);
  if (judged.result === 'valid' && missing.length === 0) return { read: { ...judged, remarks }, order: ids };
  const faults = [...missing, ...judged.faults];
  const result = judged.result === 'forbidden' ? 'forbidden' : 'invalid';
  const good = prompt.form === 'ndjson' ? { kept: goodSteps(value, faults) } : {};
  return { read: { result, faults, remarks, ...good }, order: ids };
}

/** A step that is given again takes the place of the one that was kept, or was bad. What is new comes behind, and the end last. */
function withKept(value: JsonObject, kept: readonly Json[], order: readonly string[]): JsonObject {
  const given = stepsIn(value);
  const byId = new Map([...kept, ...given].map((step) => [idOf(step), step]));
  const known = new Set(order);
  const steps = [...order.flatMap((id) => byId.get(id) ?? []), ...given.filter((step) => !known.has(idOf(step) ?? ''))];
  return { ...value, steps: [...steps.filter((step) => !isFinish(step)), ...steps.filter(isFinish)] };
}

function stepsIn({ steps }: JsonObject): readonly Json[] {
  return Array.isArray(steps) ? (steps as readonly Json[]) : [];
}

function isFinish(step: Json): boolean {
  return isJsonObject(step) && step['type'] === 'finish' && step['when'] === undefined;
}

function goodSteps(plan: JsonObject, faults: readonly PlanFault[]): readonly Json[] {
  const bad = new Set(faults.flatMap(({ step, path = [] }) => [...path, ...(step === undefined ? [] : [step])]));
  const seen = new Set<string>();
  return stepsIn(plan).filter((step) => {
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
