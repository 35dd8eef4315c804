/** A planner and tools as a process that can die runs them: watched, and cut off from the world when it is dead. */
import { asPlanner, defined, type MoveSource, type Planner, type PlannerFunction, type RunView } from '#core';
import { type AnyTool, LoginRequired, type Tool, type ToolSet } from '#tools';
import { type CrashProcess, never } from './crash-process.ts';
import type { CrashRecord } from './crash-record.ts';
import type { CrashWorld } from './crash-scenario.ts';

type Deltas = Extract<MoveSource, AsyncGenerator<unknown, unknown>>;

export function worldOf(process: CrashProcess, record: CrashRecord): CrashWorld {
  return {
    effect: async ({ idempotencyKey }) => {
      await process.reach('before an effect');
      record.effect(idempotencyKey);
      await process.reach('after an effect');
    },
    count: ({ idempotencyKey }) => record.effects.get(idempotencyKey) ?? 0,
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
    try {
      return await tool.execute(args, context);
    } catch (thrown) {
      if (thrown instanceof LoginRequired) record.logins.push(key);
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

export function mortalPlanner(given: Planner | PlannerFunction, process: CrashProcess, record: CrashRecord): Planner {
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
            return process.guard(() => compact(view, signal));
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
