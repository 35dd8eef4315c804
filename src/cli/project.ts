/** What a command works with: the configuration of the folder, what the command line says in its place, and the journal. */
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import {
  type Config,
  type DriverPart,
  type Environment,
  hasAgentsAlone,
  isRecord,
  loadConfig,
  type ModelEntryPart,
  type PipelinePart,
  type ReactPart,
} from '#config';
import type { ReadyConfig } from '#config/ready';
import { defined, PilotageError } from '#core';
import { isPostgresUrl, type Journal, wholeJournal } from '#journal';
import { defaultPlace, journalAt } from '#journal/place';
import type { RunState } from '#state';
import type { Options } from './options.ts';
import { survey } from './survey.ts';
import { type Terminal, UsageError } from './terminal.ts';
import { shortLine } from './text.ts';

const CONFIG_FILE = 'pilotage.config.ts';

export type Project = Config<DriverPart>;

/** `undefined` when no configuration is named and the folder has none. @throws PilotageError `invalid_config` */
export async function findProject({ config }: Options): Promise<Project | undefined> {
  if (config !== undefined) return loadConfig(config);
  return existsSync(CONFIG_FILE) ? loadConfig(CONFIG_FILE) : undefined;
}

/** What a run is made for where no planner is configured. */
export interface Purpose {
  /** The run that is gone on with, or looked at again. */
  readonly stored?: Pick<RunState, 'agent'>;
  /** A plan is wanted. */
  readonly plans?: boolean;
}

/**
 * Everything but the journal. What nobody says anything of: tools that read the folder, and a memory of the last turns.
 * @throws UsageError, or PilotageError for what is wrong with the configuration.
 */
export async function setUpProject(options: Options, project?: Project, purpose: Purpose = {}): Promise<ReadyConfig> {
  const { journal: _, tools, memory = { strategy: 'window' }, ...rest } = project ?? {};
  const planner = await plannerPart(options, project, purpose);
  if ((tools !== undefined || planner === undefined) && options.workspace !== undefined) {
    throw new UsageError('--workspace is for tools that read a folder; the configuration has tools of its own.');
  }
  const { patienceMs } = options;
  const shared = { ...rest, memory, ...defined({ patienceMs }) };
  if (planner === undefined) return (await import('#config/ready')).readyConfig(shared);
  const { workspaceTools } = await import('#tools/workspace');
  const made = { ...shared, tools: tools ?? workspaceTools({ root: options.workspace ?? '.' }) };
  // The survey starts fast: of the planners that a configuration can name it needs none.
  if (planner === survey) {
    const { server: _server, ...runtime } = made;
    return { runtime: { ...runtime, planner: survey } };
  }
  const { readyConfig } = await import('#config/ready');
  return readyConfig({ ...made, planner });
}

type PlannerPart = NonNullable<Project['planner']>;

/**
 * A model that is named on the command line comes before a configured one, and that before one of the environment.
 * @returns `undefined` when agents alone are configured: the first of them is the default one.
 */
async function plannerPart(
  options: Options,
  project: Project | undefined,
  purpose: Purpose,
): Promise<PlannerPart | undefined> {
  if (project === undefined) return unconfigured(options, purpose);
  if (hasAgentsAlone(project) && !namesModel(options) && !wasStartedWithModel(project, purpose)) {
    assertNoModelOptions(options);
    return undefined;
  }
  const { planner = { driver: driverFor(purpose) } } = project;
  if (!isModelPart(planner)) {
    assertNoModelOptions(options);
    return planner;
  }
  const choice = namesModel(options) || planner.model === undefined ? chooseModel(options, process.env) : undefined;
  if (choice !== undefined) return modelPart(planner, choice, options);
  // A run that another agent goes on with needs no model of the main one.
  if (planner.model === undefined && isOfOthers(project, purpose)) return survey;
  if (options.textCalls || options.apiKeyEnv !== undefined) {
    throw new UsageError('--text-calls and --api-key-env go with --model; the configuration has a model of its own.');
  }
  return { ...planner, ...planningOptions(planner, options) };
}

function isOfOthers({ agents = [] }: Project, { stored }: Purpose): boolean {
  return stored !== undefined && Array.isArray(agents) && agents.some((each) => each?.name === stored.agent);
}

/** Whether the run is of a planner with a model, which the command line or the environment named, and not of a configured agent. */
function wasStartedWithModel(project: Project, purpose: Purpose): boolean {
  return isOfModel(purpose.stored?.agent ?? '') && !isOfOthers(project, purpose);
}

function isOfModel(agent: string): boolean {
  return agent === 'react' || agent === 'pipeline';
}

async function unconfigured(options: Options, purpose: Purpose): Promise<PlannerPart> {
  const { stored, plans = false } = purpose;
  const isSurvey = stored?.agent === survey.name && !namesModel(options);
  const choice = isSurvey ? undefined : chooseModel(options, process.env);
  if (choice !== undefined) return modelPart({ driver: driverFor(purpose) }, choice, options);
  if (plans) throw new UsageError(NO_PLANNER);
  if (stored === undefined || isSurvey) return survey;
  if (isOfModel(stored.agent)) {
    throw new UsageError(
      'The run was started with a model. Give --model and --base-url, or set them in the environment.',
    );
  }
  const agent = shortLine(stored.agent, 60);
  throw new UsageError(
    `The run was started with the agent ${agent}. Name the configuration that has this agent: --config.`,
  );
}

const NO_PLANNER =
  'Nobody can make a plan here: give --model and --base-url, set them in the environment, or configure a planner that needs no model.';

/** The planner of a model where none is configured. */
function driverFor({ stored, plans = false }: Purpose): 'react' | 'pipeline' {
  return plans || stored?.agent === 'pipeline' ? 'pipeline' : 'react';
}

async function modelPart(part: ModelPlannerPart, choice: ModelChoice, options: Options): Promise<ModelPlannerPart> {
  if (options.maxCostUsd !== undefined && options.prices === undefined && part.prices === undefined) {
    throw new UsageError('--max-cost-usd needs --prices: without them the cost of the model is not known.');
  }
  const { openaiCompatible } = await import('#model/openai-compatible');
  const toolCalls = options.textCalls ? 'text' : 'native';
  const model: ModelEntryPart = { model: openaiCompatible(choice), toolCalls };
  return { ...part, model, ...planningOptions(part, options) };
}

function planningOptions(
  { driver }: ModelPlannerPart,
  { prices, chat }: Options,
): Pick<ReactPart, 'prices' | 'converse'> {
  if (chat && driver === 'pipeline')
    throw new UsageError('--chat is for a react planner: a plan ends with its result.');
  return { ...defined({ prices }), ...(chat ? { converse: true } : {}) };
}

function assertNoModelOptions(options: Options): void {
  const { prices, chat, textCalls, apiKeyEnv } = options;
  if (!namesModel(options) && prices === undefined && apiKeyEnv === undefined && !chat && !textCalls) return;
  throw new UsageError(
    'Options about the model are for a planner that has one, react or pipeline; the configuration has another one.',
  );
}

function namesModel({ model, baseUrl }: Options): boolean {
  return model !== undefined || baseUrl !== undefined;
}

type ModelPlannerPart = ReactPart | PipelinePart;

/** Whether this describes a planner with a model, and is neither a ready planner nor one of another driver. */
function isModelPart(planner: PlannerPart): planner is ModelPlannerPart {
  if (!isRecord(planner) || 'next' in planner) return false;
  const { driver = 'react' } = planner as DriverPart;
  return isOfModel(driver);
}

/** In whose name runs are started here. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may give its user no name.
    return 'me';
  }
}

// Which model a command means, from its options and from the environment.

type ModelOptions = Pick<Options, 'model' | 'baseUrl' | 'apiKeyEnv'>;

interface ModelChoice {
  readonly model: string;
  readonly baseUrl: string;
  readonly apiKey?: string;
}

const OPENAI_URL = 'https://api.openai.com/v1';
const OLLAMA_PORT = '11434';

/**
 * `undefined` when none is named. The key of OPENAI_API_KEY goes to the server that the environment names, never to one
 * that is named by an option; for that one the option says which key to send.
 * @throws UsageError when what is given does not name a model and its server.
 */
export function chooseModel(options: ModelOptions, env: Environment): ModelChoice | undefined {
  const servers = serversOf(options, env);
  const [first] = servers;
  if (first === undefined && options.model !== undefined) {
    throw new UsageError('--model needs a server: --base-url, or OPENAI_BASE_URL, OPENAI_API_KEY or OLLAMA_HOST.');
  }
  const server = options.model === undefined ? servers.find(({ model }) => model !== undefined) : first;
  const model = options.model ?? server?.model;
  if (server === undefined || model === undefined) {
    if (options.baseUrl === undefined) return undefined;
    throw new UsageError('--base-url needs a model: give --model, or set OPENAI_MODEL.');
  }
  const apiKey = options.apiKeyEnv === undefined ? server.apiKey : keyNamed(options.apiKeyEnv, env);
  return apiKey === undefined ? { model, baseUrl: server.url } : { model, baseUrl: server.url, apiKey };
}

interface Server {
  readonly url: string;
  readonly apiKey: string | undefined;
  /** The model that the environment names for it. */
  readonly model: string | undefined;
}

function serversOf({ baseUrl }: ModelOptions, env: Environment): Server[] {
  const model = filled(env, 'OPENAI_MODEL');
  if (baseUrl !== undefined) return [{ url: checkedUrl(baseUrl, '--base-url'), apiKey: undefined, model }];
  const servers: Server[] = [];
  const apiKey = filled(env, 'OPENAI_API_KEY');
  const url = filled(env, 'OPENAI_BASE_URL');
  if (url !== undefined || apiKey !== undefined) {
    servers.push({ url: checkedUrl(url ?? OPENAI_URL, 'OPENAI_BASE_URL'), apiKey, model });
  }
  const host = filled(env, 'OLLAMA_HOST');
  if (host !== undefined) {
    servers.push({ url: ollamaUrl(host), apiKey: undefined, model: filled(env, 'OLLAMA_MODEL') ?? model });
  }
  return servers;
}

/** OLLAMA_HOST may be a host, a host with a port, or a URL; 0.0.0.0 is where the server listens, not where it is. */
function ollamaUrl(host: string): string {
  const hasScheme = /^https?:\/\//i.test(host);
  const url = new URL(checkedUrl(hasScheme ? host : `http://${host}`, 'OLLAMA_HOST'));
  if (!hasScheme && url.port === '') url.port = OLLAMA_PORT;
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1`;
  return url.href;
}

function checkedUrl(text: string, from: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
  // The value is not repeated: it may hold a password.
  throw new UsageError(`${from} is not an http or https URL. Give a URL such as http://127.0.0.1:11434/v1.`);
}

function keyNamed(name: string, env: Environment): string {
  const key = filled(env, name);
  if (key !== undefined) return key;
  throw new UsageError('--api-key-env names a variable that is not set. Set the variable, or name another one.');
}

function filled(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === '' ? undefined : value;
}

// The journal that a command works on, and waiting for news of a run in it.

/** Made when it does not exist. */
export function journalOf(options: Options, project: Project | undefined): Journal {
  const place = placeOf(options, project);
  return wholeJournal(typeof place === 'string' ? journalAt(place) : place);
}

/** What a command does with the journal: one that only looks changes nothing, on a full disk as well. */
type Use = 'look' | 'write';

/**
 * Opens the journal for a command that looks for runs: a journal that does not exist is not made.
 * @throws PilotageError `journal_unavailable`
 */
export function storedJournal(options: Options, project: Project | undefined, use: Use): Journal {
  const place = placeOf(options, project);
  if (typeof place !== 'string') return wholeJournal(place);
  if (isPostgresUrl(place) || existsSync(place)) return wholeJournal(journalAt(place, { looksOnly: use === 'look' }));
  throw noJournal(place);
}

/** For a command that needs nothing else of the configuration. */
export async function openJournal(options: Options, use: Use): Promise<Journal> {
  return storedJournal(options, options.journal === undefined ? await findProject(options) : undefined, use);
}

/**
 * Where the journal is, for a command about the whole of it. It must be there, unless it is a database.
 * @throws UsageError when the configuration has opened it itself. @throws PilotageError `journal_unavailable`
 */
export async function journalPlace(options: Options): Promise<string> {
  const place = placeOf(options, options.journal === undefined ? await findProject(options) : undefined);
  if (typeof place !== 'string')
    throw new UsageError('The configuration opens the journal itself: say with --journal where it is.');
  if (!isPostgresUrl(place) && !existsSync(place)) throw noJournal(place);
  return place;
}

function noJournal(place: string): PilotageError {
  return new PilotageError(
    'journal_unavailable',
    `There is no journal ${place}. Start a run first, or give --journal.`,
  );
}

/** Uses the journal, and closes it in every case. */
export async function withJournal<T>(journal: Journal, use: (journal: Journal) => Promise<T>): Promise<T> {
  try {
    return await use(journal);
  } finally {
    await journal.close();
  }
}

/**
 * Does it, and again as long as another process holds the journal, which the terminal is told of: for what carries a run through. The work
 * must be such that it can be repeated.
 */
export async function whenFree<T>(terminal: Terminal, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!PilotageError.is(error, 'journal_busy')) throw error;
      if (tries === 1) terminal.note(`Waiting for the journal. ${error.message}`, 'strong');
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

function placeOf({ journal }: Options, project: Project | undefined): Journal | string {
  return journal ?? project?.journal ?? defaultPlace();
}

const LOOK_MS = 250;

/**
 * Looks again whenever the journal says that the run has news, and every quarter of a second, until there is something to see.
 * @returns `undefined` when there was nothing for `patienceMs`.
 */
export async function lookUntil<T>(
  journal: Journal,
  run: string,
  patienceMs: number,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const startedAt = performance.now();
  for (;;) {
    const change = nextChange(journal, run);
    try {
      const seen = await look();
      if (seen !== undefined || performance.now() - startedAt > patienceMs) return seen;
      await change.done;
    } finally {
      change.stop();
    }
  }
}

function nextChange(journal: Journal, run: string): { readonly done: Promise<void>; stop(): void } {
  let wake = (): void => {};
  const done = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const timer = setTimeout(wake, LOOK_MS);
  const unwatch = journal.watch(run, wake);
  return {
    done,
    stop: () => {
      clearTimeout(timer);
      unwatch();
    },
  };
}
