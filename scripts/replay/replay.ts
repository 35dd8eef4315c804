/** Replays one recording: the real planner, loop, journal and HTTP, in processes that may die and are followed by others. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeThrown, type Identity, local, PilotageError, type RunEvent } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { openaiCompatible } from '#model/openai-compatible';
import { react } from '#planners/react';
import { createRuntime, type PauseNotice, type Run, type Runtime } from '#runtime';
import { foldEntries } from '#state';
import {
  CrashProcess,
  CrashRecord,
  FaultyJournal,
  lostEntries,
  mortalPlanner,
  mortalTools,
  type OpenAIServer,
  openaiServer,
  seededRandom,
  VirtualClock,
  worldOf,
} from '#testing';
import { RecordedModel } from './recorded-model.ts';
import { RecordedWorld } from './recorded-world.ts';
import type { Recording } from './recording.ts';
import { differences, parallelTurns } from './trajectory.ts';

export interface ReplayOptions {
  /** Processes die at random moments. */
  readonly crash: boolean;
  /** The model's replies are streamed. */
  readonly stream: boolean;
  /** The same seed gives the same crashes and the same order of results. */
  readonly seed: number;
}

export interface Replayed {
  readonly problems: readonly string[];
  /** Calls that ran. */
  readonly calls: number;
  readonly crashes: number;
  /** Model requests that were on their way when a process died, and were made again. */
  readonly askedAgain: number;
  /** Requests with the hint that the run goes round in circles: one message more than was recorded. */
  readonly hinted: number;
  readonly parallel: { readonly turns: number; readonly outOfOrder: number };
}

interface Stage {
  readonly recording: Recording;
  readonly options: ReplayOptions;
  readonly identity: Identity;
  /** Stands still: nothing here has to wait for the time. */
  readonly clock: VirtualClock;
  readonly record: CrashRecord;
  readonly model: RecordedModel;
  readonly world: RecordedWorld;
  readonly server: OpenAIServer;
  readonly problems: string[];
  open(): Journal;
  close(journal: Journal): Promise<void>;
}

/** A life after which nothing has happened for so long is taken for stuck. */
const STUCK_AFTER_MS = 30_000;
/**
 * A process dies before it has passed so many moments at which it could. Long enough for a result to be recorded when
 * many calls begin at once, so that the run gets on; short enough for many deaths in one run.
 */
const LONGEST_LIFE = 48;
/** Then a process is left alive: a run that never gets on is stuck, and not killed for ever. */
const MOST_CRASHES = 500;

export async function replay(recording: Recording, options: ReplayOptions): Promise<Replayed> {
  const dir = options.crash ? await mkdtemp(join(tmpdir(), 'pilotage-replay-')) : undefined;
  const random = seededRandom(options.seed);
  const record = new CrashRecord(() => undefined);
  const model = new RecordedModel(recording, options.stream);
  const world = new RecordedWorld(recording, record, seededRandom(~options.seed));
  const problems: string[] = [];
  let process = new CrashProcess();
  const server = await openaiServer(async (request) => {
    try {
      const reply = model.answer(request);
      await process.reach('a model request');
      return reply;
    } catch (error) {
      problems.push(describeThrown(error));
      throw error;
    }
  });
  const common = { recording, options, identity: local('replay'), record, model, world, server, problems };
  const stage: Stage = { ...common, ...journalOf(dir) };
  let crashes = 0;
  try {
    for (;;) {
      const dies = options.crash && crashes < MOST_CRASHES;
      process = new CrashProcess(dies ? Math.floor(random() * LONGEST_LIFE) : undefined);
      await live(stage, process);
      if (process.alive || problems.length > 0) break;
      crashes += 1;
      model.crashed();
    }
    return await examine(stage, crashes);
  } finally {
    await server.close();
    if (dir !== undefined) await rm(dir, { recursive: true, force: true });
  }
}

function journalOf(dir: string | undefined): Pick<Stage, 'clock' | 'open' | 'close'> {
  const clock = new VirtualClock();
  if (dir === undefined) {
    const journal = memoryJournal({ clock });
    return { clock, open: () => journal, close: async () => {} };
  }
  const path = join(dir, 'journal.db');
  return {
    clock,
    open: () => sqliteJournal({ path, clock, synchronous: 'normal' }),
    close: (journal) => journal.close(),
  };
}

/** From the start of a process to the end of the recording, or to its death. */
async function live(stage: Stage, process: CrashProcess): Promise<void> {
  const { recording, clock, record, world, server, problems } = stage;
  const journal = stage.open();
  const planner = react({
    model: openaiCompatible({ baseUrl: server.url, model: 'recorded' }),
    systemPrompt: recording.system,
    converse: true,
  });
  const runtime = createRuntime({
    planner: mortalPlanner(planner, process, record),
    tools: mortalTools(world.tools(worldOf(process, record)), process, record),
    journal: new FaultyJournal(journal, process, record),
    clock: process.clock(clock),
    // A request that nobody recorded is a problem at once, and not an outage to wait for.
    patienceMs: 0,
    onFault: (error) => {
      if (process.alive) problems.push(`the runtime reported a fault: ${describeThrown(error)}`);
    },
  });
  const life = toTheEnd(runtime, stage).catch((error: unknown) => {
    if (process.alive) problems.push(describeThrown(error));
  });
  let timer: NodeJS.Timeout | undefined;
  const stuck = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      problems.push(`nothing came of it for ${STUCK_AFTER_MS} ms after: ${process.points.at(-1)}`);
      process.kill();
      resolve();
    }, STUCK_AFTER_MS);
  });
  await Promise.race([life, process.died, stuck]);
  clearTimeout(timer);
  await process.settle();
  await stage.close(journal);
}

async function toTheEnd(runtime: Runtime, stage: Stage): Promise<void> {
  const { recording, options } = stage;
  const run = await startOrGoOn(runtime, stage);
  for (;;) {
    if (options.stream) for await (const event of run.events()) checkToken(event, stage);
    const result = await run.result();
    const pause = result.status === 'paused' ? result.pauses[0] : undefined;
    const answer = recording.turns[pause?.step ?? -1]?.answer;
    if (pause === undefined || answer === undefined) break;
    await give(answer, pause, run);
  }
  await runtime.close();
}

async function startOrGoOn(runtime: Runtime, { recording, identity }: Stage): Promise<Run> {
  const { query, history, turns } = recording;
  const run = runtime.run(identity.run);
  try {
    const { ending, pauses } = await run.state();
    if (ending === null && pauses.length === 0) await run.resume();
    return run;
  } catch (error) {
    if (!PilotageError.is(error, 'run_not_found')) throw error;
    return runtime.start(query, { identity, history, limits: { steps: turns.length, stepsPer: 'run' } });
  }
}

/** Whoever answers does not know whether an answer before the crash arrived, and gives it again. */
async function give(message: string, { token }: PauseNotice, run: Run): Promise<void> {
  try {
    await run.resume({ token, payload: { message } });
  } catch (error) {
    if (!PilotageError.is(error, 'pause_not_found') && !PilotageError.is(error, 'run_ended')) throw error;
  }
}

function checkToken(event: RunEvent, { recording, problems }: Stage): void {
  if (event.type !== 'token') return;
  const { step, text, offset } = event;
  if (recording.turns[step]?.text.startsWith(text, offset) !== true) problems.push(`a token of step ${step} is wrong`);
}

async function examine(stage: Stage, crashes: number): Promise<Replayed> {
  const { recording, identity, record, model, world, problems } = stage;
  const journal = stage.open();
  try {
    const entries = await journal.read(identity.run);
    const state = foldEntries(entries);
    const found = [
      ...problems,
      ...record.faults,
      ...world.problems,
      ...differences(recording, state),
      ...world.countProblems(crashes),
      ...lostEntries(record.acknowledged(identity.run), entries),
    ];
    const unasked = recording.turns.length - model.asked;
    if (unasked > 0) found.push(`${unasked} turns were not asked for`);
    const { askedAgain, hinted } = model;
    return { problems: found, calls: record.effects.size, crashes, askedAgain, hinted, parallel: parallelTurns(state) };
  } finally {
    await stage.close(journal);
  }
}
