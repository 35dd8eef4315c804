/** Policy, gate and rules against a plain model of what a call comes to. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Caller, local, type PolicyAnswer, type Remember } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { call, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';

const USERS = ['ana', 'bea', 'cem'] as const;
const caller = (user: (typeof USERS)[number], session: string): Caller => ({
  tenant: 'local',
  user,
  session,
  scope: 'admin',
});

interface Turn {
  readonly session: 'a' | 'b';
  readonly sum: number;
  readonly policy: 'allow' | 'deny' | 'ask' | 'another' | 'two';
  readonly hasGate: boolean;
  readonly who: (typeof USERS)[number];
  readonly isYes: boolean;
  readonly remember?: Remember;
}

const small = { type: 'object', properties: { sum: { type: 'number', maximum: 1 } } } as const;
const turn: fc.Arbitrary<Turn> = fc.record(
  {
    session: fc.constantFrom('a' as const, 'b' as const),
    sum: fc.integer({ min: 0, max: 2 }),
    policy: fc.constantFrom('allow' as const, 'deny' as const, 'ask' as const, 'another' as const, 'two' as const),
    hasGate: fc.boolean(),
    who: fc.constantFrom(...USERS),
    isYes: fc.boolean(),
    remember: fc.record({
      scope: fc.constantFrom('run' as const, 'session' as const, 'user' as const),
      match: fc.constantFrom('exact' as const, 'tool' as const, small),
    }),
  },
  { requiredKeys: ['session', 'sum', 'policy', 'hasGate', 'who', 'isYes'] },
);

const ANSWERS: Readonly<Record<Turn['policy'], PolicyAnswer>> = {
  allow: 'allow',
  deny: { deny: 'no' },
  ask: { ask: 'may it?' },
  another: { ask: 'may it?', approver: 'another' },
  two: { ask: 'may it?', approvals: 2 },
};

interface Rule extends Remember {
  readonly session: string;
  readonly sum: number;
  readonly by: string;
  readonly isYes: boolean;
}

/** Each turn is a run of one call, so that no rule of a run alone ever answers. */
function modelled({ session, sum, policy, hasGate }: Turn, rules: readonly Rule[]): 'made' | 'refused' | 'asked' {
  if (policy === 'deny') return 'refused';
  if (policy === 'allow' && !hasGate) return 'made';
  const fits = rules.filter(
    (rule) =>
      rule.scope !== 'run' &&
      (rule.scope === 'user' || rule.session === session) &&
      (rule.match === 'tool' || (rule.match === 'exact' ? rule.sum === sum : sum <= 1)),
  );
  if (fits.some(({ isYes }) => !isYes)) return 'refused';
  const people = new Set(fits.map(({ by }) => by));
  if (policy === 'another') people.delete('ana');
  return people.size >= (policy === 'two' ? 2 : 1) ? 'made' : 'asked';
}

describe('what a call comes to', () => {
  it('is what the plain model says, whatever was remembered before', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 8 }), async (turns) => {
        const journal = memoryJournal();
        const rules: Rule[] = [];
        for (const each of turns) {
          const made: unknown[] = [];
          const tool = make('pay', () => made.push(1), { needsApproval: each.hasGate, effect: 'once' });
          const planner = { name: 'pays', next: script(call('pay', { sum: each.sum })) };
          const runtime = createRuntime({ planner, tools: [tool], policy: () => ANSWERS[each.policy], journal });
          const run = await runtime.start('q', { identity: local('ana', { session: each.session }) });
          const { status } = await run.result();
          const came = status === 'paused' ? 'asked' : made.length > 0 ? 'made' : 'refused';
          expect(came).toBe(modelled(each, rules));
          if (came === 'asked') {
            const handle = runtime.run(run.id, { as: caller(each.who, each.session) });
            const { remember } = each;
            const said = { ...(remember === undefined ? {} : { remember }) };
            const isOwn = each.isYes && each.policy === 'another' && each.who === 'ana';
            if (isOwn)
              await expect(handle.approve(undefined, said)).rejects.toMatchObject({ code: 'approver_refused' });
            else {
              await (each.isYes ? handle.approve(undefined, said) : handle.reject(undefined, said));
              if (remember !== undefined) {
                rules.push({ ...remember, session: each.session, sum: each.sum, by: each.who, isYes: each.isYes });
              }
            }
          }
          await runtime.close();
        }
      }),
      { numRuns: 30 },
    );
  });
});
