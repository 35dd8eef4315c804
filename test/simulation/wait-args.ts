/** How a simulated call that waits behaves, as its arguments say it, and what fits the schemas of what it asks. */
import { isJsonObject, type Json, type JsonObject } from '#core';

/** What an answer or a payload has to be. Absent: anything. */
export type Shape = 'number' | 'text' | 'pair' | 'thing';

/** One thing that a call does or waits for. */
export type Doing =
  /** A part of its work, done in `context.once`. */
  | { readonly part: string; readonly ms?: number; readonly big?: boolean }
  | { readonly ask: string; readonly shape?: Shape; readonly expiresInMs?: number }
  | { readonly sleepMs: number }
  /** An empty key stands for one of the call's own. */
  | { readonly event: string; readonly shape?: Shape; readonly timeoutMs?: number };

/** The arguments of the tools that wait in the middle of their work. */
export interface WaitArgs {
  /** Unique in its run. */
  readonly id: string;
  /** One list after the other; what stands in one is begun at once. */
  readonly does: readonly (readonly Doing[])[];
  /** It goes on when a wait ends without what it waited for. */
  readonly catches?: boolean;
}

/** The arguments of the tools whose value comes later. */
export interface LaterArgs {
  readonly id: string;
  readonly ms?: number;
  /** An empty key stands for one of the call's own. */
  readonly key: string;
  readonly pollEveryMs?: number;
  readonly expiresInMs?: number;
  /** So long after the call has taken effect its value is there for those who poll. */
  readonly readyMs: number;
  /** What a poll throws: something that passes, the first time, or something that does not. */
  readonly pollFails?: 'once' | 'always';
}

const DOING: JsonObject = {
  type: 'object',
  properties: {
    part: { type: 'string' },
    ms: { type: 'number' },
    big: { type: 'boolean' },
    ask: { type: 'string' },
    shape: { enum: ['number', 'text', 'pair', 'thing'] },
    expiresInMs: { type: 'number' },
    sleepMs: { type: 'number' },
    event: { type: 'string' },
    timeoutMs: { type: 'number' },
  },
  additionalProperties: false,
};

export const WAIT_INPUT: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    does: { type: 'array', items: { type: 'array', items: DOING } },
    catches: { type: 'boolean' },
  },
  required: ['id', 'does'],
  additionalProperties: false,
};

export const LATER_INPUT: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    ms: { type: 'number' },
    key: { type: 'string' },
    pollEveryMs: { type: 'number' },
    expiresInMs: { type: 'number' },
    readyMs: { type: 'number' },
    pollFails: { enum: ['once', 'always'] },
  },
  required: ['id', 'key', 'readyMs'],
  additionalProperties: false,
};

export const SCHEMAS: Readonly<Record<Shape, JsonObject>> = {
  number: { type: 'number' },
  text: { type: 'string' },
  pair: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false },
  thing: { type: 'object' },
};

/** Keys that several calls of several runs wait for. */
export const SHARED_KEYS = ['k0', 'k1', 'k2'] as const;

export function keyOf(key: string, run: string, id: string): string {
  return key === '' ? `own/${run}/${id}` : key;
}

/** Which of the schemas it is, by its type. */
export function shapeOf(schema: JsonObject | undefined): Shape | undefined {
  switch (schema?.['type']) {
    case 'number':
      return 'number';
    case 'string':
      return 'text';
    case 'object':
      return schema?.['properties'] === undefined ? 'thing' : 'pair';
    default:
      return undefined;
  }
}

/** A value that is like no other one. */
export function fitting(shape: Shape | undefined, nth: number): Json {
  if (shape === 'number') return nth;
  return shape === 'pair' || shape === 'thing' ? { n: nth } : `answer ${nth}`;
}

export function misfitting(shape: Shape | undefined, nth: number): Json {
  return shape === 'number' || shape === 'thing' ? `not ${nth}` : { m: nth };
}

export function isFitting(shape: Shape | undefined, value: Json): boolean {
  switch (shape) {
    case 'number':
      return typeof value === 'number';
    case 'text':
      return typeof value === 'string';
    case 'pair':
      return isJsonObject(value) && Object.keys(value).join() === 'n' && typeof value['n'] === 'number';
    case 'thing':
      return isJsonObject(value);
    default:
      return true;
  }
}
