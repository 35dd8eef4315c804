/** The skills that a run was given, to look up and to search. Pure; looking up an unknown skill does not throw. */
import type { Skill } from './context.ts';

/** How many skills are shown whole; the others are found by search. */
export const SHOWN_SKILLS = 5;

export interface SkillHit {
  readonly skill: Skill;
  /** From 0 to 1: how much of the query the skill has. */
  readonly score: number;
}

export interface SkillView {
  list(): readonly Skill[];
  get(name: string): Skill | undefined;
  /** Skills that have at least one word of the query, best first. `limit`: default 10. */
  search(query: string, limit?: number): readonly SkillHit[];
}

const DEFAULT_LIMIT = 10;
const MAX_WORDS = 16;
const NONE: readonly Skill[] = Object.freeze([]);

export function skillView(skills: readonly Skill[] = NONE): SkillView {
  return new GivenSkills(skills);
}

class GivenSkills implements SkillView {
  readonly #skills: readonly Skill[];

  constructor(skills: readonly Skill[]) {
    this.#skills = skills;
    Object.freeze(this);
  }

  list(): readonly Skill[] {
    return this.#skills;
  }

  get(name: string): Skill | undefined {
    return this.#skills.find((skill) => skill.name === name);
  }

  search(query: string, limit: number = DEFAULT_LIMIT): readonly SkillHit[] {
    return this.#skills
      .map((skill): SkillHit => ({ skill, score: scoreOf(skill, query) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .slice(0, Math.max(0, limit));
  }
}

/** The share of the query's words that the skill has; a word of its name or title counts whole, one of the rest half. */
function scoreOf({ name, title, description = '', steps = [] }: Skill, query: string): number {
  const wanted = fold(query);
  if (wanted.trim() === fold(name)) return 1;
  const words = [...new Set(wanted.match(/[\p{L}\p{N}]+/gu))].slice(0, MAX_WORDS);
  if (words.length === 0) return 0;
  const head = fold(`${name}\n${title}`);
  const rest = fold([description, ...steps].join('\n'));
  const found = words.reduce((sum, word) => sum + (head.includes(word) ? 1 : rest.includes(word) ? 0.5 : 0), 0);
  return found / words.length;
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}
