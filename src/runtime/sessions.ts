/** The sessions of a journal, for whoever lists them. */
import { assertOptions, defined, type OptionShape, PilotageError, type Scope } from '#core';
import type { SessionQuery, SessionRecord } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';

const QUERY: OptionShape<SessionQuery> = {
  tenant: 'text',
  user: 'text?',
  since: 'moment?',
  text: 'text?',
  limit: 'any?',
  after: 'object?',
};
const MAX_TITLE = 200;
const PAGE = 200;

export class Sessions {
  readonly #deps: () => Pick<DriverDeps, 'journal' | 'told' | 'states'>;

  constructor(deps: () => Pick<DriverDeps, 'journal' | 'told' | 'states'>) {
    this.#deps = deps;
  }

  /** Sessions of a tenant, or of one of its users, those with the newest turns first. @throws PilotageError `invalid_config`. */
  async list(query: SessionQuery): Promise<SessionRecord[]> {
    assertOptions('sessions.list', query, QUERY);
    return this.#deps().journal.sessions.list(query);
  }

  /** `undefined` for a session without turns. @throws PilotageError `identity_required`. */
  async get({ tenant, user, session }: Scope): Promise<SessionRecord | undefined> {
    return this.#deps().journal.sessions.get({ tenant, user, session });
  }

  /** Gives the session a title; `null` takes it away. A session without turns has none. @throws PilotageError `invalid_config`, `identity_required`. */
  async setTitle({ tenant, user, session }: Scope, title: string | null): Promise<void> {
    if (title !== null && (typeof title !== 'string' || title === '' || title.length > MAX_TITLE)) {
      throw new PilotageError('invalid_config', `A title is a text of 1 to ${MAX_TITLE} characters, or null for none.`);
    }
    await this.#deps().journal.sessions.set({ tenant, user, session }, { title });
  }

  /**
   * Deletes the session with all its runs and files, for good. @returns how many runs there were.
   * @throws PilotageError `session_busy` while a process has one of them, `identity_required`.
   */
  async delete({ tenant, user, session }: Scope): Promise<number> {
    const scope = { tenant, user, session };
    const { journal, told, states } = this.#deps();
    const runs: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await journal.list({ ...scope, limit: PAGE, ...defined({ after }) });
      runs.push(...page.map(({ identity }) => identity.run));
      after = page.at(-1)?.identity.run;
      if (page.length < PAGE) break;
    }
    const count = await journal.sessions.delete(scope);
    for (const run of runs) {
      told.forget(run);
      states.forget(run);
    }
    return count;
  }
}
