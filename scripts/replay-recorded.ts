/**
 * Replays recorded agent runs through the real ReAct planner, loop, journal and HTTP, and holds what comes out against
 * the recording: each request is the recorded prefix, each call runs once, and the results of parallel calls come in
 * call order. A model that was recorded going round in circles gets a hint in the request, one message more than was recorded:
 * such requests are counted apart, and hold only where the recorded calls repeat. With `--crash`, processes die at random moments and others go on. Prints a line for each recording and at
 * last one JSON object.
 *
 *     node scripts/replay-recorded.ts <file.jsonl.gz> [--crash] [--stream] [--limit n] [--seed n]
 */
import { parseArgs } from 'node:util';
import { describeThrown } from '#core';
import { type Row, readRows, recordingOf } from './replay/recording.ts';
import { type Replayed, type ReplayOptions, replay } from './replay/replay.ts';

const USAGE = 'Usage: node scripts/replay-recorded.ts <file.jsonl.gz> [--crash] [--stream] [--limit n] [--seed n]';

interface Arguments extends ReplayOptions {
  readonly path: string;
  readonly limit: number;
}

function readArguments(): Arguments {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      crash: { type: 'boolean', default: false },
      stream: { type: 'boolean', default: false },
      limit: { type: 'string' },
      seed: { type: 'string', default: '1' },
    },
  });
  const [path, ...more] = positionals;
  if (path === undefined || more.length > 0) throw new Error('Give one file.');
  const limit = values.limit === undefined ? Number.POSITIVE_INFINITY : wholeNumber('--limit', values.limit);
  return { path, crash: values.crash, stream: values.stream, limit, seed: wholeNumber('--seed', values.seed) };
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`${name} is ${text}; give a whole number.`);
  return Number(text);
}

const NOTHING: Omit<Replayed, 'problems'> = {
  calls: 0,
  crashes: 0,
  askedAgain: 0,
  hinted: 0,
  parallel: { turns: 0, outOfOrder: 0 },
};

async function replayRow(row: Row, options: ReplayOptions): Promise<Replayed> {
  try {
    return await replay(recordingOf(row), options);
  } catch (error) {
    return { ...NOTHING, problems: [describeThrown(error)] };
  }
}

async function replayAll({ path, limit, ...options }: Arguments): Promise<boolean> {
  const total = { trajectories: 0, passed: 0, calls: 0, crashes: 0, hinted: 0 };
  for (const [index, row] of readRows(path, limit).entries()) {
    const replayed = await replayRow(row, { ...options, seed: options.seed + index });
    total.trajectories += 1;
    total.passed += replayed.problems.length === 0 ? 1 : 0;
    total.calls += replayed.calls;
    total.crashes += replayed.crashes;
    total.hinted += replayed.hinted;
    console.log(lineOf(row.id, replayed));
  }
  console.log(JSON.stringify(total));
  return total.trajectories > 0 && total.passed === total.trajectories;
}

function lineOf(id: string, { problems, calls, crashes, askedAgain, hinted, parallel }: Replayed): string {
  if (problems.length > 0) {
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
    return `FAILED ${id}: ${problems[0]}${more}`;
  }
  const counts = [`${calls} calls`];
  if (parallel.turns > 0) counts.push(`${parallel.outOfOrder} of ${parallel.turns} parallel turns ended out of order`);
  if (hinted > 0) counts.push(`${hinted} requests with a hint about going round in circles`);
  if (crashes > 0) counts.push(`${crashes} crashes`, `${askedAgain} requests made again`);
  return `ok ${id}: ${counts.join(', ')}`;
}

let given: Arguments | undefined;
try {
  given = readArguments();
} catch (error) {
  console.error(`${describeThrown(error)}\n${USAGE}`);
  process.exitCode = 2;
}
// What waited in a process that died in a replay waits for ever, and would keep this one alive.
if (given !== undefined) process.exit((await replayAll(given)) ? 0 : 1);
