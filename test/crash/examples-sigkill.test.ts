/** The process of one example is killed once; `examples-sigkill.soak.test.ts` kills all of them, at every moment. */
import { describe, expect, it } from 'vitest';
import { doneTwice, examples, play } from './examples.ts';

/** A question that a person answers. */
const PLAYED = /^46-/;

describe.each(examples.filter((name) => PLAYED.test(name)))('%s', (example) => {
  it('comes to the same when it is killed in the middle and started again', async () => {
    const { moments, runs } = await play(example);
    const killed = await play(example, Math.ceil(moments / 2));
    expect(killed).toMatchObject({ runs, problems: [] });
  });
});

describe('what is done twice', () => {
  const recorded = ['§ started', 'book hotel', '§ call_ended'];

  it('is found when it was recorded before', () => {
    expect(doneTwice([...recorded, 'book hotel'])).toEqual(['It did again what was recorded: book hotel']);
  });

  it('is no fault when the process died before that was recorded, nor is another booking', () => {
    expect(doneTwice([...recorded, 'book flight', '§ killed', 'book flight', '§ call_ended'])).toEqual([]);
  });
});
