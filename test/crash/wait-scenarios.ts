/** Calls that wait in the middle of their work, and are cut off anywhere. */
import type { Json, Tool, ToolContext } from '#pilotage';
import type { CallParallel } from '#pilotage/planner';
import type { CrashScenario, CrashWorld } from '#testing';
import { later } from '#tools';
import { call, ordered, outcomes, worker } from './scenarios.ts';

const question = (message: string) => ({ question: message, schema: { type: 'object', required: ['nights'] } });

const answer: CrashScenario['answer'] = (run, { token, reason }) =>
  reason === 'await_input' ? run.answer(token, { kind: 'answer', value: { nights: 2 } }) : run.resume({ token });

/** Does something that must not happen twice, asks, and does something else. */
function booker(world: CrashWorld, effect: 'keyed' | 'once'): Tool {
  const works = (context: ToolContext, name: string): Promise<Json> =>
    context.once(name, async () => {
      await world.effect(context, name);
      return { [name]: true };
    });
  return worker(world, 'book', {
    effect,
    execute: async (_, context) => {
      const held = await works(context, 'hold');
      const { nights } = (await context.ask(question('How many nights?'))) as { nights: number };
      const paid = await works(context, 'pay');
      return { nights, held, paid };
    },
    reconcile: async (_, context) => {
      for (const name of ['hold', 'pay']) {
        if (world.count(context, name) > 0) await context.once(name, () => ({ [name]: true }));
      }
      return { status: 'not_done' };
    },
  });
}

const asking = (effect: 'keyed' | 'once'): CrashScenario => ({
  name: `a ${effect} call that does something, asks, and does something else`,
  planner: ordered([call('book', {})], (run) => outcomes(run)),
  tools: (world) => [booker(world, effect)],
  query: 'q',
  answer,
});

const both: CrashScenario = {
  name: 'a call with two questions at once, and one after them',
  planner: ordered([call('ask', {})], (run) => outcomes(run)),
  tools: (world) => [
    worker(world, 'ask', {
      effect: 'pure',
      execute: async (_, context) => {
        const first = await Promise.all([context.ask(question('One?')), context.ask(question('Two?'))]);
        return [...first, await context.ask(question('Three?'))] as Json;
      },
    }),
  ],
  query: 'q',
  answer,
};

const sleeping: CrashScenario = {
  name: 'a call that sleeps, beside one that waits for an event that does not come',
  planner: ordered(
    [
      {
        kind: 'call_parallel',
        branches: [
          { tool: 'sleep', args: {} },
          { tool: 'event', args: {} },
        ],
      } satisfies CallParallel,
    ],
    (run) => outcomes(run),
  ),
  tools: (world) => [
    worker(world, 'sleep', {
      effect: 'once',
      execute: async (_, context) => {
        await context.sleep({ forMs: 60_000 });
        await world.effect(context);
        return 'slept';
      },
      reconcile: (_, context) =>
        world.count(context) > 0 ? { status: 'done', value: 'slept' } : { status: 'not_done' },
    }),
    worker(world, 'event', {
      effect: 'pure',
      execute: (_, context) => context.event({ key: 'order-17', timeoutMs: 90_000 }),
    }),
  ],
  query: 'q',
};

const putOff: CrashScenario = {
  name: 'a call whose value comes later, and is asked for',
  planner: ordered([call('render', {})], (run) => outcomes(run)),
  tools: (world) => {
    let polls = 0;
    return [
      worker(world, 'render', {
        effect: 'once',
        execute: async (_, context) => {
          await world.effect(context);
          return later({ key: context.idempotencyKey, pollEveryMs: 1_000 });
        },
        poll: () => {
          polls += 1;
          return polls > 2 ? { film: true } : undefined;
        },
        reconcile: (_, context) =>
          world.count(context) > 0
            ? { status: 'done', value: later({ key: context.idempotencyKey, pollEveryMs: 1_000 }) }
            : { status: 'not_done' },
      }),
    ];
  },
  query: 'q',
};

export const waitScenarios: readonly CrashScenario[] = [asking('keyed'), asking('once'), both, sleeping, putOff];
