/** Which tools ask while they stay open, and what they are given. */
import type { JsonObject } from '#core';
import type { Tool } from '#tools';
import type { Shape } from './wait-args.ts';

interface Kind extends Pick<Tool, 'effect' | 'timeoutMs' | 'concurrency' | 'needsApproval'> {
  readonly reconcile?: true;
}

export const HELD_KINDS: Readonly<Record<string, Kind>> = {
  open_look: { effect: 'pure' },
  open_read: { effect: 'read', concurrency: 1 },
  // Its time does not run while it asks.
  open_brief: { effect: 'read', timeoutMs: 400 },
  open_put: { effect: 'keyed' },
  open_send: { effect: 'once' },
  open_post: { effect: 'once', reconcile: true },
  open_asked: { effect: 'once', needsApproval: true, reconcile: true },
};

/** The longest work of a call whose time is short. */
export const BRIEF_MS = 100;

export interface HeldQuestion {
  readonly ask: string;
  readonly shape?: Shape;
  readonly expiresInMs?: number;
}

export interface HeldArgs {
  /** Unique in its run. */
  readonly id: string;
  /** One list after the other; what stands in one is asked at once. */
  readonly asks: readonly (readonly HeldQuestion[])[];
  /** How long its work takes. */
  readonly ms?: number;
  /** It does its work before it asks, and not behind it. */
  readonly first?: boolean;
  /** It goes on when nobody gives an answer. */
  readonly catches?: boolean;
  /** The first attempt fails when it has all answers, or as soon as it has one of those that it has asked for at once. */
  readonly fails?: 'late' | 'hasty';
}

export const HELD_INPUT: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    asks: {
      type: 'array',
      items: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            ask: { type: 'string' },
            shape: { enum: ['number', 'text', 'pair', 'thing'] },
            expiresInMs: { type: 'number' },
          },
          required: ['ask'],
          additionalProperties: false,
        },
      },
    },
    ms: { type: 'number' },
    first: { type: 'boolean' },
    catches: { type: 'boolean' },
    fails: { enum: ['late', 'hasty'] },
  },
  required: ['id', 'asks'],
  additionalProperties: false,
};
