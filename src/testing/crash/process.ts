/** A process that can die, and a planner and tools as it runs them: watched, and cut off from the world when it is dead. */
import {
  asPlanner,
  type Clock,
  defined,
  fieldOf,
  type GivenPlanner,
  type MoveSource,
  PilotageError,
  type Planner,
  type RunView,
} from '#core';
import { type AnyTool, resultOf, type Tool, type ToolSet } from '#tools';
import { type CrashRecord, partKey } from './record.ts';
import type { CrashWorld } from './scenario.ts';

/**
 * A process that can die, played inside this one. From the moment of its death nothing it asks for is answered, and
 * nothing it does reaches the store or the world.
 */
export class CrashProcess {
  /** What it reached, in order: the moments at which it could have died. */
  readonly points: string[] = [];
  readonly died: Promise<void>;
  readonly #dieAt: number | undefined;
  readonly #underWay = new Set<Promise<unknown>>();
  #alive = true;
  #activity = 0;
  #busy = 0;
  #announceDeath: () => void = () => {};

  /** @param dieAt index of the point at which it dies; absent: it lives. */
  constructor(dieAt?: number) {
    this.#dieAt = dieAt;
    this.died = new Promise((resolve) => {
      this.#announceDeath = resolve;
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Grows with everything that happens in it. */
  get activity(): number {
    return this.#activity;
  }

  /** Something is under way that does not wait for the clock. */
  get busy(): boolean {
    return this.#busy > 0;
  }

  /** The store has been asked, and has not answered yet. */
  get asksStore(): boolean {
    return this.#underWay.size > 0;
  }

  /** Resolves when it may go on: at once, or never. */
  reach(point: string): Promise<void> {
    if (!this.#alive) return never();
    this.#activity += 1;
    this.points.push(point);
    if (this.points.length - 1 !== this.#dieAt) return Promise.resolve();
    this.kill();
    return never();
  }

  kill(): void {
    this.#alive = false;
    this.#announceDeath();
  }

  /** `work` as the process sees it: a dead one starts nothing and hears of nothing. */
  async guard<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#alive) return never();
    const leave = this.enter();
    const made = work();
    this.#underWay.add(made);
    try {
      const value = await made;
      if (this.#alive) return value;
    } catch (error) {
      if (this.#alive) throw error;
    } finally {
      this.#underWay.delete(made);
      leave();
    }
    return never();
  }

  /** Busy until the returned function is called. */
  enter(): () => void {
    this.#busy += 1;
    this.#activity += 1;
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      this.#busy -= 1;
      this.#activity += 1;
    };
  }

  /** Waits for guarded work that was under way at its death: a store may still finish it. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /** `clock` as the process sees it: its timers die with it. */
  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      after: (delayMs, wake) =>
        clock.after(delayMs, () => {
          if (this.#alive) wake();
        }),
    };
  }
}

export function never<T>(): Promise<T> {
  return new Promise(() => {});
}

type Deltas = Extract<MoveSource, AsyncGenerator<unknown, unknown>>;

export function worldOf(process: CrashProcess, record: CrashRecord): CrashWorld {
  return {
    effect: async ({ idempotencyKey }, part) => {
      await process.reach('before an effect');
      record.effect(idempotencyKey, part);
      await process.reach('after an effect');
    },
    count: ({ idempotencyKey }, part) => record.effects.get(partKey(idempotencyKey, part)) ?? 0,
  };
}

/** The tools, and those of the planners that carry them out: each tool and each planner once, however often it is given. */
export function mortalTools(
  tools: readonly AnyTool[],
  process: CrashProcess,
  record: CrashRecord,
  known: Known = { tools: new Map(), planners: new Map() },
): AnyTool[] {
  return tools.map((tool) => {
    const before = known.tools.get(tool);
    if (before !== undefined) return before;
    if ('client' in tool) return tool;
    if (!('agent' in tool)) {
      const made = mortalTool(tool, process, record);
      known.tools.set(tool, made);
      return made;
    }
    const { name, planner: given, tools: below, limits, parallelCalls } = tool.agent;
    // A flow is more than an agent; of a run it needs no more than an agent has.
    const readArgs = tool.agent.readArgs?.bind(tool.agent);
    const planner = known.planners.get(given) ?? mortalPlanner(given, process, record);
    known.planners.set(given, planner);
    const own: AnyTool[] = [];
    const made = { ...tool, agent: { name, planner, tools: own, ...defined({ limits, parallelCalls, readArgs }) } };
    known.tools.set(tool, made);
    own.push(...mortalTools(toolsIn(below), process, record, known));
    return made;
  });
}

/** The agent's own tools with these names. */
function toolsIn(tools: ToolSet): readonly AnyTool[] {
  return Object.values(tools) as AnyTool[];
}

interface Known {
  readonly tools: Map<AnyTool, AnyTool>;
  readonly planners: Map<Planner, Planner>;
}

function mortalTool(tool: Tool, process: CrashProcess, record: CrashRecord): Tool {
  const { name, effect = 'once' } = tool;
  const run: Tool['execute'] = async (args, context) => {
    await process.reach(`before ${name}`);
    const { idempotencyKey: key, identity } = context;
    record.attempt({ run: identity.run, tool: name, effect, key, args: JSON.stringify(args) });
    const leave = process.enter();
    // When an attempt waits, nothing of it goes on, and nothing of it ends.
    context.signal.addEventListener('abort', () => {
      if (isParked(context.signal.reason)) leave();
    });
    try {
      return await resultOf(tool.execute(args, context), context);
    } catch (thrown) {
      const code = fieldOf(thrown, 'code');
      if (code === 'auth_required' || code === 'not_sent') record.unmade.push(key);
      if (code === 'not_sent' && record.effects.has(key))
        record.faults.push(`${name} threw NotSent, but its effect had happened.`);
      throw thrown;
    } finally {
      leave();
      await process.reach(`after ${name}`);
    }
  };
  if (tool.reconcile === undefined) return { ...tool, execute: run };
  const reconcile: Tool['reconcile'] = async (args, context) => {
    await process.reach(`before ${name} is asked what happened`);
    const answer = (await tool.reconcile?.(args, context)) ?? { status: 'unknown' as const };
    record.reconciliations.push({ tool: name, key: context.idempotencyKey, status: answer.status });
    await process.reach(`after ${name} was asked what happened`);
    return answer;
  };
  return { ...tool, execute: run, reconcile };
}

function isParked(reason: unknown): boolean {
  return PilotageError.is(reason) && reason.data?.['waits'] === true;
}

export function mortalPlanner(given: GivenPlanner, process: CrashProcess, record: CrashRecord): Planner {
  const planner = asPlanner(given);
  const { name, version, wakeMode, modelDriven } = planner;
  const compact = planner.compact?.bind(planner);
  return {
    name,
    ...defined({ version, wakeMode, modelDriven }),
    next: (view: RunView, signal: AbortSignal): MoveSource => {
      if (!process.alive) return never();
      record.shown(view);
      return busyWith(planner.next(view, signal), process);
    },
    ...(compact === undefined
      ? {}
      : {
          compact: (view, signal) => {
            if (!process.alive) return never();
            record.shown(view);
            return process.guard(async () => compact(view, signal));
          },
        }),
  };
}

/** The clock stands still while the planner thinks. */
function busyWith(source: MoveSource, process: CrashProcess): MoveSource {
  if (source instanceof Promise) {
    const leave = process.enter();
    source.then(leave, leave);
    return source;
  }
  return Symbol.asyncIterator in source ? deltas(source, process) : source;
}

async function* deltas(source: Deltas, process: CrashProcess): Deltas {
  const leave = process.enter();
  try {
    return yield* source;
  } finally {
    leave();
  }
}
