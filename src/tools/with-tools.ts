/** Options of Pilotage for tools that were written for the AI SDK, or that a server gives. */
import { assertKnownKeys, defined, isOptionsRecord, nearest, PilotageError, shownAmount } from '#core';
import type { ApprovalGate, Tool } from './tool.ts';
import { OWN_OPTIONS, type UnnamedTool } from './unnamed-tool.ts';

/** What Pilotage knows of a tool, and the AI SDK does not; `description` and `needsApproval` stand in place of the tool's own. */
export interface AddedOptions
  extends Partial<
    Omit<Tool, 'name' | 'description' | 'inputSchema' | 'outputSchema' | 'needsApproval' | 'execute' | 'toModelOutput'>
  > {
  readonly description?: string;
  /** True: the tool has no `execute`, and whoever reads the run, such as a page, carries its calls out. */
  readonly client?: true;
  readonly needsApproval?: boolean | ApprovalGate['when'] | ApprovalGate;
  /**
   * What `execute` and `needsApproval` get as `context` where the tool has a `contextSchema`: an object for all calls, or a function
   * of `{ identity, meta, idempotencyKey }` that makes it for each call.
   */
  readonly context?: UnnamedTool['context'];
}

const KEYS = [...Object.keys(OWN_OPTIONS), 'description', 'needsApproval', 'context'] satisfies string[];

/**
 * The tools of the record, each with the options that are given for it: `withTools(await mcp.tools(), { search: { effect: 'read',
 * timeoutMs: 120_000 } })`. Tools of whom nothing is said stay as they are.
 * @throws PilotageError `invalid_config` for a name that the record does not have, and for an option that no tool has. What the options
 * say is checked where the tools are registered.
 */
export function withTools<T extends Readonly<Record<string, UnnamedTool>>>(
  tools: T,
  options: { readonly [Name in keyof T]?: AddedOptions },
): { readonly [Name in keyof T]: UnnamedTool } {
  for (const given of [tools, options]) {
    if (isOptionsRecord(given)) continue;
    throw refusal(
      `withTools takes an object of tools by their names, and one of options by the same names, and was given ${shownAmount(given)}.`,
    );
  }
  const added = new Map(Object.entries(options));
  for (const [name, option] of added) {
    if (option === undefined) continue;
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
    if (tool === undefined) throw unknownTool(name, Object.keys(tools));
    if (!isOptionsRecord(tool) || 'agent' in tool || tool.name !== undefined) {
      throw refusal(
        `withTools has options for ${name}, which was not made for the AI SDK: write them where that tool is made.`,
      );
    }
    assertKnownKeys(`withTools for the tool ${name}`, option, KEYS);
  }
  const made = Object.entries(tools).map(([name, tool]) => {
    const option = added.get(name);
    return [name, option === undefined ? tool : { ...tool, ...defined(option) }];
  });
  return Object.fromEntries(made);
}

function unknownTool(name: string, known: readonly string[]): PilotageError {
  const near = nearest(name, known);
  const meant = near === undefined ? `There are ${known.join(', ')}` : `Did you mean ${near}?`;
  return refusal(`withTools has options for ${name}, which is not among the tools. ${meant}`);
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
