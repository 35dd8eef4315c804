/** The runs whose process is killed: each provider with calls, whose reply has what it wants back, in one piece and streamed. */
import { PROVIDERS } from './replies/providers.ts';
import type { Place, Provider, Saying } from './replies/saying.ts';

export interface Killed {
  /** Of the run, and of its model's address. */
  readonly id: string;
  readonly provider: Provider;
  readonly stream: boolean;
}

export const KILLED: readonly Killed[] = PROVIDERS.filter(({ places }) => places.includes('calls')).flatMap(
  (provider, index) =>
    [false, true].map((stream) => ({ id: `run_${index}_${stream ? 'streamed' : 'whole'}`, provider, stream })),
);

/** A first reply with everything that the provider has a place for. */
export function fullReply({ places }: Provider): Saying {
  const has = (place: Place) => places.includes(place);
  const thought = { thought: 'I må look it up.', ...(has('sealed') ? { sealed: 'c2lnbmF0dXJl' } : {}) };
  const zurich = { call: 'call_abcdefghi', args: '{"city":"Zürich"}' };
  const tokyo = { call: 'call_bcdefghij', args: '{"city":"東京"}' };
  const said = [
    ...(has('thought') ? [thought] : []),
    { text: 'Ich schaue nach. 👀' },
    zurich,
    ...(has('between') ? [{ text: 'Und dort?' }] : []),
    tokyo,
  ];
  return { said, stop: 'calls' };
}

/** A first reply that the output limit cut off, and a second one that its provider paused, where it does so. */
export const PIECES: (provider: Provider) => readonly [Saying, Saying] = ({ places }) => [
  {
    said: [...(places.includes('sealed') ? [{ thought: 'Hm.', sealed: 'c2lnbmF0dXJl' }] : []), { text: 'One, ' }],
    stop: 'length',
  },
  places.includes('paused')
    ? { said: [{ text: 'two, ' }, { search: 'srvtoolu_1' }], stop: 'paused' }
    : { said: [{ text: 'two, ' }], stop: 'length' },
];

export const LAST: Saying = { said: [{ text: 'It is sunny.' }], stop: 'end' };
