/** What plays have in common: a folder with one SQLite file and one ledger, the processes, and the model server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteJournal } from '#journal/sqlite';
import type { Journal } from '#pilotage/journal';
import { type OpenAIServer, openaiServer } from '#testing';
import { type Actor, actor } from './actors.ts';
import type { Voiced } from './model.ts';

/** One model server for all stages; each play's model has the name of the play. */
export interface Voices {
  readonly server: OpenAIServer;
  readonly byPlay: Map<string, Voiced>;
}

export async function voices(): Promise<Voices> {
  const byPlay = new Map<string, Voiced>();
  const server = await openaiServer((request) => {
    const voice = byPlay.get(request.model);
    return voice?.reply(request) ?? { error: { status: 404, message: `There is no model ${request.model}.` } };
  });
  return { server, byPlay };
}

export class Stage {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'pilotage-double-act-'));
  readonly journal: Journal = sqliteJournal({ path: join(this.folder, 'pilotage.db') });
  readonly baseUrl: string;
  readonly #voices: Voices;
  readonly #name: string;
  readonly #actors = new Set<Actor>();
  #plays = 0;

  constructor(name: string, given: Voices) {
    this.#name = name;
    this.#voices = given;
    this.baseUrl = given.server.url;
  }

  newPlay(voice: Voiced | undefined): string {
    this.#plays += 1;
    const id = `play_${this.#name}_${this.#plays}`;
    if (voice !== undefined) this.#voices.byPlay.set(id, voice);
    return id;
  }

  readonly isAlive = (pid: number): boolean =>
    [...this.#actors].some((candidate) => candidate.pid === pid && !candidate.isDead);

  /** A process that lives and is not in the play yet: one that is there, or a new one. */
  async nextActor(cast: readonly Actor[]): Promise<Actor> {
    for (const candidate of this.#actors) {
      if (candidate.isDead) this.#actors.delete(candidate);
      else if (!cast.includes(candidate)) return candidate;
    }
    const born = await actor(this.folder);
    this.#actors.add(born);
    return born;
  }

  /** All let go of the play. After one that did not end they are not to be trusted any more. */
  async clear(play: string, cast: readonly Actor[], isWell: boolean): Promise<void> {
    this.#voices.byPlay.delete(play);
    await Promise.all(
      cast
        .filter(({ isDead }) => !isDead)
        .map(async (each) => {
          if (isWell) return dropped(each, play);
          each.signal('SIGCONT');
          each.signal('SIGKILL');
          await each.end;
        }),
    );
  }

  async close(): Promise<void> {
    await Promise.all([...this.#actors].map((each) => (each.isDead ? undefined : each.leave())));
    await this.journal.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function dropped(each: Actor, play: string): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = each.listen(play, (said) => {
      if (said.said !== 'did' || said.what !== 'drop') return;
      stop();
      resolve();
    });
    each.tell({ do: 'drop', play });
  });
}
