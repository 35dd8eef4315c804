/** Data parts about a run that are not words or calls: its tasks, its plans, its questions that are not about a call, and models and tools that are waited for. */
import { defined, type EventPayloads, isForOperators, type Json, type RunEvent } from '#core';
import type { DataChunk } from './ui-chunks.ts';

type Fields = Record<string, Json>;

interface Plan {
  readonly run: string;
  data: Fields;
  isTold: boolean;
}

export class ToldNotes {
  readonly #tell: (chunk: DataChunk) => void;
  readonly #tasks = new Map<string, Fields>();
  readonly #pauses = new Map<string, Fields>();
  /** Models and tools that are tried again later, by the ids of their parts. */
  readonly #away = new Map<string, Fields>();
  /** The plan that is being carried out, or the last one. */
  #plan: Plan | undefined;

  constructor(tell: (chunk: DataChunk) => void) {
    this.#tell = tell;
  }

  hear(event: RunEvent): void {
    switch (event.type) {
      case 'task.spawned': {
        const { taskId: task, description, kind } = event;
        this.#task(task, { task, description, kind, status: 'running' });
        return;
      }
      case 'task.paused':
        this.#task(event.taskId, { status: 'paused' });
        return;
      case 'task.resumed':
        this.#task(event.taskId, { status: 'running' });
        return;
      case 'task.completed':
        this.#task(event.taskId, { status: 'complete' });
        return;
      case 'task.failed':
        this.#task(event.taskId, { status: 'failed', code: event.code });
        return;
      case 'task.cancelled':
        this.#task(event.taskId, { status: 'cancelled' });
        return;
      default:
        return;
    }
  }

  asked({ token, reason, payload, schema, expiresAt }: EventPayloads['pause.requested']): void {
    const { tool, args } = payload ?? {};
    const shown = isForOperators(reason) ? defined({ tool, args }) : payload;
    const data: Fields = { token, reason, status: 'open', ...defined({ payload: shown, schema, expiresAt }) };
    this.#pauses.set(token, data);
    this.#tell({ type: 'data-pause', id: token, data });
  }

  answered(token: string, verdict: string): void {
    const asked = this.#pauses.get(token);
    if (asked === undefined) return;
    this.#pauses.delete(token);
    this.#tell({ type: 'data-pause', id: token, data: { ...asked, status: 'answered', verdict } });
  }

  /** The run has ended: nothing is waited for any more, and nobody can answer what it has asked. */
  end(): void {
    this.back();
    for (const [token, data] of this.#pauses)
      this.#tell({ type: 'data-pause', id: token, data: { ...data, status: 'withdrawn' } });
    this.#pauses.clear();
  }

  /**
   * It is tried again at that time. The error is for operators.
   * @param what `model`, or the name of the tool.
   */
  away(id: string, what: string, retryAt: number): void {
    const data: Fields = { what, status: 'away', retryAt };
    this.#away.set(id, data);
    this.#tell({ type: 'data-away', id, data });
  }

  /** It has answered, or is waited for no more. @param id absent: all of them. */
  back(id?: string): void {
    for (const [each, data] of this.#away) {
      if (id !== undefined && each !== id) continue;
      this.#away.delete(each);
      this.#tell({ type: 'data-away', id: each, data: { ...data, status: 'over' } });
    }
  }

  /** The calls of the step are the nodes of a plan. */
  planMade(run: string, step: number): void {
    this.#plan = { run, data: { step, nodes: 0, ended: 0, failed: 0, done: true }, isTold: false };
  }

  /** Tells the plan, once all calls that came with the decision are known. */
  showPlan(): void {
    if (this.#plan === undefined || this.#plan.isTold) return;
    this.#plan.isTold = true;
    this.#show({});
  }

  planGrown({ nodes, done }: EventPayloads['plan.grown']): void {
    this.#show({ nodes, done });
  }

  callBegan(run: string, step: number): void {
    const plan = this.#planOf(run, step);
    if (plan?.isTold === false) plan.data['nodes'] = Number(plan.data['nodes']) + 1;
  }

  callEnded(run: string, step: number, isFailed: boolean): void {
    const plan = this.#planOf(run, step);
    if (plan === undefined) return;
    const { ended = 0, failed = 0 } = plan.data;
    this.#show({ ended: Number(ended) + 1, failed: Number(failed) + (isFailed ? 1 : 0) });
  }

  #planOf(run: string, step: number): Plan | undefined {
    const plan = this.#plan;
    return plan?.run === run && plan.data['step'] === step ? plan : undefined;
  }

  #show(change: Fields): void {
    const plan = this.#plan;
    if (plan === undefined) return;
    plan.data = { ...plan.data, ...change };
    if (plan.isTold) this.#tell({ type: 'data-plan', id: `plan:${plan.run}:${plan.data['step']}`, data: plan.data });
  }

  #task(task: string, change: Fields): void {
    const data = { ...this.#tasks.get(task), ...change };
    this.#tasks.set(task, data);
    this.#tell({ type: 'data-task', id: task, data });
  }
}
