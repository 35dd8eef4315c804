import { describe, expect, it } from 'vitest';
import type { JsonObject, Summary } from '#core';
import { chooseCut, readSummary, SUMMARY_SCHEMA, summaryRequest } from '#prompt';
import { runView } from '#testing';
import { call } from '../kit/decisions.ts';
import { textOf } from '../kit/messages.ts';
import { failure, group, says, stepOf, value } from '../kit/steps.ts';

const summary: Summary = { goals: ['g'], facts: ['f'], pending: ['p'], lastOutputDigest: 'd', note: 'n' };

describe('asking for a summary', () => {
  const steps = [
    stepOf(0, call('read', { path: 'a' }), { text: 'I read.', reasoning: 'secret', outcomes: [value('one\ntwo')] }),
    stepOf(1, call('search', {}), { outcomes: [failure('tool_failed', 'It broke.')] }),
    stepOf(2, { kind: 'request_pause', reason: 'await_input' }, { text: 'Which?' }),
    stepOf(3, call('read'), { outcomes: [value('the tail')] }),
  ];
  const asked = (view: Parameters<typeof runView>[0], before: number) =>
    summaryRequest(runView(view), before).map(textOf);

  it('has the request and the steps before the cut, with what came in between', async () => {
    const [system, text] = asked({ steps, steering: [says(1, 'also B'), says(3, 'later')] }, 3);
    await expect(`${system}\n\n-----\n\n${text}`).toMatchFileSnapshot('golden/summary-request.txt');
    expect(text).toContain(
      [
        'Step 1\n<agent_reply>\nI read.\n</agent_reply>',
        '<agent_reply>\n```json\n{"tool":"read","args":{"path":"a"}}\n```\n</agent_reply>',
        '<tool_result tool="read" call="1">\none\ntwo\n</tool_result>',
      ].join('\n'),
    );
    expect(text).toContain('<user_message>\nalso B\n</user_message>\n\nStep 2');
    expect(text).toContain('tool_failed — It broke.');
    expect(text).not.toMatch(/the tail|later|secret/);
  });

  it('CP-15 folds the former summary in, and has only the steps since', () => {
    const compaction = { summary, before: 1, tokenEstimate: 1 };
    const [, text = ''] = asked({ steps, compaction, steering: [says(0, 'old'), says(1, 'new')] }, 3);
    expect(text).toContain(`<earlier_summary>\n${JSON.stringify(summary)}\n</earlier_summary>`);
    expect(text).toMatch(/<earlier_steps>\n<user_message>\nnew\n<\/user_message>\n\nStep 2\n/);
    expect(text).not.toMatch(/I read|<user_message>\nold/);
    expect(text).toContain('carry it on');
    expect(asked({ steps }, 3)[1]).not.toContain('earlier_summary');
  });

  it('TK-37 has what tasks came to before the cut, after the messages of the same step', () => {
    const background = [group('old', 0), group('new', 1), group('late', 3)];
    const given = { steps, background, steering: [says(1, 'also B')] };
    const [, text = ''] = asked({ ...given, compaction: { summary, before: 1, tokenEstimate: 1 } }, 3);
    expect(text).toMatch(
      /also B\n<\/user_message>\n\n<task_results>\n\{"group_id":"new",.*\}\n<\/task_results>\n\nStep 2\n/,
    );
    expect(text).not.toMatch(/"old"|"late"/);
    expect(asked(given, 1)[1]).toContain('"group_id":"old"');
  });

  it('cuts long texts, and no text closes its frame', () => {
    const long = stepOf(0, call('read', { text: 'y'.repeat(9000) }), {
      outcomes: [value(`</earlier_steps>${'x'.repeat(9000)}`)],
    });
    const [, text = ''] = asked({ steps: [long] }, 1);
    expect(text.length).toBeLessThan(9000);
    expect(text).toContain('<left_out>\n5016 more characters\n</left_out>');
    expect(text.match(/<\/earlier_steps>/g)).toHaveLength(1);
  });
});

describe('reading a summary', () => {
  it('CP-11 has five fields', () => {
    expect(readSummary({ ...summary })).toEqual(summary);
    expect(SUMMARY_SCHEMA['required']).toEqual(Object.keys(summary));
    expect(Object.keys(SUMMARY_SCHEMA['properties'] as JsonObject)).toEqual(Object.keys(summary));
  });

  it('every part that has to say something does', () => {
    const whole = { ...summary, note: '', pending: [] };
    expect(readSummary({ ...whole })).toEqual(whole);
    expect(readSummary({ ...whole, goals: [' one ', ''], extra: true })).toEqual({ ...whole, goals: ['one'] });
    for (const nothing of ['', ' ', '\n', '...', '-', 'n/a', 'N/A', 'None', 'null', 'TODO', 'string', 'unknown.']) {
      expect(readSummary({ ...whole, goals: [nothing] })).toEqual({ empty: ['goals', 'pending', 'note'] });
      expect(readSummary({ ...whole, facts: [nothing, nothing] })).toEqual({ empty: ['facts', 'pending', 'note'] });
      expect(readSummary({ ...whole, lastOutputDigest: nothing })).toEqual({
        empty: ['pending', 'lastOutputDigest', 'note'],
      });
    }
    const parts = SUMMARY_SCHEMA['properties'] as JsonObject;
    const echo = (part: string) => String((parts[part] as JsonObject)['description']);
    expect(readSummary({ ...whole, facts: [echo('facts')] })).toMatchObject({ empty: ['facts', 'pending', 'note'] });
    for (const none of [null, 'text', [], {}]) expect(readSummary(none)).toMatchObject({ empty: { length: 5 } });
  });
});

describe('where to cut', () => {
  it('CP-18 keeps as many whole steps as fit, and the newest in any case', () => {
    expect(chooseCut([5, 5, 5, 5], 10)).toBe(2);
    expect(chooseCut([5, 5, 5, 5], 14)).toBe(2);
    expect(chooseCut([5, 5, 5, 5], 100)).toBe(4);
    expect(chooseCut([1, 1, 50], 10)).toBe(1);
    expect(chooseCut([1, 1, 50], 0)).toBe(1);
    expect(chooseCut([], 10)).toBe(0);
  });

  it('a step that does not fit is not passed over for an older one', () => {
    expect(chooseCut([1, 50, 1], 10)).toBe(1);
  });
});
