/** How surely a text makes a call, and which calls a caller takes. */

/**
 * - `exact`: the very form that the text-mode prompt teaches, at the end of a reply that says nothing else or sets out to
 *   call. Nothing was repaired, guessed or renamed.
 * - `clear`: the tool is named together with its arguments in one of the many forms of models, in a place where a reply
 *   makes a call, behind no words or words that set out to call.
 * - `loose`: a call that the words before it show or lead up to in another way, with all required arguments; or arguments
 *   without a name, which only one tool takes.
 */
export type CallForm = 'exact' | 'clear' | 'loose';

const FORMS: readonly CallForm[] = ['exact', 'clear', 'loose'];

/** Whether a call of that form is at least as sure as asked. */
export function isSureEnough(form: CallForm, strictness: CallForm): boolean {
  return FORMS.indexOf(form) <= FORMS.indexOf(strictness);
}
