/** Tools that providers define: our agent beside the AI SDK's own loop on the same bytes makes the same calls and the same requests. */
import type { SharedV4ProviderOptions } from '@ai-sdk/provider';
import type { ToolSet as SdkTools } from 'ai';
import { describe, expect, it } from 'vitest';
import { defined, type Json, type JsonObject } from '#core';
import type { ToolSet } from '#tools';
import { anywhere, byByte, type Cut, whole } from '../pieces.ts';
import { ours, theirs, toldInAll } from './play.ts';
import { type OwnProtocol, says } from './protocols.ts';

export interface Case {
  readonly protocol: OwnProtocol;
  /** The tools, whose functions note what they were called with. */
  readonly tools: (made: Json[]) => Record<string, object>;
  /** The contents of each reply, and why it stopped. */
  readonly replies: readonly Reply[];
  /** What the tools of the program are called with. */
  readonly made?: readonly Json[];
  /** What the provider did, as the events tell it; calls alone where a package tells results only in streams. */
  readonly acts?: readonly JsonObject[];
  readonly answer?: string;
  readonly providerOptions?: SharedV4ProviderOptions;
}

export const END = 'All is done.';
type Reply = readonly [readonly JsonObject[], string];
export const endOf: { readonly anthropic: Reply; readonly openai: Reply; readonly google: Reply } = {
  anthropic: [[says.anthropic(END)], 'end_turn'],
  openai: [[says.openai(END)], 'stop'],
  google: [[says.google(END)], 'STOP'],
};

export const noting =
  (made: Json[], value: Json) =>
  async (input: unknown): Promise<Json> => {
    made.push(input as Json);
    return value;
  };

export type Cases = Readonly<Record<string, Case>>;

const FORMS: readonly { readonly form: string; readonly stream: boolean; readonly cut: Cut }[] = [
  { form: 'in one piece', stream: false, cut: whole },
  { form: 'streamed, cut anywhere', stream: true, cut: anywhere(7) },
  { form: 'streamed, cut after each byte', stream: true, cut: byByte },
];

export function comparing(cases: Cases): void {
  describe.each(Object.entries(cases))('%s', (_, { protocol, tools, replies, ...more }) => {
    const { made = [], acts = [], answer = END, providerOptions } = more;
    it.each(FORMS)('$form', async ({ stream, cut }) => {
      const answers = replies.map(([contents, stop]) => protocol.answer(contents, stop, stream));
      const asked = { protocol, answers, stream, cut, ...defined({ providerOptions }) };
      const [mine, sdk]: [Json[], Json[]] = [[], []];
      const own = await ours(tools(mine) as ToolSet, asked);
      const their = await theirs(tools(sdk) as SdkTools, asked);
      expect(own.result).toMatchObject({ status: 'finished', reason: 'goal', answer });
      // Calls of one reply run at once.
      expect(mine).toHaveLength(made.length);
      expect(mine).toEqual(expect.arrayContaining(made as unknown[]));
      expect(sdk).toEqual(made);
      expect(own.requests).toHaveLength(their.length);
      expect(toldInAll(own.requests)).toEqual(toldInAll(their));
      const told = own.events.filter(({ type }) => type.startsWith('provider.'));
      const calls = acts.every(({ type }) => type === 'provider.invoked');
      expect(calls ? told.filter(({ type }) => type === 'provider.invoked') : told).toMatchObject(acts);
    });
  });
}
