/** How a plan was found by decomposition, as the planner has recorded it. */
import { isJsonObject, type Json, type JsonObject } from '../core/json.ts';
import { type HtnTrace, traceText } from '../planners/htn/index.ts';
import { RECORD } from '../planners/htn/work.ts';
import { harmless } from './text.ts';

/** With a blank line before it. None when the plan was made in another way. */
export function traceLines(provenance: JsonObject | undefined): readonly string[] {
  const record = provenance?.[RECORD];
  const trace = isJsonObject(record) ? record['trace'] : undefined;
  if (!isTrace(trace)) return [];
  return ['', 'decomposition:', ...harmless(traceText(trace)).split('\n')];
}

/** Of whatever planner it is: there is no telling what it means by the name. */
function isTrace(trace: Json | undefined): trace is JsonObject & HtnTrace {
  if (!isJsonObject(trace)) return false;
  const { nodes } = trace;
  return Array.isArray(nodes) && nodes.length > 0 && nodes.every(isNode);
}

function isNode(node: Json): boolean {
  if (!isJsonObject(node)) return false;
  const { kind, task, status } = node;
  return typeof kind === 'string' && typeof status === 'string' && (task === undefined || Array.isArray(task));
}
