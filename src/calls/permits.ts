/** What decides on a call beside its tool: what the policy is shown of the run, which rules hold for it, and the record of one that was applied. */
import {
  type ApprovalRule,
  assertNamespace,
  type EntryBody,
  type JsonObject,
  type Namespace,
  type PolicyView,
  policyView,
  type Ruled,
  ruleNamespace,
  type Scope,
  type StoreItem,
} from '#core';
import { type Journal, patiently } from '#journal';
import { budgetOf, givenArgs, presentName, type RunState } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { storedRule } from './approval-rules.ts';

interface Deps extends Pick<DriverDeps, 'clock'> {
  readonly journal: Pick<Journal, 'store'>;
}

const FIRST_PAGE = 50;
const PAGE = 500;

export class Permits {
  readonly #deps: Deps;
  readonly #state: RunState;
  readonly #write: (body: EntryBody) => Promise<void> | undefined;

  /** @param write makes the entry durable. */
  constructor(deps: Deps, state: RunState, write: (body: EntryBody) => Promise<void> | undefined) {
    this.#deps = deps;
    this.#state = state;
    this.#write = write;
  }

  /** The run as a policy sees it that is asked about this call of the open step. */
  view(call: number): PolicyView {
    const state = this.#state;
    const { identity, agent, context, query, goal, open, steps } = state;
    const { length } = steps;
    const meta = context.meta ?? NO_META;
    const shown = { identity, agent, meta, query, goal, budget: budgetOf(state), steps: () => steps.slice(0, length) };
    if (open === null) return policyView(shown);
    const { move, calls } = open;
    const ofStep = { step: move.step, decision: move.decision, calls: [...calls], given: givenArgs(open), call };
    return policyView({ ...shown, open: ofStep });
  }

  /** The rules that hold for the run: its own, and those of its user and session. @throws the error of the store. */
  async rules(): Promise<readonly ApprovalRule[]> {
    const { rules, identity } = this.#state;
    const now = this.#deps.clock.now();
    const own = rules.filter(({ expiresAt = Number.POSITIVE_INFINITY }) => now < expiresAt);
    const stored = await storedRules(this.#deps, identity);
    return [
      ...own.map((rule) => ({ ...rule, tool: presentName(this.#state, rule.tool) })),
      ...stored.flatMap((item) => storedRule(item) ?? []),
    ];
  }

  async note(ruled: Ruled): Promise<void> {
    await this.#write(ruled);
  }
}

const NO_META: JsonObject = Object.freeze({});

/**
 * What is stored of the rules of a user: all that hold in this session, or without one those of all sessions.
 * @throws the error of the store.
 */
export async function storedRules(
  deps: Deps,
  { tenant, user, session }: Pick<Scope, 'tenant' | 'user'> & { readonly session?: string },
): Promise<readonly StoreItem[]> {
  const ofUser = ruleNamespace({ tenant, user });
  if (session === undefined) return rulesIn(deps, ofUser, () => true);
  // Those of sessions stand behind the user's own, and below them: other sessions are not read.
  const isOwn = ({ namespace }: StoreItem): boolean => namespace.length === ofUser.length;
  const ofSession = ruleNamespace({ tenant, user, session });
  return (await Promise.all([rulesIn(deps, ofUser, isOwn), rulesIn(deps, ofSession, () => true)])).flat();
}

/** @param isWanted no more is read behind an item that is not. */
async function rulesIn(
  { clock, journal }: Deps,
  namespace: Namespace,
  isWanted: (item: StoreItem) => boolean,
): Promise<readonly StoreItem[]> {
  // Names that are no place in the store have no rules there.
  if (!isPlace(namespace)) return [];
  const found: StoreItem[] = [];
  for (let [limit, after] = [FIRST_PAGE, undefined as StoreItem | undefined]; ; limit = PAGE) {
    const query = { namespace, limit };
    const page = await patiently(clock, () => journal.store.list(query, after));
    const wanted = page.filter(isWanted);
    found.push(...wanted);
    after = page.at(-1);
    if (wanted.length < limit) return found;
  }
}

export function isPlace(namespace: Namespace): boolean {
  try {
    assertNamespace(namespace);
    return true;
  } catch {
    return false;
  }
}
