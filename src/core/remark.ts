/** Remarks: what a planner tells about how it made a move. Each remark is recorded with the move and read back as an event. */
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
  /** The model could not produce output by a schema in the way that it was asked to. */
  'model.output_downgraded': { readonly model: string; readonly from: OutputMode; readonly to: OutputMode };
  /** A provider reported usage that cannot be true. An estimate was used instead. */
  'model.usage_refused': { readonly model: string; readonly why: string };
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
