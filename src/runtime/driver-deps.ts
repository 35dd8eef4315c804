/** What a runtime lends to the drivers of its runs. */
import type { Clock } from '../core/clock.ts';
import type { Planner } from '../core/planner.ts';
import type { ArtifactStore, Journal } from '../journal/port.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import type { NoticeHub } from './notices.ts';
import type { ProgressGuard } from './progress-guard.ts';

export interface DriverDeps {
  readonly journal: Journal;
  readonly artifacts: ArtifactStore;
  readonly planner: Planner;
  readonly clock: Clock;
  readonly hub: NoticeHub;
  /** The tools of a run. `found`: those that its calls made known, listed after the others. */
  toolsOf(scopes: readonly string[], found: readonly string[]): AuthorisedTools;
  readonly progress: ProgressGuard;
  newToken(): string;
  /** A run that was told something, or that was just stored: somebody has to drive it. */
  woke(run: string): void;
  /** Runs leave a turn to the later ones of their session. */
  readonly remembers: boolean;
  /** A fault that ends nothing but must be seen. */
  onFault(error: unknown): void;
}
