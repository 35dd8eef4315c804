/** What the tests may use of AG-UI. */
export { type AgUiOptions, agUi } from './part.ts';
export type { AgUiEvent } from './protocol.ts';
export { Telling } from './telling.ts';
