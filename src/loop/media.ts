/** The files of a run's steps with their bytes, for the views of its planner. Each is read once, and kept as long as it is shown. */
import type { InputArtifact, MediaView } from '#core';
import type { ArtifactStore } from '#journal';
import { type RunState, ShownFiles } from '#state';
import { loadInputs } from './inputs.ts';

export class ShownMedia {
  readonly #shown = new ShownFiles();
  #isStale = false;
  #view: MediaView | undefined;

  /** `undefined`: there are no files to show. */
  get view(): MediaView | undefined {
    return this.#view;
  }

  /** @returns `undefined` when nothing has to be read. Rejects with an error of a store that cannot be read for now: it is to be called again. */
  load(state: RunState, store: ArtifactStore): Promise<undefined> | undefined {
    if (this.#shown.readOn(state)) this.#isStale = true;
    return this.#isStale ? this.#read((missing) => loadInputs(missing, state.identity, store)) : undefined;
  }

  async #read(load: (missing: readonly InputArtifact[]) => ReturnType<typeof loadInputs>): Promise<undefined> {
    const { from, all } = this.#shown;
    const known = this.#view?.bytes ?? NOTHING;
    const wanted = new Map(all.map((file) => [file.artifactRef, file]));
    const loaded = await load([...wanted.values()].filter(({ artifactRef }) => !known.has(artifactRef)));
    const read = new Map(loaded.map(({ artifactRef, bytes }) => [artifactRef, bytes]));
    const bytes = new Map<string, Uint8Array>();
    for (const ref of wanted.keys()) {
      const found = known.get(ref) ?? read.get(ref);
      if (found !== undefined) bytes.set(ref, found);
    }
    this.#view = wanted.size === 0 ? undefined : Object.freeze({ from, bytes });
    this.#isStale = false;
  }
}

const NOTHING: ReadonlyMap<string, Uint8Array> = new Map();
