/** How readers in other processes join what was put for them: whatever is put late, twice or not at all, each has the text once. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Entry, Json, SpokenDelta } from '#core';
import { Incoming, type Notice, OutgoingPassing, Said } from '#runtime';

type Row = { readonly number: number; readonly fence: number; readonly value: Json };

/** What somebody has put together who is told this, and takes back what was said at each reset. */
class Told {
  readonly texts = new Map<string, string>();

  hear(notice: Notice): void {
    if (notice.type !== 'delta') return;
    const { step, delta, offset } = notice;
    if (delta.type === 'reset') {
      for (const name of this.texts.keys()) if (name.startsWith(`${step} `)) this.texts.delete(name);
      return;
    }
    const name = `${step} ${delta.type === 'input' ? delta.callId : delta.type}`;
    const before = this.texts.get(name) ?? '';
    // Neither a gap nor a repetition.
    expect(offset).toBe(before.length);
    this.texts.set(name, before + delta.text);
  }

  of(step: number): Record<string, string> {
    const own = [...this.texts].filter(([name]) => name.startsWith(`${step} `));
    return Object.fromEntries(own.map(([name, text]) => [name, text]).sort());
  }
}

/** A driver whose rows may get lost, and readers who come at any time. */
class Play {
  readonly #rows: Row[] = [];
  readonly readers: { readonly incoming: Incoming; readonly told: Told; after: number }[] = [];
  readonly truth = new Told();
  #numbers = 0;
  #fence = 1;
  #step = 0;
  #said = new Said(0);
  #lengths = new Map<string, number>();
  #outgoing = new OutgoingPassing(() => true);

  say(delta: SpokenDelta): void {
    const channel = delta.type === 'input' ? delta.callId : delta.type;
    const offset = this.#lengths.get(channel) ?? 0;
    if (delta.type === 'reset') {
      this.#said = new Said(this.#step);
      this.#lengths.clear();
    } else {
      this.#said.add(delta);
      this.#lengths.set(channel, offset + delta.text.length);
    }
    const notice: Notice = { type: 'delta', step: this.#step, delta, offset: delta.type === 'reset' ? 0 : offset };
    this.truth.hear(notice);
    this.#outgoing.hear(notice);
  }

  /** @param fate what becomes of the row: the driver hears of it, or not, whether it was put or not. */
  flush(fate: 'put' | 'lost' | 'unheard'): void {
    if (!this.#outgoing.isDue) return;
    const { clears, value } = this.#outgoing.next(this.#said);
    if (fate !== 'lost') {
      if (clears) this.#rows.length = 0;
      this.#numbers += 1;
      if (value !== undefined) {
        this.#rows.push({ number: this.#numbers, fence: this.#fence, value: JSON.parse(JSON.stringify(value)) });
      }
    }
    if (fate !== 'put') this.#outgoing.failed();
  }

  decide(): void {
    this.#outgoing.hear({ type: 'entry', entry: { kind: 'moved', step: this.#step } as unknown as Entry });
    this.#begin(this.#step + 1);
  }

  /** The driver is gone, and the next one asks for the step again. */
  die(): void {
    this.#fence += 1;
    this.truth.hear({ type: 'delta', step: this.#step, delta: { type: 'reset' }, offset: 0 });
    this.#outgoing = new OutgoingPassing(() => true);
    this.#begin(this.#step);
  }

  #begin(step: number): void {
    this.#step = step;
    this.#said = new Said(step);
    this.#lengths.clear();
  }

  comes(): void {
    this.readers.push({ incoming: new Incoming(), told: new Told(), after: 0 });
  }

  reads(which: number): void {
    const reader = this.readers[which % Math.max(1, this.readers.length)];
    if (reader === undefined) return;
    for (const { number, fence, value } of this.#rows.filter((row) => row.number > reader.after)) {
      reader.after = number;
      for (const notice of reader.incoming.accept(fence, value)) reader.told.hear(notice);
    }
  }

  get step(): number {
    return this.#step;
  }
}

const delta: fc.Arbitrary<SpokenDelta> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constantFrom('text' as const, 'reasoning' as const), text: fc.string() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('input' as const),
      callId: fc.constantFrom('c1', 'c2'),
      tool: fc.constant('t'),
      text: fc.string({ maxLength: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ type: 'reset' as const }) },
);

type Act = (play: Play) => void;

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 10,
    arbitrary: delta.map(
      (said): Act =>
        (play) =>
          play.say(said),
    ),
  },
  {
    weight: 8,
    arbitrary: fc.constantFrom('put', 'put', 'put', 'lost', 'unheard').map(
      (fate): Act =>
        (play) =>
          play.flush(fate as 'put'),
    ),
  },
  {
    weight: 8,
    arbitrary: fc.nat(3).map(
      (which): Act =>
        (play) =>
          play.reads(which),
    ),
  },
  { weight: 2, arbitrary: fc.constant<Act>((play) => play.comes()) },
  { weight: 1, arbitrary: fc.constant<Act>((play) => play.decide()) },
  { weight: 1, arbitrary: fc.constant<Act>((play) => play.die()) },
);

describe('what passes on its way to other processes', () => {
  it('is joined to the same text by every reader, whenever it comes and whatever is lost', () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 120 }), (acts) => {
        const play = new Play();
        play.comes();
        for (const each of acts) each(play);
        play.comes();
        // The last row is put, and said again when it was not.
        play.say({ type: 'text', text: '.' });
        play.flush('put');
        play.flush('put');
        for (let which = 0; which < play.readers.length; which += 1) play.reads(which);
        const truth = play.truth.of(play.step);
        for (const { told } of play.readers) expect(told.of(play.step)).toEqual(truth);
      }),
      { numRuns: 500 },
    );
  });

  it('becomes one row again when there are many', () => {
    const play = new Play();
    play.comes();
    for (let count = 0; count < 1_000; count += 1) {
      play.say({ type: 'text', text: `${count} ` });
      play.flush('put');
    }
    play.reads(0);
    expect(play.readers[0]?.told.of(0)).toEqual(play.truth.of(0));
  });

  it('has no secret that came in pieces, and takes back what was said of it', () => {
    const outgoing = new OutgoingPassing((text) => !text.includes('secret'));
    const said = new Said(0);
    const values: string[] = [];
    const told = new Told();
    const incoming = new Incoming();
    let offset = 0;
    for (const text of ['a s', 'ec', 'r', 'et key', ' b']) {
      said.add({ type: 'text', text });
      outgoing.hear({ type: 'delta', step: 0, delta: { type: 'text', text }, offset });
      offset += text.length;
      if (!outgoing.isDue) continue;
      const { value = null } = outgoing.next(said);
      values.push(JSON.stringify(value));
      for (const notice of incoming.accept(1, value)) told.hear(notice);
    }
    expect(told.of(0)).toEqual({});
    expect(values.join('')).not.toContain('et key');
    outgoing.hear({ type: 'delta', step: 1, delta: { type: 'text', text: 'fine' }, offset: 0 });
    for (const notice of incoming.accept(1, outgoing.next(undefined).value ?? null)) told.hear(notice);
    expect(told.of(1)).toEqual({ '1 text': 'fine' });
  });

  it('of a driver that has lost the run, or of another version, is not told', () => {
    const incoming = new Incoming();
    const batch = { step: 0, take: 0, said: [{ type: 'text', text: 'a', offset: 0 }], passed: [] };
    expect([...incoming.accept(2, batch)]).toHaveLength(1);
    expect([...incoming.accept(1, batch)]).toEqual([]);
    for (const odd of [
      null,
      5,
      {},
      { ...batch, said: [{ type: 'picture', text: 'a', offset: 0 }] },
      { ...batch, take: 'x' },
    ])
      expect([...incoming.accept(3, odd as Json)]).toEqual([]);
  });
});
