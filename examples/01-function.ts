/**
 * A function as planner: it finds the first build that fails, by halving. What each call came to stands in the trajectory, so the
 * function keeps nothing. In a project of your own, import from 'pilotage' and its 'journal/memory' and 'planner'.
 */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { type Decision, observe, type RunView } from '../src/planners/index.ts';

const testBuild = tool({
  name: 'test_build',
  description: 'Runs the tests of one build.',
  effect: 'read',
  inputSchema: z.object({ build: z.number() }),
  execute: ({ build }) => ({ build, passed: build < 73 }),
});

function firstBadBuild({ trajectory }: RunView): Decision {
  let [good, bad] = [0, 100];
  for (const step of trajectory.steps) {
    const seen = z.object({ build: z.number(), passed: z.boolean() }).safeParse(observe(step));
    if (!seen.success) return { kind: 'finish', reason: 'no_path', payload: 'A build could not be tested.' };
    if (seen.data.passed) good = seen.data.build;
    else bad = seen.data.build;
  }
  if (bad - good === 1) return { kind: 'finish', reason: 'goal', payload: `Build ${bad} broke it.` };
  return { kind: 'call_tool', tool: 'test_build', args: { build: Math.floor((good + bad) / 2) } };
}

const runtime = createRuntime({ planner: firstBadBuild, tools: [testBuild], journal: memoryJournal() });
const run = await runtime.start('Which build broke the login page?', { identity: local('ana') });
for await (const event of run.events()) {
  if (event.type === 'tool.completed') console.log(JSON.stringify(event.outcome));
}
const result = await run.result();
if (result.status === 'finished') console.log(result.answer);
await runtime.close();
