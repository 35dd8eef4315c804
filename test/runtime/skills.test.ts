/** Skills: what a planner and a tool can look up, and how a model finds those that it is not shown. */
import { describe, expect, it } from 'vitest';
import { type Skill, type SkillView, skillView } from '#core';
import { react } from '#planners/react';
import { scriptedModel } from '#testing';
import { call, script, watched } from '../kit/decisions.ts';
import { observations } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const SKILLS: readonly Skill[] = [
  { name: 'refunds', title: 'Refund an order', steps: ['Look up the order.', 'Pay back.'] },
  { name: 'returns', title: 'Take back an order', description: 'With a label for the parcel.' },
  { name: 'greeting', title: 'Say hello' },
];
const many = [
  ...SKILLS,
  ...Array.from({ length: 4 }, (_, index): Skill => ({ name: `s${index}`, title: `Skill ${index}` })),
];

describe('the skills of a view', () => {
  const skills = skillView(SKILLS);

  it('PC-20 gives nothing for what is not there, and no error', () => {
    expect(skills.get('absent')).toBeUndefined();
    expect(skills.search('aeroplane')).toEqual([]);
    for (const nothing of ['', '   ', '…']) expect(skills.search(nothing)).toEqual([]);
    expect(skillView().list()).toEqual([]);
    expect(skillView().get('refunds')).toBeUndefined();
  });

  it('PC-20 scores from 0 to 1, the best first', () => {
    for (const query of [
      'refund an order',
      'ORDER parcel',
      'refunds',
      'order order order',
      'say hello to the parcel',
    ]) {
      const hits = skills.search(query);
      expect(hits.length).toBeGreaterThan(0);
      for (const { score } of hits) {
        expect(score).toBeGreaterThan(0);
        expect(score).toBeLessThanOrEqual(1);
      }
      expect(hits.map(({ score }) => score)).toEqual(hits.map(({ score }) => score).sort((a, b) => b - a));
    }
    expect(skills.search('refund').map(({ skill }) => skill.name)).toEqual(['refunds']);
    expect(skills.search('order parcel').map(({ skill }) => skill.name)).toEqual(['returns', 'refunds']);
    expect(skills.search('order', 1)).toHaveLength(1);
  });

  it('PC-20 are what a planner is given, and a tool', async () => {
    let seen: SkillView | undefined;
    const looks = make('looks', (_, context) => {
      seen = context.skills;
      return null;
    });
    const planner = watched(script(call('looks')));
    const made = world({ planner, tools: [looks] });
    await (await start(made, { context: { skills: SKILLS } })).result();
    for (const view of [planner.views[0]?.skills, seen]) {
      expect(view?.list()).toEqual(SKILLS);
      expect(view?.get('greeting')).toEqual(SKILLS[2]);
    }
    const without = watched(script());
    await (await start(world({ planner: without }))).result();
    expect(without.views[0]?.skills.search('order')).toEqual([]);
  });
});

describe('skill_search and skill_get', () => {
  it('DT-12 are listed for a run with more skills than are shown, and are unknown to any other', async () => {
    for (const [skills, listed] of [
      [many, ['look', 'skill_search', 'skill_get']],
      [many.slice(0, 5), ['look']],
    ] as const) {
      const planner = watched(script(call('skill_get', { name: 'refunds' })));
      const made = world({ planner, tools: [make('look', () => null)] });
      const run = await start(made, { context: { skills } });
      await run.result();
      expect(planner.views[0]?.tools.list().map(({ name }) => name)).toEqual(listed);
      expect(planner.views[0]?.tools.all().some(({ name }) => name === 'skill_get')).toBe(listed.length > 1);
      const [observed] = observations(await run.state());
      expect(observed).toMatchObject(
        listed.length > 1 ? { ...SKILLS[0], found: true } : { error: { code: 'tool_not_found' } },
      );
    }
  });

  it('DT-12 answer softly when there is nothing', async () => {
    const decisions = [
      call('skill_get', { name: 'absent' }),
      call('skill_search', { query: 'aeroplane' }),
      call('skill_search', { query: 'order', limit: 1 }),
      call('skill_search', {}),
    ];
    const made = world({ planner: script(...decisions) });
    const run = await start(made, { context: { skills: many } });
    await run.result();
    expect(observations(await run.state())).toMatchObject([
      { name: 'absent', found: false, error: 'There is no skill of this name.' },
      { skills: [], count: 0 },
      { skills: [{ name: 'refunds', title: 'Refund an order', score: 1 }], count: 1 },
      { count: 7 },
    ]);
  });

  it('DT-12 a model is told of them where it is not shown all, and goes on with what it found', async () => {
    const model = scriptedModel([
      { calls: [{ id: 'a', tool: 'skill_search', args: { query: 'skill 3' } }] },
      { calls: [{ id: 'b', tool: 'skill_get', args: { name: 's3' } }] },
      { text: 'Done.' },
    ]);
    const made = world({ planner: react({ model }) });
    const run = await start(made, { context: { skills: many } });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain('These are 5 of 7: find others with skill_search');
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toContain('skill_get');
    expect(observations(await run.state())[1]).toEqual({ name: 's3', title: 'Skill 3', found: true });
    expect(await run.replay()).toMatchObject({ run: run.id });
  });
});
