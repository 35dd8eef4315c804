/** The sessions of a journal, for whoever lists them. */
import { assertOptions, assertScope, type Clock, type OptionShape, PilotageError, type Scope } from '#core';
import type { Journal, SessionQuery, SessionRecord } from '#journal';
import { forgetRules } from './rules.ts';

const QUERY: OptionShape<SessionQuery> = {
  tenant: 'text',
  user: 'text?',
  since: 'moment?',
  text: 'text?',
  limit: 'any?',
  after: 'object?',
};
const MAX_TITLE = 200;

interface Deps {
  readonly journal: Journal;
  readonly clock: Clock;
}

export class Sessions {
  readonly #deps: () => Deps;
  readonly #forget: () => void;

  /** @param forget what is kept here of runs: they may come again under the same ids. */
  constructor(deps: () => Deps, forget: () => void) {
    this.#deps = deps;
    this.#forget = forget;
  }

  /** Sessions of a tenant, or of one of its users, those with the newest turns first. @throws PilotageError `invalid_config`. */
  async list(query: SessionQuery): Promise<SessionRecord[]> {
    assertOptions('sessions.list', query, QUERY);
    return this.#deps().journal.sessions.list(query);
  }

  /** `undefined` for a session without turns. @throws PilotageError `identity_required`. */
  async get(scope: Scope): Promise<SessionRecord | undefined> {
    assertScope(scope);
    const { tenant, user, session } = scope;
    return this.#deps().journal.sessions.get({ tenant, user, session });
  }

  /** Gives the session a title; `null` takes it away. A session without turns has none. @throws PilotageError `invalid_config`, `identity_required`. */
  async setTitle(scope: Scope, title: string | null): Promise<void> {
    assertScope(scope);
    const { tenant, user, session } = scope;
    if (title !== null && (typeof title !== 'string' || title === '' || title.length > MAX_TITLE)) {
      throw new PilotageError('invalid_config', `A title is a text of 1 to ${MAX_TITLE} characters, or null for none.`);
    }
    await this.#deps().journal.sessions.set({ tenant, user, session }, { title: title?.toWellFormed() ?? null });
  }

  /**
   * Deletes the session with all its runs, files and rules of approvals, for good. @returns how many runs there were.
   * @throws PilotageError `session_busy` while a process has one of them, `identity_required`.
   */
  async delete(scope: Scope): Promise<number> {
    assertScope(scope);
    const { tenant, user, session } = scope;
    // First: rules that are left would answer for another session of this name.
    await forgetRules(this.#deps(), { tenant, user, session });
    const runs = await this.#deps().journal.sessions.delete({ tenant, user, session });
    this.#forget();
    return runs;
  }
}
