/** Tools in words. */

import { shownName } from '../core/shown-name.ts';
import type { DeclaredTool } from './reserved-tools.ts';

/** How many examples of arguments are shown for a tool unless the caller says otherwise. */
export const MAX_EXAMPLES = 3;

/** What a model is told of a tool that it calls natively: the description, and arguments that show its use. */
export function toolDescription(
  { description, examples }: Pick<DeclaredTool, 'description' | 'examples'>,
  maxExamples: number = MAX_EXAMPLES,
): string {
  const lines = examples.slice(0, maxExamples).map((example) => JSON.stringify(example));
  return lines.length === 0 ? description : [description, 'Examples of arguments:', ...lines].join('\n');
}

/** `- name: description` on one line. */
export function toolLine({ name, description }: Pick<DeclaredTool, 'name' | 'description'>): string {
  const lines = description.split(/[\r\n\u2028\u2029]/).map((line) => line.trim());
  return `- ${shownName(name)}: ${lines.filter((line) => line !== '').join(' ')}`;
}

/** The line of a tool, its arguments' schema and its examples: all that a model knows of it without native calls. */
export function toolEntry(tool: DeclaredTool, maxExamples: number = MAX_EXAMPLES): string {
  const lines = [toolLine(tool), `  arguments: ${JSON.stringify(tool.inputSchema)}`];
  for (const example of tool.examples.slice(0, maxExamples)) lines.push(`  example: ${JSON.stringify(example)}`);
  return lines.join('\n');
}
