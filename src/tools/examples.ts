/** Examples of a tool's arguments: checked once, and put in the order in which they are shown. */
import { captureObject, isJsonObject, type JsonObject, PilotageError } from '#core';
import type { AnyTool } from './agent.ts';
import type { ValueCheck } from './schema.ts';
import type { ToolExample } from './tool.ts';

const RANKS: readonly ToolExample['tag'][] = ['minimal', 'common', 'edge-case', undefined];

/** The arguments alone, frozen, the plainest first. @throws PilotageError `tool_example_invalid`. */
export function rankedExamples(tool: AnyTool, schema: JsonObject, check: ValueCheck): readonly JsonObject[] {
  const ranked = (tool.examples ?? []).map((example, index) => {
    const why = misfit(example, schema, check);
    if (why !== undefined) {
      throw new PilotageError(
        'tool_example_invalid',
        `Example ${index} of the tool ${tool.name} does not fit: ${why}.`,
      );
    }
    return { args: captureObject(example.args, 'example').json, rank: RANKS.indexOf(example.tag) };
  });
  return Object.freeze(ranked.sort((a, b) => a.rank - b.rank).map(({ args }) => args));
}

function misfit(example: ToolExample, schema: JsonObject, check: ValueCheck): string | undefined {
  const { args, tag } = example;
  if (!RANKS.includes(tag)) return `its tag is ${JSON.stringify(tag)}; use minimal, common or edge-case`;
  if (!isJsonObject(args)) return 'it has no args; give { args: { … } }';
  const checked = check(args);
  // An asynchronous schema cannot be asked here: only the names of such an example are checked.
  const why = checked instanceof Promise || checked.ok ? undefined : checked.why;
  return why ?? unnamedArgument(schema, args);
}

/** These let a schema name arguments elsewhere than in its own `properties`. */
const OPEN_KEYWORDS = ['additionalProperties', 'patternProperties', 'allOf', 'anyOf', 'oneOf', 'if', '$ref'];

/** Most schemas let unknown arguments pass, but an example that has one shows a mistake. */
function unnamedArgument(schema: JsonObject, example: JsonObject): string | undefined {
  const { properties } = schema;
  if (!isJsonObject(properties) || OPEN_KEYWORDS.some((keyword) => keyword in schema)) return undefined;
  const unnamed = Object.keys(example).find((key) => !Object.hasOwn(properties, key));
  return unnamed === undefined ? undefined : `it has no argument ${JSON.stringify(unnamed)}`;
}
