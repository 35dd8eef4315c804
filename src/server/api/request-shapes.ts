/** What requests of our own API bring, as JSON Schema. What the schemas leave open, the runtime checks. */
import type { ControlType, Json, JsonObject, Labels, Limits, OnFail, WaitFor, WhileAsked } from '#core';
import { RUN_STATUSES, type RunStatus } from '#journal';
import {
  BUSY_MODES,
  type BusyMode,
  CATCH_UP_MODES,
  OVERLAP_MODES,
  type PauseAnswer,
  type ScheduleOptions,
  type StartOptions,
} from '#runtime';
import { type Typed, typed } from './route.ts';

const text: JsonObject = { type: 'string', minLength: 1, maxLength: 512 };
const words: JsonObject = { type: 'string' };
const whole: JsonObject = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const flag: JsonObject = { type: 'boolean' };
const anObject: JsonObject = { type: 'object' };
const anything: JsonObject = {};
const moment: JsonObject = { type: ['string', 'integer'] };
const page: JsonObject = { type: 'integer', minimum: 1, maximum: 200 };
const labels: JsonObject = { type: 'object', additionalProperties: { type: 'string' }, maxProperties: 32 };
const until: JsonObject = { enum: ['stored', 'applied'] };

function shape(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return { type: 'object', additionalProperties: false, properties, required };
}

/** Whose: for an admin. Of anybody else only their own is found. */
interface OfOwner {
  readonly tenant?: string;
  readonly user?: string;
}
const ofOwner = { tenant: text, user: text };

export const fileShape: JsonObject = {
  type: 'object',
  additionalProperties: false,
  description: 'A file: `data` in base64 with its `mime`, a `url`, or the `artifactRef` of the session.',
  properties: {
    ...{ data: { type: 'string', contentEncoding: 'base64' }, mime: words, fileName: words, url: words },
    ...{ artifactRef: words, sizeBytes: whole },
  },
  anyOf: [{ required: ['data', 'mime'] }, { required: ['url'] }, { required: ['artifactRef', 'mime', 'sizeBytes'] }],
};
/** A file as a request has it. */
export interface SentFile {
  readonly data?: string;
  readonly mime?: string;
  readonly fileName?: string;
  readonly url?: string;
  readonly artifactRef?: string;
  readonly sizeBytes?: number;
}
typed(fileShape, 'File');
const files: JsonObject = { type: 'array', items: fileShape, maxItems: 100 };

/** What a run and a turn of a session are both started with. */
interface Beginning {
  readonly agent?: string;
  readonly labels?: Labels;
  readonly limits?: Limits;
  readonly context?: StartOptions['context'] & object;
  readonly whileAsked?: WhileAsked;
  readonly onFail?: OnFail;
  readonly undo?: StartOptions['undo'] & object;
  readonly priority?: number;
}
const beginning = {
  ...{ agent: text, labels, limits: anObject, context: anObject, priority: { type: 'integer' } },
  ...{ whileAsked: { enum: ['withdraw', 'keep'] }, onFail: { enum: ['undo', 'keep'] }, undo: anObject },
};

interface Said {
  readonly inputs?: readonly SentFile[];
  readonly author?: string | { readonly id?: string; readonly name?: string };
}
const author: JsonObject = { type: ['string', 'object'] };

type ClientTools = StartOptions['clientTools'] & object;
const clientTools: JsonObject = { type: 'array', items: anObject, maxItems: 128 };

export interface StartBody extends Beginning, Said {
  readonly query: string;
  readonly session?: string;
  readonly history?: StartOptions['history'] & object;
  readonly conversation?: boolean;
  /** Tools that whoever reads the run carries out. */
  readonly clientTools?: ClientTools;
  readonly at?: string | number;
  readonly singleton?: StartOptions['singleton'] & object;
  readonly debounce?: StartOptions['debounce'] & object;
  readonly throttle?: StartOptions['throttle'] & object;
  readonly rate?: StartOptions['rate'] & object;
}
const startBody = shape(
  {
    query: words,
    session: text,
    ...beginning,
    ...{
      inputs: files,
      author,
      history: { type: 'array', items: anObject },
      conversation: flag,
      at: moment,
      clientTools,
    },
    ...{ singleton: anObject, debounce: anObject, throttle: anObject, rate: anObject },
  },
  ['query'],
);
export const runStart: Typed<StartBody> = typed(startBody, 'StartRun');

export interface MessageBody extends Said {
  readonly text?: string;
  readonly notice?: boolean;
}
const message = { text: words, inputs: files, author, notice: flag };
export interface SendBody extends Beginning, MessageBody {
  readonly busy?: BusyMode;
  readonly id?: string;
  readonly clientTools?: ClientTools;
}
const sending = { ...beginning, busy: { enum: [...BUSY_MODES] }, id: text, clientTools };
export const sendMessage: Typed<SendBody> = typed(shape({ ...message, ...sending }), 'SendMessage');
export const regenerate: Typed<Omit<SendBody, keyof MessageBody>> = typed(shape(sending), 'Regenerate');
export const switchTo: Typed<{ readonly turn: string }> = typed(shape({ turn: text }, ['turn']));
export const setTitle: Typed<{ readonly title: string | null }> = typed(
  shape({ title: { type: ['string', 'null'], minLength: 1, maxLength: 200 } }, ['title']),
);
export const cancelSession: Typed<{ readonly waiting?: boolean }> = typed(shape({ waiting: flag }));
export const ofVisited: Typed<OfOwner> = typed(shape(ofOwner));
export const lastTurns: Typed<OfOwner & { readonly limit?: number }> = typed(
  shape({ ...ofOwner, limit: { type: 'integer', minimum: 1, maximum: 1_000 } }),
);
interface SessionList extends OfOwner {
  readonly text?: string;
  readonly since?: number;
  readonly limit?: number;
  readonly after?: string;
}
export const listSessions: Typed<SessionList> = typed(
  shape({ ...ofOwner, text, since: whole, limit: page, after: text }),
);

export interface SessionPlace {
  readonly user: string;
  readonly session: string;
  readonly updatedAt: number;
}
export const placeOfSession: Typed<SessionPlace> = typed(
  shape({ user: words, session: words, updatedAt: whole }, ['user', 'session', 'updatedAt']),
);

interface RunList extends OfOwner {
  readonly session?: string;
  readonly status?: readonly RunStatus[];
  readonly agent?: string;
  /** `name=value` */
  readonly label?: readonly string[];
  readonly parent?: string;
  readonly schedule?: string;
  readonly text?: string;
  readonly since?: number;
  readonly limit?: number;
  readonly after?: string;
}
const label: JsonObject = { type: 'array', items: { type: 'string', pattern: '^[^=]+=' }, maxItems: 32 };
const status: JsonObject = { type: 'array', items: { enum: [...RUN_STATUSES] } };
export const listRuns: Typed<RunList> = typed(
  shape({
    ...{ ...ofOwner, session: text, status, agent: text, label, parent: text, schedule: text, text },
    ...{ since: whole, limit: page, after: text },
  }),
);

/** How long a request for a result may wait. */
export const LONGEST_WAIT_MS = 60_000;
interface Wait {
  readonly waitMs?: number;
}
const wait = { waitMs: { type: 'integer', minimum: 0, maximum: LONGEST_WAIT_MS } };
export const waitFor: Typed<Wait> = typed(shape(wait));
export const waitInSession: Typed<Wait & OfOwner> = typed(shape({ ...wait, ...ofOwner }));

export interface ReadEvents {
  /** The id of the last event that the reader has. The header `Last-Event-ID` comes before it. */
  readonly after?: string;
  readonly tasks?: boolean;
  readonly overPauses?: boolean;
  readonly limit?: number;
}
const eventPage = { type: 'integer', minimum: 1, maximum: 1_000 };
export const readEvents: Typed<ReadEvents> = typed(
  shape({ after: text, tasks: flag, overPauses: flag, limit: eventPage }),
);
export const readSession: Typed<OfOwner & Pick<ReadEvents, 'after' | 'tasks'>> = typed(
  shape({ ...ofOwner, after: text, tasks: flag }),
);
export const readRows: Typed<Pick<ReadEvents, 'after' | 'limit'>> = typed(shape({ after: text, limit: eventPage }));

interface Until {
  readonly until?: 'stored' | 'applied';
}
export const runCancel: Typed<Until & { readonly reason?: string; readonly hard?: boolean }> = typed(
  shape({ reason: words, hard: flag, until }),
);
export const pauseRun: Typed<
  Until & { readonly before?: { readonly tool: string } | { readonly node: string } | 'next'; readonly clear?: boolean }
> = typed(shape({ before: anything, clear: flag, until }));
interface ResumeBody {
  readonly token?: string;
  readonly payload?: JsonObject;
  readonly limits?: Limits;
  readonly nodes?: Readonly<Record<string, { readonly args: Json } | { readonly skip: true }>>;
  readonly until?: 'next';
  readonly acceptChanges?: boolean;
}
export const resumeRun: Typed<ResumeBody> = typed(
  shape({
    ...{ token: text, payload: anObject, limits: anObject, nodes: anObject, until: { enum: ['next'] } },
    acceptChanges: flag,
  }),
);
export const saying: Typed<MessageBody & Until> = typed(shape({ ...message, until }), 'Message');
export const steer: Typed<Until & { readonly type: ControlType; readonly payload?: JsonObject }> = typed(
  shape({ type: text, payload: anObject, until }, ['type']),
);
const nodeIds: JsonObject = { type: 'array', items: text, minItems: 1, maxItems: 10_000 };
export const retryRun: Typed<{ readonly nodes?: readonly string[]; readonly acceptChanges?: boolean }> = typed(
  shape({ nodes: nodeIds, acceptChanges: flag }),
);
const place = shape({ step: whole, call: whole }, ['step', 'call']);
export const cancelCall: Typed<
  Until & { readonly which: string | { readonly step: number; readonly call: number }; readonly reason?: string }
> = typed(shape({ which: { anyOf: [text, place] }, reason: words, until }, ['which']));

const answer = shape(
  {
    kind: { enum: ['approve', 'reject', 'answer', 'payload', 'settle'] },
    ...{ args: anything, digest: words, payload: anObject, remember: anObject, value: anything, happened: flag },
    reason: words,
  },
  ['kind'],
);
typed(answer, 'Answer');
export const giveAnswer: Typed<{ readonly token?: string; readonly id?: string; readonly answer: PauseAnswer }> = typed(
  shape({ token: text, id: text, answer }, ['answer']),
);
const manyAnswers = { type: 'array', minItems: 1, maxItems: 100 };
interface OneAnswer {
  readonly run: string;
  readonly token?: string;
  readonly answer: PauseAnswer;
}
export const answerSeveral: Typed<{ readonly answers: readonly OneAnswer[] }> = typed(
  shape({ answers: { ...manyAnswers, items: shape({ run: text, token: text, answer }, ['run', 'answer']) } }, [
    'answers',
  ]),
);
interface WaitingList extends OfOwner {
  readonly session?: string;
  readonly run?: string;
  readonly agent?: string;
  readonly for?: WaitFor;
  readonly reason?: string;
  readonly key?: string;
  readonly untilBefore?: number;
  readonly limit?: number;
  readonly after?: number;
}
export const waitingQuery: Typed<WaitingList> = typed(
  shape({
    ...{ ...ofOwner, session: text, run: text, agent: text, for: { enum: ['answer', 'time', 'event'] }, reason: text },
    ...{ key: text, untilBefore: whole, limit: page, after: whole },
  }),
);

export const listRules: Typed<OfOwner & { readonly session?: string; readonly run?: string }> = typed(
  shape({ ...ofOwner, session: text, run: text }),
);
const namespace: JsonObject = { type: 'array', items: text, maxItems: 16 };
interface MemoryList extends OfOwner {
  readonly namespace?: readonly string[];
  readonly limit?: number;
  readonly after?: string;
}
/** A namespace is a name that comes several times, one for each part. */
export const listMemory: Typed<MemoryList> = typed(
  shape({ ...ofOwner, namespace, limit: page, after: { type: 'string', minLength: 1 } }),
);
export const inMemory: Typed<OfOwner & Pick<MemoryList, 'namespace'>> = typed(shape({ ...ofOwner, namespace }));
export const placeInMemory: Typed<{ readonly namespace: readonly string[]; readonly key: string }> = typed(
  shape({ namespace: { type: 'array', items: words }, key: words }, ['namespace', 'key']),
);
export const erasing: Typed<{ readonly tenant?: string; readonly user: string }> = typed(shape(ofOwner, ['user']));
export const repairing: Typed<{ readonly reason?: string }> = typed(shape({ reason: words }));

interface ForkBody {
  readonly step?: number;
  readonly result?: { readonly value: Json; readonly call?: number };
  readonly goal?: string;
  readonly limits?: Limits;
  readonly effects?: 'held' | 'allowed';
}
const forkResult = shape({ value: anything, call: whole }, ['value']);
export const runFork: Typed<ForkBody> = typed(
  shape({ step: whole, result: forkResult, goal: words, limits: anObject, effects: { enum: ['held', 'allowed'] } }),
);
export const compare: Typed<{ readonly a: string; readonly b: string }> = typed(
  shape({ a: text, b: text }, ['a', 'b']),
);

export type ScheduleBody = Omit<ScheduleOptions, 'id' | 'identity' | 'scopes'>;
export const putSchedule: Typed<ScheduleBody> = typed(
  shape(
    {
      ...{ cron: words, timezone: words, everyMs: whole, query: words, input: anything, session: text, agent: text },
      ...{ overlap: { enum: [...OVERLAP_MODES] }, catchUp: { enum: [...CATCH_UP_MODES] }, labels, limits: anObject },
    },
    ['query'],
  ),
  'PutSchedule',
);
export const listOfTenant: Typed<{ readonly tenant?: string; readonly limit?: number; readonly after?: string }> =
  typed(shape({ tenant: text, limit: page, after: text }));
export const ofTenant: Typed<{ readonly tenant?: string }> = typed(shape({ tenant: text }));
export const payload: Typed<Json> = typed(anything);
export const keepSignal: Typed<{ readonly tenant?: string; readonly keepMs?: number }> = typed(
  shape({ tenant: text, keepMs: whole }),
);

interface Slice {
  readonly forMs: number;
  readonly graceMs?: number;
}
const slice = { forMs: { type: 'integer', minimum: 1, maximum: 3_600_000 }, graceMs: whole };
export const advance: Typed<Slice> = typed(shape(slice, ['forMs']));
export const advanceDue: Typed<Slice & { readonly limit?: number }> = typed(
  shape({ ...slice, limit: { type: 'integer', minimum: 1 } }, ['forMs']),
);
