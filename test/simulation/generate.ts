/** From a seed to what is played. */
import { CONTROL_TYPES, type ControlType, type Limits } from '#core';
import { Dice } from './dice.ts';
import { withApprovals } from './generate-approvals.ts';
import { withBackground } from './generate-background.ts';
import { withCalendar } from './generate-calendar.ts';
import { withHeld } from './generate-held.ts';
import { PlanWriter } from './generate-plans.ts';
import {
  conversing,
  flowsOf,
  forkAct,
  howItRemembers,
  ofOthers,
  progressGuard,
  reader,
  rootMaterial,
} from './generate-plays.ts';
import { withScene } from './generate-scenes.ts';
import { withStarts } from './generate-starts.ts';
import { withStreams } from './generate-streams.ts';
import { withTalks } from './generate-talks.ts';
import { withUndo } from './generate-undo.ts';
import { withUndoBelow } from './generate-undo-below.ts';
import { WaitWriter } from './generate-waits.ts';
import { generateWorld } from './generate-world.ts';
import type { Act, Fault, Root, Sender, SimulationScript } from './script.ts';
import { SimulatedTime } from './time.ts';

export function generateScript(seed: number): SimulationScript {
  const dice = new Dice(seed);
  const workers = dice.pick([1, 2, 2, 2, 3]);
  const flows = flowsOf(dice);
  const waits = WaitWriter.of(seed);
  const plans = new PlanWriter(dice, flows, waits);
  const simulated = dice.list(1, 3, (index) => root(dice, index, workers, plans));
  const alone = ofOthers(dice, simulated, flows, () => plans.writeErrands());
  const memory = howItRemembers(dice);
  const roots = 'memory' in memory ? conversing(dice, alone) : alone;
  const wakeMode = dice.pick(['push', 'push', 'poll', 'hybrid'] as const);
  const leaseMs = dice.pick([600, 1_500, 3_000]);
  const slots = dice.pick([1, 2, 10, 10]);
  const around = generateWorld({ seed, workers, leaseMs, roots });
  const scene = withScene({
    seed,
    workers,
    wakeMode,
    leaseMs,
    slots,
    slotsPerTenant: dice.chance(0.3) ? dice.between(1, Math.min(slots, 2)) : slots,
    upgrades: dice.chance(0.15) && around.world.versions === undefined,
    delays: { chance: dice.pick([0, 0.2, 0.5]), maxMs: dice.pick([10, 60, 60, 300]) },
    plans: plans.plans,
    flows,
    roots,
    acts: [
      ...dice.list(0, dice.pick([1, 4, 10]), () => act(dice, roots, workers)),
      ...(waits?.acts(roots, workers) ?? []),
    ].sort((a, b) => a.at - b.at),
    signals: waits?.signals(roots, workers) ?? [],
    faults: [...dice.list(0, dice.pick([0, 1, 4, 8]), () => fault(dice, workers)), ...around.faults],
    world: around.world,
    forks: dice.chance(0.2) ? dice.list(1, 3, (index) => forkAct(dice, roots, index, workers)) : [],
    readers: dice.chance(0.3) ? dice.list(1, 4, () => reader(dice, roots, workers)) : [],
    ...memory,
    ...progressGuard(dice),
    ...dice.maybe(0.1, () => ({ compactEvery: dice.between(1, 3) })),
  });
  const more = withUndoBelow(withStarts(withApprovals(withUndo(withCalendar(scene)))));
  return withTalks(withBackground(withHeld(withStreams(more))));
}

function root(dice: Dice, index: number, workers: number, plans: PlanWriter): Root {
  return {
    run: `r${index}`,
    tenant: dice.pick(['t0', 't0', 't1']),
    user: dice.pick(['ann', 'ann', 'bob']),
    session: dice.pick(['s', 's', 'z']),
    plan: plans.write(0),
    at: index === 0 ? 0 : dice.between(0, 800),
    worker: dice.between(0, workers - 1),
    priority: dice.between(-2, 2),
    limits: limits(dice),
    ...rootMaterial(dice),
    ...dice.maybe(0.15, () => ({ twin: { worker: dice.between(0, workers - 1), afterMs: dice.between(0, 400) } })),
    ...dice.maybe(0.5, () => ({ watcher: dice.between(0, workers - 1) })),
  };
}

const START_MS = new SimulatedTime().startedAt;

function limits(dice: Dice): Limits {
  return {
    ...dice.maybe(0.6, () => ({ steps: dice.between(1, 14) })),
    ...dice.maybe(0.5, () => ({ costUsd: dice.pick([0.00005, 0.0001, 0.00025, 0.0004, 0.0007, 0.001, 0.002, 0.003]) })),
    ...dice.maybe(0.15, () => ({ calls: dice.between(0, 6) })),
    ...dice.maybe(0.15, () => ({ tokens: dice.pick([0, 100, 400, 1_000, 2_000, 3_000]) })),
    ...dice.maybe(0.15, () => ({ deadlineAt: START_MS + dice.between(200, 8_000) })),
    ...dice.maybe(0.2, () => ({ onCeiling: 'pause' as const })),
  };
}

const ANSWERS: readonly ControlType[] = ['APPROVE', 'REJECT', 'RESUME', 'ANSWER'];

function act(dice: Dice, roots: readonly Root[], workers: number): Act {
  const type = dice.chance(0.55)
    ? dice.pick(['APPROVE', 'APPROVE', 'REJECT', 'RESUME', 'ANSWER'] as const)
    : anyControl(dice);
  const answers = ANSWERS.includes(type);
  return {
    at: dice.between(0, dice.pick([800, 5_000])),
    root: roots[dice.between(0, roots.length - 1)]?.run ?? '',
    task: dice.pick([0, 0, dice.between(0, 5)]),
    type,
    from: sender(dice),
    ...dice.maybe(0.4, () => ({ worker: dice.between(0, workers - 1) })),
    ...(answers ? dice.maybe(0.85, () => ({ pause: dice.between(0, 2) })) : {}),
    ...(answers ? dice.maybe(0.3, () => ({ atRoot: true as const })) : {}),
    ...(type === 'APPROVE' ? dice.maybe(0.5, () => ({ args: dice.pick(['fit', 'fit', 'misfit'] as const) })) : {}),
    ...dice.maybe(0.2, () => ({ again: dice.between(0, 300) })),
    ...(type === 'CANCEL' ? dice.maybe(0.4, () => ({ soft: true as const })) : {}),
  };
}

function anyControl(dice: Dice): ControlType {
  return dice.pick(CONTROL_TYPES);
}

function sender(dice: Dice): Sender {
  return dice.pick([
    'program',
    'program',
    'program',
    'owner',
    'owner',
    'guest',
    'colleague',
    'admin',
    'admin',
    'stranger',
  ]);
}

function fault(dice: Dice, workers: number): Fault {
  const worker = dice.between(0, workers - 1);
  const landed = dice.chance(0.5);
  const downMs = dice.pick([0, 50, 700, 3_500]);
  const at = dice.between(0, dice.pick([800, 4_000]));
  // Most histories are over after some dozens of operations.
  const operation = dice.pick([dice.between(0, 20), dice.between(0, 40), dice.between(0, 80)]);
  switch (dice.pick(['crash', 'crash', 'stall', 'stall', 'store', 'store', 'kill', 'freeze', 'deploy'])) {
    case 'crash':
      return { kind: 'crash', worker, operation, landed, downMs };
    case 'stall':
      return { kind: 'stall', worker, operation, ms: dice.pick([300, 1_700, 4_000]) };
    case 'store':
      return {
        kind: 'store',
        worker,
        operation,
        landed,
        times: dice.between(1, 3),
        ...dice.maybe(0.3, () => ({ stallMs: dice.pick([700, 4_000]) })),
      };
    case 'freeze':
      return { kind: 'freeze', worker, call: dice.between(0, 8), ms: dice.pick([700, 1_700, 4_000]) };
    case 'kill':
      return { kind: 'kill', worker, call: dice.between(0, 8), landed, downMs };
    default:
      return { kind: 'deploy', worker, at };
  }
}
