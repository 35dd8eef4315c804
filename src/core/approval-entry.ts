/** What is recorded of a question about a call beside that it was asked and answered. */
import type { Approver } from './approval.ts';
import type { AppliedRule } from './approval-rule.ts';
import type { ArtifactRef } from './artifact.ts';
import type { Caller } from './control.ts';
import type { Json, JsonObject } from './json.ts';
import type { Remembered } from './remember.ts';
import type { CallPlace } from './step.ts';

/** Somebody has approved a call of which more people have to: the pause stays open. */
export interface ApprovedOnce {
  readonly kind: 'approved';
  readonly token: string;
  readonly by?: Caller;
  /** What the approver said. */
  readonly payload?: JsonObject;
  /** Arguments in place of the call's own: whoever approves from now on approves these, and who has approved others does not count any more. */
  readonly args?: Json;
  /** That of these arguments. */
  readonly digest?: string;
  readonly remember?: Remembered;
  /** The artifact with the payload. */
  readonly stored?: ArtifactRef;
}
/** Nobody has answered the pause yet: whoever reads the run is told once more. */
export interface Reminded {
  readonly kind: 'reminded';
  readonly token: string;
  /** 1 for the first time. */
  readonly times: number;
}
/** Nobody has answered the pause for so long that somebody else is told. */
export interface Escalated {
  readonly kind: 'escalated';
  readonly token: string;
  readonly to: string;
  /** Who may approve from now on. */
  readonly approver?: Approver;
}
/** Rules answered for a call what people would have been asked. Durable before the call begins. */
export interface Ruled extends CallPlace {
  readonly kind: 'ruled';
  readonly verdict: 'approve' | 'reject';
  /** One; of a call that several people have to approve, a rule of each of them. */
  readonly rules: readonly AppliedRule[];
  /** The rejection of the call ends the run. */
  readonly ends?: true;
}
