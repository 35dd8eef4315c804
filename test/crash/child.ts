/**
 * The process that is killed: `node child.ts <folder> <seed> <first> <count> <journal>` drives these runs to their end, new ones
 * and those that an earlier process left, and says each fact on standard output once it is durable.
 */
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { local, PilotageError } from '#core';
import { journalAt } from '#journal/place';
import { createRuntime, type PauseNotice, type Run } from '#runtime';
import { foldEntries, isPaused } from '#state';
import { planner, readEffects, resultOf, runId, tools } from './agent.ts';
import { telling } from './telling.ts';

const [folder = '', seed = '', first = '', count = '', place = ''] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const effectsFile = join(folder, 'effects.jsonl');
const journal = journalAt(place);
const runtime = createRuntime({
  planner,
  tools: tools(effectsFile, say),
  journal: telling(journal, ({ seq, kind }, run) => say(`ack ${run} ${seq} ${kind}`)),
  onFault: (error) => {
    throw error;
  },
});
say('ready');
const runs = Array.from({ length: Number(count) }, (_, index) => runId(Number(seed), Number(first) + index));
await Promise.all(runs.map(toTheEnd));
await runtime.close();
await journal.close();
say('done');

async function toTheEnd(id: string): Promise<void> {
  const run = runtime.run(id);
  if ((await journal.get(id)) === undefined) {
    await runtime.start('go', { identity: local('crash', { run: id }) });
  } else {
    const state = foldEntries(await journal.read(id));
    // Beside a call that waits for somebody others may have been under way.
    if (state.ending === null && !isPaused(state)) await run.resume();
  }
  const answered = new Set<string>();
  for (let result = await run.result(); result.status === 'paused'; result = await run.result()) {
    // A task that was answered goes on before the run above it has heard so.
    await turn();
    for (const pause of result.pauses.filter(({ token }) => !answered.has(token))) {
      answered.add(pause.token);
      await answer(run, pause).catch((error: unknown) => {
        // An answer that an earlier process gave came first.
        if (!PilotageError.is(error, 'pause_not_found') && !PilotageError.is(error, 'run_ended')) throw error;
      });
    }
  }
}

/** Of a call in doubt somebody looks in the world whether it was done. */
function answer(run: Run, { token, reason, payload }: PauseNotice): Promise<void> {
  if (reason === 'await_input') return run.resume({ token });
  if (reason !== 'in_doubt') return run.approve(token);
  if (!readEffects(effectsFile).some(({ key }) => key === payload?.['key']))
    return run.settle(token, { happened: false });
  const { slot } = payload?.['args'] as { readonly slot: string };
  return run.settle(token, { happened: true, value: resultOf(String(payload?.['tool']), slot) });
}
