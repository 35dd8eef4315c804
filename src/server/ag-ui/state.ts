/** The state of the agent that clients see: its plan, its tasks, its usage, and what its tools report. */
import {
  defined,
  FINISH_TOOL,
  isJsonObject,
  type Json,
  type JsonObject,
  MESSAGE_TOOL,
  pointerTo,
  type RunEvent,
  type Usage,
} from '#core';
import type { PatchOperation, TokenUsage } from './protocol.ts';

/** The keys that the turn sets itself. In a state that a client sends back they are those of an earlier turn. */
const OWN = ['plan', 'tasks', 'budget'];
/** Names of the nodes that are not calls of tools. */
const NAMES: ReadonlyMap<string, string> = new Map([
  [MESSAGE_TOOL, 'message'],
  [FINISH_TOOL, 'finish'],
]);
/** The type of a row that a tool reports: `{ type: 'data-progress', data: { percent } }`. */
const DATA_ROW = /^data-(.+)$/;

/** The part of a client's state that is not the turn's: it is told back as it was sent. */
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

  /** The whole state. Later deltas are relative to it. */
  snapshot(): JsonObject {
    this.#told = this.#state;
    return this.#state;
  }

  /** The changes since the state was told last. */
  delta(): readonly PatchOperation[] {
    const patch = patchOf(this.#told, this.#state);
    this.#told = this.#state;
    return patch;
  }

  /** The usage of the turn, as far as providers have reported it. */
  get usage(): TokenUsage | undefined {
    if (!this.#hasUsage) return undefined;
    const { inputTokens, outputTokens, cachedInputTokens, cacheWriteInputTokens, reasoningTokens } = this.#totals;
    const parts = defined({ cachedInputTokens, cacheWriteInputTokens, reasoningTokens });
    return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, ...parts };
  }

  add(event: RunEvent): void {
    if (event.type === 'planner.decision' || event.type === 'tool.spent') this.#use(event.usage);
    if (event.type.startsWith('task.')) this.#tasks(event);
    // The steps of tasks are not shown.
    else if (event.path === undefined) this.#steps(event);
  }

  #steps(event: RunEvent): void {
    switch (event.type) {
      case 'planner.decision':
        this.#plan(event.step, event.plan);
        break;
      case 'tool.invoked':
        this.#node(event.step, event.call, { tool: NAMES.get(event.tool) ?? event.tool, status: 'open' });
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

/** The operations of RFC 6902 that turn `before` into `after`. The same object is not compared again. */
function patchOf(before: Json, after: Json, path = ''): readonly PatchOperation[] {
  if (before === after) return [];
  if (isJsonObject(before) && isJsonObject(after)) {
    const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
    return [
      ...removed.map((key) => ({ op: 'remove' as const, path: pointerTo(path, key) })),
      ...Object.entries(after).flatMap(([key, value]) => {
        const at = pointerTo(path, key);
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
