/**
 * The tools of a runtime, checked once. A run sees them through an authorised view, and the same view is used for
 * listing and for dispatch: a tool outside it does not exist for that run.
 */
import { createHash } from 'node:crypto';
import {
  builtinName,
  calledName,
  defined,
  givenWay,
  isOptionsRecord,
  type JsonObject,
  PilotageError,
  SKILL_GET,
  SKILL_SEARCH,
  shownAmount,
  shownName,
  TOOL_GET,
  TOOL_SEARCH,
  type ToolPolicy,
  type ToolSchema,
  type ToolView,
} from '#core';
import type { Agent, AnyTool, ToolSet, Unnamed } from './agent.ts';
import { agentOfCall, isBackgroundFunction } from './background.ts';
import { assertDistinct } from './handle.ts';
import { assertUnnamedKeys } from './known-keys.ts';
import { isProviderTool, type NamedTool, namedProviderTool } from './provider-tool.ts';
import { isAgentTool, type ReadyTool, readyTool } from './ready-tool.ts';
import type { ApprovalGate, Tool } from './tool.ts';
import { type UnnamedTool, withName } from './unnamed-tool.ts';

/** What dispatch may use; planners get it as a `ToolView`, which has no tool's function in it. */
export interface AuthorisedTools extends ToolView {
  ready(name: string): ReadyTool | undefined;
  /** The run may use the tool by its scopes, and was told not to. */
  withholds(name: string): boolean;
  /** For each tool a digest of what recorded calls depend on: its schema and effect, and the type of a provider's tool. */
  digests(): Readonly<Record<string, string>>;
}

export interface Catalogue {
  /** Tools that a provider defines, sorted by name. */
  readonly ofProviders: readonly ToolSchema[];
  /**
   * The view of a run that holds these scopes. Equal arguments share one view.
   * @param found names in the order of first sight: the deferred tools among them are listed after the others, so that
   * the list only grows at its end.
   * @param withheld names of tools that the run must not use.
   */
  view(scopes: readonly string[], found?: readonly string[], withheld?: readonly string[]): AuthorisedTools;
}

/** Views that are kept; a run keeps its own. */
const MAX_VIEWS = 1_000;

/**
 * @param builtins what the runtime adds. Where the program has a tool of the same name, it gets another one.
 * @param policy what the program allows; every view has it.
 * @throws PilotageError `tool_name_empty`, `tool_without_execute`, `tool_name_taken`, `tool_schema_invalid`,
 * `tool_example_invalid` or `invalid_config`.
 */
export function createCatalogue(tools: ToolSet, builtins: readonly Tool[] = [], policy?: ToolPolicy): Catalogue {
  if (policy !== undefined && typeof policy !== 'function') {
    throw new PilotageError('invalid_config', 'The option policy must be a function, which is asked about each call.');
  }
  const ready = new Map<string, ReadyTool>();
  const add = ({ tool, provider }: Given): void => {
    const made = readyTool(tool, provider);
    if (ready.has(tool.name)) {
      throw new PilotageError('tool_name_taken', `Two tools are named ${JSON.stringify(tool.name)}. Rename one.`);
    }
    ready.set(tool.name, made);
  };
  for (const tool of listOf(tools)) add(tool);
  const own = new Set<string>();
  const called = new Map<string, string>();
  for (const [name, { schema }] of ready) {
    const other = called.get(calledName(schema));
    if (other !== undefined) throw sameCall(calledName(schema), name, other);
    called.set(calledName(schema), name);
  }
  for (const { tool } of listOf(builtins)) {
    const name = ready.has(tool.name) || called.has(tool.name) ? givenWay(tool.name) : tool.name;
    add({ tool: { ...tool, name } });
    own.add(name);
  }
  assertDistinct([...ready.values()].flatMap((tool) => ('source' in tool ? (tool.handles ?? []) : [])));
  const sorted = [...ready.values()].sort((a, b) => (a.schema.name < b.schema.name ? -1 : 1));
  const ofProviders = sorted.map(({ schema }) => schema).filter(({ provider }) => provider !== undefined);
  assertAlike(sorted);
  const allowed = new Map<string, Allowed>();
  const views = new Map<string, AuthorisedTools>();
  return {
    ofProviders,
    view(scopes, found = [], withheld = []) {
      const searchesSkills = found.some((name) => name === SKILL_SEARCH || name === givenWay(SKILL_SEARCH));
      const held = JSON.stringify([[...scopes].sort(), withheld]);
      return kept(views, `${held}${JSON.stringify(found)}`, () =>
        listing(
          kept(allowed, `${held}${searchesSkills}`, () => authorise(sorted, own, scopes, searchesSkills, withheld)),
          found,
          policy,
        ),
      );
    },
  };
}

function sameCall(called: string, ...tools: readonly string[]): PilotageError {
  const names = tools.map((name) => JSON.stringify(shownName(name))).join(' and ');
  const message = `A model would call both of the tools ${names} as ${called}. Rename one; a tool that a provider defines has the name that the provider gives it, so leave it or the other tool out.`;
  return new PilotageError('tool_name_taken', message);
}

/** What was made for this key before, or a new one. The oldest gives way: scopes and finds come from outside. */
function kept<T>(known: Map<string, T>, key: string, make: () => T): T {
  const before = known.get(key);
  if (before !== undefined) return before;
  const made = make();
  const [oldest] = known.keys();
  if (known.size >= MAX_VIEWS && oldest !== undefined) known.delete(oldest);
  known.set(key, made);
  return made;
}

/** The agents that carry out tools of the set, each time they occur. Those of their own tools are not among them. */
export function agentsOf(tools: ToolSet): readonly Agent[] {
  const given: readonly (readonly [string, unknown])[] = Object.entries(tools);
  return given.flatMap(([key, each]) => {
    // What makes no tool is found where the tools are made ready.
    const tool = isBackgroundFunction(each) && isNameless(each) ? namedOnce(key, each) : each;
    if (isAgentTool(tool)) return [tool.agent];
    if (isBackgroundFunction(tool)) return [agentOfCall(tool)];
    const to = (tool as Partial<Pick<Tool, 'handsOver'>> | null | undefined)?.handsOver?.to;
    // Whether it is an agent is asked where agents are gathered.
    return to === undefined || typeof to === 'string' ? [] : [to as Agent];
  });
}

function isNameless(tool: { readonly name?: unknown }): boolean {
  return tool.name === undefined;
}

const NAMED = new WeakMap<object, Map<string, Tool>>();

/** The agent that makes the calls of a tool belongs to the tool: the same one gets the same name once. */
function namedOnce(name: string, tool: object): Tool {
  const known = NAMED.get(tool) ?? new Map<string, Tool>();
  // Only what a task makes is asked for here, and that has a function, or is refused.
  const named = known.get(name) ?? (withName(name, tool as UnnamedTool) as Tool);
  NAMED.set(tool, known.set(name, named));
  return named;
}

/** A tool as it is given, with its name. */
interface Given extends Partial<Pick<NamedTool, 'provider'>> {
  readonly tool: AnyTool;
}

function listOf(tools: ToolSet): readonly Given[] {
  if (Array.isArray(tools)) return (tools as readonly AnyTool[]).map((tool) => ({ tool }));
  if (!isOptionsRecord(tools)) {
    throw new PilotageError('invalid_config', 'tools must be a list of tools, or an object of tools by their names.');
  }
  return Object.entries(tools as Readonly<Record<string, AnyTool | Unnamed>>).map(([name, tool]) => {
    if (typeof tool !== 'object' || tool === null) {
      throw new PilotageError(
        'invalid_config',
        `The tool at ${JSON.stringify(name)} is ${shownAmount(tool)}; give a tool.`,
      );
    }
    if (tool.name === undefined && 'agent' in tool) return { tool: { ...tool, name } };
    if (tool.name === undefined) {
      assertUnnamedKeys(`The tool ${name}`, tool);
      if (isProviderTool(tool)) return namedProviderTool(name, tool);
      return { tool: isBackgroundFunction(tool) ? namedOnce(name, tool) : withName(name, tool) };
    }
    if (tool.name === name) return { tool };
    throw new PilotageError(
      'invalid_config',
      `The tool at ${JSON.stringify(name)} is named ${JSON.stringify(tool.name)}. Leave its name out, or give both the same.`,
    );
  });
}

/** The tools of everyone who holds the same scopes. */
interface Allowed {
  readonly byName: ReadonlyMap<string, ReadyTool>;
  /** Sorted by name, without those that a provider carries out. */
  readonly all: readonly ToolSchema[];
  /** Those that a provider carries out. */
  readonly hosted: readonly ToolSchema[];
  readonly withheld: ReadonlySet<string>;
  readonly digests: () => Readonly<Record<string, string>>;
}

/** @param own the names of what the runtime adds. */
function authorise(
  tools: readonly ReadyTool[],
  own: ReadonlySet<string>,
  scopes: readonly string[],
  searchesSkills: boolean,
  withheld: readonly string[],
): Allowed {
  const held = new Set(scopes);
  const permitted = tools.filter((tool) => tool.scopes.every((scope) => held.has(scope)));
  const usable = permitted.filter(({ schema: { name } }) => !withheld.includes(name));
  // Nobody is shown a search that can find nothing.
  const searches = usable.some(({ schema }) => schema.loading === 'deferred' && !own.has(schema.name));
  const idle = [...(searches ? [] : [TOOL_SEARCH, TOOL_GET]), ...(searchesSkills ? [] : [SKILL_SEARCH, SKILL_GET])];
  const useless = [...idle, ...idle.map(givenWay)];
  const allowed = usable.filter(({ schema: { name } }) => !own.has(name) || !useless.includes(name));
  const schemas = allowed.map((tool) => tool.schema);
  const all = Object.freeze(schemas.filter(({ provider }) => provider?.hosted !== true));
  const hosted = Object.freeze(schemas.filter(({ provider }) => provider?.hosted === true));
  let digests: Readonly<Record<string, string>> | undefined;
  return {
    byName: new Map(allowed.map((tool) => [tool.schema.name, tool])),
    all,
    hosted,
    withheld: new Set(permitted.filter((tool) => !usable.includes(tool)).map(({ schema: { name } }) => name)),
    digests: () => {
      digests ??= Object.freeze(Object.fromEntries(schemas.map((schema) => [schema.name, digestOf(schema)])));
      return digests;
    },
  };
}

function listing(
  { byName, all, hosted, withheld, digests }: Allowed,
  found: readonly string[],
  policy: ToolPolicy | undefined,
): AuthorisedTools {
  const get = (name: string): ToolSchema | undefined => byName.get(name)?.schema;
  const always = all.filter((schema) => schema.loading === 'always');
  const names = found.map((name) => builtinName({ get }, name));
  const later = [...new Set(names)].flatMap((name) => get(name) ?? []).filter(({ loading }) => loading === 'deferred');
  const list = Object.freeze([...always, ...later]);
  const ready = (name: string): ReadyTool | undefined => byName.get(name);
  const withholds = (name: string): boolean => withheld.has(name);
  const view: AuthorisedTools = { list: () => list, all: () => all, get, ready, withholds, digests };
  return Object.freeze({ ...view, ...defined({ policy }), ...(hosted.length === 0 ? {} : { hosted }) });
}

/** By the schema, which is frozen: the views of all scopes, and of all catalogues with the same tools, need the same. */
const digestsOf = new WeakMap<JsonObject, Map<string, string>>();

/** Short, as every run records one for each of its tools. */
function digestOf({ inputSchema, effect, provider, client }: ToolSchema): string {
  const known = digestsOf.get(inputSchema) ?? new Map<string, string>();
  const of = provider?.id ?? (client === true ? 'client' : undefined);
  const kind = of === undefined ? effect : `${effect} ${of}`;
  const digest = known.get(kind) ?? shortHash(JSON.stringify([kind, inputSchema]));
  digestsOf.set(inputSchema, known.set(kind, digest));
  return digest;
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 12);
}

/**
 * A provider names the call that it asks leave for, or has made, and not which of several tools of one type it belongs to: no rule, approver or
 * price of one tool must count for what is another's.
 * @throws PilotageError `invalid_config`.
 */
function assertAlike(tools: readonly ReadyTool[]): void {
  const hosted = tools.filter(({ schema }) => schema.provider?.hosted === true);
  for (const [index, { schema, gate }] of hosted.entries()) {
    const other = hosted.slice(0, index).find((tool) => tool.schema.provider?.id === schema.provider?.id);
    if (other === undefined) continue;
    const isAlike =
      schema.provider?.costMicroUsd === other.schema.provider?.costMicroUsd && isSameGate(gate, other.gate);
    if (isAlike) continue;
    const names = [other.schema.name, schema.name].map((name) => JSON.stringify(name)).join(' and ');
    const message = `The tools ${names} are both ${schema.provider?.id}, and their provider does not say to which of them a call belongs. Give both the same costUsd and needsApproval without a rule, or leave these out.`;
    throw new PilotageError('invalid_config', message);
  }
}

/** Two rules are never the same. */
function isSameGate(one: ApprovalGate | undefined, other: ApprovalGate | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.when !== undefined || other.when !== undefined) return false;
  return (['reason', 'approver', 'onReject', 'expiresInMs'] as const).every((option) => one[option] === other[option]);
}
