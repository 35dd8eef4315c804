/** A run as one JSON value, with all that it was given and came to: to be kept, sent and read without its journal. */
import {
  type ArtifactRow,
  type Compaction,
  type ControlType,
  deepFreeze,
  type Entry,
  type GroupView,
  type Identity,
  isJsonObject,
  type JsonObject,
  PilotageError,
  type PlanningHints,
  type Resumed,
  type RunContext,
  type Step,
} from '#core';
import { applyEntry, openState } from './fold.ts';
import type { Ending, RunState } from './state.ts';
import { groupView } from './task-state.ts';

/** What the run came from, or was given to work with. */
export interface TrajectorySource {
  readonly kind:
    | 'fork'
    | 'task'
    | 'attachment'
    | 'artifact'
    | 'external_memory'
    | 'conversation_memory'
    | 'retrieved'
    | 'skill';
  /** The id of a run, the reference of an artifact, the name of a skill, or the key of the run's context. */
  readonly ref: string;
}

export interface RunTrajectory {
  /** The version of this format. */
  readonly format: 1;
  readonly identity: Identity;
  readonly query: string;
  readonly goal: string;
  readonly agent: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly context: RunContext;
  readonly sources: readonly TrajectorySource[];
  readonly hints: PlanningHints;
  /** Those that have ended. */
  readonly steps: readonly Step[];
  readonly summary?: Compaction;
  readonly steering: readonly { readonly kind: ControlType; readonly payload: JsonObject; readonly atStep: number }[];
  /** What groups of tasks came to, by their ids. */
  readonly background: Readonly<Record<string, GroupView>>;
  /** Artifacts that were given or stored, by file name; by their references where they have no file name, or share one. */
  readonly artifacts: Readonly<Record<string, ArtifactRow>>;
  /** The last answer to a pause. */
  readonly resume?: { readonly token: string; readonly resumedAt: number; readonly payload: JsonObject };
  /** `null`: the run has not ended. */
  readonly ending: Ending | null;
}

const FORMAT = 1;

/** @param entries the whole journal of the run. @throws PilotageError `journal_corrupt`. */
export function trajectoryOf(entries: readonly Entry[]): RunTrajectory {
  const [first, ...rest] = entries;
  if (first === undefined) throw new PilotageError('journal_corrupt', 'The journal of the run is empty.');
  const state = openState(first);
  let answer: (Resumed & Pick<Entry, 'at'>) | undefined;
  for (const entry of rest) {
    applyEntry(state, entry);
    if (entry.kind === 'resumed') answer = entry;
  }
  const { identity, query, goal, agent, startedAt, context, compaction, ending } = state;
  return deepFreeze({
    format: FORMAT,
    identity,
    query,
    goal,
    agent,
    startedAt,
    context,
    sources: sourcesOf(state),
    hints: context.hints ?? {},
    steps: [...state.steps],
    ...(compaction === null ? {} : { summary: compaction }),
    steering: state.steering.map(({ control: { type, payload = {} }, atStep }) => ({ kind: type, payload, atStep })),
    background: backgroundOf(state),
    artifacts: namedArtifacts(artifactsOf(state)),
    ...(answer === undefined ? {} : { resume: resumeOf(answer) }),
    ending,
  });
}

/**
 * Reads what `JSON.stringify` made of a trajectory, frozen.
 * @throws PilotageError `journal_corrupt` for a value that is not a trajectory, `journal_newer` for a format that this version does not know.
 */
export function readTrajectory(text: string): RunTrajectory {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new PilotageError('journal_corrupt', 'The trajectory is not JSON.', { cause });
  }
  if (!isJsonObject(value)) throw new PilotageError('journal_corrupt', 'The trajectory is not an object.');
  const { format, steps, identity } = value;
  if (typeof format === 'number' && format > FORMAT) {
    const message = `The trajectory has format ${format}; this version of Pilotage reads ${FORMAT}. Upgrade Pilotage.`;
    throw new PilotageError('journal_newer', message);
  }
  if (format !== FORMAT || !Array.isArray(steps) || !isJsonObject(identity)) {
    throw new PilotageError(
      'journal_corrupt',
      'The value is not a trajectory: its format, identity or steps are missing.',
    );
  }
  return deepFreeze(value) as unknown as RunTrajectory;
}

function sourcesOf({ context, fork, task }: RunState): TrajectorySource[] {
  const { inputs = [], artifacts, skills = [] } = context;
  return [
    ...(fork === null ? [] : [{ kind: 'fork' as const, ref: fork.run }]),
    ...(task === null ? [] : [{ kind: 'task' as const, ref: task.parent }]),
    ...inputs.map(({ artifactRef }) => ({ kind: 'attachment' as const, ref: artifactRef })),
    ...(artifacts?.rows ?? []).map(({ artifactRef }) => ({ kind: 'artifact' as const, ref: artifactRef })),
    ...(context.externalMemory == null ? [] : [{ kind: 'external_memory' as const, ref: 'externalMemory' }]),
    ...(context.conversationMemory == null
      ? []
      : [{ kind: 'conversation_memory' as const, ref: 'conversationMemory' }]),
    ...(context.retrieved == null ? [] : [{ kind: 'retrieved' as const, ref: 'retrieved' }]),
    ...skills.map(({ name }) => ({ kind: 'skill' as const, ref: name })),
  ];
}

function backgroundOf(state: RunState): Record<string, GroupView> {
  return Object.fromEntries(
    state.groups.flatMap(({ id }) => {
      const view = groupView(state, id);
      return view === undefined ? [] : [[id, view] as const];
    }),
  );
}

function artifactsOf({ context, steps, startedAt }: RunState): ArtifactRow[] {
  const given = (context.inputs ?? []).map((input) => ({ ...input, source: 'user', createdAt: startedAt }));
  const files = steps.flatMap(
    (step) => step.files?.map((file) => ({ ...file, source: 'model', createdAt: step.endedAt })) ?? [],
  );
  const made = steps.flatMap(({ calls, decision }) =>
    calls.flatMap(({ artifacts = [], outcome, endedAt }) => {
      const source = decision.kind === 'call_tool' ? `tool: ${decision.tool}` : 'unknown';
      const whole =
        outcome.kind === 'value' && outcome.artifact !== undefined
          ? [{ ...outcome.artifact, source, createdAt: endedAt }]
          : [];
      return [...artifacts, ...whole];
    }),
  );
  return [...given, ...(context.artifacts?.rows ?? []), ...made, ...files];
}

function namedArtifacts(rows: readonly ArtifactRow[]): Record<string, ArtifactRow> {
  const named = new Map<string, ArtifactRow>();
  for (const row of rows) {
    const { fileName = row.artifactRef } = row;
    const isTaken = (named.get(fileName)?.artifactRef ?? row.artifactRef) !== row.artifactRef;
    named.set(isTaken ? row.artifactRef : fileName, row);
  }
  return Object.fromEntries(named);
}

function resumeOf({ token, at, payload = {} }: Resumed & Pick<Entry, 'at'>): NonNullable<RunTrajectory['resume']> {
  return { token, resumedAt: at, payload };
}
