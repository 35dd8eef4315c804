import { expect, it } from 'vitest';
import { generateScript } from '../simulation/generate.ts';
import type { Plan, SimulationScript } from '../simulation/script.ts';
import { shrink } from '../simulation/shrink.ts';

const calls = (tool: string, plan: string): Plan => ({
  moves: [{ decision: { kind: 'call_tool', tool, args: { id: 'c1', plan } } }],
});

it('leaves the plans of those who start under a name that is taken, and of calls that runs carry out', async () => {
  const script = generateScript(1);
  const clash = {
    at: 0,
    worker: 0,
    tenant: 't1',
    user: 'bob',
    session: 's',
    plan: 'clashing',
    kind: 'id',
    run: 'r0',
  } as const;
  const root = { ...script.roots[0], plan: 'own' } as SimulationScript['roots'][number];
  const whole: SimulationScript = {
    ...script,
    roots: [root],
    world: { ...script.world, clashes: [clash] },
    plans: { own: { moves: [] }, clashing: calls('carry', 'carried'), carried: { moves: [] }, nobodys: { moves: [] } },
  };
  const short = await shrink(
    whole,
    async ({ world, plans }) => world.clashes.length === 1 && plans['clashing'] === whole.plans['clashing'],
  );
  expect(Object.keys(short.plans).sort()).toEqual(['carried', 'clashing', 'own']);
});
