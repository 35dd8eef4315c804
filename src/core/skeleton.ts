/**
 * What is left of an entry when a person's content is erased: kinds, numbers, ids, names of tools, statuses and times, so that the run still
 * folds. Texts, arguments, values, payloads and files are gone.
 */
import type { Control } from './control.ts';
import type { Branch, Decision } from './decision.ts';
import type { Entry, EntryBody, Resumed } from './entry.ts';
import type { ErrorData } from './errors.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import type { Outcome } from './outcome.ts';

/** @param erasedAt stands in the first entry of the run from then on. Milliseconds since the epoch. */
export function skeletonOf(entry: Entry, erasedAt: number): Entry {
  const { seq, at, ...body } = entry;
  return { ...bodyOf(body as EntryBody, erasedAt), seq, at };
}

function bodyOf(body: EntryBody, erasedAt: number): EntryBody {
  switch (body.kind) {
    case 'started': {
      const {
        history: _,
        context: __,
        author: ___,
        labels: ____,
        clientTools: _____,
        asked,
        task,
        turn,
        ...rest
      } = body;
      return {
        ...rest,
        query: '',
        ...(task === undefined ? {} : { task: { ...task, description: '' } }),
        ...(turn === undefined ? {} : { turn: { ...turn, messages: turn.messages.map(({ id }) => ({ id })) } }),
        ...(asked === undefined ? {} : { asked: { ...asked, digest: '' } }),
        erased: body.erased ?? erasedAt,
      };
    }
    case 'moved': {
      const {
        text: _,
        reasoning: __,
        providerState: ___,
        provenance: ____,
        remarks: _____,
        files: ______,
        ...rest
      } = body;
      const { rejected, fault } = body;
      // A decision that was rejected may have any shape.
      const decision = rejected === undefined ? decisionOf(body.decision) : NOTHING_DECIDED;
      return { ...rest, decision, ...withoutWords({ rejected, fault }) };
    }
    case 'plan_grown': {
      const { text: _, reasoning: __, providerState: ___, provenance: ____, remarks: _____, ...rest } = body;
      return { ...rest, branches: body.branches.map(branchOf), ...withoutWords({ fault: body.fault }) };
    }
    case 'call_ended': {
      const { artifacts: _, store: __, ...rest } = body;
      return { ...rest, outcome: outcomeOf(body.outcome) };
    }
    case 'call_waits':
      return { ...body, waits: body.waits.map(({ schema: _, again: __, ...wait }) => wait) };
    case 'wait_ended':
      return body.ended === 'event' ? { ...body, payload: null } : body;
    case 'event_passed':
      return { ...body, payload: null, error: wordless(body.error) };
    case 'call_kept': {
      const { stored: _, ...rest } = body;
      return { ...rest, value: null };
    }
    case 'paused': {
      const { payload: _, schema: __, stored: ___, escalate, ...rest } = body;
      return escalate === undefined ? rest : { ...rest, escalate: { ...escalate, to: '' } };
    }
    case 'resumed':
      return resumedOf(body);
    case 'approved': {
      const { payload: _, args, digest: __, remember: ___, stored: ____, ...rest } = body;
      return args === undefined ? rest : { ...rest, args: {} };
    }
    case 'escalated':
      return { ...body, to: '' };
    case 'control': {
      const { error, ...rest } = body;
      return { ...rest, control: controlOf(body.control), ...withoutWords({ error }) };
    }
    case 'spawned':
      return { ...body, description: '' };
    case 'task_ended': {
      const { result: _, stored: __, files: ___, error, ...rest } = body;
      return { ...rest, ...withoutWords({ error }) };
    }
    case 'task_paused':
      return { ...body, pauses: body.pauses.map(({ payload: _, schema: __, text: ___, ...pause }) => pause) };
    case 'group_ended': {
      const { reason: _, ...rest } = body;
      return rest;
    }
    case 'turn_started': {
      const { query, inputs: _, history: __, author: ___, ...rest } = body;
      return query === undefined ? rest : { ...rest, query: '' };
    }
    case 'recalled':
      return { kind: 'recalled', items: [] };
    case 'compacted': {
      const { made: _, ...rest } = body;
      return { ...rest, summary: { goals: [], facts: [], pending: [], lastOutputDigest: '', note: '' } };
    }
    case 'shortened':
      return { ...body, results: [] };
    case 'overflowed':
    case 'model_away': {
      const { remarks: _, ...rest } = body;
      return { ...rest, error: wordless(body.error) };
    }
    case 'compaction_failed':
      return { ...body, error: { code: body.error.code, message: '' } };
    case 'call_away':
    case 'failed':
      return { ...body, error: wordless(body.error) };
    case 'unwinding':
      return { ...body, ending: bodyOf(body.ending, erasedAt) as typeof body.ending };
    case 'repaired': {
      const { reason: _, ...rest } = body;
      return { ...rest, problem: wordless(body.problem) };
    }
    case 'finished': {
      const { payload: _, stored: __, metadata: ___, files: ____, carry: _____, ...rest } = body;
      return rest;
    }
    case 'call_began':
    case 'call_spent':
    case 'reminded':
    case 'ruled':
    case 'awaiting':
    case 'watched':
    case 'no_progress':
    case 'answering':
    case 'repinned':
    case 'reopened':
      return body;
    default:
      return body satisfies never;
  }
}

const NOTHING_DECIDED: Decision = { kind: 'finish', reason: 'no_path' };

function resumedOf(body: Resumed): Resumed {
  const { payload: _, args: __, stored: ___, remember: ____, nodes, outcome, value, ...rest } = body;
  const edits = nodes && Object.entries(nodes).map(([id, edit]) => [id, isSkip(edit) ? { skip: true } : { args: {} }]);
  return {
    ...rest,
    ...(edits === undefined ? {} : { nodes: Object.fromEntries(edits) as JsonObject }),
    ...(outcome === undefined ? {} : { outcome: outcomeOf(outcome) }),
    ...(value === undefined ? {} : { value: null }),
  };
}

function isSkip(edit: unknown): boolean {
  return isJsonObject(edit) && edit['skip'] === true;
}

function wordless({ code }: ErrorData): ErrorData {
  return { code, message: '' };
}

function withoutWords<K extends string>(
  errors: Readonly<Record<K, ErrorData | undefined>>,
): { [Key in K]?: ErrorData } {
  const made: { [Key in K]?: ErrorData } = {};
  for (const name in errors) {
    const error = errors[name];
    if (error !== undefined) made[name] = wordless(error);
  }
  return made;
}

function outcomeOf(outcome: Outcome): Outcome {
  switch (outcome.kind) {
    case 'value':
      return { kind: 'value', value: null };
    case 'verdict':
      return { kind: 'verdict', verdict: outcome.verdict };
    default:
      return { kind: outcome.kind, error: wordless(outcome.error) };
  }
}

function decisionOf(decision: Decision): Decision {
  switch (decision.kind) {
    case 'call_tool':
      return { ...decision, args: {}, ...withoutWords({ refusal: decision.refusal }) };
    case 'call_parallel':
      return { ...decision, branches: decision.branches.map(branchOf) };
    case 'spawn_task':
      return { ...decision, spec: { ...decision.spec, query: '', description: '' } };
    case 'await_task':
      return decision;
    case 'request_pause': {
      const { payload: _, schema: __, ...rest } = decision;
      return rest;
    }
    case 'finish':
      return { kind: 'finish', reason: decision.reason };
    default:
      return decision satisfies never;
  }
}

function branchOf(branch: Branch): Branch {
  const { when, routes, refusal } = branch;
  return {
    ...branch,
    args: routes === undefined ? {} : null,
    ...(when === undefined ? {} : { when: { ...when, equals: null } }),
    ...(routes === undefined
      ? {}
      : {
          routes: routes.map((route) => ({
            ...route,
            args: {},
            ...(route.when === undefined ? {} : { when: { ...route.when, equals: null } }),
          })),
        }),
    ...withoutWords({ refusal }),
  };
}

const IDS: ReadonlySet<string> = new Set(['token', 'task_id']);

/** Ids, numbers and flags stay. */
function controlOf({ payload, stored: _, turnMessage, ...others }: Control): Control {
  const control = turnMessage === undefined ? others : { ...others, turnMessage: { id: turnMessage.id } };
  if (payload === undefined) return control;
  const kept = Object.entries(payload).filter(
    ([key, value]) => IDS.has(key) || typeof value === 'number' || typeof value === 'boolean',
  );
  const goal = control.type === 'REDIRECT' ? { goal: '' } : {};
  return { ...control, payload: { ...Object.fromEntries(kept), ...goal } };
}
