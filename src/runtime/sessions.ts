/** The sessions of a journal, for whoever lists them. */
import { assertOptions, type OptionShape, PilotageError, type Scope } from '#core';
import type { Journal, SessionQuery, SessionRecord } from '#journal';

const QUERY: OptionShape<SessionQuery> = {
  tenant: 'text',
  user: 'text?',
  since: 'moment?',
  text: 'text?',
  limit: 'any?',
  after: 'object?',
};
const MAX_TITLE = 200;

export class Sessions {
  readonly #journal: () => Journal;
  readonly #forget: () => void;

  /** @param forget what is kept here of runs: they may come again under the same ids. */
  constructor(journal: () => Journal, forget: () => void) {
    this.#journal = journal;
    this.#forget = forget;
  }

  /** Sessions of a tenant, or of one of its users, those with the newest turns first. @throws PilotageError `invalid_config`. */
  async list(query: SessionQuery): Promise<SessionRecord[]> {
    assertOptions('sessions.list', query, QUERY);
    return this.#journal().sessions.list(query);
  }

  /** `undefined` for a session without turns. @throws PilotageError `identity_required`. */
  async get({ tenant, user, session }: Scope): Promise<SessionRecord | undefined> {
    return this.#journal().sessions.get({ tenant, user, session });
  }

  /** Gives the session a title; `null` takes it away. A session without turns has none. @throws PilotageError `invalid_config`, `identity_required`. */
  async setTitle({ tenant, user, session }: Scope, title: string | null): Promise<void> {
    if (title !== null && (typeof title !== 'string' || title === '' || title.length > MAX_TITLE)) {
      throw new PilotageError('invalid_config', `A title is a text of 1 to ${MAX_TITLE} characters, or null for none.`);
    }
    await this.#journal().sessions.set({ tenant, user, session }, { title: title?.toWellFormed() ?? null });
  }

  /**
   * Deletes the session with all its runs and files, for good. @returns how many runs there were.
   * @throws PilotageError `session_busy` while a process has one of them, `identity_required`.
   */
  async delete({ tenant, user, session }: Scope): Promise<number> {
    const runs = await this.#journal().sessions.delete({ tenant, user, session });
    this.#forget();
    return runs;
  }
}
