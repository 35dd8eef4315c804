/** The atomic set-up of a parallel call: unless the call says otherwise, one bad branch means that nothing is started. */
import { branchesOf } from '../core/decision.ts';
import type { CallEnded } from '../core/entry.ts';
import type { ErrorData } from '../core/errors.ts';
import { referencesIn } from '../core/reference.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import type { OpenStep } from '../view/run-state.ts';
import { prepareCall } from './dispatch.ts';

/** The outcomes of all branches when the set-up refuses the call; none when it may start. */
export async function setUp(open: OpenStep, tools: AuthorisedTools): Promise<CallEnded[]> {
  const { decision, step } = open.move;
  if (decision.kind !== 'call_parallel' || decision.onInvalid === 'per_branch') return [];
  // Some of it ran before a crash: it had passed.
  if (open.began.length > 0 || open.calls.some((call) => call !== null)) return [];
  const errors = new Map<number, ErrorData>();
  for (const [index, branch] of branchesOf(decision).entries()) {
    const error = await refusalOf(tools, branch.tool, branch.args, index);
    if (error !== undefined) errors.set(index, error);
  }
  if (errors.size === 0) return [];
  const first = Math.min(...errors.keys());
  const notStarted = {
    code: 'branch_not_started',
    message: `Nothing was started, because branch ${first} is invalid.`,
  };
  return decision.branches.map((_, call) => {
    const error = errors.get(call);
    const outcome =
      error === undefined ? { kind: 'skipped' as const, error: notStarted } : { kind: 'error' as const, error };
    return { kind: 'call_ended', step, call, outcome, attempts: 0 };
  });
}

async function refusalOf(
  tools: AuthorisedTools,
  name: string,
  args: Parameters<typeof prepareCall>[2],
  index: number,
): Promise<ErrorData | undefined> {
  const data = { branch: index, setUp: true };
  // Arguments that refer to another branch are known, and checked, only when that branch has ended.
  if (tools.get(name) !== undefined && referencesIn(args).size > 0) return undefined;
  const prepared = await prepareCall(tools, name, args);
  if (!('error' in prepared)) return undefined;
  const { code, message } = prepared.error;
  return code === 'tool_invalid_args'
    ? { code: 'parallel_branch_invalid_args', message: `Branch ${index}: ${message}`, data }
    : { code, message: `Branch ${index}: ${message}`, data };
}
