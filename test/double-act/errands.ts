/** What is asked for in the scenarios. */
import type { Json, JsonObject } from '#pilotage';

/** Something that is to happen once. */
export interface Asked {
  readonly subject: string;
  readonly effect: 'once' | 'keyed';
  /** Any of these tools may bring it about. */
  readonly tools: readonly string[];
  /** The arguments that whoever plans asked for. */
  readonly args: JsonObject;
}

export const FEE: Asked = { subject: 'fee', effect: 'once', tools: ['pay'], args: { subject: 'fee', amount: 5 } };
export const ROOM: Asked = { subject: 'room', effect: 'keyed', tools: ['book'], args: { subject: 'room' } };
export const letter = (page: Json): Asked => ({
  subject: 'letter',
  effect: 'once',
  tools: ['send'],
  args: { subject: 'letter', body: page },
});

export const ITEMS = 4;
export const items = (page: Json): readonly JsonObject[] =>
  Array.from({ length: ITEMS }, (_, index) => ({ subject: `item-${index}`, amount: index, body: page }));
