/** The agents that several processes drive and speak to: they ask for approval, ask their user, and give work to a task. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Branch, Decision, JsonObject, RunView } from '#core';
import { createRuntime, type Runtime } from '#runtime';
import { agent, agentTool } from '#tools';
import { call, finish, parallel } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';

/** The decisions of a run, without its end. */
const STEPS = 40;

/** The idempotency keys of the payments that were made, one for each time. */
export function paidIn(folder: string): readonly string[] {
  const file = join(folder, 'paid');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
}

/** What a planner has heard by now, as it stands in what it decides: how much, and the last of it. */
function heardBy({ trajectory: { steering } }: RunView): JsonObject {
  const last = steering.at(-1)?.control.payload ?? {};
  return { heard: steering.length, last };
}

export function crowdRuntime(folder: string): Runtime {
  const pay = make(
    'pay',
    (_, { idempotencyKey }) => {
      appendFileSync(join(folder, 'paid'), `${idempotencyKey}\n`);
      return 'paid';
    },
    {
      effect: 'once',
      needsApproval: true,
      reconcile: (_, { idempotencyKey }) =>
        paidIn(folder).includes(idempotencyKey) ? { status: 'done', value: 'paid' } : { status: 'not_done' },
    },
  );
  const note = make('note', () => 'noted', { effect: 'read' });
  const asks = (view: RunView): Decision => ({
    kind: 'request_pause',
    reason: 'await_input',
    payload: heardBy(view),
  });
  const helper = agent({
    name: 'helper',
    tools: [pay],
    planner: (view) => [call('pay', heardBy(view)), asks(view)][view.trajectory.count] ?? finish(heardBy(view)),
  });
  const main = agent({
    name: 'main',
    tools: [pay, note, agentTool(helper, { description: 'Pays, and asks.' })],
    planner: (view) => {
      const { count } = view.trajectory;
      if (count >= STEPS) return finish(heardBy(view));
      const args = heardBy(view);
      const both: Branch[] = [
        { tool: 'pay', args },
        { tool: 'note', args },
      ];
      const moves = [call('pay', args), call('helper', { input: `step ${count}` }), asks(view), parallel(both)];
      return moves[count % 5] ?? call('note', args);
    },
  });
  return createRuntime({ agents: [main], journal: join(folder, 'runs.db'), leaseMs: 1_500, takeoverGraceMs: 200 });
}
