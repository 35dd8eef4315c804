/** What our own API answers, as JSON Schema: what is always there, and of which kind. Objects may have more. */
import type { ApprovalRule, ErrorData, JsonObject, StoreItem, StreamRow } from '#core';
import type { RunRecord, SessionRecord, StreamRecord } from '#journal';
import type { TurnUIMessage } from '#messages';
import type {
  AdvancedRun,
  AdvancedRuns,
  AgentRecord,
  Diagnosis,
  ReplayReport,
  RunResult,
  ScheduleRecord,
  Session,
  TurnView,
  Waiting,
} from '#runtime';
import type { PlanView, RunComparison, RunSnapshot, RunTrajectory } from '#state';
import type { Webhook } from '../webhooks/subscription.ts';
import type { WebhookState } from '../webhooks/webhooks.ts';
import { type Typed, typed } from './route.ts';

const text: JsonObject = { type: 'string' };
const whole: JsonObject = { type: 'integer' };
/** With the fraction, which the clock of a database has. */
const moment: JsonObject = { type: 'number' };
const flag: JsonObject = { type: 'boolean' };
const anObject: JsonObject = { type: 'object' };
const orNull = (schema: JsonObject): JsonObject => ({ anyOf: [schema, { type: 'null' }] });
const list = (items: JsonObject): JsonObject => ({ type: 'array', items });

function shape(properties: JsonObject, optional: JsonObject = {}): JsonObject {
  return { type: 'object', properties: { ...properties, ...optional }, required: Object.keys(properties) };
}

function listOf<T>(
  items: Typed<T>,
  next: JsonObject = text,
): Typed<{ readonly items: readonly T[]; readonly next?: string }> {
  return typed(shape({ items: list(items.schema) }, { next }));
}

export const problemDocument: Typed<unknown> = typed(
  shape({ type: text, title: text, status: whole, detail: text, code: text }, { data: anObject }),
  'Problem',
);
const recordedError = shape({ code: text, message: text });
typed(recordedError, 'RecordedError');
const identity = shape({ tenant: text, user: text, session: text, run: text });
typed(identity, 'Identity');

/** A run as lists have it: not which process has it. */
export type PublicRecord = Omit<RunRecord, 'lease'>;
const status: JsonObject = { enum: ['pending', 'running', 'waiting', 'paused', 'finished', 'failed', 'cancelled'] };
export const record: Typed<PublicRecord> = typed(
  shape(
    { identity, status, query: text, priority: whole, agent: text, createdAt: whole, updatedAt: whole, head: whole },
    { parent: text, root: text, turn: whole, labels: anObject, problem: recordedError },
  ),
  'Run',
);
export const records: ReturnType<typeof listOf<PublicRecord>> = listOf(record);
export const started: Typed<{ readonly run: string; readonly session: string }> = typed(
  shape({ run: text, session: text }),
  'Started',
);
export const snapshot: Typed<RunSnapshot> = typed(
  shape({
    ...{ head: whole, identity, agent: text, query: text, goal: text, limits: anObject, scopes: list(text) },
    ...{ context: anObject, startedAt: whole, updatedAt: whole, task: orNull(anObject), fork: orNull(anObject) },
    ...{ steps: list(anObject), open: orNull(anObject), plan: orNull(anObject), pauses: list(anObject) },
    ...{ tasks: list(anObject), groups: list(anObject), background: list(anObject), totals: anObject },
    ending: orNull(anObject),
  }),
  'Snapshot',
);
const usage = anObject;
export const result: Typed<RunResult> = typed(
  {
    oneOf: [
      shape({ status: { const: 'finished' }, reason: text, usage }, { answer: text, payload: {}, metadata: anObject }),
      shape({ status: { const: 'failed' }, error: recordedError, usage }),
      shape({ status: { const: 'paused' }, pauses: list(shape({ token: text, reason: text, run: text })), usage }),
    ],
  },
  'Result',
);
export const notYet: Typed<{ readonly status: string }> = typed(
  shape({ status: { enum: ['pending', 'running', 'waiting', 'paused'] } }),
  'NotYet',
);
export const trajectory: Typed<RunTrajectory> = typed(
  shape({ format: { const: 1 }, identity, query: text, agent: text, steps: list(anObject), ending: orNull(anObject) }),
  'Trajectory',
);
export const anEvent: Typed<unknown> = typed(
  shape({ type: text, identity, seq: whole, occurredAt: whole }, { id: text, position: whole, path: list(anObject) }),
  'Event',
);
export const events: ReturnType<typeof listOf<unknown>> = listOf(anEvent);
const rowShape = shape({ index: whole, value: {}, step: whole, call: whole, attempt: whole, at: whole });
export const row: Typed<StreamRow> = typed(rowShape, 'Row');
export const rows: ReturnType<typeof listOf<StreamRow>> = listOf(row);
export const streams: Typed<{ readonly items: readonly StreamRecord[] }> = listOf(
  typed<StreamRecord>(shape({ name: text, rows: whole, closed: flag })),
);
const planShape = shape({ plan: text, step: whole, growing: flag, held: list(anObject), nodes: list(anObject) });
export const plan: Typed<{ readonly plan: PlanView | null }> = typed(shape({ plan: orNull(planShape) }));
export const comparison: Typed<RunComparison> = typed(
  shape({ a: anObject, b: anObject, steps: list(anObject), sameEnding: flag }, { firstDivergence: whole }),
  'Comparison',
);
export const replayReport: Typed<ReplayReport> = typed(
  shape({ run: text, from: whole, compared: whole }, { divergence: anObject }),
  'Replay',
);

export const waits: Typed<Waiting> = typed(
  shape(
    {
      id: text,
      run: text,
      tenant: text,
      user: text,
      session: text,
      agent: text,
      number: whole,
      for: text,
      requestedAt: whole,
    },
    { token: text, question: text, kinds: list(text), payload: anObject, schema: anObject, until: whole, key: text },
  ),
  'Waiting',
);
export const allWaits: Typed<{ readonly items: readonly Waiting[]; readonly next?: string }> = listOf(waits);
export interface AnswerTaken {
  readonly run: string;
  readonly token?: string;
  readonly taken: boolean;
  readonly refused?: { readonly code: string; readonly detail: string };
}
export const answersTaken: Typed<{ readonly items: readonly AnswerTaken[] }> = listOf(
  typed<AnswerTaken>(shape({ run: text, taken: flag }, { token: text, refused: shape({ code: text, detail: text }) })),
);

const sessionShape = shape(
  { tenant: text, user: text, session: text, turns: whole, waiting: whole, createdAt: whole, updatedAt: whole },
  { title: text, branch: text, live: anObject },
);
export const session: Typed<SessionRecord> = typed(sessionShape, 'Session');
export const sessions: ReturnType<typeof listOf<SessionRecord>> = listOf(session);
export const sent: Typed<{ readonly id: string; readonly turn: string; readonly as: string }> = typed(
  shape({ id: text, turn: text, as: { enum: ['started', 'queued', 'steered', 'interrupts', 'known'] } }),
  'SentMessage',
);
export const turns: Typed<{ readonly items: readonly TurnView[]; readonly position: number }> = typed(
  shape({
    items: list(
      shape({
        turn: text,
        number: whole,
        position: whole,
        status,
        agent: text,
        messages: list(anObject),
        createdAt: whole,
      }),
    ),
    position: whole,
  }),
  'Turns',
);
export const messages: Typed<{ readonly items: readonly TurnUIMessage[]; readonly position: number }> = typed(
  shape({ items: list(shape({ id: text, role: text, parts: list(anObject) })), position: whole }),
  'Messages',
);
type Branches = Awaited<ReturnType<Session['branches']>>;
export const branches: Typed<{ readonly items: Branches }> = typed(
  shape({ items: list(shape({ turn: text, from: orNull(text), active: flag })) }),
);
export const deleted: Typed<{ readonly runs: number }> = typed(shape({ runs: whole }));

export const ruleList: Typed<{ readonly items: readonly ApprovalRule[] }> = listOf(
  typed<ApprovalRule>(
    shape(
      { id: text, scope: text, verdict: { enum: ['approve', 'reject'] }, tool: text, match: {}, setAt: whole },
      { by: anObject, expiresAt: whole },
    ),
    'Rule',
  ),
);
const item: Typed<StoreItem> = typed(
  shape(
    { namespace: list(text), key: text, value: {}, createdAt: whole, updatedAt: whole },
    { expiresAt: whole, source: anObject },
  ),
  'Remembered',
);
export const memory: ReturnType<typeof listOf<StoreItem>> = listOf(item);
export const remembered: Typed<{ readonly item: StoreItem | null }> = typed(shape({ item: orNull(item.schema) }));
interface Erased {
  readonly runs: number;
  readonly artifacts: number;
  readonly items: number;
  readonly schedules: number;
  readonly left: readonly { readonly run: string; readonly error: ErrorData }[];
}
export const erased: Typed<Erased> = typed(
  shape({
    runs: whole,
    artifacts: whole,
    items: whole,
    schedules: whole,
    left: list(shape({ run: text, error: recordedError })),
  }),
  'Erased',
);
const diagnosisShape = shape(
  {
    ...{ run: text, goodUpTo: whole, head: whole, refused: list(shape({ seq: whole, problem: recordedError })) },
    ...{ messages: list(anObject), lostCalls: list(anObject), unreadable: list(whole), begun: list(whole) },
  },
  { snapshot: whole },
);
export const diagnosis: Typed<{ readonly diagnosis: Diagnosis | null }> = typed(
  shape({ diagnosis: orNull(diagnosisShape) }),
);

export const schedule: Typed<ScheduleRecord> = typed(
  shape(
    { tenant: text, user: text, id: text, agent: text, query: text, overlap: text, catchUp: text, revision: whole },
    { status: { enum: ['active', 'paused'] }, nextAt: { type: ['integer', 'null'] }, lastRun: text },
  ),
  'Schedule',
);
export const schedules: ReturnType<typeof listOf<ScheduleRecord>> = listOf(schedule);

export interface WebhookView extends Omit<Webhook, 'url' | 'secret' | 'headers'> {
  /** The beginning of the address that it posts to, such as `https://hooks.example.com`. */
  readonly origin: string;
}
const webhookShape = shape(
  { tenant: text, id: text, origin: text, format: text, since: moment },
  { user: text, session: text, agent: text, run: text, events: list(text) },
);
export const webhookList: ReturnType<typeof listOf<WebhookView>> = listOf(typed<WebhookView>(webhookShape, 'Webhook'));
const delivery = shape(
  { run: text, position: whole },
  {
    attempts: whole,
    failingSince: moment,
    failedAt: moment,
    nextAt: moment,
    gaveUpAt: moment,
    error: text,
    begun: moment,
  },
);
const webhookState = shape(
  { open: whole, posting: whole, failing: whole, gaveUp: whole },
  { nextAt: moment, last: delivery },
);
export const webhook: Typed<WebhookView & { readonly state: WebhookState }> = typed({
  allOf: [webhookShape, shape({ state: webhookState })],
});
export const signalled: Typed<{
  readonly id: string;
  readonly isNew: boolean;
  readonly delivered: number;
  readonly kept: boolean;
  readonly until: number;
}> = typed(shape({ id: text, isNew: flag, delivered: whole, kept: flag, until: whole }), 'Signalled');
export const alive: Typed<{ readonly alive: true }> = typed(shape({ alive: { const: true } }));
export const ready: Typed<{ readonly ready: boolean }> = typed(shape({ ready: flag }));
export const done: Typed<{ readonly done: true }> = typed(shape({ done: { const: true } }));

export const agents: Typed<{ readonly items: readonly AgentRecord[] }> = listOf(
  typed<AgentRecord>(shape({ name: text, effects: list(text) })),
);
const advanced = shape({ run: text, status }, { wakeAt: whole });
export const advancedRun: Typed<AdvancedRun> = typed(advanced, 'Advanced');
export const advancedRuns: Typed<AdvancedRuns> = typed(shape({ runs: list(advanced), more: flag }));
