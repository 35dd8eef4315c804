/**
 * The models of all plays, behind one server. A model calls whatever has no receipt in what it is shown; what it has called,
 * in the form in which calls are made, is what was asked for.
 */
import type { Json, JsonObject } from '#pilotage';
import type { ChatMessage, ChatRequest, ServerReply } from '#testing';
import { type Asked, FEE, letter, ROOM } from './errands.ts';
import { remarks } from './hostile.ts';
import type { Voice } from './scenarios.ts';
import { receiptOf } from './world.ts';

/** One reply in place of what the model should say. */
export interface Slip {
  /** Which remark. */
  readonly remark: number;
  /** In place of which reply, from 0. */
  readonly turn: number;
}

interface Call {
  readonly tool: string;
  readonly args: JsonObject;
}

interface Step {
  readonly id: string;
  readonly type: string;
  readonly toolId?: string;
  readonly input: Json;
  readonly after: readonly string[];
}

export class Voiced {
  readonly #voice: Voice;
  readonly #page: Json;
  readonly #slip: Slip | undefined;
  readonly asked: Asked[] = [];
  #turns = 0;

  constructor(voice: Voice, page: Json, slip: Slip | undefined) {
    this.#voice = voice;
    this.#page = page;
    this.#slip = slip;
  }

  reply({ messages }: ChatRequest): ServerReply {
    const turn = this.#turns;
    this.#turns += 1;
    if (this.#slip?.turn === turn) return { text: remarks[this.#slip.remark % remarks.length]?.(this.#last()) ?? '' };
    const shown = messages
      .filter(({ role }) => role === 'tool' || role === 'user')
      .map(textOf)
      .join('\n');
    if (this.#voice === 'native' || this.#voice === 'text') return this.#next(shown);
    return this.#plan(shown, turn);
  }

  #last(): JsonObject {
    const { tools = [FEE.tools[0] ?? ''], args = FEE.args } = this.asked.at(-1) ?? {};
    return { tool: tools[0] ?? '', args };
  }

  #ask(wanted: Asked): Call {
    this.asked.push(wanted);
    return { tool: wanted.tools[0] ?? '', args: wanted.args };
  }

  #next(shown: string): ServerReply {
    if (!shown.includes('The terms')) {
      return this.#calls([
        { tool: 'load_key', args: {} },
        { tool: 'look', args: {} },
      ]);
    }
    const wanted = [FEE, letter(this.#page), ROOM].find(({ subject }) => !shown.includes(receiptOf(subject)));
    return wanted === undefined
      ? { text: 'The fee, the letter and the room are seen to.' }
      : this.#calls([this.#ask(wanted)]);
  }

  #calls(calls: readonly Call[]): ServerReply {
    if (this.#voice === 'native')
      return { calls: calls.map((call) => ({ ...call, id: `${call.tool}_${this.#turns}` })) };
    const [only] = calls;
    return { text: `\`\`\`json\n${JSON.stringify(calls.length === 1 ? only : calls)}\n\`\`\`` };
  }

  /** The whole plan, and after a failure all of it again: the model means well, and does not look. */
  #plan(shown: string, turn: number): ServerReply {
    const isAgain = shown.includes('done_so_far');
    const hasPage = /"id":"page"[^\n]*"status":"done"/.test(shown);
    const steps: Step[] = [];
    const add = (id: string, toolId: string, input: Json): void => {
      const before = steps.at(-1);
      steps.push({ id, type: 'tool', toolId, input, after: before === undefined ? [] : [before.id] });
    };
    const id = (name: string): string => (isAgain ? `${name}_${turn}` : name);
    if (!hasPage) {
      add('load_key', 'load_key', {});
      add('page', 'look', {});
    }
    const pay = this.#ask(FEE);
    add(id('fee'), pay.tool, pay.args);
    if (!isAgain) add('check', 'check', {});
    this.#ask(letter(this.#page));
    add(id('letter'), 'send', { subject: 'letter', body: { $from: 'page', path: '/body' } });
    const book = this.#ask(ROOM);
    add(id('room'), book.tool, book.args);
    steps.push({ id: id('end'), type: 'finish', input: 'All is done.', after: [id('room')] });
    if (this.#voice === 'plan')
      return { calls: [{ tool: 'submit_plan', args: { planId: `errands_${turn}`, steps } as unknown as JsonObject }] };
    const lines = steps.map((step) => JSON.stringify({ type: 'step', step }));
    return { text: [...lines, JSON.stringify({ type: 'finish' })].join('\n') };
  }
}

function textOf({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return Array.isArray(content)
    ? content.map((part) => textOf({ role: 'user', content: (part as { text?: Json }).text ?? '' })).join('\n')
    : '';
}
