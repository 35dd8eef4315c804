/** What an agent remembers of its user: which part of the long-term store that is, and what a run is told of it. */
import type { Identity } from './identity.ts';
import type { JsonObject } from './json.ts';
import type { Step } from './step.ts';
import type { Namespace, StoreItem, StoreSource } from './store.ts';

/** Inside the memory of a user: what is recalled lies here and below. */
export const MEMORY: Namespace = Object.freeze(['memory']);
/** The key of the profile, in `MEMORY`. */
export const PROFILE = 'profile';
/** Where the tool `remember` writes facts, each an object with its `text`. */
export const FACTS: Namespace = Object.freeze([...MEMORY, 'facts']);

/** What a planner has remembered for its runs. */
export interface PlannerMemory {
  /** The schema of the profile of a user: a Standard Schema, or a JSON Schema, of an object. Absent: there are only facts. */
  readonly profile?: object;
  /** How many items a run is told of at its start: those that fit its query best. */
  readonly recall: number;
  /** What of a run that has ended is worth remembering. `runtime.extractMemory` asks it. */
  readonly extract?: (ended: EndedRun) => readonly ExtractedFact[] | Promise<readonly ExtractedFact[]>;
}

/** A run that has ended, for whoever reads out of it what is worth remembering. */
export interface EndedRun {
  readonly identity: Identity;
  readonly query: string;
  readonly steps: readonly Step[];
  /** What it has finished with, in words. */
  readonly answer?: string;
}

export interface ExtractedFact {
  readonly text: string;
  /** The step that says so. Default: the last one. */
  readonly step?: number;
}

/** What a run is told of the memory of its user, as it was at the run's start. */
export interface Recalled {
  readonly profile?: JsonObject;
  readonly items: readonly RecalledItem[];
}

export interface RecalledItem extends Pick<StoreItem, 'namespace' | 'key' | 'value'> {
  readonly score: number;
  readonly source?: StoreSource;
}
