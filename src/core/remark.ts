/** Remarks: what a planner tells about how it made a move. Each remark is recorded with the move and read back as an event. */
import type { ErrorData } from './errors.ts';
import { encodedBytes, isJsonObject, type Json, type JsonObject } from './json.ts';
import { readUsage, type Usage } from './limits.ts';

export type RepairTier = 'reminder' | 'warning' | 'critical';
export type RepairCounter = 'finish' | 'args' | 'multi_action' | 'reply';
export type OutputMode = 'json_schema' | 'json_object' | 'text';

/** What a provider says that a reply was written from: a page, or a document. */
export type Source =
  | { readonly type: 'url'; readonly url: string; readonly title?: string }
  | {
      readonly type: 'document';
      readonly title: string;
      readonly mediaType: string;
      readonly filename?: string;
    };

/** Sources without those that come a second time, in their order: a page is known by its address. */
export function distinctSources(sources: readonly Source[]): readonly Source[] {
  const known = new Map<string, Source>();
  for (const source of sources) {
    const key = source.type === 'url' ? source.url : JSON.stringify([source.title, source.mediaType, source.filename]);
    if (!known.has(key)) known.set(key, source);
  }
  return [...known.values()];
}

export interface RemarkPayloads {
  /** A hint was added to this request, because a fault had come `count` times in a row. */
  'planner.repair_guidance_injected': {
    readonly tier: RepairTier;
    readonly counter: RepairCounter;
    readonly count: number;
  };
  /** The ladder came to its end. `attempts` counts model calls; each reason has at most 256 characters. */
  'planner.repair_exhausted': {
    readonly attempts: number;
    readonly consecutiveArgFailures: number;
    readonly reasons: readonly string[];
  };
  /** A field beside tool and arguments, such as `thought`, was left out. */
  'planner.action_extra_field_dropped': { readonly field: string };
  /** The reply was not well formed, and was read all the same. Each issue says what was changed. */
  'planner.reply_repaired': { readonly issues: readonly { readonly code: string; readonly message: string }[] };
  /** A model failed in a way that may pass; the next try is with `to`, which may be the same one. */
  'model.fallback': { readonly from: string; readonly to: string; readonly error: ErrorData };
  /** The model could not produce output by a schema in the way that it was asked to. */
  'model.output_downgraded': { readonly model: string; readonly from: OutputMode; readonly to: OutputMode };
  /** A provider reported usage that cannot be true. An estimate was used instead. */
  'model.usage_refused': { readonly model: string; readonly why: string };
  /** What the provider said that it could not do as asked, or that will not stay: at most 10, each of at most 500 characters. */
  'model.warned': { readonly model: string; readonly warnings: readonly string[] };
  /** Sources that the provider names for the reply, without those that cannot be told apart from an earlier one of it. */
  'model.sources': { readonly model: string; readonly sources: readonly Source[] };
  /** Documents were looked up for the prompt of a plan. With an error, the plan is made without documents. */
  'plan.retrieved': {
    readonly documents: number;
    /** The size of the documents in tokens, estimated. */
    readonly tokens: number;
    /** Documents that were left out or shortened, to keep to their share. */
    readonly cut: number;
    readonly error?: ErrorData;
  };
  /** A model was called on the way to a plan, with any result. Prompt and output are redacted. */
  'plan.try': PlanTry;
  /**
   * The verifier chose one of `candidates` plans, or rejected all of them. With an error, the first valid plan was taken,
   * unverified.
   */
  'plan.verified': {
    readonly candidates: number;
    readonly valid: number;
    /** The number of the try that gave the chosen plan. Absent: all plans were rejected. */
    readonly chosen?: number;
    /** The scores of the valid plans, in order; null for a plan that was rejected. */
    readonly scores?: readonly (number | null)[];
    /** Which tries were rejected, and why, with at most 256 characters. */
    readonly rejected?: readonly { readonly try: number; readonly reason: string }[];
    readonly error?: ErrorData;
  };
  /** The models gave no plan, and the fallback planner, or the end of the run, took its place. */
  'plan.fallback': {
    readonly because: 'exhausted' | 'ceiling' | 'policy';
    readonly faults: readonly PlanFault[];
    /** Absent: there is no fallback. */
    readonly planner?: string;
  };
  /** An attachment could not be read; the request says so. */
  'input.unreadable': { readonly artifactRef: string; readonly fileName?: string };
  /** A remark of the planner was dropped, because it is not valid. `remark` is its type, if it had one, of at most 100 characters. */
  'planner.remark_dropped': { readonly remark: string; readonly why: string };
  /** An event of the planner's own: a name with a slash, such as `acme/plan.scored`, and any JSON data. */
  [own: OwnRemarkType]: { readonly data: Json };
}

export type OwnRemarkType = `${string}/${string}`;
export type RemarkType = keyof RemarkPayloads;

/** What is wrong with a plan. */
export interface PlanFault {
  readonly code: string;
  readonly message: string;
  /** The id of the step that the fault is about. */
  readonly step?: string;
  /** For a cycle: the ids along the cycle, with the first id again at the end. */
  readonly path?: readonly string[];
}

export type PlanTryPurpose = 'plan' | 'repair' | 'outline' | 'detail' | 'verify' | 'rest';

export interface PlanTry {
  /** The number of the try within its move, from 1. */
  readonly try: number;
  /** The number of the try before, which this try repairs or continues. */
  readonly previous?: number;
  readonly purpose: PlanTryPurpose;
  readonly model: string;
  readonly template: { readonly id: string; readonly version: number };
  readonly temperature?: number;
  readonly seed?: number;
  /** The messages, as JSON text. */
  readonly prompt: string;
  readonly output: string;
  readonly latencyMs: number;
  readonly usage?: Usage;
  /** `unreadable`: no plan was found in the reply. `failed`: the model gave no reply. */
  readonly result: 'valid' | 'unreadable' | 'invalid' | 'forbidden' | 'failed';
  readonly faults: readonly PlanFault[];
}

export type Remark<T extends RemarkType = RemarkType> = { [K in T]: { readonly type: K } & RemarkPayloads[K] }[T];

// Whether a value is a remark. Any other value must not become an event, because readers of events go by the type.

/** What one remark of a planner's own may have as its data, in bytes of JSON. */
const MAX_OWN_REMARK_BYTES = 32_768;
/** Remarks of a planner's own that one move may have. */
export const MAX_OWN_REMARKS = 100;

type Field = (value: Json | undefined) => boolean;
type KnownType = Exclude<RemarkType, OwnRemarkType>;

const text: Field = (value) => typeof value === 'string';
const number: Field = (value) => typeof value === 'number';
const told: Field = (value) => isJsonObject(value) && text(value['code']) && text(value['message']);
const listOf =
  (item: Field): Field =>
  (value) =>
    Array.isArray(value) && value.every(item);
const maybe =
  (field: Field): Field =>
  (value) =>
    value === undefined || field(value);

const isSource: Field = (value) => {
  if (!isJsonObject(value)) return false;
  if (value['type'] === 'url') return text(value['url']) && maybe(text)(value['title']);
  const { type, title, mediaType, filename } = value;
  return type === 'document' && text(title) && text(mediaType) && maybe(text)(filename);
};

/** What readers take for granted of each remark of ours. */
const FIELDS: { readonly [K in KnownType]: { readonly [F in keyof RemarkPayloads[K]]-?: Field } } = {
  'planner.repair_guidance_injected': { tier: text, counter: text, count: number },
  'planner.repair_exhausted': { attempts: number, consecutiveArgFailures: number, reasons: listOf(text) },
  'planner.action_extra_field_dropped': { field: text },
  'planner.reply_repaired': { issues: listOf(told) },
  'planner.remark_dropped': { remark: text, why: text },
  'model.fallback': { from: text, to: text, error: told },
  'model.output_downgraded': { model: text, from: text, to: text },
  'model.usage_refused': { model: text, why: text },
  'model.warned': { model: text, warnings: listOf(text) },
  'model.sources': { model: text, sources: listOf(isSource) },
  'plan.retrieved': { documents: number, tokens: number, cut: number, error: maybe(told) },
  'plan.try': {
    try: number,
    previous: maybe(number),
    purpose: text,
    model: text,
    template: (value) => isJsonObject(value) && text(value['id']) && number(value['version']),
    temperature: maybe(number),
    seed: maybe(number),
    prompt: text,
    output: text,
    latencyMs: number,
    usage: maybe((value) => readUsage(value).wrong === undefined),
    result: text,
    faults: listOf(told),
  },
  'plan.verified': {
    candidates: number,
    valid: number,
    chosen: maybe(number),
    scores: maybe(listOf((value) => value === null || number(value))),
    rejected: maybe(listOf((value) => isJsonObject(value) && number(value['try']) && text(value['reason']))),
    error: maybe(told),
  },
  'plan.fallback': { because: text, faults: listOf(told), planner: maybe(text) },
  'input.unreadable': { artifactRef: text, fileName: maybe(text) },
};

/** A name of somebody, a slash, and a name of theirs: letters, digits, and `.`, `_`, `-`, with further slashes between. */
const OWN_TYPE = /^[A-Za-z0-9][\w.-]*(?:\/[\w.-]+)+$/;
const MAX_TYPE_CHARS = 100;

/** Why `value` is not a remark, and what to write instead; `undefined` when it is a remark. */
export function whyNoRemark(value: Json): string | undefined {
  const type = isJsonObject(value) ? value['type'] : undefined;
  if (!isJsonObject(value) || typeof type !== 'string') {
    return 'A remark is an object with a type. Write { type: "yourname/what.happened", data }.';
  }
  if (isKnown(type)) return whyMisshapen(type, value);
  if (OWN_TYPE.test(type) && type.length <= MAX_TYPE_CHARS) return whyNotOwn(value);
  return (
    `${JSON.stringify(shortened(type))} is neither a remark type of Pilotage nor a name with a slash. Write { type: "yourname/what.happened", ` +
    `data }, with letters, digits, ".", "_" and "-", ${MAX_TYPE_CHARS} characters at most.`
  );
}

/** How `planner.remark_dropped` names what was dropped. */
export function remarkName(value: Json | undefined): string {
  const type = isJsonObject(value) ? value['type'] : undefined;
  return typeof type === 'string' ? shortened(type) : '';
}

export function isOwnRemark(remark: Remark): remark is Remark<OwnRemarkType> {
  return !isKnown(remark.type);
}

function isKnown(type: string): type is KnownType {
  return Object.hasOwn(FIELDS, type);
}

function whyMisshapen(type: KnownType, remark: JsonObject): string | undefined {
  const fields: Readonly<Record<string, Field>> = FIELDS[type];
  const wrong = Object.keys(fields).find((name) => fields[name]?.(remark[name]) === false);
  return wrong === undefined
    ? undefined
    : `The field ${wrong} of the remark is missing, or has the wrong type for ${type}.`;
}

function whyNotOwn({ type: _, data, ...rest }: JsonObject): string | undefined {
  const [other] = Object.keys(rest);
  if (other !== undefined)
    return `The remark has the field ${JSON.stringify(shortened(other))}; only type and data are kept. Put everything into data.`;
  if (data === undefined) return 'The remark has no data. Give a JSON value, or null.';
  const bytes = encodedBytes(data);
  if (bytes <= MAX_OWN_REMARK_BYTES) return undefined;
  return `The data of the remark has ${bytes} bytes of JSON; the most is ${MAX_OWN_REMARK_BYTES}. Give less, or a reference to the rest.`;
}

function shortened(name: string): string {
  return name.slice(0, MAX_TYPE_CHARS);
}
