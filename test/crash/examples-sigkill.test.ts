/** How what an example does twice is told; `examples-sigkill.soak.test.ts` kills the examples at every moment. */
import { describe, expect, it } from 'vitest';
import { doneTwice } from './examples.ts';

describe('what is done twice', () => {
  const recorded = ['§ started', 'book hotel', '§ call_ended'];

  it('is found when it was recorded before', () => {
    expect(doneTwice([...recorded, 'book hotel'])).toEqual(['It did again what was recorded: book hotel']);
  });

  it('is no fault when the process died before that was recorded, nor is another booking', () => {
    expect(doneTwice([...recorded, 'book flight', '§ killed', 'book flight', '§ call_ended'])).toEqual([]);
  });
});
