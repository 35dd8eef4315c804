/** Whom a journal serves whose tenants are separated by policies, and how its connections and statements say so. */

/** Whom a journal serves that is opened with `rls: true`. */
export interface Isolation {
  /** `undefined`: all tenants. */
  readonly tenant: string | undefined;
}

/** In SQL: what a connection says of itself. @param isLocal until the transaction is over, or for as long as the connection stays. */
export function sayingOf({ tenant }: Isolation, isLocal: boolean): string {
  const all = tenant === undefined ? 'on' : 'off';
  return `SELECT set_config('pilotage.tenant', ${literal(tenant ?? '')}, ${isLocal}), set_config('pilotage.all_tenants', '${all}', ${isLocal})`;
}

/** In SQL, behind the conditions under which a run may be claimed: an index leads to those of one tenant. */
export function ownRuns(isolation: Isolation | undefined): string {
  return isolation?.tenant === undefined ? '' : ` AND tenant = ${literal(isolation.tenant)}`;
}

function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}
