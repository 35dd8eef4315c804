/** What passes in runs and is not recorded, between this process and others on the same journal. */
import type { DriverDeps } from '../loop/driver-deps.ts';
import { PassingIn } from './passing-in.ts';
import { PassingOut } from './passing-out.ts';

export class Passing {
  readonly #in: PassingIn;
  readonly #out: PassingOut;

  /** @param fenceOf that of the lease under which a run is driven here; `undefined`: it is not. */
  constructor({ journal, clock, hub, redaction }: DriverDeps, fenceOf: (run: string) => number | undefined) {
    this.#in = new PassingIn({ journal, clock, hub, drives: (run) => fenceOf(run) !== undefined });
    this.#out = new PassingOut({ journal, clock, hub, redaction, fenceOf });
    hub.connect({
      isReadElsewhere: () => this.#out.isReadElsewhere,
      onRead: (run) => this.#in.begin(run),
      onUnread: (run) => this.#in.end(run),
    });
  }

  /** Runs will be driven here. Settles when it is known which are read elsewhere; `undefined`: it is known. */
  open(): Promise<void> | undefined {
    return this.#out.open();
  }

  /** The run is driven here from now on. */
  begins(run: string): void {
    this.#out.begins(run);
  }

  close(): void {
    this.#in.close();
    this.#out.close();
  }
}
