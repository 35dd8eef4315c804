/** Bookings that can be undone, and the world in which they are made. */
import type { Json } from '#core';
import type { Tool, ToolContext } from '#tools';
import { make } from './tools.ts';

export interface Bookings {
  /** What is booked now, in the order of booking. */
  readonly booked: string[];
  /** Everything that was done, in its order: `book hotel`, `cancel hotel`. */
  readonly done: string[];
  /** `book` makes a booking of `what`, which `cancel` undoes; `look` changes nothing; `fail` fails. */
  readonly tools: readonly Tool[];
  readonly book: Tool;
  readonly cancel: Tool;
}

/** @param more options of the tools by name; a call of one key is made once, as a server with idempotency keys makes it. */
export function bookings(more: { readonly book?: Partial<Tool>; readonly cancel?: Partial<Tool> } = {}): Bookings {
  const booked: string[] = [];
  const done: string[] = [];
  const keys = new Set<string>();
  const once = ({ idempotencyKey }: ToolContext, act: () => void): void => {
    if (!keys.has(idempotencyKey)) act();
    keys.add(idempotencyKey);
  };
  const book = make(
    'book',
    ({ what }, context) => {
      once(context, () => {
        booked.push(String(what));
        done.push(`book ${what}`);
      });
      return { booking: what as Json };
    },
    { effect: 'keyed', undo: (_, value) => ({ tool: 'cancel', args: value }), ...more.book },
  );
  const cancel = make(
    'cancel',
    ({ booking }, context) => {
      once(context, () => {
        booked.splice(booked.indexOf(String(booking)), 1);
        done.push(`cancel ${booking}`);
      });
      return 'cancelled';
    },
    { effect: 'keyed', ...more.cancel },
  );
  const look = make('look', () => 'seen', { effect: 'read' });
  const fail = make('fail', () => {
    throw new Error('no');
  });
  return { booked, done, tools: [book, cancel, look, fail], book, cancel };
}
