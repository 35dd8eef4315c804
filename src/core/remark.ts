/** What a planner tells about the making of a move. Each remark is recorded with the move and read back as an event. */
import type { ErrorData } from './errors.ts';
import type { Json } from './json-type.ts';
import type { Usage } from './usage.ts';

export type RepairTier = 'reminder' | 'warning' | 'critical';
export type RepairCounter = 'finish' | 'args' | 'multi_action' | 'reply';
export type OutputMode = 'json_schema' | 'json_object' | 'text';

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
  /** The model could not keep to a schema in the way asked for. */
  'model.output_downgraded': { readonly model: string; readonly from: OutputMode; readonly to: OutputMode };
  /** A provider said of what a call used what cannot be. It was estimated in its place. */
  'model.usage_refused': { readonly model: string; readonly why: string };
  /** What was looked up for the prompt of a plan. With an error the plan is made without. */
  'plan.retrieved': {
    readonly documents: number;
    /** Estimated. */
    readonly tokens: number;
    /** Documents that were left out or shortened, to keep to their share. */
    readonly cut: number;
    readonly error?: ErrorData;
  };
  /** One call of a model on the way to a plan, whatever came of it. Prompt and output have passed through the redaction. */
  'plan.try': PlanTry;
  /** Of `candidates` plans the verifier chose one, or rejected all. With an error the first valid one was taken, unverified. */
  'plan.verified': {
    readonly candidates: number;
    readonly valid: number;
    /** The number of the try that gave it. Absent: all were rejected. */
    readonly chosen?: number;
    /** Of the valid ones, in their order; null for one that was rejected. */
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
  /** The planner remarked something that is no remark. `remark` is its type as far as it had one, at most 100 characters. */
  'planner.remark_dropped': { readonly remark: string; readonly why: string };
  /** An event of the planner's own: a name with a slash, such as `acme/plan.scored`, and whatever it has to say. */
  [own: OwnRemarkType]: { readonly data: Json };
}

export type OwnRemarkType = `${string}/${string}`;
export type RemarkType = keyof RemarkPayloads;

/** What is wrong with a plan. */
export interface PlanFault {
  readonly code: string;
  readonly message: string;
  /** The id of the step that it is about. */
  readonly step?: string;
  /** Of a cycle: the ids along it, the first again at the end. */
  readonly path?: readonly string[];
}

export type PlanTryPurpose = 'plan' | 'repair' | 'outline' | 'detail' | 'verify' | 'rest';

export interface PlanTry {
  /** From 1, within one move. */
  readonly try: number;
  /** The try before it, of which it is a repair or the next stage. */
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
  /** `unreadable`: no plan was found in it. `failed`: the model gave no reply. */
  readonly result: 'valid' | 'unreadable' | 'invalid' | 'forbidden' | 'failed';
  readonly faults: readonly PlanFault[];
}

export type Remark<T extends RemarkType = RemarkType> = { [K in T]: { readonly type: K } & RemarkPayloads[K] }[T];
