/** What a configuration file says, and how it is read. Node strips the types of one in TypeScript by itself. */
import { existsSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describeThrown, type GivenPlanner, PilotageError, type PlanningHints } from '#core';
import { isPostgresUrl, type Journal } from '#journal';
import type { RuntimeOptions } from '#runtime';
import type { HandlerOptions } from '#server';
import type { DeterministicPart, DriverPart, FinishPart, GraphPart, PipelinePart, ReactPart } from './drivers.ts';
import { isRecord } from './shape.ts';

/** Options that are passed on to the runtime unchanged. */
type RuntimePart = Omit<RuntimeOptions, 'planner' | 'journal' | 'clock' | 'random' | 'onFault' | 'onRun' | 'driver'>;

/** The options of `createHandler`, which gets the runtime of the configuration. */
export type ServerPart = Partial<Omit<HandlerOptions, 'runtime' | 'onFault'>>;

/** @typeParam Other the configuration of planners whose drivers are the program's own. */
export interface Config<Other extends DriverPart = never> extends RuntimePart {
  /**
   * A planner, or the description of one: `{ driver, … }`. Default driver: `react`. Absent together with `tools`: the first of
   * `agents` is the default one.
   */
  readonly planner?: GivenPlanner | ReactPart | DeterministicPart | FinishPart | GraphPart | PipelinePart | Other;
  /** Hints for runs that are given no hints of their own. */
  readonly planningHints?: Pick<PlanningHints, 'constraints' | 'preferredTools'>;
  /** What `pilotage serve` answers, and whom: the options of `createHandler`. Default: our own API, for this machine alone. */
  readonly server?: ServerPart;
  /** A journal, the path of a SQLite file, or the URL of a Postgres database. */
  readonly journal?: Journal | string;
}

/** Whether the agents are all that a configuration has to run: the first of them is the default one, and no planner is made. */
export function hasAgentsAlone({
  planner,
  tools,
  agents,
}: Pick<Config<DriverPart>, 'planner' | 'tools' | 'agents'>): boolean {
  return planner === undefined && tools === undefined && Array.isArray(agents) && agents.length > 0;
}

/** Types a configuration and gives it back. It is checked when it is made ready. */
export function defineConfig<Other extends DriverPart = never>(config: Config<NoInfer<Other>>): Config<Other> {
  return config;
}

const EXTENSIONS: readonly string[] = ['.ts', '.mts', '.js', '.mjs'];

/**
 * The default export of the file; `readyConfig` checks what it says. A journal's path is taken from the file's folder.
 * @param path of the file, from the current folder.
 * @throws PilotageError `invalid_config` when there is no such file, when it throws, or when it exports no configuration.
 */
export async function loadConfig(path: string): Promise<Config<DriverPart>> {
  if (typeof path !== 'string') throw new PilotageError('invalid_config', 'loadConfig takes the path of a file.');
  const file = resolve(path);
  if (!EXTENSIONS.includes(extname(file))) throw unusable(path, `must end in one of ${EXTENSIONS.join(', ')}`);
  if (!existsSync(file)) throw unusable(path, 'does not exist');
  const config = await defaultExport(file, path);
  if (!isRecord(config)) {
    throw unusable(path, 'has no configuration as its default export; write `export default defineConfig({ … })`');
  }
  const { journal } = config;
  return typeof journal === 'string' && journal !== '' && !isPostgresUrl(journal)
    ? { ...config, journal: resolve(dirname(file), journal) }
    : config;
}

async function defaultExport(file: string, path: string): Promise<unknown> {
  try {
    const module: { readonly default?: unknown } = await import(pathToFileURL(file).href);
    return module.default;
  } catch (cause) {
    throw unusable(path, `could not be read: ${describeThrown(cause)}`, cause);
  }
}

function unusable(path: string, problem: string, cause?: unknown): PilotageError {
  return new PilotageError('invalid_config', `The configuration file ${path} ${problem}.`, { cause });
}
