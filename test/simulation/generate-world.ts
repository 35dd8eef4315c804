/** From a seed to what is around the runs. */
import { Dice } from './dice.ts';
import { generateClashes } from './generate-clashes.ts';
import type { Fault, Root } from './script.ts';
import type { Home, OperationName, StoreErrorCode, Versions, WorldFault, WorldScript } from './script-world.ts';

interface Asked {
  readonly seed: number;
  readonly workers: number;
  readonly leaseMs: number;
  readonly roots: readonly Root[];
}

/** The faults go by dice of their own: what is played on the stage does not change with the world around it. */
export function generateWorld({ seed, workers, leaseMs, roots }: Asked): {
  readonly world: WorldScript;
  readonly faults: readonly Fault[];
} {
  const dice = new Dice(seed * 41 + 7);
  const skewed = dice.chance(0.4);
  const graceMs = dice.pick([30_000, 30_000, 2 * leaseMs]);
  const world: WorldScript = {
    aheadMs: Array.from({ length: workers }, () => (skewed ? dice.pick(SKEWS) : 0)),
    homes: homes(dice, workers),
    graceMs,
    journal: dice.chance(0.1) ? 'sqlite' : 'memory',
    clashes: generateClashes(dice, roots, workers),
    ...dice.maybe(workers > 1 ? 0.15 : 0, () => ({ versions: versions(dice) })),
  };
  if (dice.chance(0.4)) return { world, faults: [] };
  /** A worker's clocks are set, or its machine sleeps: no process can notice both at once. */
  const sleepers = Array.from({ length: workers }, () => dice.chance(0.5));
  const faults = dice.list(1, dice.pick([1, 3, 6]), () => {
    const worker = dice.between(0, workers - 1);
    return fault(dice, worker, sleepers[worker] === true, graceMs);
  });
  return { world, faults };
}

/** Seconds, some by less than a lease and some by more. */
const SKEWS: readonly [number, ...number[]] = [0, -400, 400, -2_500, 2_500, -20_000, 20_000];

function versions(dice: Dice): Versions {
  const migrates = dice.chance(0.4);
  const unknown = dice.chance(0.5)
    ? []
    : dice.list(1, 2, () => dice.pick(['paused', 'call_began', 'spawned', 'control', 'repinned'] as const));
  // A call that is not to be made twice is held until the turns that were replaced can be read; where no newer process takes runs over, for ever.
  return { migrates, unknown: migrates ? unknown : unknown.filter((kind) => kind !== 'call_began') };
}

function homes(dice: Dice, workers: number): Home[] {
  const together = dice.chance(0.6);
  const contained = dice.chance(0.3);
  const reusesPids = dice.chance(0.4);
  const reboots = dice.chance(0.2);
  return Array.from({ length: workers }, (_, index) => ({
    // Containers, and machines made of one image, have the same name too.
    host: together || dice.chance(0.4) ? 'here' : `host-${index}`,
    machine: together ? 0 : index,
    pidNamespace: contained ? `container-${index}` : 'all',
    reusesPids,
    // A machine that starts anew takes all of its processes along.
    reboots: reboots && !together,
  }));
}

function fault(dice: Dice, worker: number, sleeps: boolean, graceMs: number): Fault {
  const at = dice.between(0, dice.pick([800, 4_000]));
  switch (dice.pick(['clock', 'clock', 'freeze', 'refuse', 'refuse', 'refuse', 'cut', 'hearing', 'disk'])) {
    case 'clock':
      return sleeps
        ? { kind: 'sleep', worker, at, ms: dice.pick([700, 4_000, 9_000]) }
        : {
            kind: 'clock',
            worker,
            at,
            aheadMs: dice.pick([...SKEWS, -60_000, 60_000]),
            ...dice.maybe(0.5, () => ({ stallMs: dice.pick([700, 4_000]) })),
          };
    case 'freeze':
      return { kind: 'freeze', worker, call: dice.between(0, 6), ms: Math.floor(graceMs * dice.pick([0.4, 1.3])) };
    case 'refuse':
      return refusal(dice, worker);
    case 'disk':
      return {
        kind: 'disk',
        worker,
        at,
        ms: dice.pick([50, 700, 4_000]),
        trouble: dice.pick(['full', 'full', 'read_only']),
      };
    case 'cut':
      return { kind: 'cut', worker, at, downMs: dice.pick([50, 700, 3_500]) };
    default:
      return { kind: 'hearing', worker, at, ms: dice.pick([500, 3_000]), how: dice.pick(['late', 'twice']) };
  }
}

export const OPERATIONS: readonly [OperationName, ...OperationName[]] = [
  'artifact',
  'create',
  'append',
  'append',
  'claim',
  'renew',
  'release',
  'release',
  'signal',
  'read',
  'get',
  'inbox',
];

const REFUSALS: readonly [StoreErrorCode, ...StoreErrorCode[]] = [
  'journal_busy',
  'journal_full',
  'journal_read_only',
  'journal_unavailable',
  'journal_corrupt',
];

const AWAY: readonly [StoreErrorCode, ...StoreErrorCode[]] = ['journal_busy', 'journal_unavailable'];

function refusal(dice: Dice, worker: number): WorldFault {
  const on = dice.pick(OPERATIONS);
  // One that is damaged is known to be so, and does without.
  const code = dice.pick(on === 'artifact' ? AWAY : REFUSALS);
  return {
    kind: 'refuse',
    worker,
    on,
    nth: dice.pick([dice.between(0, 3), dice.between(0, 12)]),
    times: dice.pick([1, 1, 2, 3, 8]),
    code,
    // Of the others a store knows that nothing was written.
    landed: code === 'journal_unavailable' && dice.chance(0.5),
  };
}
