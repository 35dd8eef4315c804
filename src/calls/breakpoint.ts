/** Where a run stops before a call begins. */
import type { Branch, Paused } from '#core';
import { breakBefore, type OpenStep, type RunState } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';

interface Ports {
  readonly state: RunState;
  readonly deps: Pick<DriverDeps, 'newToken'>;
}

/** The pause at a breakpoint that stands before this call. */
export function stopBefore({ state, deps }: Ports, open: OpenStep, call: number, branch: Branch): Paused | undefined {
  if (state.breakpoints.length === 0) return undefined;
  const payload = breakBefore(state, open, call, branch);
  return payload && { kind: 'paused', token: deps.newToken(), reason: 'external_event', payload };
}
