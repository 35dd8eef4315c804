/** What a runtime lends to the drivers of its runs. */
import type { Clock } from '../core/clock.ts';
import type { Planner } from '../core/planner.ts';
import type { ArtifactStore, Journal } from '../journal/port.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import type { NoticeHub } from './notices.ts';

export interface DriverDeps {
  readonly journal: Journal;
  readonly artifacts: ArtifactStore;
  readonly planner: Planner;
  readonly clock: Clock;
  readonly hub: NoticeHub;
  /** The tools of a run. `hasArtifacts`: the reader of stored results is listed too. */
  toolsOf(scopes: readonly string[], hasArtifacts: boolean): AuthorisedTools;
  newToken(): string;
  /** A fault that ends nothing but must be seen. */
  onFault(error: unknown): void;
}
