/**
 * The two ways to take a reply: judged when it is whole, so that nothing of a plan runs before all of it is valid; or line by
 * line as it arrives, each checked by itself, so that its step may run at once.
 */
import {
  addUsage,
  type Branch,
  type Delta,
  isJsonObject,
  type Json,
  type JsonObject,
  type PlanFault,
  type Remark,
  type SpokenDelta,
  steadyMs,
  type Usage,
} from '#core';
import {
  BrokenReply,
  type ModelAnswer,
  type ReadyModel,
  type Reply,
  type StopReason,
  streamModel,
  usageOfText,
} from '#model';
import type { ParseIssue } from '#parse';
import { judgePlan } from './judge.ts';
import type { ModelTry, Read } from './make-plan.ts';
import type { PlanDraft } from './plan-draft.ts';
import { finishStep, type PlanLine, PlanLines, readPlan } from './read-plan.ts';
import type { PlanMaking } from './request.ts';
import type { BegunTry, ModelRequest, Tried } from './tries.ts';

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
  making: PlanMaking,
): Promise<{ readonly read: Read; readonly order: readonly string[] }> {
  const read = readPlan(reply, making.prompt.form);
  if ('fault' in read) return { read: { result: 'unreadable', faults: [read.fault], kept }, order };
  const { missing = [] } = read;
  const value = kept.length === 0 ? read.value : withKept(read.value, kept, order);
  const ids = stepsIn(value).flatMap((step) => idOf(step) ?? []);
  const judged = await judgePlan(value, making);
  const remarks = repairedRemarks(read.repaired);
  if (judged.result === 'valid' && missing.length === 0) return { read: { ...judged, remarks }, order: ids };
  const faults = [...missing, ...judged.faults];
  const result = judged.result === 'forbidden' ? 'forbidden' : 'invalid';
  const good = making.prompt.form === 'ndjson' ? { kept: goodSteps(value, faults) } : {};
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
function repairedRemarks(repaired: readonly ParseIssue[]): readonly Remark[] {
  if (repaired.length === 0) return [];
  const issues = repaired.slice(0, MAX_ISSUES).map(({ code, message }) => ({
    code,
    message: message.slice(0, MAX_MESSAGE_CHARS),
  }));
  return [{ type: 'planner.reply_repaired', issues }];
}

/** Steps that may start are given to `draft`, and yielded as `branches`. */
export function linesAsTheyCome(making: PlanMaking, draft: PlanDraft): ModelTry {
  return (call) => new LineReader(making, draft, call).read();
}

/** The reply of one call. */
class LineReader {
  readonly #making: PlanMaking;
  readonly #draft: PlanDraft;
  readonly #call: ModelRequest;
  readonly #begun: BegunTry;
  readonly #startedAt: number;
  #lines: PlanLines;
  #output = '';
  /** What replies have used that broke off before a step of them was taken. */
  #before: Usage | undefined;
  #faults: PlanFault[] = [];
  /** Steps that were good before this call. */
  readonly #keptBefore: number;

  constructor(making: PlanMaking, draft: PlanDraft, call: ModelRequest) {
    this.#making = making;
    this.#draft = draft;
    this.#call = call;
    this.#begun = making.tries.begin(call);
    draft.begin();
    this.#startedAt = steadyMs(making.setup.clock);
    this.#lines = new PlanLines(making.maxSteps);
    this.#keptBefore = draft.kept.length;
  }

  async *read(): AsyncGenerator<Delta, Tried<Read>> {
    const { setup, signal, tries } = this.#making;
    const { model, request } = this.#call;
    const requestFor = (_: ReadyModel): typeof request => ({ ...request });
    const stream = streamModel({ ...setup.patience, models: [model], requestFor, signal, left: tries.left });
    try {
      for (;;) {
        let next: IteratorResult<SpokenDelta, ModelAnswer>;
        // Only reading is guarded: an error that the consumer throws in at `yield` is not a failure of the model.
        try {
          next = await stream.next();
        } catch (error) {
          return this.#failed(error);
        }
        if (next.done === true) return yield* this.#ended(next.value);
        const goesOn = yield* this.#hear(next.value);
        if (!goesOn) return this.#brokenOff(next.value);
      }
    } finally {
      // Aborts the call when its rest is not wanted; otherwise it is over already.
      await stream.return(undefined as never);
    }
  }

  /** False: nothing more is to be read. */
  async *#hear(delta: SpokenDelta): AsyncGenerator<Delta, boolean> {
    if (delta.type === 'reasoning') {
      yield delta;
      return true;
    }
    // It is asked for a plan in text, and has no tools to call.
    if (delta.type === 'input') return true;
    if (delta.type === 'reset') {
      // Steps that came before the failure may run already: the call cannot begin anew.
      if (this.#draft.kept.length > this.#keptBefore) return false;
      this.#lines = new PlanLines(this.#making.maxSteps);
      this.#before = addUsage(this.#before, usageOfText(this.#call.request, this.#output, this.#call.model));
      this.#output = '';
      this.#faults = [];
      yield delta;
      return true;
    }
    this.#output += delta.text;
    yield* this.#takeAll(this.#lines.push(delta.text));
    return this.#lines.fault === undefined;
  }

  async *#takeAll(lines: readonly PlanLine[]): AsyncGenerator<Delta, void> {
    const ready: Branch[] = [];
    for (const line of lines) {
      if (line.kind === 'reasoning') {
        yield { type: 'reasoning', text: `${this.#making.setup.redact(line.text)}\n` };
        continue;
      }
      const step = line.kind === 'step' ? line.step : this.#finishOf(line.result);
      if (step === undefined) continue;
      const grown = await this.#draft.take(step);
      ready.push(...grown.ready);
      this.#faults.push(...grown.faults);
    }
    yield* this.#give(ready);
  }

  /** The line that ends a plan may bring its result. */
  #finishOf(result: Json | undefined): Json | undefined {
    return result === undefined ? undefined : finishStep(this.#draft.kept, result);
  }

  *#give(branches: readonly Branch[]): Generator<Delta, void> {
    if (branches.length === 0) return;
    const { concurrency } = this.#making;
    const how = concurrency === undefined ? {} : { concurrency };
    yield { type: 'branches', plan: this.#draft.planId, branches, ...how };
  }

  async *#ended(asked: ModelAnswer): AsyncGenerator<Delta, Tried<Read>> {
    const { reply } = asked;
    const refused = this.#making.tries.refused(asked);
    if (refused !== undefined) return this.#begun.ended(asked, this.#output, { ...refused, ...this.#left() });
    yield* this.#takeAll(this.#lines.end());
    const faults = [...this.#faults, ...this.#lines.lost];
    if (this.#lines.fault !== undefined) faults.push(this.#lines.fault);
    else if (CUT_OFF.has(reply.finish) && !this.#lines.isWhole) faults.push(cutOff(reply.finish));
    const grown = this.#draft.end(faults.length === 0);
    yield* this.#give(grown.ready);
    faults.push(...grown.faults);
    const remarks = repairedRemarks(this.#lines.repaired);
    return this.#begun.ended(asked, this.#output, { ...this.#readWith(faults), remarks });
  }

  /** The call failed, or was broken off after steps of it were taken. */
  #failed(error: unknown): Tried<Read> {
    const { number, ...rest } = this.#begun.failed(error, this.#output, this.#elapsedMs(), this.#before);
    return { ...rest, number, judged: { ...rest.judged, ...this.#left() } as Tried<Read>['judged'] };
  }

  #brokenOff({ type }: SpokenDelta): Tried<Read> {
    if (type === 'reset') return this.#failed(new BrokenReply('model_interrupted', 'The stream broke off.'));
    const { fault } = this.#lines;
    const faults = [...this.#faults, ...this.#lines.lost, ...(fault === undefined ? [] : [fault])];
    const judged = { ...this.#readWith(faults), tooMuch: true };
    return this.#begun.brokenOff(this.#output, this.#elapsedMs(), judged, this.#before);
  }

  #readWith(faults: readonly PlanFault[]): Read {
    if (faults.length === 0) return { result: 'valid', faults, ...this.#left() };
    const isForbidden = faults.every(({ code }) => code === 'plan_forbidden');
    const isNothing = this.#draft.kept.length === 0 && this.#faults.length === 0;
    return { result: isForbidden ? 'forbidden' : isNothing ? 'unreadable' : 'invalid', faults, ...this.#left() };
  }

  #left(): { readonly kept: readonly Json[]; readonly runs: boolean } {
    return { kept: this.#draft.kept, runs: this.#draft.size > 0 };
  }

  #elapsedMs(): number {
    return Math.round(steadyMs(this.#making.setup.clock) - this.#startedAt);
  }
}

const CUT_OFF: ReadonlySet<StopReason> = new Set(['length', 'pause', 'content-filter', 'interrupted', 'error']);

function cutOff(finish: StopReason): PlanFault {
  return { code: 'plan_cut', message: `The reply ended before it was complete (${finish}).` };
}
