/** One process on a journal: `watching-child.ts <what it does> <file> <run>`. It never closes its runtime, nor ends itself. */
import { existsSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import { type Decision, local, type RunView } from '#core';
import { createRuntime } from '#runtime';
import { call, finish, pause } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { turn } from '../kit/waiting.ts';

const [, , does = '', path = '', id = ''] = process.argv;

/** Until there is a file. */
const hold = make('hold', async (_, { signal }) => {
  do await after(20, undefined, { signal });
  while (!existsSync(`${path}.go`));
  return 'held';
});

/** Works on until both messages have reached it: what is stored after a run's last look is not taken any more. */
const planner = ({ query, trajectory: { count, steering } }: RunView): Decision => {
  if (query === 'hold') return count > 0 && steering.length === 2 ? finish('done') : call('hold');
  return count > 0 ? finish('done') : ({ ...pause, expiresInMs: Number(query) } as Decision);
};

const runtime = createRuntime({
  planner: { name: 'child', next: planner },
  tools: [hold],
  journal: path,
  leaseMs: 3_000,
});
const run = runtime.run(id);
const say = (word: string): void => void process.stdout.write(`${word}\n`);

const DOES: Readonly<Record<string, () => Promise<void>>> = {
  drive: async () => {
    const started = await runtime.start('hold', { identity: local('ana', { run: id }) });
    while ((await started.state()).open === null) await turn();
    say('ready');
    say((await started.result()).status);
  },
  result: async () => {
    say('ready');
    say((await run.result()).status);
  },
  events: async () => {
    for await (const { type } of run.events()) say(type === 'run.started' ? 'ready' : type);
  },
  resume: async () => {
    await run.resume();
    say('ready');
    say((await run.result()).status);
  },
  applied: async () => {
    say('ready');
    await run.steer('USER_MESSAGE', { message: 'hello' }, { until: 'applied' });
    say('applied');
  },
  stored: async () => {
    await run.steer('USER_MESSAGE', { message: 'hello' });
    say('stored');
  },
  'look and leave': async () => {
    say(String((await runtime.list()).length));
    say(String((await run.state()).ending));
  },
  'be refused': async () => {
    await run.approve('pause_other').catch(({ code }: { code: string }) => say(code));
    await runtime
      .run('nobody')
      .approve()
      .catch(({ code }: { code: string }) => say(code));
  },
  'leave a stream': async () => {
    const { value } = await run.events().next();
    say(value?.type ?? '');
  },
  'leave a paused run': async () => {
    const started = await runtime.start('3600000', { identity: local('ana', { run: id }) });
    say((await started.result()).status);
  },
  'stay for a while': async () => {
    const started = await runtime.start('200', { identity: local('ana', { run: id }) });
    say((await started.result()).status);
    while ((await started.state()).ending === null) await turn();
    say((await started.result()).status);
  },
};

await DOES[does]?.();
