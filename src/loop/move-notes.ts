/** What a planner says beside its decision, on its way into an entry. */
import {
  capture,
  captureObject,
  type Decision,
  describeThrown,
  isMove,
  isOwnRemark,
  type Json,
  MAX_OWN_REMARKS,
  type Move,
  type MoveNotes,
  PilotageError,
  type Remark,
  readUsage,
  remarkName,
  whyNoRemark,
} from '#core';

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What a planner gave, as a move: each of its fields is read once. @throws what reading it throws. */
export function readMove(made: Decision | Move): Move {
  if (!isMove(made)) return { decision: made };
  const { decision, text, reasoning, usage, providerState, provenance, remarks, fault } = made;
  const notes = { text, reasoning, usage, providerState, provenance, remarks, fault };
  // What has no field of its own is left out where it is taken.
  return { decision, ...notes } as Move;
}

/**
 * The notes that the move has, as frozen JSON, without empty ones.
 * @throws PilotageError `invalid_decision`, `unserializable`. The usage is taken first, as far as it is right.
 */
export function takeNotes(moved: Mutable<MoveNotes>, move: Move): void {
  const { text, reasoning, usage, providerState, provenance, remarks } = move;
  if (usage !== undefined) {
    const { usage: right, wrong } = readUsage(usage);
    moved.usage = Object.freeze(right);
    if (wrong !== undefined) throw wrongUsage('move', wrong);
  }
  if (text !== undefined && text !== '') moved.text = textOf(text, 'text');
  if (reasoning !== undefined && reasoning !== '') moved.reasoning = textOf(reasoning, 'reasoning');
  if (providerState !== undefined) moved.providerState = capture(providerState, 'move.providerState').json;
  if (remarks !== undefined) {
    const told = remarksOf(remarks);
    if (told.length > 0) moved.remarks = told;
  }
  if (provenance !== undefined) moved.provenance = captureObject(provenance, 'move.provenance').json;
}

function remarksOf(given: readonly Remark[]): readonly Remark[] {
  try {
    return toldOf(given);
  } catch (thrown) {
    return [dropped(undefined, describeThrown(thrown))];
  }
}

/** The valid remarks. A value that is not a remark is replaced by a remark that says so, and has no other effect on the run. */
function toldOf(given: readonly Remark[]): readonly Remark[] {
  if (!Array.isArray(given)) return [dropped(undefined, 'The remarks of a move are a list.')];
  const told: Remark[] = [];
  let others = 0;
  for (const each of given) {
    const remark = capturedRemark(each);
    const isOther = isOwnRemark(remark) || remark.type === 'planner.remark_dropped';
    if (isOther) others += 1;
    if (!isOther || others <= MAX_OWN_REMARKS) told.push(remark);
  }
  const more = others - MAX_OWN_REMARKS;
  if (more > 0)
    told.push(dropped(undefined, `${more} more: a move has ${MAX_OWN_REMARKS} remarks of its own at most.`));
  return told;
}

function capturedRemark(given: unknown): Remark {
  try {
    const { json } = capture(given, 'remark');
    const why = whyNoRemark(json);
    return why === undefined ? (json as unknown as Remark) : dropped(json, why);
  } catch (thrown) {
    return dropped(undefined, describeThrown(thrown));
  }
}

function dropped(remark: Json | undefined, why: string): Remark {
  return Object.freeze({ type: 'planner.remark_dropped', remark: remarkName(remark), why });
}

/** Nobody can say what it was in truth, and limits of cost and tokens must not go on without it. */
export function wrongUsage(of: 'move' | 'compaction', wrong: string): PilotageError {
  const message = `The usage of the planner's ${of} is not valid: ${wrong}. Give whole numbers from 0 up, or leave out what is not known.`;
  return new PilotageError('invalid_decision', message);
}

function textOf(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  throw new PilotageError(
    'invalid_decision',
    `The ${name} of the planner's move must be a string, not ${typeof value}.`,
  );
}
