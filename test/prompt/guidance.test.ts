import { describe, expect, it } from 'vitest';
import { GUIDANCE, guidanceTurn, note, systemPrompt, tierOf } from '#prompt';
import { runView, toolView } from '#testing';
import { textOf } from '../kit/messages.ts';
import { TOOLS } from '../kit/tool-schemas.ts';

describe('guidance', () => {
  it('RP-15 rises with the count', () => {
    expect([0, 1, 2, 3, 4, 100].map(tierOf)).toEqual([
      ...[undefined, 'reminder', 'warning', 'critical', 'critical', 'critical'],
    ]);
  });

  it('RP-15, RP-16 has a block and a remark for each counter, in a fixed order', () => {
    const turn = guidanceTurn({ reply: 5, multi_action: 3, args: 2, finish: 1 });
    expect(turn?.message.role).toBe('user');
    expect(turn === undefined ? '' : textOf(turn.message)).toBe(
      note(
        [GUIDANCE.finish.reminder, GUIDANCE.args.warning, GUIDANCE.multi_action.critical, GUIDANCE.reply.critical].join(
          '\n\n',
        ),
      ),
    );
    expect(turn?.remarks).toEqual([
      { type: 'planner.repair_guidance_injected', tier: 'reminder', counter: 'finish', count: 1 },
      { type: 'planner.repair_guidance_injected', tier: 'warning', counter: 'args', count: 2 },
      { type: 'planner.repair_guidance_injected', tier: 'critical', counter: 'multi_action', count: 3 },
      { type: 'planner.repair_guidance_injected', tier: 'critical', counter: 'reply', count: 5 },
    ]);
  });

  it('a run that makes no progress is told so first, in plain words, without a remark', () => {
    const turn = guidanceTurn({ args: 1 }, { period: 2, times: 3 });
    const text = turn === undefined ? '' : textOf(turn.message);
    const [first, second] = text.slice('<runtime_note>\n'.length, -'\n</runtime_note>'.length).split('\n\n');
    expect(first).toMatch(/^reminder: your last 6 steps made the same calls 3 times over, and got the same results/);
    expect(first).not.toMatch(/[_`<>{}]|JSON/);
    expect(second).toBe(GUIDANCE.args.reminder);
    expect(turn?.remarks).toHaveLength(1);
    expect(guidanceTurn({}, { period: 1, times: 3 })?.remarks).toEqual([]);
  });

  it('RP-16 has nothing to say without a fault', () => {
    expect(guidanceTurn({ finish: 0, args: 0, multi_action: 0, reply: 0 })).toBeUndefined();
    expect(guidanceTurn({})).toBeUndefined();
  });

  it("RP-17, W45 the texts are golden; each opens with its tier's name", async () => {
    const texts = Object.values(GUIDANCE).flatMap((tiers) => Object.entries(tiers));
    for (const [tier, text] of texts) expect(text.startsWith(`${tier}: `)).toBe(true);
    expect(new Set(texts.map(([, text]) => text)).size).toBe(12);
    await expect(texts.map(([, text]) => text).join('\n')).toMatchFileSnapshot('golden/guidance.txt');
  });

  it('RP-17 they name no tool, no section, no field and no form of a call: nothing that a run may lack', () => {
    const view = runView({ tools: toolView(TOOLS) });
    const sections = [...systemPrompt({ converse: false, tasks: true }, view, 'text').matchAll(/<(\w+_\w+)>/g)].map(
      ([, tag]) => tag,
    );
    expect(sections.length).toBeGreaterThan(3);
    for (const text of Object.values(GUIDANCE).flatMap((tiers) => Object.values(tiers))) {
      for (const name of sections) expect(text).not.toContain(name);
      expect(text).not.toMatch(/[_`<>{}]|JSON/);
    }
  });
});
