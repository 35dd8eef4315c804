/** What a run is made with: the configuration of the folder, and what the command line says in its place. */
import { existsSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import type { DriverPart, ReactPart } from '../config/drivers.ts';
import { loadConfig } from '../config/load.ts';
import type { ModelEntryPart } from '../config/models.ts';
import type { ReadyConfig } from '../config/ready.ts';
import { isRecord } from '../config/shape.ts';
import type { RunState } from '../view/run-state.ts';
import { chooseModel, type ModelChoice } from './choose-model.ts';
import { UsageError } from './exit-code.ts';
import type { Options } from './options.ts';
import { survey } from './survey.ts';
import { oneLine } from './text.ts';

const CONFIG_FILE = 'pilotage.config.ts';

export type Project = Config<DriverPart>;

/** `undefined` when no configuration is named and the folder has none. @throws PilotageError `invalid_config` */
export async function findProject({ config }: Options): Promise<Project | undefined> {
  if (config !== undefined) return loadConfig(config);
  return existsSync(CONFIG_FILE) ? loadConfig(CONFIG_FILE) : undefined;
}

/**
 * Everything but the journal. What nobody says anything of: tools that read the folder, and a memory of the last turns.
 * @param stored the run that is gone on with, or looked at again.
 * @throws UsageError, or PilotageError for what is wrong with the configuration.
 */
export async function setUp(options: Options, project?: Project, stored?: RunState): Promise<ReadyConfig> {
  const { journal: _, tools, memory = { strategy: 'window' }, ...rest } = project ?? {};
  if (tools !== undefined && options.workspace !== undefined) {
    throw new UsageError('--workspace is for tools that read a folder; the configuration has tools of its own.');
  }
  const planner = await plannerPart(options, project, stored);
  const { workspaceTools } = await import('../tools/workspace.ts');
  const made = { ...rest, memory, tools: tools ?? workspaceTools({ root: options.workspace ?? '.' }) };
  // The survey starts fast: of the planners that a configuration can name it needs none.
  if (planner === survey) return { runtime: { ...made, planner: survey } };
  const { readyConfig } = await import('../config/ready.ts');
  return readyConfig({ ...made, planner });
}

type PlannerPart = NonNullable<Project['planner']>;

/** A model that is named on the command line comes before a configured one, and that before one of the environment. */
async function plannerPart(options: Options, project: Project | undefined, stored?: RunState): Promise<PlannerPart> {
  if (project === undefined) return unconfigured(options, stored);
  const { planner = {} } = project;
  if (!isReactPart(planner)) return withoutModel(planner, options);
  const choice = namesModel(options) || planner.model === undefined ? chooseModel(options, process.env) : undefined;
  if (choice !== undefined) return reactPart(planner, choice, options);
  if (options.textCalls || options.apiKeyEnv !== undefined) {
    throw new UsageError('--text-calls and --api-key-env go with --model; the configuration has a model of its own.');
  }
  return { ...planner, ...planningOptions(options) };
}

async function unconfigured(options: Options, stored: RunState | undefined): Promise<PlannerPart> {
  const isSurvey = stored?.planner === survey.name && !namesModel(options);
  const choice = isSurvey ? undefined : chooseModel(options, process.env);
  if (choice !== undefined) return reactPart({}, choice, options);
  if (stored === undefined || isSurvey) return survey;
  if (stored.planner === 'react') {
    throw new UsageError(
      'The run was started with a model. Give --model and --base-url, or set them in the environment.',
    );
  }
  const planner = oneLine(stored.planner, 60);
  throw new UsageError(`The run was started by the planner ${planner}. Name the configuration that has it: --config.`);
}

async function reactPart(part: ReactPart, choice: ModelChoice, options: Options): Promise<ReactPart> {
  if (options.maxCostMicroUsd !== undefined && options.prices === undefined && part.prices === undefined) {
    throw new UsageError('--max-cost-usd needs --prices: without them the cost of the model is not known.');
  }
  const { openaiCompatible } = await import('../model/openai-compatible.ts');
  const toolCalls = options.textCalls ? 'text' : 'native';
  const model: ModelEntryPart = { model: openaiCompatible(choice), toolCalls };
  return { ...part, driver: 'react', model, ...planningOptions(options) };
}

function planningOptions({ prices, chat }: Options): Pick<ReactPart, 'prices' | 'converse'> {
  return { ...(prices === undefined ? {} : { prices }), ...(chat ? { converse: true } : {}) };
}

function withoutModel(planner: PlannerPart, options: Options): PlannerPart {
  const { prices, chat, textCalls, apiKeyEnv } = options;
  if (!namesModel(options) && prices === undefined && apiKeyEnv === undefined && !chat && !textCalls) return planner;
  throw new UsageError('Options about the model are for a react planner; the configuration has another one.');
}

function namesModel({ model, baseUrl }: Options): boolean {
  return model !== undefined || baseUrl !== undefined;
}

/** What a react planner is made of; a planner that is made already, or of another driver, is none. */
function isReactPart(planner: PlannerPart): planner is ReactPart {
  if (!isRecord(planner) || 'next' in planner) return false;
  const { driver = 'react' } = planner as DriverPart;
  return driver === 'react';
}
