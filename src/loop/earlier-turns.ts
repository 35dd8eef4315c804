/** The conversation before a run, as its planner is shown it: what the caller gave, or what the runs of the session said. */
import {
  type Continued,
  deepFreeze,
  type InputArtifact,
  PilotageError,
  type Scope,
  type Turn,
  type TurnPart,
} from '#core';
import type { ArtifactStore, Journal } from '#journal';
import { type Exchange, exchangesOf, foldEntries, type RunState } from '#state';
import { answerOf } from '../calls/large-values.ts';
import { loadInputs } from './inputs.ts';

export interface TurnSources {
  readonly journal: Pick<Journal, 'read'>;
  readonly artifacts: ArtifactStore;
}

/** Whether there is something to load before the planner can be asked. */
export function hasEarlierTurns({ continues, history }: Pick<RunState, 'continues' | 'history'>): boolean {
  return continues !== null || history.some(({ parts }) => parts?.some(isFile));
}

/**
 * The turns with the bytes of their files, frozen. The same entries always give the same turns.
 * @throws PilotageError of a store that cannot be read for now.
 */
export async function earlierTurns(
  { continues, history, identity }: Pick<RunState, 'continues' | 'history' | 'identity'>,
  sources: TurnSources,
): Promise<readonly Turn[]> {
  const turns = continues === null ? history : await sessionTurns(continues, identity, sources);
  return deepFreezeTurns(await Promise.all(turns.map((turn) => withFiles(turn, identity, sources.artifacts))));
}

/** Bytes cannot be frozen. */
function deepFreezeTurns(turns: readonly Turn[]): readonly Turn[] {
  for (const turn of turns) {
    for (const part of turn.parts ?? []) if (part.type !== 'file') deepFreeze(part);
    Object.freeze(turn.parts);
    Object.freeze(turn);
  }
  return Object.freeze(turns);
}

/** A turn of a session as whoever sums it up gets it. */
export interface SessionTurn {
  readonly run: string;
  readonly user: string;
  /** `null`: there is no answer. */
  readonly assistant: string | null;
}

/** What a run of the session has said, oldest first, with its texts whole. @param head how many of its entries count. */
export async function turnsOfRun(
  run: string,
  head: number,
  scope: Scope,
  { journal, artifacts }: TurnSources,
): Promise<readonly SessionTurn[]> {
  const exchanges = await exchangesIn(run, head, journal);
  return Promise.all(
    exchanges.map(async (exchange) => {
      const { said, answer } = exchange;
      const texts = [...said, ...(answer === undefined ? [] : [await answerOf(answer, scope, artifacts)])];
      const words = texts.filter((text) => text !== undefined && text !== '');
      return { run, user: exchange.user, assistant: words.length === 0 ? null : words.join('\n\n') };
    }),
  );
}

async function sessionTurns({ runs, turns }: Continued, scope: Scope, sources: TurnSources): Promise<Turn[]> {
  let room = turns;
  const told: Turn[][] = [];
  for (const { run, head } of runs.toReversed()) {
    const exchanges = await exchangesIn(run, head, sources.journal);
    const shown = exchanges.slice(-Math.max(1, room));
    room -= shown.length;
    const pairs = await Promise.all(shown.map((exchange) => turnsOf(exchange, scope, sources.artifacts)));
    told.push(pairs.flat());
  }
  return told.toReversed().flat();
}

const UNREADABLE = '(a message that cannot be read any more)';

async function exchangesIn(run: string, head: number, journal: TurnSources['journal']): Promise<readonly Exchange[]> {
  try {
    return exchangesOf(foldEntries(await journal.read(run, 1, head)));
  } catch (error) {
    // A damaged run must not stop all later ones of its session.
    if (!isOfRun(error)) throw error;
    return [{ user: UNREADABLE, inputs: [], said: [], files: [], unanswered: 'The run is damaged.' }];
  }
}

/** Whether something is wrong with the run alone: its entries are damaged, or a newer version has written them. */
function isOfRun(error: unknown): boolean {
  if (PilotageError.is(error, 'journal_newer')) return error.data?.['run'] !== undefined;
  return PilotageError.is(error, 'journal_corrupt') || PilotageError.is(error, 'journal_entry_unknown');
}

/** Keeps the roles alternating, which some servers insist on. */
async function turnsOf(exchange: Exchange, scope: Scope, artifacts: ArtifactStore): Promise<Turn[]> {
  const { user, inputs, said, files, answer, unanswered } = exchange;
  const answered = answer === undefined ? undefined : await answerOf(answer, scope, artifacts);
  const why =
    answer === undefined
      ? unanswered
      : (answered === undefined || answered === '') && files.length === 0
        ? 'There is no answer.'
        : undefined;
  const words = [...said, answered ?? '', why === undefined ? '' : `(${why})`].filter((text) => text !== '');
  return [turnWith('user', user, inputs), turnWith('assistant', words.join('\n\n'), files)];
}

function turnWith(role: 'user' | 'assistant', text: string, inputs: readonly InputArtifact[]): Turn {
  if (inputs.length === 0) return { role, text };
  const files = inputs.map((input): TurnPart => ({ type: 'file', ...input }));
  return { role, text, parts: text === '' ? files : [{ type: 'text', text }, ...files] };
}

async function withFiles(turn: Turn, scope: Scope, artifacts: ArtifactStore): Promise<Turn> {
  const files = turn.parts?.filter(isFile) ?? [];
  if (turn.parts === undefined || files.length === 0) return turn;
  const loaded = await loadInputs(files, scope, artifacts);
  let next = 0;
  return { ...turn, parts: turn.parts.map((part) => (isFile(part) ? (loaded[next++] as typeof part) : part)) };
}

function isFile(part: TurnPart): part is Extract<TurnPart, { type: 'file' }> {
  return part.type === 'file';
}
