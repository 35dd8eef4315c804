import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '#core';
import { type PlanLine, PlanLines, type PlanReply, type ReadPlan, readPlan } from '#planners/pipeline';
import { split } from '#testing';

const PLAN = {
  planId: 'p1',
  steps: [
    { id: 's1', type: 'tool', toolId: 'search', input: { text: 'tides' } },
    { id: 's2', type: 'finish', input: { $from: 's1' } },
  ],
};
const EXAMPLE = { planId: 'example', steps: [{ id: 'find', type: 'tool', toolId: 'example_search', input: {} }] };
const json = JSON.stringify;

const said = (text: string, finish: PlanReply['finish'] = 'stop'): PlanReply => ({ text, calls: [], finish });
const called = (...inputs: readonly string[]): PlanReply => ({
  text: '',
  calls: inputs.map((input, index) => ({ callId: `c${index}`, tool: 'submit_plan', input })),
  finish: 'tool-calls',
});

function planOf(read: ReadPlan): unknown {
  if ('fault' in read) throw new Error(`${read.fault.code}: ${read.fault.message}`);
  return read.value;
}

function faultOf(read: ReadPlan): string {
  if ('fault' in read) return read.fault.code;
  throw new Error('There is a plan.');
}

const stepLine = (step: Json): string => json({ type: 'step', step });
const LINES = [...PLAN.steps.map(stepLine), '{"type":"finish"}'];

describe('a plan in a function call', () => {
  it('AG-19 is taken before any text', () => {
    const read = readPlan({ ...called(json(PLAN)), text: json(EXAMPLE) }, 'json');
    expect(read).toEqual({ value: PLAN, repaired: [] });
    expect(planOf(readPlan({ ...called(json(PLAN)), text: LINES.join('\n') }, 'ndjson'))).toEqual(PLAN);
  });

  it('AG-19 is read with repairs, and each is told', () => {
    const broken = json(PLAN).replace('"planId"', 'planId').replace(/]}$/, '],}');
    const read = readPlan(called(broken), 'json');
    expect(planOf(read)).toEqual(PLAN);
    expect(read).toHaveProperty('repaired.0.code', 'repaired');
  });

  it('AG-19 may hold its steps as text', () => {
    const read = readPlan(called(json({ planId: 'p1', steps: json(PLAN.steps) })), 'json');
    expect(planOf(read)).toEqual(PLAN);
    expect(read).toHaveProperty('repaired.0.code', 'coerced');
  });

  it('AG-20 keeps what the schema does not know: it may say an order', () => {
    const odd = { planId: 'p1', steps: [{ ...PLAN.steps[0], depends_on: ['s0'] }], note: 'n' };
    expect(planOf(readPlan(called(json(odd)), 'json'))).toEqual(odd);
  });

  it('W104 of several calls the last that has the shape counts', () => {
    expect(planOf(readPlan(called(json(EXAMPLE), json(PLAN)), 'json'))).toEqual(PLAN);
    expect(planOf(readPlan(called(json(PLAN), '{"planId":"x","steps":3}'), 'json'))).toEqual(PLAN);
  });

  it('that is no plan leaves the turn to the text', () => {
    const reply = { ...called('{"query":"tides"}'), text: `Here: ${json(PLAN)}` };
    expect(planOf(readPlan(reply, 'json'))).toEqual(PLAN);
    expect(readPlan({ ...reply, text: '' }, 'json')).toEqual({
      fault: { code: 'plan_unreadable', message: expect.stringContaining('submit_plan') },
    });
  });

  it('that is cut off is no plan, also when one was there before', () => {
    const cut = json(PLAN).slice(0, -20);
    expect(faultOf(readPlan(called(cut), 'json'))).toBe('plan_cut');
    expect(readPlan({ ...called(json(EXAMPLE), cut), finish: 'length' }, 'json')).toEqual({
      fault: { code: 'plan_cut', message: 'The plan ends before it is whole: the limit of output tokens was reached.' },
    });
  });
});

describe('a plan in a text', () => {
  it.each([
    ['alone', json(PLAN)],
    ['over several lines', JSON.stringify(PLAN, null, 2)],
    ['in a fence', `\`\`\`json\n${JSON.stringify(PLAN, null, 2)}\n\`\`\``],
    ['amid prose', `I will search {first}, then [finish].\n\n${json(PLAN)}\n\nThat's it: {done}. See [1].`],
    ['in an object around it', json({ thought: 'hm', plan: PLAN })],
    ['in a list', json([PLAN])],
    ['as a call in text', `<tool_call>\n${json({ name: 'submit_plan', arguments: PLAN })}\n</tool_call>`],
    ['after other JSON', `{"a":{"b":[1,2]}} ${json(PLAN)} {"usage":{"tokens":3}}`],
  ])('AG-19 is found %s', (_, text) => {
    expect(readPlan(said(text), 'json')).toEqual({ value: PLAN, repaired: [] });
  });

  it('AG-19 W104 an example that is repeated before the plan does not win', () => {
    const text = `The format is:\n\`\`\`json\n${json(EXAMPLE)}\n\`\`\`\nAnd so my plan is:\n\`\`\`json\n${json(PLAN)}\n\`\`\``;
    expect(planOf(readPlan(said(text), 'json'))).toEqual(PLAN);
  });

  it('AG-19 W104 nor does one that stands before a plan that is cut off', () => {
    const text = `For example ${json(EXAMPLE)}. Now mine: `;
    for (let length = 1; length < json(PLAN).length; length += 1) {
      expect(faultOf(readPlan(said(text + json(PLAN).slice(0, length), 'length'), 'json'))).toBe('plan_cut');
    }
    expect(planOf(readPlan(said(`${text}{"planId":"p1","steps":[{"id":"s1"`), 'json'))).toEqual({
      planId: 'p1',
      steps: [{ id: 's1' }],
    });
    expect(faultOf(readPlan(said(`${text}{"planId":"p1","steps":[{"id":"s`), 'json'))).toBe('plan_cut');
  });

  it('AG-19 W104 what fits the shape wins over what comes after and does not', () => {
    const text = `${json(PLAN)}\nIn short: {"steps": "two", "planId": 5}`;
    expect(planOf(readPlan(said(text), 'json'))).toEqual(PLAN);
  });

  it('AG-19 what a model thinks before it answers is no plan', () => {
    expect(planOf(readPlan(said(`${json(PLAN)}<think>or ${json(EXAMPLE)}?</think>`), 'json'))).toEqual(PLAN);
    expect(faultOf(readPlan(said(`<think>perhaps ${json(EXAMPLE)}</think> I cannot.`), 'json'))).toBe(
      'plan_unreadable',
    );
    expect(faultOf(readPlan(said(`perhaps ${json(EXAMPLE)}</think> I cannot.`), 'json'))).toBe('plan_unreadable');
  });

  it('AG-20 only its shape is looked at: what is wrong inside is left to the checks', () => {
    const bad = { planId: 'p1', steps: [{ id: 's1', type: 'dance' }, 5] };
    expect(planOf(readPlan(said(`Plan: ${json(bad)}`), 'json'))).toEqual(bad);
    const nodes = { nodes: { a: { id: 'a', type: 'tool', toolId: 't' } }, edges: { a: [] } };
    expect(planOf(readPlan(said(`${json(EXAMPLE)} ${json(nodes)}`), 'json'))).toEqual(nodes);
    expect(planOf(readPlan(said('{"planId":"p1","steps":[]}'), 'json'))).toEqual({ planId: 'p1', steps: [] });
  });

  it('AG-19 closing brackets that the model forgot are repaired', () => {
    const read = readPlan(said(json(PLAN).slice(0, -2)), 'json');
    expect(read).toEqual({ value: PLAN, repaired: [{ code: 'repaired', message: 'the text is not well-formed' }] });
  });

  it('AG-20 a list of steps without a plan around it is a plan, and told as repaired', () => {
    const read = readPlan(said(`My steps: ${json(PLAN.steps)}`), 'json');
    expect(planOf(read)).toEqual({ steps: PLAN.steps });
    expect(read).toHaveProperty('repaired', [
      { code: 'repaired', message: 'the steps are a list without the plan around it' },
    ]);
  });

  it('AG-19 broken JSON is repaired, and that is told', () => {
    const broken = `{planId: 'p1', "steps": [{"id": "s1", "type": "tool", "toolId": "search", "input": {"text": "tides"}}, // one
      {"id": "s2", "type": "finish", "input": {"$from": "s1"},},]}`;
    const read = readPlan(said(`Sure!\n${broken}`), 'json');
    expect(planOf(read)).toEqual(PLAN);
    expect(read).toHaveProperty('repaired', [{ code: 'repaired', message: 'the text is not well-formed' }]);
  });

  it('AG-19 lines are read where one object was asked for, and the other way round', () => {
    expect(planOf(readPlan(said(LINES.join('\n')), 'json'))).toEqual({ steps: PLAN.steps });
    expect(planOf(readPlan(said(`Here it is:\n${JSON.stringify(PLAN, null, 2)}`), 'ndjson'))).toEqual({
      steps: PLAN.steps,
    });
    const nodes = { nodes: { a: { id: 'a', type: 'tool' } } };
    expect(planOf(readPlan(said(json(nodes)), 'ndjson'))).toEqual(nodes);
  });

  it.each([
    ['', 'stop', 'plan_unreadable'],
    ['I would rather not.', 'stop', 'plan_unreadable'],
    ['{"answer": 42}', 'stop', 'plan_unreadable'],
    ['First I', 'length', 'plan_cut'],
    ['', 'interrupted', 'plan_cut'],
  ] as const)('AG-19 of %j, ended by %s, comes the fault %3$s', (text, finish, code) => {
    expect(faultOf(readPlan(said(text, finish), 'json'))).toBe(code);
    expect(faultOf(readPlan(said(text, finish), 'ndjson'))).toBe(code);
  });

  it('RP-23 the plan is found behind much text, and junk is read in bounded work', () => {
    const prose = 'Some words {with} [brackets], and "quotes". '.repeat(20_000);
    expect(planOf(readPlan(said(`${prose}${json(PLAN)}`), 'json'))).toEqual(PLAN);
    for (const piece of ['{', '[', '{"steps":', '[{"id":"a","type":"tool"},', '<think>', '{"a":{"b":', '"', '\n{']) {
      const read = readPlan(said(piece.repeat(Math.ceil(1_000_000 / piece.length))), 'json');
      expect(read).toHaveProperty('fault');
    }
  });

  it('RP-23 W104 where not all can be read, what was found first is no plan', () => {
    const hostile = `${json(EXAMPLE)}${'{"a":'.repeat(400_000)}${json(PLAN)}`;
    expect(faultOf(readPlan(said(hostile), 'json'))).toBe('plan_unreadable');
    expect(faultOf(readPlan(said(json(EXAMPLE) + ' '.repeat(4_000_000)), 'json'))).toBeDefined();
  });

  it('AG-19 it never throws', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      '\\',
      ',',
      ':',
      '\n',
      '`',
      '<think>',
      '</think>',
      'steps',
      '"steps":',
      json(PLAN),
      LINES.join('\n'),
      '"planId"',
      'null',
      '1e999',
      '$from',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string())), fc.boolean(), (parts, isLines) => {
        const read = readPlan(said(parts.join('')), isLines ? 'ndjson' : 'json');
        expect('fault' in read || Object.hasOwn(read.value, 'steps') || Object.hasOwn(read.value, 'nodes')).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a plan in lines', () => {
  it('AG-32 one step a line; the line of the end says that it is whole', () => {
    const text = ['{"type":"reasoning","text":"hm"}', ...LINES].join('\n');
    expect(readPlan(said(text), 'ndjson')).toEqual({ value: { steps: PLAN.steps }, repaired: [] });
  });

  it('AG-32 AG-19 words and fences between the lines are no matter', () => {
    const text = `Sure, here it is:\n\`\`\`\n${LINES.join('\r\n\r\n')}\r\n\`\`\`\nThat is all.`;
    expect(readPlan(said(text), 'ndjson')).toEqual({ value: { steps: PLAN.steps }, repaired: [] });
  });

  it('AG-32 a plan without the line of its end is whole when the model ended by itself, and that is told', () => {
    expect(readPlan(said(LINES.slice(0, 2).join('\n')), 'ndjson')).toEqual({
      value: { steps: PLAN.steps },
      repaired: [{ code: 'repaired', message: 'the line that ends the plan is not there' }],
    });
  });

  it('AG-32 a result in the line of the end is a last step behind all others', () => {
    const text = [
      LINES[0],
      '{"type":"step","step":{"id":"finish","type":"tool"}}',
      '{"type":"finish","result":7}',
    ].join('\n');
    expect(planOf(readPlan(said(text), 'ndjson'))).toEqual({
      steps: [
        PLAN.steps[0],
        { id: 'finish', type: 'tool' },
        { id: '_finish', type: 'finish', input: 7, after: ['s1', 'finish'] },
      ],
    });
  });

  it('AG-33 of five lines with a bad third one four are kept, and the fault names the line', () => {
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const lines = ids.map((id) => stepLine({ id, type: 'tool', toolId: 't' }));
    lines[2] = (lines[2] ?? '').slice(0, -9);
    const read = readPlan(said([...lines, '{"type":"finish"}'].join('\n')), 'ndjson');
    expect(planOf(read)).toEqual({ steps: ['a', 'b', 'd', 'e'].map((id) => ({ id, type: 'tool', toolId: 't' })) });
    expect(read).toHaveProperty('missing', [{ code: 'plan_line', message: expect.stringMatching(/^Line 3: /) }]);
  });

  it('AG-33 a row that is something else is told as missing', () => {
    const text = [LINES[0], '{"type":"stpe","step":{}}', '{"type":"step"}', '{"type":"finish"}', LINES[1]].join('\n');
    const read = readPlan(said(text), 'ndjson');
    expect(planOf(read)).toEqual({ steps: [PLAN.steps[0]] });
    expect(read).toHaveProperty('missing.0.message', expect.stringContaining('"stpe"'));
    expect(read).toHaveProperty('missing.1.message', expect.stringContaining('"step"'));
    expect(read).toHaveProperty('missing.2.code', 'after_finish');
    expect(read).not.toHaveProperty('missing.3');
  });

  it('AG-33 what a cut-off reply has is kept, and that more was to come is told', () => {
    const read = readPlan(said(`${LINES[0]}\n${(LINES[1] ?? '').slice(0, 20)}`, 'length'), 'ndjson');
    expect(planOf(read)).toEqual({ steps: [PLAN.steps[0]] });
    expect(read).toMatchObject({ missing: [{ code: 'plan_line' }, { code: 'plan_cut' }] });
  });

  it('AG-32 however the text comes in pieces, the lines are the same', () => {
    const text = `Sure.\n<think>\n${stepLine({ id: 'x', type: 'tool' })}\n</think>\r\n${LINES.join('\r\n\n')}\n{"type":"reasoning","text":"a\\nb"}`;
    const whole = readPieces([text]);
    expect(whole.lines.map(({ kind }) => kind)).toEqual(['step', 'step', 'finish', 'reasoning']);
    fc.assert(
      fc.property(fc.array(fc.nat({ max: text.length })), (cuts) => {
        const places = [0, ...cuts.sort((left, right) => left - right), text.length];
        const pieces = places.slice(1).map((place, index) => text.slice(places[index], place));
        expect(readPieces(pieces)).toEqual(whole);
      }),
      { numRuns: 300 },
    );
    expect(readPieces(split(text))).toEqual(whole);
  });

  it('AG-32 a step is there as soon as its line has ended, and the last one at the end', () => {
    const lines = new PlanLines();
    expect(lines.push(LINES[0] ?? '')).toEqual([]);
    expect(lines.push('\n')).toEqual([{ kind: 'step', step: PLAN.steps[0] }]);
    expect(lines.push(LINES[1] ?? '')).toEqual([]);
    expect(lines.end()).toEqual([{ kind: 'step', step: PLAN.steps[1] }]);
    expect(lines.isWhole).toBe(false);
  });

  it('AG-34 reasoning is told as such, and is no part of the plan', () => {
    expect(new PlanLines().push('{"type":"reasoning","text":"hm"}\n')).toEqual([{ kind: 'reasoning', text: 'hm' }]);
  });

  it('AG-34 a line of over a megabyte ends the reading with a fault; what came before it stays', () => {
    const lines = new PlanLines();
    const read = lines.push(`${LINES[0]}\n{"type":"step","step":{"id":"${'x'.repeat(600_000)}`);
    expect(read).toHaveLength(1);
    expect(lines.fault).toBeUndefined();
    expect(lines.push('x'.repeat(600_000))).toEqual([]);
    expect(lines.fault?.code).toBe('plan_line_too_long');
    expect([lines.push(`\n${LINES[1]}\n`), lines.end()]).toEqual([[], []]);
  });

  it('AG-34 a line of under a megabyte is read', () => {
    const lines = new PlanLines();
    expect(lines.push(`${stepLine({ id: 'x'.repeat(990_000), type: 'tool' })}\n`)).toHaveLength(1);
    expect(lines.fault).toBeUndefined();
  });

  it('AG-34 the thousandth step is read, and the next one ends the reading with a fault', () => {
    const lines = new PlanLines();
    const text = Array.from({ length: 1_001 }, (_, index) => `${stepLine({ id: `s${index}`, type: 'tool' })}\n`).join(
      '',
    );
    expect(lines.push(text)).toHaveLength(1_000);
    expect(lines.fault).toEqual({ code: 'plan_too_long', message: 'The plan has more than 1000 steps.' });
    expect(faultOf(readPlan(said(text), 'ndjson'))).toBe('plan_too_long');
    expect(new PlanLines(2).push(text)).toHaveLength(2);
  });

  it('AG-34 a stream of remarks that never ends comes to its end', () => {
    const lines = new PlanLines();
    const remark = `{"type":"reasoning","text":"${'x'.repeat(10_000)}"}\n`;
    let read = 0;
    while (lines.fault === undefined && read < 1_000) read += lines.push(remark).length;
    expect(lines.fault?.code).toBe('plan_too_long');
    expect(read).toBeLessThan(500);
  });
});

function readPieces(pieces: readonly string[]): { lines: readonly PlanLine[]; lost: unknown; repaired: unknown } {
  const reader = new PlanLines();
  const lines = [...pieces.flatMap((piece) => reader.push(piece)), ...reader.end()];
  return { lines, lost: reader.lost, repaired: reader.repaired };
}
