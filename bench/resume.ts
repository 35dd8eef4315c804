/** A run of 1,000 steps that was cut off before its answer, taken up again from its file. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, local, react } from '#pilotage';
import { type Measured, median, short, wallMs } from './measure.ts';
import { noteTool, ourPlanner, ourRuntime } from './ours.ts';
import { withScratch } from './scratch.ts';
import { callId, QUERY, scriptedModel } from './workload.ts';

const STEPS = 1000;
const ROUNDS = 9;

export async function resume(): Promise<Measured> {
  return withScratch(async (folder) => {
    const cutOff = join(folder, 'cut-off.db');
    const run = await cutOffRun(cutOff);
    const passedMs: number[] = [];
    for (let round = 0; round <= ROUNDS; round += 1) {
      const path = join(folder, `resume-${round}.db`);
      copyFileSync(cutOff, path);
      const ms = await timeResume(path, run);
      if (round > 0) passedMs.push(ms);
    }
    const resumeMs = short(median(passedMs));
    return {
      keys: { resume_ms_1000: resumeMs },
      rows: [['resume of a run of 1,000 steps', `${resumeMs} ms`, 'open the file, fold, one model call, finish']],
    };
  });
}

/** Makes a run that has done its steps and waits for a model that does not answer; then lets go of it. */
async function cutOffRun(path: string): Promise<string> {
  const { model, reached } = silentAtTheEnd();
  const journal = sqliteJournal({ path, synchronous: 'normal' });
  const runtime = createRuntime({ planner: react({ model }), tools: [noteTool('read')], journal });
  const run = await runtime.start(QUERY, { identity: local('bench'), limits: { steps: STEPS + 1 } });
  await reached;
  await runtime.close();
  await journal.close();
  return run.id;
}

function silentAtTheEnd(): { readonly model: LanguageModelV4; readonly reached: Promise<void> } {
  const scripted = scriptedModel(STEPS);
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const last = `"${callId(STEPS)}"`;
  const model: LanguageModelV4 = {
    ...scripted,
    async doGenerate(options) {
      if (!JSON.stringify(options.prompt.slice(-2)).includes(last)) return scripted.doGenerate(options);
      resolve();
      return new Promise((_, reject) => {
        options.abortSignal?.addEventListener('abort', () => reject(options.abortSignal?.reason));
      });
    },
  };
  return { model, reached };
}

async function timeResume(path: string, id: string): Promise<number> {
  return wallMs(async () => {
    const journal = sqliteJournal({ path });
    const runtime = ourRuntime(ourPlanner(STEPS), journal);
    const run = runtime.run(id);
    await run.resume();
    const result = await run.result();
    if (result.status !== 'finished' || result.usage.calls !== STEPS) throw new Error('The resumed run went wrong.');
    await runtime.close();
    await journal.close();
  });
}
