import { describe, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { agent, type ErrorCode, type EventType, type Json, type Planner, type Run, type RunEvent } from '#pilotage';
import type {
  Decision,
  DecisionKind,
  FinishReason,
  Outcome,
  Remark,
  RemarkType,
  RunView,
  ToolSchema,
} from '#pilotage/planner';
import type { EntryKind, EventPayloads } from '#pilotage/state';

describe('PC-02 a decision', () => {
  it('is one of six, and a switch over them is complete', () => {
    expectTypeOf<DecisionKind>().toEqualTypeOf<
      'call_tool' | 'call_parallel' | 'spawn_task' | 'await_task' | 'request_pause' | 'finish'
    >();
    const name = (decision: Decision): string => {
      switch (decision.kind) {
        case 'call_tool':
          return decision.tool;
        case 'call_parallel':
          return decision.branches.map(({ tool }) => tool).join();
        case 'spawn_task':
          return decision.spec.query;
        case 'await_task':
          return decision.taskId;
        case 'request_pause':
          return decision.reason;
        case 'finish':
          return decision.reason;
        default:
          return decision satisfies never;
      }
    };
    expectTypeOf(name).returns.toEqualTypeOf<string>();
  });

  it('has no seventh kind, no thoughts in it, and only the reasons that there are', () => {
    // @ts-expect-error there is no such kind
    const none: Decision = { kind: 'no_op' };
    // @ts-expect-error thoughts travel beside the decision
    const thoughts: Decision = { kind: 'call_tool', tool: 't', args: {}, reasoning: 'r' };
    // @ts-expect-error there is no such reason
    const reason: Decision = { kind: 'finish', reason: 'nope' };
    expectTypeOf([none, thoughts, reason]).toEqualTypeOf<Decision[]>();
    expectTypeOf<FinishReason>().toEqualTypeOf<
      | 'goal'
      | 'no_path'
      | 'refused'
      | 'length'
      | 'continued'
      | 'handed_over'
      | 'cancelled'
      | 'constraints_conflict'
      | 'max_steps'
      | 'max_cost'
      | 'max_tokens'
      | 'deadline_exceeded'
    >();
  });

  it('has arguments that are JSON', () => {
    expectTypeOf<Extract<Decision, { kind: 'call_tool' }>['args']>().toEqualTypeOf<Json>();
    // @ts-expect-error a function is not JSON
    const args: Json = { callback: () => 1 };
    expectTypeOf(args).toEqualTypeOf<Json>();
  });
});

describe('EV-13 an event', () => {
  it('narrows to its payload by its type', () => {
    const text = (event: RunEvent): string => {
      if (event.type === 'token') return event.text;
      if (event.type === 'tool.failed') expectTypeOf(event.outcome).toEqualTypeOf<Outcome>();
      // @ts-expect-error only some events have a text
      return event.text;
    };
    expectTypeOf(text).returns.toEqualTypeOf<string>();
  });

  it('has identity, position and time whatever its type, and there is a payload for each type', () => {
    expectTypeOf<EventType>().toEqualTypeOf<keyof EventPayloads>();
    expectTypeOf<RunEvent['type']>().toEqualTypeOf<EventType>();
    expectTypeOf<RunEvent['seq'] & RunEvent['occurredAt']>().toEqualTypeOf<number>();
    expectTypeOf<RunEvent['identity']>().toHaveProperty('tenant');
    expectTypeOf<RunEvent<'tool.late'>>().toHaveProperty('call');
    expectTypeOf<RunEvent<'run.started'>>().not.toHaveProperty('call');
  });

  it('EV-01 is told for each thing that a planner can remark, with the same payload', () => {
    expectTypeOf<RemarkType>().toExtend<EventType>();
    expectTypeOf<RunEvent<'model.fallback'>>().toExtend<Remark<'model.fallback'>>();
    expectTypeOf<RunEvent<'planner.repair_exhausted'>>().toExtend<Remark<'planner.repair_exhausted'>>();
    // @ts-expect-error a planner cannot make up an event
    const made: Remark = { type: 'planner.finish', reason: 'goal' };
    expectTypeOf(made).toEqualTypeOf<Remark>();
  });

  it('may be one of a planner’s own, of any name with a slash and with JSON for data', () => {
    const own: Remark = { type: 'acme/plan.scored', data: { score: 1 } };
    // @ts-expect-error its name has no slash
    const plain: Remark = { type: 'scored', data: 1 };
    // @ts-expect-error a function is not JSON
    const call: Remark = { type: 'acme/x', data: () => 1 };
    // @ts-expect-error all that it says is its data
    const beside: Remark = { type: 'acme/x', data: 1, score: 1 };
    expectTypeOf([own, plain, call, beside]).toExtend<Remark[]>();
    const read = (event: RunEvent): Json | undefined => {
      if (event.type === 'acme/plan.scored') return event.data;
      if (event.type === 'token') expectTypeOf(event.text).toEqualTypeOf<string>();
      return undefined;
    };
    expectTypeOf(read).returns.toEqualTypeOf<Json | undefined>();
    expectTypeOf<RunEvent<'acme/plan.scored'>['data']>().toEqualTypeOf<Json>();
  });
});

describe('a planner', () => {
  it('PC-30 may answer with a decision or a move, now, later, or as the end of a stream', () => {
    const finish = { kind: 'finish', reason: 'goal' } as const;
    expectTypeOf({ name: 'a', next: () => finish }).toExtend<Planner>();
    expectTypeOf({ name: 'a', next: async () => ({ decision: finish, text: 't' }) }).toExtend<Planner>();
    const stream = async function* (run: RunView) {
      yield { type: 'text', text: run.query } as const;
      return finish;
    };
    expectTypeOf({ name: 'a', next: stream }).toExtend<Planner>();
    expectTypeOf({ name: 'a', next: () => 'finish' }).not.toExtend<Planner>();
  });

  it('PC-06 PC-16 sees a view that it cannot write to, with no callable of a tool', () => {
    const spoil = (run: RunView): void => {
      // @ts-expect-error the view is read-only
      run.goal = 'mine';
      // @ts-expect-error the steps are read-only
      run.trajectory.steps.push();
    };
    expectTypeOf(spoil).parameter(0).toEqualTypeOf<RunView>();
    expectTypeOf<ReturnType<RunView['tools']['list']>>().toEqualTypeOf<readonly ToolSchema[]>();
    expectTypeOf<ToolSchema>().not.toHaveProperty('run');
  });
});

describe('words', () => {
  it('are closed unions', () => {
    expectTypeOf<'journal_corrupt'>().toExtend<ErrorCode>();
    expectTypeOf<string>().not.toExtend<ErrorCode>();
    expectTypeOf<string>().not.toExtend<EntryKind>();
  });
});

describe('a planner as programs write it', () => {
  it('may call another tool with other arguments in each of its returns, and in a list of branches', () => {
    agent({
      name: 'by hand',
      planner: (run) => {
        if (run.trajectory.count === 0) return { kind: 'call_tool', tool: 'look_up', args: { order: 'A-17' } };
        if (run.trajectory.count === 1) {
          const branches = [
            { tool: 'refund', args: { order: 'A-17', amount: 1 } },
            { tool: 'mail', args: { to: 'ana' } },
          ];
          return { kind: 'call_parallel', branches };
        }
        return { kind: 'finish', reason: 'goal', payload: { paid: 1 } };
      },
      tools: [],
    });
    agent({
      name: 'an object',
      planner: {
        name: 'object',
        next: async (run) =>
          run.trajectory.count === 0
            ? { decision: { kind: 'call_tool', tool: 'a', args: { city: 'x' } } }
            : { decision: { kind: 'call_tool', tool: 'b', args: { order: 'x' } }, text: 'b' },
      },
      tools: [],
    });
  });

  it('has no values that JSON has not, and no fields of no decision', () => {
    // @ts-expect-error a Date is no JSON
    agent({ name: 'x', planner: () => ({ kind: 'call_tool', tool: 'a', args: { at: new Date() } }), tools: [] });
    // @ts-expect-error it names no tool
    agent({ name: 'x', planner: () => ({ kind: 'call_tool', args: {} }), tools: [] });
  });
});

describe('a payload by a schema', () => {
  it('has the type of its output, and is JSON without one or with a JSON Schema', () => {
    const run = {} as Run;
    const schema = z.object({ at: z.string().transform((at) => new Date(at)) });
    expectTypeOf(run.payload(schema)).resolves.toEqualTypeOf<{ at: Date } | undefined>();
    expectTypeOf(run.payload()).resolves.toEqualTypeOf<Json | undefined>();
    expectTypeOf(run.payload({ type: 'string' })).resolves.toEqualTypeOf<Json | undefined>();
  });
});
