/** How many texts of the corpus give a call, by how sure it has to be. */
import { type CallForm, parseToolCalls } from '#parse';
import { samplesOf, type Template } from './kit.ts';
import { negatives } from './negatives.ts';
import { heldOutNegatives } from './negatives-holdout.ts';
import { positives, taught } from './positives.ts';
import { heldOutRefusals, refusals } from './refusals.ts';

export interface Rate {
  readonly calls: number;
  readonly texts: number;
  /** Templates that gave calls. */
  readonly of: readonly string[];
}

interface Part {
  readonly templates: Readonly<Record<string, Template>>;
  readonly texts: number;
  readonly seed: number;
}

export type PartName = keyof typeof corpus;

/** `refusals` are texts that no call may be `exact` in; `heldOut…` were not looked at when the rules were made. */
export const corpus: Readonly<
  Record<'negatives' | 'heldOut' | 'refusals' | 'heldOutRefusals' | 'positives' | 'taught', Part>
> = {
  negatives: { templates: negatives, texts: 4350, seed: 1 },
  heldOut: { templates: heldOutNegatives, texts: 2000, seed: 50_001 },
  refusals: { templates: refusals, texts: 550, seed: 30_001 },
  heldOutRefusals: { templates: heldOutRefusals, texts: 300, seed: 40_001 },
  positives: { templates: positives, texts: 2200, seed: 90_001 },
  taught: { templates: taught, texts: 400, seed: 70_001 },
};

export function rateOf(name: PartName, strictness: CallForm): Rate {
  const { templates, texts, seed } = corpus[name];
  const of = samplesOf(templates, texts, seed)
    .filter(({ text, tools }) => parseToolCalls(text, tools, { strictness }).calls.length > 0)
    .map((sample) => sample.of);
  return { calls: of.length, texts, of: [...new Set(of)] };
}
