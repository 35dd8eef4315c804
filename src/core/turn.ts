/** Turns of a conversation that came before a run. A turn may have parts, in the words of the AI SDK; its files are artifacts of the session. */
import type { LoadedInput } from './context.ts';
import type { Json, JsonObject } from './json.ts';
import type { Author } from './message.ts';

/** An earlier turn of the conversation that a run continues. */
export interface Turn {
  /** `system` turns come before all others. A `tool` turn has the results of the calls that the `assistant` turn before it made. */
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  /** All that its text parts say. */
  readonly text: string;
  /** Absent: the turn is its text and nothing else. */
  readonly parts?: readonly TurnPart[];
  /** What a provider is told of the message, by the names of providers. */
  readonly providerOptions?: JsonObject;
}

export type TurnPart = TurnText | TurnFile | TurnCall | TurnResult;

interface PartNotes {
  /** What a provider is told of the part, by the names of providers. */
  readonly providerOptions?: JsonObject;
}

interface TurnText extends PartNotes {
  readonly type: 'text' | 'reasoning';
  readonly text: string;
}

/** A file or an image. Its bytes are there where a planner is shown it, unless they could not be read; they are never recorded. */
export interface TurnFile extends PartNotes, LoadedInput {
  readonly type: 'file';
}

export interface TurnCall extends PartNotes {
  readonly type: 'tool-call';
  /** Unique in the history. */
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: Json;
}

export interface TurnResult extends PartNotes {
  readonly type: 'tool-result';
  /** The id of the call. */
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output:
    | { readonly type: 'text' | 'error-text'; readonly value: string }
    | { readonly type: 'json' | 'error-json'; readonly value: Json }
    | { readonly type: 'execution-denied'; readonly reason?: string };
}

/** The messages of a conversation that a run was started with, and which turn it goes on from. */
export interface TurnOrigin {
  /** In the order in which they were accepted. */
  readonly messages: readonly AcceptedMessage[];
  /** The turn that it goes on from; `null`: it is the first. Absent: the turn before it, or that of `replaces`. */
  readonly after?: string | null;
  /** The turn in whose place it stands, on a branch of its own. */
  readonly replaces?: string;
  /** The turn that it goes on with, for another agent has taken over or its run was continued: it has the messages of that one. */
  readonly succeeds?: string;
  /** The turn that this one has interrupted, and whose messages are its own, too. */
  readonly interrupts?: string;
  /** How long its agent lets it take from when its turn has come: it may have waited for long before. */
  readonly deadlineMs?: number;
}

/** Ids of controls begin like this that carry a message of a session into a run. */
export const SESSION_MESSAGE = 'message_';
/** Ids of runs begin like this; what follows is the same in that of a run and of the control whose message has begun it. */
export const TURN_RUN = 'run_';

export interface AcceptedMessage {
  /** Unique in the session. */
  readonly id: string;
  readonly author?: Author;
  /** True: a notice of the program, and no word of the user. */
  readonly notice?: true;
}

/** The runs of the session that a run is told of. What they said is read from their entries: it is not recorded a second time. */
export interface Continued {
  /** In the order in which they were started. */
  readonly runs: readonly {
    readonly run: string;
    /** How many entries it had then: what it said later is not told. */
    readonly head: number;
  }[];
  /** How many turns are told at most; of each run at least its last one. */
  readonly turns: number;
  /** Turns on other branches of the conversation: what they did stays done, and is told; what was said in them is not. Absent: none. */
  readonly aside?: Continued['runs'];
  /** The run whose newest summary stands for the turns before `runs`. */
  readonly summary?: { readonly run: string; readonly head: number };
}

/**
 * Where the turns begin that are told when all of them may have `most` together. When they have more, so many of the oldest leave in one go that
 * half of it is free again: a provider's cache holds until then, and later turns are told the same beginning. The newest always stays.
 * @param sizes oldest first, in the unit of `most`.
 */
export function keptFrom(sizes: readonly number[], most: number): number {
  let from = 0;
  let sum = 0;
  for (const [index, size] of sizes.entries()) {
    sum += size;
    if (sum <= most) continue;
    for (; from < index && sum > most / 2; from += 1) sum -= sizes[from] ?? 0;
  }
  return from;
}
