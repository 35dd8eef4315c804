/** What a planner tells about the making of a move. Each remark is recorded with the move and read back as an event. */
import type { ErrorData } from './errors.ts';

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
  /** An attachment could not be read; the request says so. */
  'input.unreadable': { readonly artifactRef: string; readonly fileName?: string };
}

export type RemarkType = keyof RemarkPayloads;

const TYPES: Readonly<Record<RemarkType, true>> = {
  'planner.repair_guidance_injected': true,
  'planner.repair_exhausted': true,
  'planner.action_extra_field_dropped': true,
  'planner.reply_repaired': true,
  'model.fallback': true,
  'model.output_downgraded': true,
  'input.unreadable': true,
};

export function isRemarkType(type: unknown): type is RemarkType {
  return typeof type === 'string' && Object.hasOwn(TYPES, type);
}

export type Remark<T extends RemarkType = RemarkType> = { [K in T]: { readonly type: K } & RemarkPayloads[K] }[T];
