/** Who a run belongs to. All four parts are needed everywhere; a missing one fails closed. */
import { PilotageError } from './errors.ts';
import { assertOptions, type OptionShape } from './options.ts';

export interface Identity {
  readonly tenant: string;
  readonly user: string;
  readonly session: string;
  readonly run: string;
}

/** The part of an identity that owns stored things: artifacts, memory, groups. */
export type Scope = Pick<Identity, 'tenant' | 'user' | 'session'>;

const PARTS = ['tenant', 'user', 'session', 'run'] as const;

const LOCAL: OptionShape<{ session?: string; run?: string }> = { session: 'any?', run: 'any?' };

/**
 * The identity of a single user on one machine: tenant `local`, a fresh run id, session `default` unless given.
 */
export function local(user: string, options: { session?: string; run?: string } = {}): Identity {
  assertOptions('local', options, LOCAL);
  return { tenant: 'local', user, session: options.session ?? 'default', run: options.run ?? newRunId() };
}

/** A sortable, unique run id: `run_` + base-36 time + random letters. */
export function newRunId(): string {
  const random = crypto.randomUUID();
  return `run_${Date.now().toString(36)}${random.slice(0, 8)}${random.slice(9, 13)}`;
}

/** @throws PilotageError `identity_required` naming the parts that are missing, blank or no well-formed text. */
export function assertIdentity(identity: Partial<Identity> | undefined): asserts identity is Identity {
  assertParts(identity, PARTS, "tenant, user, session and run; local('name') makes one");
}

/** @throws PilotageError `identity_required`, as `assertIdentity`. */
export function assertScope(scope: Partial<Scope> | undefined): asserts scope is Scope {
  assertParts(scope, ['tenant', 'user', 'session'], 'tenant, user and session');
}

/** @throws PilotageError `identity_required`, as `assertIdentity`. */
export function assertTenantAndUser(given: Partial<Pick<Identity, 'tenant' | 'user'>> | undefined): void {
  assertParts(given, ['tenant', 'user'], 'tenant and user');
}

/** The parts are read by their names: what is given may be an object of a class. */
function assertParts(given: Partial<Identity> | undefined, parts: readonly (keyof Identity)[], wanted: string): void {
  const missing = parts.filter((part) => {
    const value = given?.[part];
    // A lone surrogate has no UTF-8 form, so that no key could be made of it.
    return typeof value !== 'string' || value.trim() === '' || !value.isWellFormed();
  });
  if (missing.length === 0) return;
  const message = `The identity lacks ${missing.join(', ')}. Give all of ${wanted}.`;
  throw new PilotageError('identity_required', message, { data: { missing } });
}

/** One string for tenant, user and session. Parts are escaped, so that "a"+"bc" and "ab"+"c" never meet. */
export function scopeKey(scope: Scope): string {
  return `${encodeURIComponent(scope.tenant)}/${encodeURIComponent(scope.user)}/${encodeURIComponent(scope.session)}`;
}
