/** A pass over runs that have ended: what is worth remembering of them is written into the memory of their users, once. */
import {
  assertOptions,
  defined,
  type EndedRun,
  type ExtractedFact,
  FACTS,
  type Namespace,
  type OptionShape,
  PilotageError,
  type StoreWrite,
} from '#core';
import { type ArtifactStore, patiently, type RunRecord } from '#journal';
import { foldEntries, type RunState } from '#state';
import { factKey } from '#tools';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { wholeAnswerOf } from './result.ts';

export interface ExtractOptions {
  readonly tenant?: string;
  readonly user?: string;
  /** Only runs created at or after this time. Milliseconds since the epoch. */
  readonly since?: number;
  /** How many runs are read at most, newest first. Default 50. */
  readonly limit?: number;
}

export interface Extracted {
  /** How many runs were read. */
  readonly runs: number;
  /** How many facts were written. */
  readonly facts: number;
}

type Deps = Pick<DriverDeps, 'journal' | 'memory' | 'redaction' | 'clock' | 'agentNamed' | 'onFault'>;

const OPTIONS: OptionShape<ExtractOptions> = { tenant: 'text?', user: 'text?', since: 'moment?', limit: 'count?' };
const READ = 50;
const PAGE = 200;
const FACT_CHARS = 1_000;
/** Inside the memory of a user, beside what is recalled: the runs that were read. */
const READ_RUNS: Namespace = ['extracted'];

/** A run that cannot be read, or whose function fails, is told to `onFault` and left for the next pass. @throws PilotageError of the store. */
export async function extractMemory(deps: Deps, options: ExtractOptions = {}): Promise<Extracted> {
  assertOptions('extractMemory', options, OPTIONS);
  const { limit = READ, ...which } = options;
  let [runs, facts] = [0, 0];
  for await (const record of endedRuns(deps, which)) {
    if (runs === limit) break;
    const written = await extractOnce(deps, record);
    if (written === undefined) continue;
    runs += 1;
    facts += written;
  }
  return { runs, facts };
}

/** The turns of conversations that have finished, newest first. */
async function* endedRuns({ journal }: Deps, which: Omit<ExtractOptions, 'limit'>): AsyncGenerator<RunRecord> {
  for (let after: string | undefined; ; ) {
    const page = await journal.list({
      ...which,
      status: ['finished'],
      parent: null,
      limit: PAGE,
      ...defined({ after }),
    });
    yield* page.filter(({ conversation, erased }) => conversation !== false && erased === undefined);
    after = page.at(-1)?.identity.run;
    if (page.length < PAGE) return;
  }
}

/** How many facts were written. `undefined`: nothing was to be read, or it could not be. */
async function extractOnce(deps: Deps, { identity, agent }: RunRecord): Promise<number | undefined> {
  const { extract } = deps.agentNamed(agent)?.planner.remembers ?? {};
  if (extract === undefined) return undefined;
  const { run } = identity;
  const { journal, memory, clock } = deps;
  const root = memory.rootOf(identity);
  const read: StoreWrite = { namespace: [...root, ...READ_RUNS], key: run, value: true };
  if ((await journal.store.get(read.namespace, run)) !== undefined) return undefined;
  const facts = await factsOf(deps, run, extract);
  if (facts === undefined) return undefined;
  const writes = facts.map(
    ({ text, step }): StoreWrite => ({
      namespace: [...root, ...FACTS],
      key: factKey(text),
      value: deps.redaction.item({ text }),
      source: { run, step },
    }),
  );
  // In one commit: a pass that dies here reads the run again, and one that ends has read it once.
  await patiently(clock, () => journal.store.write([...writes, read]));
  return facts.length;
}

async function factsOf(
  { journal, onFault }: Deps,
  run: string,
  extract: (ended: EndedRun) => readonly ExtractedFact[] | Promise<readonly ExtractedFact[]>,
): Promise<Required<ExtractedFact>[] | undefined> {
  try {
    const state = foldEntries(await journal.read(run));
    const given: unknown = await extract(await endedRun(state, journal.artifacts));
    const last = Math.max(0, state.steps.length - 1);
    if (!Array.isArray(given)) throw unfit(run);
    return given.map((fact: Partial<ExtractedFact>) => {
      const text = typeof fact?.text === 'string' ? fact.text.trim().slice(0, FACT_CHARS).toWellFormed() : '';
      if (text === '') throw unfit(run);
      const { step = last } = fact;
      return { text, step: Number.isInteger(step) && step >= 0 && step <= last ? step : last };
    });
  } catch (error) {
    onFault(error);
    return undefined;
  }
}

async function endedRun(state: RunState, artifacts: ArtifactStore): Promise<EndedRun> {
  const { identity, query, steps } = state;
  const answer = await wholeAnswerOf(state, artifacts);
  return { identity, query, steps: Object.freeze([...steps]), ...defined({ answer }) };
}

function unfit(run: string): PilotageError {
  const message = `What was read out of run ${run} does not have the form of facts. Give a list of objects, such as [{ text: 'Ann likes green tea.', step: 0 }].`;
  return new PilotageError('invalid_config', message);
}
