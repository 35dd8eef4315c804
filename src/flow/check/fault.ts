/** What is wrong with the definition of a flow. */
import { PilotageError } from '#core';

export interface FlowFault {
  readonly code: FlowFaultCode;
  readonly message: string;
  /** The names of the nodes that the fault is about. */
  readonly nodes: readonly string[];
}

export type FlowFaultCode =
  | 'bad_name'
  | 'bad_budget'
  | 'no_exit'
  | 'not_a_node'
  | 'duplicate_name'
  | 'no_function'
  | 'bad_concurrency'
  | 'no_branches'
  | 'too_many_branches'
  | 'bad_branch'
  | 'bad_need'
  | 'no_parents'
  | 'no_targets'
  | 'router_as_parent'
  | 'router_as_exit'
  | 'edge_into_join'
  | 'join_as_entry'
  | 'unreachable'
  | 'exit_unreachable'
  | 'too_many_nodes'
  | 'too_deep'
  | 'cycle'
  | 'cycle_without_router'
  | 'cycle_without_hops'
  | 'join_never_runs'
  | 'ways_in_meet'
  | 'exits_meet'
  | 'no_exit_reached'
  | 'back_edges_meet'
  | 'failure_to_itself'
  | 'failure_of_router'
  | 'failures_differ'
  | 'failure_beside_exit'
  | 'too_many_routings';

export function faultOf(code: FlowFaultCode, message: string, nodes: readonly string[]): FlowFault {
  return { code, message, nodes };
}

const MAX_FAULTS = 20;
const MAX_NAMES = 10;
/** The most characters of a text in the place of a node. */
const MAX_SHOWN = 64;

/** Names for a message. */
export function listedNames(names: readonly string[]): string {
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return `${names.slice(0, MAX_NAMES).join(', ')}${more}`;
}

/** What stands in the place of a node, and what to give there. */
export function notANode(given: unknown, where: string): string {
  if (typeof given === 'object' && given !== null && 'asNode' in given)
    return `${where} is a router or a flow, which is not a node by itself. Give the node that its asNode(name) makes.`;
  const what =
    typeof given === 'string'
      ? `the text ${JSON.stringify(given.slice(0, MAX_SHOWN))}`
      : typeof given === 'object' && given !== null
        ? 'an object'
        : typeof given === 'function'
          ? 'a function'
          : String(given);
  return `${where} is ${what}, which is not a node. Give the node itself.`;
}

/** The error of a flow that cannot be built: `data.faults` has the first twenty faults. */
export function flowInvalid(flow: string, faults: readonly FlowFault[]): PilotageError {
  const shown = faults.slice(0, MAX_FAULTS);
  const more = faults.length > shown.length ? ` And ${faults.length - shown.length} more.` : '';
  const message = `The flow ${flow} cannot be built. ${shown.map((fault) => fault.message).join(' ')}${more}`;
  const data = { flow, faults: shown.map(({ code, message: said, nodes }) => ({ code, message: said, nodes })) };
  return new PilotageError('flow_invalid', message, { data });
}
