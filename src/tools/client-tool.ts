/** Tools without an implementation here: whoever reads the run, such as a page or an editor, carries their calls out, and says what they came to. */
import {
  assertOptions,
  type ClientToolSpec,
  calledName,
  captureObject,
  deepFreeze,
  defined,
  encodedBytes,
  type OptionShape,
  PilotageError,
  type ToolSchema,
} from '#core';
import { jsonSchemaOf } from '#schema';
import type { AuthorisedTools } from './catalogue.ts';
import { type ReadyFunction, readyTool } from './ready-tool.ts';
import type { ClientTool } from './tool.ts';

const SPEC: OptionShape<ClientToolSpec> = {
  ...({ name: 'text', description: 'text', inputSchema: 'object', outputSchema: 'object?' } as const),
  ...({ effect: 'text?', timeoutMs: 'count?' } as const),
};
const MOST_TOOLS = 64;
const MOST_NAME_CHARS = 128;
const MOST_BYTES = 262_144;

/**
 * The tools that a run is started with, checked and as they are recorded.
 * @param view what the run has of its agent's own tools.
 * @throws PilotageError `invalid_config`, `tool_name_taken`, `tool_schema_invalid`.
 */
export function readClientTools(given: readonly ClientToolSpec[], view: AuthorisedTools): readonly ClientToolSpec[] {
  if (given.length > MOST_TOOLS) {
    throw refusal(`clientTools has ${given.length} tools; give at most ${MOST_TOOLS}.`);
  }
  const taken = calledNames(view);
  const specs = given.map((one, index) => {
    const spec = readSpec(one, index);
    const { schema } = readyOf(spec);
    for (const name of [schema.name, calledName(schema)]) {
      if (!taken.has(name)) continue;
      const message = `The name ${JSON.stringify(spec.name)} of clientTools[${index}] is taken by a tool of the agent, or by another of the list. Rename it.`;
      throw new PilotageError('tool_name_taken', message, { data: { name: spec.name } });
    }
    taken.add(schema.name).add(calledName(schema));
    return spec;
  });
  const bytes = encodedBytes(specs as never);
  if (bytes > MOST_BYTES) throw refusal(`clientTools has ${bytes} bytes of JSON; the most is ${MOST_BYTES}.`);
  return deepFreeze(specs);
}

function calledNames(view: AuthorisedTools): Set<string> {
  const schemas = [...view.all(), ...(view.hosted ?? [])];
  return new Set(schemas.flatMap((schema) => [schema.name, calledName(schema)]));
}

function readSpec(given: ClientToolSpec, index: number): ClientToolSpec {
  const where = `clientTools[${index}]`;
  assertOptions(where, given, SPEC);
  const { name, description, inputSchema, outputSchema, effect, timeoutMs } = given;
  if (name.trim() === '' || name.length > MOST_NAME_CHARS || !name.isWellFormed()) {
    throw refusal(`${where} has a name that no tool can have; give a text of 1 to ${MOST_NAME_CHARS} characters.`);
  }
  const owner = `The tool ${JSON.stringify(name)} of clientTools`;
  const schemas = {
    inputSchema: jsonSchemaOf(inputSchema, owner),
    outputSchema: outputSchema && jsonSchemaOf(outputSchema, owner),
  };
  const spec = { name, description: description.toWellFormed(), ...schemas, effect, timeoutMs };
  return captureObject(defined(spec), where).json as unknown as ClientToolSpec;
}

function readyOf(spec: ClientToolSpec): ReadyFunction {
  const tool: ClientTool = { ...spec, client: true };
  return readyTool(tool, undefined) as ReadyFunction;
}

const READY = new WeakMap<readonly ClientToolSpec[], readonly ReadyFunction[]>();
const VIEWS = new WeakMap<readonly ClientToolSpec[], WeakMap<AuthorisedTools, AuthorisedTools>>();

/**
 * The view of a run that has tools of its client beside those of its agent, which keep their names. The same view is the same object again.
 * @param withheld names of tools that the run must not use.
 */
export function withClientTools(
  view: AuthorisedTools,
  specs: readonly ClientToolSpec[],
  withheld: readonly string[] = [],
): AuthorisedTools {
  const views = VIEWS.get(specs) ?? new WeakMap<AuthorisedTools, AuthorisedTools>();
  VIEWS.set(specs, views);
  const known = views.get(view);
  if (known !== undefined) return known;
  const ready = READY.get(specs) ?? specs.map(readyOf);
  READY.set(specs, ready);
  const made = joined(view, ready, withheld);
  views.set(view, made);
  return made;
}

function joined(view: AuthorisedTools, ready: readonly ReadyFunction[], withheld: readonly string[]): AuthorisedTools {
  const taken = calledNames(view);
  const free = ready.filter(({ schema }) => !taken.has(schema.name) && !taken.has(calledName(schema)));
  const usable = free.filter(({ schema: { name } }) => !withheld.includes(name));
  if (usable.length === 0 && free.length === 0) return view;
  const byName = new Map(usable.map((tool) => [tool.schema.name, tool]));
  const own = sorted(usable.map(({ schema }) => schema));
  // Tools that the run finds stand behind all that are listed from the start: what a model is sent only grows at its end.
  const always = view.list().filter(({ loading }) => loading === 'always');
  const found = view.list().filter(({ loading }) => loading !== 'always');
  const list = Object.freeze([...always, ...own, ...found]);
  const all = Object.freeze(sorted([...view.all(), ...own]));
  return Object.freeze({
    ...view,
    list: () => list,
    all: () => all,
    get: (name: string) => byName.get(name)?.schema ?? view.get(name),
    ready: (name: string) => byName.get(name) ?? view.ready(name),
    withholds: (name: string) =>
      view.withholds(name) || (!byName.has(name) && free.some(({ schema }) => schema.name === name)),
  });
}

function sorted(schemas: readonly ToolSchema[]): ToolSchema[] {
  return schemas.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
