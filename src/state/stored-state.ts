/**
 * The state of a run as it is stored, so that another process need not fold the whole journal: a snapshot. It says nothing that the entries
 * do not say, and whoever finds anything wrong with it folds them.
 */
import { createHash } from 'node:crypto';
import { deepFreeze } from '#core';
import type { OpenStep, RunState } from './state.ts';
import { copySteps, packBlocks, packJson, stepsBehindBlocks, stepsIn, storableBlocks, unpackJson } from './steps.ts';

/**
 * Which fold has made a state: a snapshot of another one is thrown away. It is raised with every change of the code that the state depends on;
 * `test/state/fold-version.test.ts` fails when that was forgotten.
 */
export const FOLD_VERSION = 9;

/** A state as bytes. The steps that do not change any more are in blocks, each of which is stored once. */
export interface PackedState {
  readonly head: number;
  readonly body: Uint8Array;
  /** The number of the first of these blocks. */
  readonly from: number;
  readonly blocks: readonly Uint8Array[];
}

interface Body {
  /** With the steps that no block has. */
  readonly state: RunState;
  readonly blocks: number;
}

/** @param from how many blocks are stored already. */
export function packState(state: RunState, from: number): PackedState {
  const { steps } = state;
  const body: Body = { state: { ...state, steps: stepsBehindBlocks(steps) }, blocks: storableBlocks(steps) };
  return { head: state.head, body: sealed(packJson(body)), from, blocks: packBlocks(steps, from).map(sealed) };
}

/** `undefined`: something is wrong with it. @param blocks all that are stored; there may be more than the state has. */
export function unpackState(body: Uint8Array, blocks: readonly Uint8Array[]): RunState | undefined {
  try {
    const { state, blocks: count } = unpackJson<Body>(unsealed(body));
    if (blocks.length < count) return undefined;
    const { open, totals: _, steps, ...rest } = state;
    for (const part of [...Object.values(rest), ...steps]) deepFreeze(part);
    if (open !== null) freezeParts(open);
    state.steps = stepsIn(blocks.slice(0, count).map(unsealed), steps);
    return state;
  } catch {
    return undefined;
  }
}

/** The parts of an open step do not change; its lists do. */
function freezeParts(open: OpenStep): void {
  for (const part of Object.values(open)) {
    if (Array.isArray(part)) part.forEach(deepFreeze);
    else deepFreeze(part);
  }
}

const DIGEST_BYTES = 32;

function digestOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

function sealed(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([digestOf(bytes), bytes]);
}

/** @throws Error for bytes that have changed. */
function unsealed(bytes: Uint8Array): Uint8Array {
  const content = bytes.subarray(DIGEST_BYTES);
  if (digestOf(content).equals(bytes.subarray(0, DIGEST_BYTES))) return content;
  throw new Error('The bytes have changed.');
}

/**
 * A state of its own, which can be folded on. The parts that never change are the same.
 * @param state is not folded on.
 */
export function copyState(state: RunState): RunState {
  const { open } = state;
  return {
    ...state,
    totals: { ...state.totals },
    steps: copySteps(state.steps),
    // What is spawned is added to the lists that are there, unless they are frozen.
    tasks: Object.freeze(state.tasks),
    groups: Object.freeze(state.groups),
    background: Object.freeze(state.background),
    open: open && copyOpen(open),
  };
}

function copyOpen(open: OpenStep): OpenStep {
  return {
    ...open,
    calls: [...open.calls],
    began: [...open.began],
    promised: [...open.promised],
    approvals: [...open.approvals],
    waits: [...open.waits],
    edits: [...open.edits],
  };
}
