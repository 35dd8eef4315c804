/** Tools in words. */

import { shownName } from '#core';
import { jsonLine, quoted, quotedJson } from './frame.ts';
import type { DeclaredTool } from './reserved-tools.ts';

/** How many examples of arguments are shown for a tool unless the caller says otherwise. */
export const MAX_EXAMPLES = 3;

/** What a model is told of a tool that it calls natively: the description, and arguments that show its use. */
export function toolDescription(
  { description, examples }: Pick<DeclaredTool, 'description' | 'examples'>,
  maxExamples: number = MAX_EXAMPLES,
): string {
  const text = quoted(description);
  const lines = examples.slice(0, maxExamples).map((example) => quotedJson(jsonLine(example)));
  return lines.length === 0 ? text : [text, 'Examples of arguments:', ...lines].join('\n');
}

/** `- name: description` on one line, as markup. */
export function toolLine({ name, description }: Pick<DeclaredTool, 'name' | 'description'>): string {
  const lines = description.split(/[\r\n\v\f\u0085\u2028\u2029]/).map((line) => line.trim());
  return quoted(`- ${shownName(name)}: ${lines.filter((line) => line !== '').join(' ')}`);
}

/** The line of a tool, its arguments' schema and its examples: all that a model knows of it without native calls. */
export function toolEntry(tool: DeclaredTool, maxExamples: number = MAX_EXAMPLES): string {
  const lines = [toolLine(tool), `  arguments: ${quotedJson(jsonLine(tool.inputSchema))}`];
  for (const example of tool.examples.slice(0, maxExamples)) lines.push(`  example: ${quotedJson(jsonLine(example))}`);
  return lines.join('\n');
}
