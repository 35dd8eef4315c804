/** The calls of a run, as chunks of their message: their approvals and their results. */
import { defined, type ErrorData, type Json, type Outcome, wordsIn } from '#core';
import type { UIChunk } from './ui-chunks.ts';

export interface ToldCall {
  readonly toolCallId: string;
  readonly tool: string;
  /** The id of its message. */
  readonly message: string;
  /** The step that was open when the call was told. */
  readonly step: unknown;
  /** The question about the call. It is open, or was answered. */
  approval?: { readonly token: string; isOpen: boolean };
  isOver: boolean;
}

/** Tells a chunk of the message that has this id. */
export type TellIn = (chunk: UIChunk, message: string) => void;
export type ErrorWords = (error: ErrorData) => string;

/** Why a question has no answer: by the verdict on it, or by the code with which its call ended. */
export const UNANSWERED_WORDS: Readonly<Partial<Record<string, string>>> = {
  timeout: 'Nobody answered in time.',
  superseded: 'It was not asked any more: the agent went on before anybody answered.',
  cancelled: 'It was stopped before anybody answered.',
};
export const NOT_ANSWERED = 'It was not answered.';
const OPEN_AT_END: ErrorData = { code: 'call_open', message: 'It had no result when its turn ended.' };

export class ToldCalls {
  readonly #tell: TellIn;
  readonly #words: ErrorWords;
  readonly #calls = new Map<string, ToldCall>();
  readonly #open = new Set<ToldCall>();
  readonly #asked = new Map<string, ToldCall>();

  constructor(tell: TellIn, words: ErrorWords) {
    this.#tell = tell;
    this.#words = words;
  }

  /** @param key the place of the call: run, step and call. */
  add(key: string, call: Omit<ToldCall, 'isOver'>): ToldCall {
    const told: ToldCall = { ...call, isOver: false };
    this.#calls.set(key, told);
    this.#open.add(told);
    return told;
  }

  get(key: string): ToldCall | undefined {
    return this.#calls.get(key);
  }

  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Whether a call that was told in this step has no outcome yet. */
  hasOpenIn(step: unknown): boolean {
    return [...this.#open].some((call) => call.step === step);
  }

  ask(call: ToldCall, approvalId: string, reason: Json | undefined): void {
    const { toolCallId, message } = call;
    call.approval = { token: approvalId, isOpen: true };
    this.#asked.set(approvalId, call);
    const why = typeof reason === 'string' ? { reason } : {};
    this.#tell({ type: 'tool-approval-request', approvalId, toolCallId, ...why }, message);
  }

  /** @param args the arguments that the approver has given in place of the call's own. */
  approve(token: string, args: Json | undefined, step: unknown): void {
    const call = this.#asked.get(token);
    if (call === undefined) return;
    const { toolCallId, tool: toolName, message } = call;
    // A client looks for the part in the last step alone.
    if (args !== undefined && call.step === step)
      this.#tell({ type: 'tool-input-available', toolCallId, toolName, input: args, dynamic: true }, message);
    this.#respond(call, true);
  }

  deny(token: string, verdict: string, reason: Json | undefined): void {
    const call = this.#asked.get(token);
    if (call === undefined) return;
    const why = typeof reason === 'string' ? reason : undefined;
    const isWithdrawn = verdict === 'superseded' && why !== undefined;
    this.#deny(call, isWithdrawn ? `It was not asked any more: ${why}.` : (why ?? UNANSWERED_WORDS[verdict]));
  }

  /** Tells a part of the result while the call is under way. */
  preview(key: string, output: Json): void {
    const call = this.#calls.get(key);
    if (call === undefined || call.isOver || call.approval?.isOpen === true) return;
    const { toolCallId, message } = call;
    this.#tell({ type: 'tool-output-available', toolCallId, output, preliminary: true }, message);
  }

  end(key: string, outcome: Outcome): void {
    const call = this.#calls.get(key);
    if (call === undefined || call.isOver) return;
    if (outcome.kind === 'value') {
      this.give(call, outcome.value);
      return;
    }
    if (outcome.kind === 'verdict') {
      this.give(call, `${outcome.verdict}: ${wordsIn(outcome.payload ?? {})}`);
      return;
    }
    this.fail(call, outcome.error);
  }

  give(call: ToldCall, output: Json): void {
    const { toolCallId, message, approval } = call;
    // Somebody gave a value in place of the call.
    if (approval?.isOpen === true) this.#respond(call, true);
    this.#tell({ type: 'tool-output-available', toolCallId, output }, message);
    this.#over(call);
  }

  fail(call: ToldCall, error: ErrorData): void {
    const { toolCallId, message, approval } = call;
    if (approval?.isOpen === true) {
      this.#deny(call, UNANSWERED_WORDS[error.code] ?? NOT_ANSWERED);
      return;
    }
    this.#tell({ type: 'tool-output-error', toolCallId, errorText: this.#words(error) }, message);
    this.#over(call);
  }

  /** The turn has ended. Calls that are open get an outcome here, since a client would wait for one. */
  endAll(): void {
    for (const call of [...this.#open]) {
      if (call.approval?.isOpen === true) this.#deny(call, NOT_ANSWERED);
      else this.fail(call, OPEN_AT_END);
      // If the call is retried, its outcome is still told.
      call.isOver = false;
    }
  }

  #respond(call: ToldCall, approved: boolean, reason?: string): void {
    const { approval, message } = call;
    if (approval === undefined) return;
    approval.isOpen = false;
    this.#tell(
      { type: 'tool-approval-response', approvalId: approval.token, approved, ...defined({ reason }) },
      message,
    );
  }

  #deny(call: ToldCall, reason: string | undefined): void {
    this.#respond(call, false, reason);
    this.#tell({ type: 'tool-output-denied', toolCallId: call.toolCallId }, call.message);
    this.#over(call);
  }

  #over(call: ToldCall): void {
    call.isOver = true;
    this.#open.delete(call);
  }
}
