/** The rules that people have made of their answers: which there are, and taking one back. */
import {
  type ApprovalRule,
  assertIdentity,
  assertOptions,
  type Caller,
  type Clock,
  defined,
  type OptionShape,
  PilotageError,
  RULES,
  ruleNamespace,
  runOfRule,
  type StoreItem,
} from '#core';
import { type Journal, patiently, type RunRecord } from '#journal';
import { storedRule } from '../calls/approval-rules.ts';
import { isPlace, storedRules } from '../calls/permits.ts';
import { Run } from './run.ts';
import type { RunHost } from './run-host.ts';

/** Whose rules. */
export interface RuleQuery {
  readonly tenant: string;
  readonly user: string;
  /** Only rules that hold in this session: those of the user, and its own. Default: those of all sessions. */
  readonly session?: string;
  /** Also the rules of this run alone. */
  readonly run?: string;
}

const QUERY: OptionShape<RuleQuery> = { tenant: 'text', user: 'text', session: 'text?', run: 'text?' };

const REVOKE: OptionShape<{ as?: Caller }> = { as: 'object?' };

export class Rules {
  readonly #host: () => RunHost;

  /** @param host throws `runtime_closed`. */
  constructor(host: () => RunHost) {
    this.#host = host;
  }

  /**
   * The rules of a user that hold now, the newest first. An identity is a query: then those that hold for its run.
   * @throws PilotageError `invalid_config`, `run_not_found`, or a store error.
   */
  async list(query: RuleQuery): Promise<readonly ApprovalRule[]> {
    assertOptions('rules.list', query, QUERY);
    const { tenant, user, session, run } = query;
    assertIdentity({ tenant, user, session: session ?? '-', run: run ?? '-' });
    const { journal, clock } = this.#host().deps;
    const stored = await storedRules({ journal, clock }, { tenant, user, ...defined({ session }) });
    const own = run === undefined ? [] : await this.#rulesOf(run, { tenant, user });
    const rules = [...own, ...stored.flatMap((item) => storedRule(item) ?? [])];
    return rules.sort((one, other) => other.setAt - one.setAt);
  }

  /** A run that was not started yet has none. */
  async #rulesOf(
    run: string,
    owner: { readonly tenant: string; readonly user: string },
  ): Promise<readonly ApprovalRule[]> {
    const { journal, clock, states } = this.#host().deps;
    if ((await journal.get(run)) === undefined) return [];
    const { identity, rules } = await states.of(run);
    if (identity.tenant !== owner.tenant || identity.user !== owner.user) return [];
    const now = clock.now();
    return rules.filter(({ expiresAt = Number.POSITIVE_INFINITY }) => now < expiresAt);
  }

  /**
   * Takes a rule back: what it would have answered is asked again. Calls that it has let pass stay as they are. Of a rule of one run alone, the
   * run records it.
   * @param options `as`: who does it, where the program acts for somebody. They need what an approval needs.
   * @throws PilotageError `payload_invalid` when there is no such rule any more, `run_ended` for a rule of a run that has ended, `scope_mismatch`.
   */
  async revoke(id: string, options: { readonly as?: Caller } = {}): Promise<void> {
    assertOptions('rules.revoke', options, REVOKE);
    const run = typeof id === 'string' ? runOfRule(id) : undefined;
    if (run === undefined) throw noRule(id);
    const host = this.#host();
    const { journal, clock, states } = host.deps;
    const record = await patiently(clock, () => journal.get(run));
    const isOfRun = record !== undefined && (await states.of(run)).rules.some((rule) => rule.id === id);
    if (isOfRun) return void (await new Run(run, host, options).steer('REVOKE', { rule: id }, { until: 'applied' }));
    const item = (record && (await this.#storedBy(record, id))) ?? (await this.#foundAmongAll(id));
    if (item === undefined) throw noRule(id);
    if (options.as !== undefined) assertMayRevoke(options.as, item);
    const { namespace, key } = item;
    await patiently(clock, () => journal.store.write([{ namespace, key }]));
  }

  /** Where the run that has set it would have put it. */
  async #storedBy({ identity }: RunRecord, id: string): Promise<StoreItem | undefined> {
    const { journal, clock } = this.#host().deps;
    const { tenant, user } = identity;
    for (const namespace of [ruleNamespace({ tenant, user }), ruleNamespace(identity)]) {
      const item = isPlace(namespace) && (await patiently(clock, () => journal.store.get(namespace, id)));
      if (item) return item;
    }
    return undefined;
  }

  /** The run that has set it was pruned, and nobody knows whose it was. */
  async #foundAmongAll(id: string): Promise<StoreItem | undefined> {
    const { journal, clock } = this.#host().deps;
    const [item] = await patiently(clock, () => journal.store.list({ namespace: RULES, filter: { id }, limit: 1 }));
    return item;
  }
}

function assertMayRevoke({ tenant, user, scope }: Caller, { namespace: [, ofTenant, ofUser] }: StoreItem): void {
  if (scope === 'admin' || (scope === 'owner_user' && tenant === ofTenant && user === ofUser)) return;
  throw new PilotageError('scope_mismatch', 'The rule belongs to somebody else; only an admin may revoke it.');
}

function noRule(id: string): PilotageError {
  const name = JSON.stringify(String(id).slice(0, 200));
  return new PilotageError('payload_invalid', `There is no rule ${name}: it was revoked, is over, or never was.`);
}

/** Deletes what somebody has remembered for a session that is deleted. */
export async function forgetRules(
  { journal, clock }: { readonly journal: Pick<Journal, 'store'>; readonly clock: Clock },
  owner: { readonly tenant: string; readonly user: string; readonly session?: string },
): Promise<number> {
  const items = await storedRules({ journal, clock }, owner);
  const gone = items.filter(({ namespace: [, , , of] }) => owner.session === undefined || of !== undefined);
  if (gone.length === 0) return 0;
  await patiently(clock, () => journal.store.write(gone.map(({ namespace, key }) => ({ namespace, key }))));
  return gone.length;
}
