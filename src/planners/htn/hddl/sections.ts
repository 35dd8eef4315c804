/** What domains and problems share: the frame `(define (domain x) (:section …) …)` and lists of `:key value`. */
import type { Sections } from './subtasks.ts';
import { found, headOf, invalidHddl, isList, type List, listOf, nameOf, readTree, type Tree, wordOf } from './tree.ts';

/** Sections by name, in file order. */
export interface Frame {
  readonly name: string;
  readonly root: List;
  readonly sections: readonly List[];
}

export function readFrame(text: string, file: string, kind: 'domain' | 'problem'): Frame {
  const root = readTree(text, file);
  if (headOf(root) !== 'define')
    throw invalidHddl(root.place, `expected "(define (${kind} …) …)", found ${found(root)}`);
  const title = listOf(root.items[1], `(${kind} <name>)`, root.place);
  if (headOf(title) !== kind) throw invalidHddl(title.place, `expected (${kind} <name>), found ${found(title)}`);
  const name = nameOf(title.items[1], `the name of the ${kind}`, title.place).text;
  const sections = root.items.slice(2).map((item) => listOf(item, 'a section such as (:types …)', item.place));
  return { name, root, sections };
}

/** The one section of that name. @throws hddl_invalid for a second one */
export function oneSection(frame: Frame, name: string): List | undefined {
  const [first, second] = frame.sections.filter((section) => headOf(section) === name);
  if (second !== undefined) throw invalidHddl(second.place, `found a second (${name} …)`);
  return first;
}

/** @throws hddl_invalid for a section that is not one of `names` */
export function checkSections(frame: Frame, names: ReadonlySet<string>): void {
  for (const section of frame.sections) {
    if (names.has(headOf(section))) continue;
    throw invalidHddl(section.place, `found ${found(section)}: this section is outside the subset read here`);
  }
}

/** `:key value` pairs, from the item at `start`. Keys in small letters. */
export function readKeys(list: List, start: number, names: readonly string[]): Sections {
  const sections = new Map<string, { key: ReturnType<typeof wordOf>; value: Tree | undefined }>();
  for (let index = start; index < list.items.length; index += 2) {
    const key = wordOf(list.items[index], `one of ${names.join(' ')}`, list.place);
    const name = key.text.toLowerCase();
    if (!names.includes(name)) throw invalidHddl(key.place, `expected one of ${names.join(' ')}, found ${found(key)}`);
    if (sections.has(name)) throw invalidHddl(key.place, `found a second ${name}`);
    const value = list.items[index + 1];
    if (value !== undefined && !isList(value) && value.text.startsWith(':')) {
      throw invalidHddl(value.place, `expected the value of ${name}, found ${found(value)}`);
    }
    sections.set(name, { key, value });
  }
  return sections;
}

const REQUIREMENTS = new Set([
  ':strips',
  ':typing',
  ':hierarchy',
  ':htn',
  ':htn-method-prec',
  ':htn-method-pre',
  ':method-preconditions',
  ':negative-preconditions',
  ':disjunctive-preconditions',
  ':universal-preconditions',
  ':existential-preconditions',
  ':quantified-preconditions',
  ':conditional-effects',
  ':equality',
  ':adl',
  ':action-costs',
]);

/** @throws hddl_invalid for a requirement that the reader does not meet */
export function checkRequirements(frame: Frame): void {
  for (const item of oneSection(frame, ':requirements')?.items.slice(1) ?? []) {
    const word = wordOf(item, 'a requirement such as :typing', item.place);
    if (REQUIREMENTS.has(word.text.toLowerCase())) continue;
    throw invalidHddl(word.place, `requirement ${found(word)} is outside the subset read here`);
  }
}
