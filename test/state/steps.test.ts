/** The closed steps of a long run: an array like any other, whose copies cost little and whose blocks may be stored. */
import { describe, expect, it } from 'vitest';
import { copyState, foldEntries, packState, type RunState, unpackState } from '#state';
import { longJournal } from '../kit/long-runs.ts';

const STEPS = 1_500;

function longState(): RunState {
  return copyState(foldEntries(longJournal(STEPS)));
}

function restored(state: RunState): RunState {
  const { body, blocks } = packState(state, 0);
  const back = unpackState(body, blocks);
  if (back === undefined) throw new Error('It cannot be read back.');
  return back;
}

describe.each([
  ['copied', longState],
  ['stored and read back', () => restored(longState())],
])('the steps of a long run, %s', (_, open) => {
  const plain = foldEntries(longJournal(STEPS)).steps;

  it('are those of the fold, however they are read', () => {
    const { steps } = open();
    expect(Array.isArray(steps)).toBe(true);
    expect(steps).toHaveLength(STEPS);
    expect(steps[700]).toEqual(plain[700]);
    expect(Object.isFrozen(steps[700]?.calls)).toBe(true);
    expect([steps[STEPS], steps.at(-1)?.index, steps[-1]]).toEqual([undefined, STEPS - 1, undefined]);
    expect([3 in steps, STEPS in steps]).toEqual([true, false]);
    expect([...steps]).toEqual(plain);
    expect(steps.slice(500, 600)).toEqual(plain.slice(500, 600));
    expect(steps.findLast(({ index }) => index % 997 === 0)?.index).toBe(997);
    expect(JSON.stringify(steps)).toBe(JSON.stringify(plain));
    expect(Object.keys(steps)).toEqual(Object.keys(plain));
    expect(steps).toEqual(plain);
  });

  it('grow in each copy by itself, and one that is read is the same in all', () => {
    const one = open();
    const other = copyState(one);
    const extra = { ...(plain[0] as RunState['steps'][number]), index: STEPS };
    for (let count = 0; count < 1_000; count += 1) one.steps.push({ ...extra, index: STEPS + count });
    expect([one.steps.length, other.steps.length]).toEqual([STEPS + 1_000, STEPS]);
    expect(one.steps.at(-1)?.index).toBe(STEPS + 999);
    expect(one.steps[1_800]?.index).toBe(1_800);
    expect(other.steps[10]).toBe(one.steps[10]);
  });

  it('do not change in the middle', () => {
    const { steps } = open();
    expect(() => {
      steps[3] = steps[4] as RunState['steps'][number];
    }).toThrow(TypeError);
    expect(() => {
      steps.length = 2;
    }).toThrow(TypeError);
    expect(steps[3]?.index).toBe(3);
  });
});

describe('a packed state', () => {
  it('has blocks that the next one shares', () => {
    const entries = longJournal(STEPS);
    const early = packState(foldEntries(entries.slice(0, 1 + 2 * 700)), 0);
    const late = packState(foldEntries(entries), early.blocks.length);
    expect(early.blocks.length).toBeGreaterThan(1);
    expect(late.from).toBe(early.blocks.length);
    expect(late.blocks.length).toBeGreaterThan(1);
    const state = unpackState(late.body, [...early.blocks, ...late.blocks]);
    expect(JSON.stringify(state)).toBe(JSON.stringify(foldEntries(entries)));
  });

  it('is nothing when a byte of it has changed, or a block is missing', () => {
    const { body, blocks } = packState(longState(), 0);
    const broken = (bytes: Uint8Array): Uint8Array =>
      bytes.with(bytes.length >> 1, (bytes[bytes.length >> 1] ?? 0) ^ 1);
    expect(unpackState(broken(body), blocks)).toBeUndefined();
    expect(unpackState(body, blocks.with(1, broken(blocks[1] as Uint8Array)))).toBeUndefined();
    expect(unpackState(body, blocks.slice(1))).toBeUndefined();
    expect(unpackState(body, blocks)?.head).toBe(1 + 2 * STEPS);
  });
});
