/** What a run is given beside its query. All of it is recorded when the run starts, so that every request can be rebuilt. */
import type { ArtifactRef, InputArtifact } from './artifact.ts';
import type { Json, JsonObject } from './json.ts';

/** Advice to a planner. An absent field is not mentioned to the model. */
export interface PlanningHints {
  readonly constraints?: string;
  /** Tool names in the order in which they are best used. */
  readonly preferredOrder?: readonly string[];
  /** Names of tools that may be called in parallel. */
  readonly parallelGroups?: readonly (readonly string[])[];
  /** How many calls are best made at once. This is advice: more calls are still carried out, up to 50. */
  readonly maxParallel?: number;
  /** Names of tools that the run must not use: no planner is shown them, and no call of them is made. */
  readonly disallowedTools?: readonly string[];
  readonly preferredTools?: readonly string[];
  /** What the work should cost. This is advice; `Limits` bind. */
  readonly budget?: {
    readonly steps?: number;
    readonly costUsd?: number;
    readonly latencyMs?: number;
  };
}

/** A way of working that an operator wrote down. */
export interface Skill {
  readonly name: string;
  readonly title: string;
  readonly description?: string;
  readonly steps?: readonly string[];
}

/** Bytes that are stored as an artifact of the session: an attachment that is given to a run, or a file that its model has made. */
export interface InputFile {
  readonly bytes: Uint8Array;
  /** Media type, such as `image/png`. */
  readonly mime: string;
  readonly fileName?: string;
}

/** An attachment with its bytes. The bytes are absent when it could not be read. */
export interface LoadedInput extends InputArtifact {
  readonly bytes?: Uint8Array;
}

/** A stored value of the session, without its bytes. */
export interface ArtifactRow extends ArtifactRef {
  readonly fileName?: string;
  /** Who made the value: `tool: <name>`, `user`, or `unknown`. */
  readonly source: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

export type ReasoningReplay = 'never' | 'text';

export interface RunContext {
  /** What the run before has left to this one, which goes on where that one has ended. */
  readonly carried?: Json;
  /** Arguments of a planner that is called like a function, such as the input of a flow. */
  readonly args?: Json;
  /**
   * Data that goes with the arguments, which every tool of the run may read. The key `route_policy` holds choices for a flow's
   * routers.
   */
  readonly meta?: JsonObject;
  readonly hints?: PlanningHints;
  /** Facts from outside the session, such as a user profile: data for the model, never instructions. */
  readonly externalMemory?: Json;
  /** What is known of the session before the turns in `history`. */
  readonly conversationMemory?: Json;
  /** Documents that were looked up for this query. */
  readonly retrieved?: Json;
  /** Skills of the run. The model is shown at most 5; the others are found by search. */
  readonly skills?: readonly Skill[];
  readonly inputs?: readonly InputArtifact[];
  /** The newest artifacts of the session when the run started, and how many more there were. */
  readonly artifacts?: { readonly rows: readonly ArtifactRow[]; readonly more: number };
  /** Replaces the planner's own setting. */
  readonly reasoningReplay?: ReasoningReplay;
}

// The skills that a run was given, to look up and to search. Pure; looking up an unknown skill does not throw.

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

export function skillView(skills?: readonly Skill[]): SkillView {
  return skills === undefined ? NO_SKILLS : new GivenSkills(skills);
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

const NO_SKILLS: SkillView = new GivenSkills(NONE);

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
