/** A model that writes plans with everything wrong that can be wrong with them, and some that are right; by a seed. */
import type { Json } from '#core';
import type { ReplyFunction, ScriptedReply } from '#testing';
import { end, type GivenStep, search, unavailable } from './pipeline-play.ts';

export type Random = () => number;

export function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** A plan that can be carried out, though a step of it may fail. */
function goodPlan(random: Random): GivenStep[] {
  const count = 1 + Math.floor(random() * 5);
  const prefix = pick(random, ['s', 's', 't', 'u']);
  const steps: GivenStep[] = [];
  const isGraph = random() < 0.6;
  for (let index = 0; index < count; index += 1) {
    const id = `${prefix}${index}`;
    const earlier = pick(random, steps)?.['id'];
    const toolId = pick(random, ['search', 'search', 'read', 'broken']);
    if (random() < 0.1) steps.push({ id, type: 'message', input: 'hello' });
    else if (!isGraph || earlier === undefined) steps.push({ id, type: 'tool', toolId, input: { q: id } });
    else if (random() < 0.5) steps.push({ id, type: 'tool', toolId, input: { q: { $from: earlier, path: '/about' } } });
    else steps.push({ id, type: 'tool', toolId, input: { q: id }, after: [earlier] });
  }
  if (random() < 0.7) steps.push(end('the end', `${prefix}end`));
  return steps;
}

type Mischief = (steps: GivenStep[], random: Random) => Json[];

const at = (steps: readonly GivenStep[], random: Random): number => Math.floor(random() * steps.length);
const changed = (steps: readonly GivenStep[], random: Random, more: (step: GivenStep) => GivenStep): GivenStep[] => {
  const place = at(steps, random);
  return steps.map((step, index) => (index === place ? more(step) : step));
};

const MISCHIEF: readonly Mischief[] = [
  // Cycles, unknown ids, wrong inputs, and a tool that is forbidden: the ones that the issue names.
  (steps, random) => {
    const ids = steps.map(({ id }) => id as string);
    return steps.map((step, index) => (index < 2 ? { ...step, after: [pick(random, ids.slice(index))] } : step));
  },
  (steps) => steps.map((step, index) => ({ ...step, after: [steps[(index + 1) % steps.length]?.['id'] ?? ''] })),
  (steps, random) => changed(steps, random, (step) => ({ ...step, after: ['nowhere'] })),
  (steps, random) => changed(steps, random, (step) => ({ ...step, when: { step: 'nowhere', equals: 1 } })),
  (steps, random) => changed(steps, random, (step) => ({ ...step, type: 'tool', toolId: 'teleport' })),
  (steps, random) => [...steps, search('r', { $from: pick(random, ['nowhere', '__proto__', 'r']) })],
  (steps, random) => [...steps, search('w', pick(random, [7, null, [1], { deep: true }]))],
  (steps) => [...steps, { id: 'x', type: 'tool', toolId: 'search', input: { q: 'x', more: 1 } }],
  (steps) => [...steps, { id: 'x', type: 'tool', toolId: 'search', input: 'x' }],
  (steps) => [...steps, { id: 'e', type: 'tool', toolId: 'erase', input: { q: 'all' } }],
  (steps) => [{ id: 'e', type: 'tool', toolId: 'erase', input: { q: 'all' }, after: [] }, ...steps],
  // The rest.
  (steps, random) => [...steps, { ...(pick(random, steps) as GivenStep), input: { q: 'twice' } }],
  (steps, random) => changed(steps, random, ({ id: _, ...step }) => step),
  (steps, random) =>
    changed(steps, random, (step) => ({ ...step, id: pick(random, ['', '__proto__', 'constructor', 'a b\n']) })),
  (steps, random) => changed(steps, random, (step) => ({ ...step, id: 7 })),
  (steps, random) =>
    changed(steps, random, (step) => ({ ...step, type: pick(random, ['', 'TOOL', 'think', '__proto__']) })),
  (steps, random) => changed(steps, random, ({ toolId: _, ...step }) => ({ ...step, type: 'tool' })),
  (steps, random) => changed(steps, random, (step) => ({ ...step, type: 'internal' })),
  (steps, random) => changed(steps, random, (step) => ({ ...step, after: pick<Json>(random, ['s0', 7, [7], {}]) })),
  (steps, random) => changed(steps, random, (step) => ({ ...step, depends_on: ['s0'] })),
  (steps) => [...steps, end('one', 'f1'), end('two', 'f2'), search('late', 'late', { after: ['f1'] })],
  (steps) => Array.from({ length: 30 }, (_, index) => ({ ...(steps[0] as GivenStep), id: `n${index}` })),
  () => [],
  (steps) => [
    ...steps,
    JSON.parse('{"id":"p","type":"tool","toolId":"search","input":{"__proto__":{"q":"x"},"q":"x"}}'),
  ],
  (steps) => [
    ...steps,
    JSON.parse(
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"id":"p","type":"message","input":"x"}',
    ),
  ],
  (steps) => [...steps, null, 7, 'step', []],
];

/** What runs through the text when it is written down. */
function spoilt(text: string, random: Random): string {
  switch (Math.floor(random() * 8)) {
    case 0:
      return text.slice(0, Math.floor(random() * text.length));
    case 1:
      return text.replaceAll('"', "'");
    case 2:
      return `Sure! Here it is:\n\`\`\`json\n${text}\n\`\`\`\nGood luck.`;
    case 3:
      return text.replace(/[}\]]/, ' oops ');
    case 4:
      return `${text}\n${text}`;
    case 5:
      return text.replace(/\}(?=[^}]*$)/, ',}');
    case 6:
      return text
        .split('\n')
        .map((line) => `${line}\r\n`)
        .join('\n');
    default:
      return text.replaceAll('\n', '\n\nWell then.\n');
  }
}

const JUNK = [
  '',
  ' \n ',
  'I will not plan today.',
  '['.repeat(5_000),
  '{"planId":"x","steps":[',
  '<html><body>502 Bad Gateway</body></html>',
  '}{ \u0000 \ud800 ]]>',
  '{"planId": 7, "steps": {}}',
  '{"nodes":{"a":{"type":"finish"}},"steps":[]}',
  '{"nodes":{"a":{"type":"finish","input":1},"b":{"type":"tool","toolId":"erase","input":{"q":"x"}}},"edges":{"b":["a"]}}',
  '{"type":"step"}\n{"type":"step","step":7}\n{"type":"finish"}',
  '{"type":"reasoning","text":"hm"}\n{"type":"finish","result":"nothing"}',
];

function asLines(steps: readonly Json[], random: Random): string {
  const rows = steps.map((step) => JSON.stringify(random() < 0.9 ? { type: 'step', step } : step));
  return [...rows, ...(random() < 0.8 ? ['{"type":"finish"}'] : [])].join('\n');
}

function hostileReply(random: Random, stream: boolean): ScriptedReply {
  const usage = { inputTokens: 10, outputTokens: 2 };
  const dice = random();
  if (dice < 0.05) return { error: unavailable(), text: 'half a', usage };
  if (dice < 0.07) return { error: Object.assign(new Error('bad request'), { statusCode: 400 }), errorAt: 'call' };
  if (dice < 0.13) return { text: pick(random, JUNK), usage };
  const good = goodPlan(random);
  const isBad = random() < 0.65;
  const steps: readonly Json[] = isBad ? pick(random, MISCHIEF)(good, random) : good;
  const finish = random() < 0.06 ? { finish: pick(random, ['length', 'content-filter', 'interrupted'] as const) } : {};
  if (!stream && random() < 0.4) {
    const text = JSON.stringify({ planId: pick(random, ['p', '', '__proto__']), steps });
    return {
      calls: [
        {
          tool: pick(random, ['submit_plan', 'submit_plan', 'search']),
          input: random() < 0.2 ? spoilt(text, random) : text,
        },
      ],
      usage,
      ...finish,
    };
  }
  const whole = JSON.stringify({ planId: 'p', steps });
  const text = random() < (stream ? 0.9 : 0.3) ? asLines(steps, random) : whole;
  const error = stream && random() < 0.05 ? { error: unavailable(), afterDeltas: 1 } : {};
  return { text: random() < 0.2 ? spoilt(text, random) : text, usage, ...finish, ...error };
}

/** @param isHuge its first line has over a million characters. */
export function hostilePlanner(random: Random, stream: boolean, isHuge: boolean): ReplyFunction {
  return (_, index) => (isHuge && index === 0 ? { text: HUGE } : hostileReply(random, stream));
}

const HUGE = `{"type":"step","step":{"id":"${'x'.repeat(1_000_100)}`;
