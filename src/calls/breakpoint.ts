/** Where a run stops before a call begins. */
import { type Branch, isPlanTool, isTaskTool, type JsonObject, type Paused, PilotageError, UNDO_TASK } from '#core';
import { breakBefore, breakpointIn, type OpenStep, presentName, type RunState } from '#state';
import type { AuthorisedTools } from '#tools';
import type { DriverDeps } from '../loop/driver-deps.ts';

interface Ports {
  readonly state: RunState;
  readonly deps: Pick<DriverDeps, 'newToken'>;
}

/** The pause at a breakpoint that stands before this call. */
export function stopBefore({ state, deps }: Ports, open: OpenStep, call: number, branch: Branch): Paused | undefined {
  if (state.breakpoints.length === 0) return undefined;
  const payload = breakBefore(state, open, call, branch);
  return payload && { kind: 'paused', token: deps.newToken(), reason: 'external_event', payload };
}

/**
 * Why no call can ever stand before the breakpoint that the payload of a PAUSE names: the run has no such tool. Nodes are those of plans that may
 * still be made, and are not looked up; what is taken away may be anything.
 */
export function unfitBreakpoint(
  { before, clear }: JsonObject,
  state: RunState,
  tools: Pick<AuthorisedTools, 'all' | 'ready'>,
): PilotageError | undefined {
  const named = breakpointIn(before);
  if (named === undefined || named === 'next' || 'node' in named || clear === true) return undefined;
  const { tool } = named;
  const isOwn = isTaskTool(tool) || isPlanTool(tool) || tool === UNDO_TASK;
  if (isOwn || tools.ready(presentName(state, tool)) !== undefined) return undefined;
  const known = tools.all().map(({ name }) => name);
  const message = `The run has no tool ${JSON.stringify(tool)}, so that it would never stop there. Its tools: ${known.join(', ') || 'none'}.`;
  return new PilotageError('tool_not_found', message, { data: { tool, known: known.slice(0, MOST_NAMED) } });
}

const MOST_NAMED = 100;
