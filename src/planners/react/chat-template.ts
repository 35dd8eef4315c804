/**
 * Calls that a model with native calls wrote as text all the same: in the template of its training, which its server should
 * have turned into native calls. What such a template looks like is known, so nothing is guessed here: the whole text is
 * calls in one of these forms, whole and well formed; otherwise it is not a call.
 */
import { answerStart } from '#parse';
import {
  deepseek,
  deepseekCalls,
  functionTags,
  harmony,
  invokeTags,
  keyTags,
  kimi,
  mistral,
  objects,
  type ReadCalls,
  type TemplateCall,
  TemplateText,
  type TypeOf,
} from './template-calls.ts';

/** `prose`: the text does not begin like a template. `broken`: it does, but is not a whole call. */
export type TemplateReading =
  | { readonly kind: 'prose' }
  | { readonly kind: 'broken' }
  | { readonly kind: 'calls'; readonly calls: readonly TemplateCall[] };

interface Template {
  /** Sticky, like `close`. */
  readonly open: RegExp;
  readonly calls: ReadCalls;
  /** Default: nothing closes it. */
  readonly close?: RegExp;
}

/** By the models that are known to be trained on them. */
const TEMPLATES: readonly Template[] = [
  // Hermes, Qwen, GLM, Granite, Seed-OSS, MiniMax
  {
    open: /<((?:seed:|minimax:)?tool_calls?)>/y,
    close: /<\/(?:seed:|minimax:)?tool_calls?>/y,
    calls: (at, typeOf) => objects(at) ?? functionTags(at, typeOf) ?? invokeTags(at, typeOf, '') ?? keyTags(at, typeOf),
  },
  { open: /<\|tool_call\|>/y, calls: objects, close: /<\/tool_call>|<\|\/tool_call\|>|/y },
  // Nemotron
  { open: /<TOOLCALL>/y, calls: objects, close: /<\/TOOLCALL>/y },
  // Llama, Functionary
  { open: /(?=<function=)/y, calls: functionTags },
  { open: /<\|python_tag\|>/y, calls: objects },
  // Mistral
  { open: /(?=\[TOOL_CALLS\])/y, calls: mistral },
  // Phi, FireFunction
  { open: /functools(?=\[)/y, calls: objects },
  // Claude's text form, also of DeepSeek V3.2
  { open: /<function_calls>/y, calls: (at, typeOf) => invokeTags(at, typeOf, ''), close: /<\/function_calls>/y },
  { open: /(?=<invoke name=)/y, calls: (at, typeOf) => invokeTags(at, typeOf, '') },
  {
    open: /<[|｜]DSML[|｜]function_calls>/y,
    calls: (at, typeOf) => invokeTags(at, typeOf, '[|｜]DSML[|｜]'),
    close: /<\/[|｜]DSML[|｜]function_calls>/y,
  },
  // DeepSeek
  {
    open: new RegExp(`(?:${deepseek('tool calls begin')})?(?=${deepseek('tool call begin')})`, 'y'),
    calls: deepseekCalls,
    close: new RegExp(`(?:${deepseek('tool calls end')})?`, 'y'),
  },
  // Kimi
  {
    open: /(?:<\|tool_calls_section_begin\|>)?\s*(?=<\|tool_call_begin\|>)/y,
    calls: kimi,
    close: /(?:<\|tool_calls_section_end\|>)?/y,
  },
  // gpt-oss
  { open: /(?=(?:<\|start\|>assistant)?<\|channel\|>commentary)/y, calls: harmony },
  // Command
  { open: /<\|START_ACTION\|>/y, calls: objects, close: /<\|END_ACTION\|>/y },
  // InternLM
  { open: /<\|action_start\|>\s*<\|plugin\|>/y, calls: objects, close: /<\|action_end\|>/y },
  // LM Studio's own
  { open: /\[TOOL_REQUEST\]/y, calls: objects, close: /\[END_TOOL_REQUEST\]/y },
];

/** How a template begins, also an unknown one, or one that broke off in its first token. */
const OPENERS: readonly string[] = [
  '<tool_call',
  '<seed:tool_call',
  '<minimax:tool_call',
  '<|tool',
  '<｜tool',
  '<TOOLCALL',
  '<function=',
  '<function_call',
  '<invoke name=',
  '<|python_tag|>',
  '<|DSML|',
  '<｜DSML｜',
  '[TOOL_CALLS]',
  '[TOOL_REQUEST]',
  'functools[',
  '<|channel|>',
  '<|start|>assistant',
  '<|START_ACTION|>',
  '<|action_start|>',
];

/** What the model's turn ends with, where the server left it in. */
const END_OF_TURN =
  /(?:<\|(?:im_end|eot_id|eom_id|end|call|endoftext|end_of_text|return|END_OF_TURN_TOKEN)\|>|<\/s>|<eos>|<end_of_turn>|<｜end▁of▁sentence｜>)/y;

const THOUGHTS: readonly { readonly open: string; readonly close: string }[] = [
  ...['think', 'thinking', 'reasoning', 'reflection', 'scratchpad'].map((tag) => ({
    open: `<${tag}>`,
    close: `</${tag}>`,
  })),
  { open: '<|START_THINKING|>', close: '<|END_THINKING|>' },
  { open: '<|channel|>analysis<|message|>', close: '<|end|>' },
];

/** Looks at a text as it comes, as far as that is needed to know whether it is a template. */
export class TemplateStart {
  #text = '';
  #at: number;
  #searched = 0;
  /** What ends the thought that `#at` is in. */
  #close: string | undefined;

  constructor(text = '') {
    this.#text = text;
    this.#at = answerStart(text);
  }

  push(chunk: string): void {
    this.#text += chunk;
  }

  /** It is still only thoughts, or the beginning of a first token; or it is a template. */
  mayBeTemplate(): boolean {
    const start = this.#passThoughts();
    return start === undefined || isPartOf(start, TOKENS) || beginsTemplate(start);
  }

  /** The text behind the thoughts that it begins with; nothing when the last one has no end. */
  rest(): string | undefined {
    return this.#passThoughts();
  }

  #passThoughts(): string | undefined {
    for (;;) {
      if (this.#close !== undefined) {
        const end = this.#text.indexOf(this.#close, Math.max(this.#at, this.#searched - this.#close.length));
        this.#searched = this.#text.length;
        if (end === -1) return undefined;
        this.#at = end + this.#close.length;
        this.#close = undefined;
      }
      const start = this.#text.slice(this.#at).trimStart();
      const thought = THOUGHTS.find(({ open }) => start.startsWith(open));
      if (thought === undefined) return start;
      this.#close = thought.close;
    }
  }
}

const TOKENS: readonly string[] = [...OPENERS, ...THOUGHTS.map(({ open }) => open)];

function isPartOf(start: string, tokens: readonly string[]): boolean {
  return tokens.some((token) => token.startsWith(start));
}

function beginsTemplate(start: string): boolean {
  return OPENERS.some((opener) => start.startsWith(opener));
}

export function beginsAsTemplate(text: string): boolean {
  return beginsTemplate(new TemplateStart(text).rest() ?? '');
}

export function readTemplate(text: string, typeOf: TypeOf): TemplateReading {
  const rest = new TemplateStart(text).rest() ?? '';
  if (!beginsTemplate(rest)) return { kind: 'prose' };
  const at = new TemplateText(rest);
  const calls: TemplateCall[] = [];
  while (!at.isAtEnd) {
    if (at.match(END_OF_TURN) !== undefined) continue;
    const read = readOne(at, typeOf);
    if (read === undefined) return { kind: 'broken' };
    calls.push(...read);
  }
  return calls.length === 0 ? { kind: 'broken' } : { kind: 'calls', calls };
}

function readOne(at: TemplateText, typeOf: TypeOf): readonly TemplateCall[] | undefined {
  const template = TEMPLATES.find(({ open }) => at.match(open) !== undefined);
  if (template === undefined) return undefined;
  at.space();
  const calls = template.calls(at, typeOf);
  if (calls === undefined || calls.length === 0) return undefined;
  at.space();
  return template.close === undefined || at.match(template.close) !== undefined ? calls : undefined;
}
