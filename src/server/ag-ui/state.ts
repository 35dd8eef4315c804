/** What of a turn clients see as the state of the agent: its plan, its tasks, what it has used, and what its tools report. */
import {
  defined,
  FINISH_TOOL,
  isJsonObject,
  type Json,
  type JsonObject,
  MESSAGE_TOOL,
  type RunEvent,
  type Usage,
} from '#core';
import type { PatchOperation, TokenUsage } from './protocol.ts';

/** What the turn says itself. A client that sends its state back has these of an earlier turn. */
const OWN = ['plan', 'tasks', 'budget'];
/** Tools report to clients in rows of this stream of their run: `{ type: 'data-progress', data: { percent } }`. */
export const DATA_STREAM = 'data';
/** Nodes that no tool carries out. */
const NAMES: Readonly<Record<string, string>> = { [MESSAGE_TOOL]: 'message', [FINISH_TOOL]: 'finish' };
const DATA_ROW = /^data-(.+)$/;

/** The rest of the client's state is its own, and comes back as it was sent. */
export function keptState(sent: Json | undefined): JsonObject {
  if (!isJsonObject(sent)) return {};
  return Object.fromEntries(Object.entries(sent).filter(([key]) => !OWN.includes(key)));
}

export class StateFold {
  #state: JsonObject;
  #told: JsonObject;
  #totals: Required<Pick<Usage, 'inputTokens' | 'outputTokens' | 'costMicroUsd'>> & Usage = {
    inputTokens: 0,
    outputTokens: 0,
    costMicroUsd: 0,
  };
  #hasUsage = false;

  constructor(kept: JsonObject) {
    this.#state = kept;
    this.#told = kept;
  }

  /** All of it; what changes later is told as of this. */
  snapshot(): JsonObject {
    this.#told = this.#state;
    return this.#state;
  }

  /** What has changed since it was told; empty when nothing has. */
  delta(): readonly PatchOperation[] {
    const patch = patchOf(this.#told, this.#state);
    this.#told = this.#state;
    return patch;
  }

  /** What the turn has used, as far as providers have said; `undefined` when none has. */
  get usage(): TokenUsage | undefined {
    if (!this.#hasUsage) return undefined;
    const { inputTokens, outputTokens, cachedInputTokens, cacheWriteInputTokens, reasoningTokens } = this.#totals;
    const parts = defined({ cachedInputTokens, cacheWriteInputTokens, reasoningTokens });
    return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, ...parts };
  }

  add(event: RunEvent): void {
    if (event.type === 'planner.decision' || event.type === 'tool.spent') this.#use(event.usage);
    if (event.type.startsWith('task.')) this.#tasks(event);
    // What the tasks do in their own steps is theirs.
    else if (event.path === undefined) this.#steps(event);
  }

  #steps(event: RunEvent): void {
    switch (event.type) {
      case 'planner.decision':
        this.#plan(event.step, event.plan);
        break;
      case 'tool.invoked':
        this.#node(event.step, event.call, { tool: NAMES[event.tool] ?? event.tool, status: 'open' });
        break;
      case 'tool.completed':
        this.#node(event.step, event.call, { status: 'done' });
        break;
      case 'tool.failed':
      case 'tool.rejected':
        this.#node(event.step, event.call, { status: 'failed' });
        break;
      case 'tool.skipped':
        this.#node(event.step, event.call, { status: 'skipped' });
        break;
      default:
    }
  }

  #tasks(event: RunEvent): void {
    switch (event.type) {
      case 'task.spawned':
        this.#task(event.taskId, { description: event.description, kind: event.kind, status: 'running' });
        break;
      case 'task.paused':
        this.#task(event.taskId, { status: 'paused' });
        break;
      case 'task.resumed':
        this.#task(event.taskId, { status: 'running' });
        break;
      case 'task.completed':
        this.#task(event.taskId, { status: 'complete' });
        break;
      case 'task.failed':
        this.#task(event.taskId, { status: 'failed' });
        break;
      case 'task.cancelled':
        this.#task(event.taskId, { status: 'cancelled' });
        break;
      default:
    }
  }

  /** A row of the run's stream `data`. */
  report(row: Json): void {
    const type = isJsonObject(row) ? row['type'] : undefined;
    const name = typeof type === 'string' ? DATA_ROW.exec(type)?.[1] : undefined;
    if (name === undefined || OWN.includes(name) || !isJsonObject(row)) return;
    this.#state = { ...this.#state, [name]: row['data'] ?? null };
  }

  /** The plan that is carried out, as an activity shows it. */
  get plan(): { readonly step: number; readonly nodes: readonly Json[] } | undefined {
    const plan = this.#state['plan'];
    return isJsonObject(plan) ? (plan as { step: number; nodes: Json[] }) : undefined;
  }

  #use(usage: Usage | undefined): void {
    if (usage === undefined) return;
    this.#hasUsage = true;
    const totals: Record<string, number> = {};
    for (const [key, value] of [...Object.entries(this.#totals), ...Object.entries(usage)])
      if (typeof value === 'number') totals[key] = (totals[key] ?? 0) + value;
    this.#totals = { ...this.#totals, ...totals };
    const { inputTokens, outputTokens, costMicroUsd } = this.#totals;
    this.#state = { ...this.#state, budget: { used: { inputTokens, outputTokens, costMicroUsd } } };
  }

  #plan(step: number, id: string | undefined): void {
    if (id !== undefined) this.#state = { ...this.#state, plan: { id, step, nodes: [] } };
  }

  #node(step: number, call: number, change: JsonObject): void {
    const { plan } = this;
    if (plan === undefined || plan.step !== step) return;
    const nodes = [...plan.nodes];
    const before = nodes[call];
    nodes[call] = { ...(isJsonObject(before) ? before : {}), ...change };
    this.#state = { ...this.#state, plan: { ...plan, nodes } };
  }

  #task(id: string, change: JsonObject): void {
    const tasks = this.#state['tasks'];
    const known = isJsonObject(tasks) ? tasks : {};
    const before = known[id];
    this.#state = { ...this.#state, tasks: { ...known, [id]: { ...(isJsonObject(before) ? before : {}), ...change } } };
  }
}

/** The operations of RFC 6902 that make the one of the other. What is the same object is not looked at. */
export function patchOf(before: Json, after: Json, path = ''): readonly PatchOperation[] {
  if (before === after) return [];
  if (isJsonObject(before) && isJsonObject(after)) {
    const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
    return [
      ...removed.map((key) => ({ op: 'remove' as const, path: `${path}/${pointer(key)}` })),
      ...Object.entries(after).flatMap(([key, value]) => {
        const at = `${path}/${pointer(key)}`;
        const was = Object.hasOwn(before, key) ? before[key] : undefined;
        return was === undefined ? [{ op: 'add' as const, path: at, value }] : patchOf(was, value, at);
      }),
    ];
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length <= after.length) {
    return after.flatMap((value, index) =>
      index < before.length
        ? patchOf(before[index], value, `${path}/${index}`)
        : [{ op: 'add' as const, path: `${path}/${index}`, value }],
    );
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ op: 'replace', path, value: after }];
}

function pointer(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
