/**
 * A worker under Restate, or a program that only starts runs: `node restate-child.ts <folder> <url> <ingress> <admin> <port> <version>`. It says
 * `ready`, and each call that it begins and ends. What ended is on disk before it says so. `close` on its input drains it.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { restateDriver } from '#engine/restate';
import { createRuntime } from '#pilotage';
import type { Driver } from '#pilotage/engine';
import type { Decision, RunView } from '#pilotage/planner';
import { type ToolContext, tool } from '#tools';

const [folder = '', journal = '', ingress = '', admin = '', port = '0', version = '1'] = process.argv.slice(2);
const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function done(name: string, ms: number, { idempotencyKey }: ToolContext): Promise<string> {
  say(`begins ${name} ${idempotencyKey}`);
  await sleep(ms);
  // As the world would: an effect with a key that it has had is none.
  appendFileSync(join(folder, 'effects'), `${name} ${idempotencyKey} ${version}\n`);
  return version;
}

const ANY = { type: 'object' } as const;
const step = tool({
  name: 'step',
  // The code of a version shows in what it says of itself.
  description: `Takes a moment (${version}).`,
  inputSchema: ANY,
  effect: 'keyed',
  execute: (_, context) => done('step', 20, context),
});
const event = tool({
  name: 'event',
  description: 'Waits for what the run is named after.',
  inputSchema: ANY,
  effect: 'read',
  execute: (_, context) => context.event({ key: context.identity.run }).then(() => 'heard'),
});
const pause = tool({
  name: 'sleep',
  description: 'Waits.',
  inputSchema: ANY,
  effect: 'read',
  execute: (_, context) => context.sleep({ forMs: 1_500 }).then(() => 'slept'),
});

function planner({ query, trajectory }: RunView): Decision {
  const name = query.split(' ')[trajectory.count];
  return name === undefined ? { kind: 'finish', reason: 'goal' } : { kind: 'call_tool', tool: name, args: {} };
}

const restate = restateDriver({ ingress, serve: { port: Number(port), admin, sharesPort: true } });
const driver: Driver = {
  start: async (advance) => {
    await restate.start(advance);
    say('ready');
  },
  wake: (...run) => restate.wake(...run),
  stop: () => restate.stop(),
};
const runtime = createRuntime({
  planner,
  tools: [step, event, pause],
  journal,
  driver,
  leaseMs: 1_000,
  // A later version of the program takes over what an earlier one has begun.
  migrate: () => ({}),
  onFault: (error) => say(`fault ${error instanceof Error ? error.message : error}`),
  onRun: ({ type, run }) => say(`${type} ${run}`),
});
runtime.work();
process.stdin.on('data', () => {
  void runtime.close({ graceMs: 10_000 }).then(() => process.exit(0));
});
