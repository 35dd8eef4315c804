export type { LanguageModel } from './language-model.ts';
export type { Prices } from './usage.ts';
