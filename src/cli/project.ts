/** What a run is made with: the configuration of the folder, and what the command line says in its place. */

import { existsSync } from 'node:fs';
import {
  type Config,
  type DriverPart,
  isRecord,
  loadConfig,
  type ModelEntryPart,
  type PipelinePart,
  type ReactPart,
} from '#config';
import type { ReadyConfig } from '#config/ready';
import { defined } from '#core';
import type { RunState } from '#state';
import { chooseModel, type ModelChoice } from './choose-model.ts';
import { UsageError } from './exit-code.ts';
import type { Options } from './options.ts';
import { survey } from './survey.ts';
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
  if (tools !== undefined && options.workspace !== undefined) {
    throw new UsageError('--workspace is for tools that read a folder; the configuration has tools of its own.');
  }
  const planner = await plannerPart(options, project, purpose);
  const { workspaceTools } = await import('#tools/workspace');
  const { patienceMs } = options;
  const made = {
    ...rest,
    memory,
    tools: tools ?? workspaceTools({ root: options.workspace ?? '.' }),
    ...defined({ patienceMs }),
  };
  // The survey starts fast: of the planners that a configuration can name it needs none.
  if (planner === survey) return { runtime: { ...made, planner: survey } };
  const { readyConfig } = await import('#config/ready');
  return readyConfig({ ...made, planner });
}

type PlannerPart = NonNullable<Project['planner']>;

/** A model that is named on the command line comes before a configured one, and that before one of the environment. */
async function plannerPart(options: Options, project: Project | undefined, purpose: Purpose): Promise<PlannerPart> {
  if (project === undefined) return unconfigured(options, purpose);
  const { planner = { driver: driverFor(purpose) } } = project;
  if (!isModelPart(planner)) return withoutModel(planner, options);
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

async function unconfigured(options: Options, purpose: Purpose): Promise<PlannerPart> {
  const { stored, plans = false } = purpose;
  const isSurvey = stored?.agent === survey.name && !namesModel(options);
  const choice = isSurvey ? undefined : chooseModel(options, process.env);
  if (choice !== undefined) return modelPart({ driver: driverFor(purpose) }, choice, options);
  if (plans) throw new UsageError(NO_PLANNER);
  if (stored === undefined || isSurvey) return survey;
  if (stored.agent === 'react' || stored.agent === 'pipeline') {
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

function withoutModel(planner: PlannerPart, options: Options): PlannerPart {
  const { prices, chat, textCalls, apiKeyEnv } = options;
  if (!namesModel(options) && prices === undefined && apiKeyEnv === undefined && !chat && !textCalls) return planner;
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
  return driver === 'react' || driver === 'pipeline';
}
