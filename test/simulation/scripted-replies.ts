/** What the models of a history say: the next errand that they see no result of, and now and then something that is of no use. */
import type { ScriptedReply, ScriptedRequest } from '#testing';
import type { Dice } from './dice.ts';
import { ODD, oddValue } from './odd.ts';
import type { Errand, SimulationScript } from './script.ts';

export type Voice = 'native' | 'text' | 'plan' | 'lines';

/** The words by which a model knows what it is to do. */
export function queryOf(plan: string): string {
  return `Do the errands of ${plan}.`;
}

const USAGE = { inputTokens: 40, outputTokens: 10 };

export function replyTo(request: ScriptedRequest, voice: Voice, script: SimulationScript, dice: Dice): ScriptedReply {
  const shown = JSON.stringify(request.prompt);
  const plan = /Do the errands of (p\d+)\./.exec(shown)?.[1] ?? '';
  const errands = script.plans[plan]?.errands ?? [];
  if (dice.chance(SLIPS)) return slip(dice, voice, errands);
  return voice === 'native' || voice === 'text' ? nextOf(shown, errands, voice) : wholePlan(errands, voice, shown);
}

/** So often a model says something else. */
const SLIPS = 0.12;

function nextOf(shown: string, errands: readonly (readonly Errand[])[], voice: Voice): ScriptedReply {
  const next = errands.find((calls) => calls.some(({ args }) => !isShown(shown, String(args['id']))));
  const missing = next?.filter(({ args }) => !isShown(shown, String(args['id']))) ?? [];
  if (missing.length === 0) return { text: 'All of it is done.', usage: USAGE };
  if (voice === 'native') return { calls: missing, usage: USAGE };
  const said = missing.map(({ tool, args }) => JSON.stringify({ tool, args }));
  return { text: `\`\`\`json\n${said.length === 1 ? said[0] : `[${said.join(', ')}]`}\n\`\`\``, usage: USAGE };
}

/** Its id stands in a call that was made, in whatever way that is written down. */
function isShown(shown: string, id: string): boolean {
  return new RegExp(`[^a-z0-9]${id}[^a-z0-9]`).test(shown);
}

function wholePlan(errands: readonly (readonly Errand[])[], voice: Voice, shown: string): ScriptedReply {
  const again = shown.includes('done_so_far') ? 'x' : '';
  const steps: { readonly [key: string]: unknown }[] = [];
  let before: readonly string[] = [];
  for (const calls of errands) {
    const ids = calls.map(({ args }) => `${String(args['id'])}${again}`);
    for (const [index, { tool, args }] of calls.entries()) {
      steps.push({ id: ids[index], type: 'tool', toolId: tool, input: args, after: before });
    }
    before = ids;
  }
  steps.push({ id: `end${again}`, type: 'finish', input: 'All of it is done.', after: before });
  if (voice === 'plan') {
    return { calls: [{ tool: 'submit_plan', input: JSON.stringify({ planId: `p${again}`, steps }) }], usage: USAGE };
  }
  const lines = steps.map((step) => JSON.stringify({ type: 'step', step }));
  return { text: [...lines, JSON.stringify({ type: 'finish' })].join('\n'), usage: USAGE };
}

/** A reply that is cut off, empty, misspelt or made of words, and a server that cannot. */
function slip(dice: Dice, voice: Voice, errands: readonly (readonly Errand[])[]): ScriptedReply {
  const [first] = errands.flat();
  const { tool = 'look' } = first ?? {};
  // What is read out of it is a call of its own.
  const args = { id: `slip${dice.between(0, 1_000_000)}`, ms: 20 };
  const whole = JSON.stringify(voice === 'native' || voice === 'text' ? args : { steps: [{ id: 's', type: 'tool' }] });
  const half = whole.slice(0, Math.ceil(whole.length / 2));
  switch (dice.pick(['empty', 'words', 'half', 'unknown', 'misfit', 'busy', 'cut', 'odd', 'length'])) {
    case 'empty':
      return { text: '', usage: USAGE };
    case 'words':
      return { text: `I will now call ${tool}.`, usage: USAGE };
    case 'half':
      return voice === 'native'
        ? { calls: [{ tool, input: half }], usage: USAGE }
        : { text: `{"tool":"${tool}","args":${half}`, usage: USAGE };
    case 'unknown':
      return { calls: [{ tool: 'no_such_tool', args: {} }], usage: USAGE };
    case 'misfit':
      return { calls: [{ tool, args: { id: dice.between(0, 1_000_000), nonsense: true } }], usage: USAGE };
    case 'busy':
      return { error: Object.assign(new Error('busy'), { statusCode: 503, isRetryable: true }), errorAt: 'call' };
    case 'cut':
      return { text: 'I was going to', cutOff: true, usage: USAGE };
    case 'odd':
      return { error: oddValue(dice.pick(ODD)), errorAt: 'call' };
    default:
      return { text: half, finish: 'length', usage: USAGE };
  }
}
