/** What several routes need of a visitor: whose runs are meant, and what of the body becomes options of the runtime. */
import { defined, type Json, type Labels, PilotageError } from '#core';
import type { RunRecord } from '#journal';
import type { MessageFile, UserMessage } from '#messages';
import type { Session, SessionOptions, StartOptions } from '#runtime';
import { schemaErrors } from '#schema';
import type { Action } from '../access.ts';
import { RequestRefused } from '../problem.ts';
import { fileBytes } from '../request-body.ts';
import type { Visit } from '../visit.ts';
import type { PublicRecord } from './reply-shapes.ts';
import type { MessageBody, SendBody, SentFile } from './request-shapes.ts';
import type { Typed } from './route.ts';

export interface Owner {
  readonly tenant?: string;
  readonly user?: string;
  readonly session?: string;
}

/**
 * Which runs a list is of: an admin's is of all that they ask for, that of everybody else of their own.
 * @returns `undefined` when somebody asks for those of others, of which there are none for them.
 */
export function listedFor(visit: Visit, asked: Owner): Owner | undefined {
  const { tenant, user, session } = asked;
  if (visit.isAdmin) return defined({ tenant, user, session });
  const own: Owner = { ...visit.owner, ...defined({ session: visit.access.identity.session ?? session }) };
  const isOwn = (part: keyof Owner): boolean => asked[part] === undefined || asked[part] === own[part];
  return isOwn('tenant') && isOwn('user') && isOwn('session') ? own : undefined;
}

/** The tenant that the visitor may speak for. @throws PilotageError `run_not_found`. */
export function tenantOf(visit: Visit, { tenant }: { readonly tenant?: string }): string {
  const own = visit.owner.tenant;
  if (tenant === undefined || tenant === own || visit.isAdmin) return tenant ?? own;
  throw new PilotageError('run_not_found', `There is nothing of the tenant ${tenant}.`);
}

/**
 * What a request that names an agent may begin. An agent that the visitor may not start is told of as one that there is not: which of both it is, is nobody's business.
 * @throws PilotageError `agent_unknown`, and what `act` throws.
 */
export async function withNamed<T>(agent: string | undefined, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const isHidden =
      error instanceof RequestRefused && error.code === 'forbidden' && error.data?.['action'] === 'start';
    if (agent === undefined || !isHidden) throw error;
    throw new PilotageError('agent_unknown', `The agent ${agent} may not be started.`, {
      data: { agent },
      cause: error,
    });
  }
}

/** The session of the path. An admin names whose it is. @throws PilotageError `run_not_found`, `agent_unknown`; RequestRefused `forbidden`. */
export async function sessionOf(
  visit: Visit,
  id: string,
  action: Action,
  of: Owner,
  options: Omit<SessionOptions, 'identity'> = {},
): Promise<{ readonly session: Session; readonly scope: { tenant: string; user: string; session: string } }> {
  const owner = { ...visit.owner, ...defined({ tenant: of.tenant, user: of.user }) };
  const scope = { ...owner, session: id };
  if (listedFor(visit, of) === undefined) throw new PilotageError('run_not_found', `There is no session ${id}.`);
  const isOthers = visit.isAdmin && (of.tenant !== undefined || of.user !== undefined);
  const session = await withNamed(options.agent, () =>
    isOthers ? visit.sessionOf(id, action, options, owner) : visit.session(id, action, options),
  );
  return { session, scope };
}

/**
 * A page of those that the visitor may know of. The others are passed over, and show neither in its size nor in where it ends.
 * @param read gives at most `limit` of all, behind a place.
 */
export async function shownPage<T>(
  limit: number,
  after: string | undefined,
  read: (after: string | undefined) => Promise<readonly T[]>,
  placeOf: (item: T) => string,
  isShown: (item: T) => Promise<boolean>,
): Promise<{ readonly items: readonly T[]; readonly next?: string }> {
  const items: T[] = [];
  for (let from = after; ; ) {
    const page = await read(from);
    for (const item of page) {
      from = placeOf(item);
      if (!(await isShown(item))) continue;
      const last = items.at(-1);
      if (items.length === limit && last !== undefined) return { items, next: placeOf(last) };
      items.push(item);
    }
    if (page.length < limit) return { items };
  }
}

/** Whether the visitor may look at all runs of a turn: at its last run, and at those that it has gone on with. */
async function seesTurn(visit: Visit, turn: string): Promise<boolean> {
  if (visit.access.may === undefined) return true;
  for (let run: string | undefined = turn; run !== undefined; ) {
    const record: RunRecord | undefined = await visit.seen(run);
    if (record === undefined) return false;
    run = record.turnOrigin?.succeeds;
  }
  return true;
}

/** Those that the visitor may look at whole. */
export async function seenTurns<T extends { readonly turn: string }>(visit: Visit, turns: readonly T[]): Promise<T[]> {
  const seen = await Promise.all(turns.map(({ turn }) => seesTurn(visit, turn)));
  return turns.filter((_, index) => seen[index]);
}

export function publicRecord({ lease: _, ...record }: RunRecord): PublicRecord {
  return record;
}

/** `name=value`, several times. */
export function labelsIn(given: readonly string[] | undefined): Labels | undefined {
  if (given === undefined) return undefined;
  const pairs = given.map((each): [string, string] => {
    const at = each.indexOf('=');
    return [each.slice(0, at), each.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

/** @throws RequestRefused `request_invalid`. */
export function filesIn(files: readonly SentFile[] | undefined): readonly MessageFile[] | undefined {
  return files?.map(({ data, ...file }) => {
    if (data === undefined) return file as MessageFile;
    return { ...file, bytes: fileBytes(data) } as MessageFile;
  });
}

export function userMessageIn({ text, inputs, author, notice }: MessageBody): UserMessage {
  return defined({ text, inputs: filesIn(inputs), author, notice }) as UserMessage;
}

type Beginning = Pick<
  StartOptions,
  'agent' | 'labels' | 'limits' | 'context' | 'whileAsked' | 'onFail' | 'undo' | 'priority'
>;

/**
 * What a run is started with, as far as its visitor may say it. Which scopes its user has, only the program says.
 * @throws RequestRefused `forbidden`.
 */
export function beginningIn(
  visit: Visit,
  given: Omit<SendBody, 'busy' | 'id' | 'clientTools' | keyof MessageBody>,
): Beginning {
  const { agent, labels, limits, context, whileAsked, onFail, undo, priority } = given;
  if (priority !== undefined && !visit.isAdmin) throw forbidden('priority', 'admin');
  if (limits !== undefined && visit.access.as === 'session_user') throw forbidden('limits', 'owner_user');
  return defined({ agent, labels, limits, context, whileAsked, onFail, undo, priority });
}

/** What runs ask of a scope themselves, and sessions and slices do not. @throws RequestRefused `forbidden`. */
export function assertOwner({ access: { as } }: Visit, what: string): void {
  if (as !== 'session_user') return;
  throw new RequestRefused('forbidden', `To ${what} needs the scope owner_user.`, { needs: 'owner_user' });
}

/** What only whoever has the journal could do otherwise. @throws RequestRefused `forbidden`. */
export function assertAdmin(visit: Visit, what: string): void {
  if (!visit.isAdmin) throw new RequestRefused('forbidden', `To ${what} is for an admin.`, { needs: 'admin' });
}

/** Where a page of a list ends, as its `next`. */
export function cursorOf(place: object): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** The place of a cursor that a client has sent. @throws RequestRefused `request_invalid`. */
export function cursorIn<T>(after: string | undefined, { schema }: Typed<T>): T | undefined {
  if (after === undefined) return undefined;
  let place: Json = null;
  try {
    place = JSON.parse(Buffer.from(after, 'base64url').toString()) as Json;
  } catch {}
  if (schemaErrors(schema, place).length === 0) return place as T;
  throw new RequestRefused('request_invalid', 'after must be the next of the page before.');
}

function forbidden(what: string, least: string): RequestRefused {
  return new RequestRefused('forbidden', `The ${what} of a run needs the scope ${least}.`, { needs: least });
}
