/** Measures of models that outlive the process: taken in before the first call, stored after each. */
import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isJsonObject, type Json } from '#core';
import type { MeasuresData, ModelCallResult, ModelRegistry, RecordedModelCall } from '#model';

export interface MeasuresStore {
  /** `undefined`: nothing is stored yet. */
  load(): Promise<MeasuresData | undefined>;
  save(data: MeasuresData): Promise<void>;
}

/** A store that failed. The measures go on in memory. */
export interface MeasuresFailure {
  readonly doing: 'load' | 'save';
  readonly error: unknown;
}

export interface KeptMeasures {
  /** To be awaited before the first call. It loads once, and never rejects. */
  ready(): Promise<void>;
  /** Notes how a call of the model with this name went, and begins to store it. @throws as `ModelRegistry.record`. */
  record(name: string, result: ModelCallResult): void;
  /** Once what was recorded so far is stored, or its store has failed. It never rejects. */
  saved(): Promise<void>;
}

/**
 * One save at a time, each of the newest state. What somebody else has stored since is overwritten.
 * @param onFailure must not throw.
 */
export function keepMeasures(
  registry: ModelRegistry,
  store: MeasuresStore,
  onFailure: (failure: MeasuresFailure) => void,
): KeptMeasures {
  let loading: Promise<void> | undefined;
  let saving: Promise<void> | undefined;
  let isStale = false;

  async function load(): Promise<void> {
    try {
      const stored = await store.load();
      // What came in meanwhile is newer than what is stored.
      if (stored !== undefined) registry.import({ ...stored, ...measured(registry.export()) });
    } catch (error) {
      onFailure({ doing: 'load', error });
    }
  }

  async function save(): Promise<void> {
    while (isStale) {
      isStale = false;
      try {
        await store.save(registry.export());
      } catch (error) {
        onFailure({ doing: 'save', error });
      }
    }
    saving = undefined;
  }

  const ready = (): Promise<void> => {
    loading ??= load();
    return loading;
  };
  return Object.freeze({
    ready,
    record(name: string, result: ModelCallResult): void {
      registry.record(name, result);
      isStale = true;
      saving ??= ready().then(save);
    },
    saved: () => saving ?? Promise.resolve(),
  });
}

function measured(data: MeasuresData): MeasuresData {
  return Object.fromEntries(Object.entries(data).filter(([, calls]) => calls.length > 0));
}

/** A JSON file, replaced as a whole, so that a crash leaves the old one or the new one. Its folder must be there. */
export function fileMeasures(path: string): MeasuresStore {
  return Object.freeze({
    async load(): Promise<MeasuresData | undefined> {
      let text: string;
      try {
        text = await readFile(path, 'utf8');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
      return measuresIn(JSON.parse(text) as Json);
    },
    async save(data: MeasuresData): Promise<void> {
      const draft = `${path}.${randomUUID()}.tmp`;
      try {
        await writeFile(draft, `${JSON.stringify(data)}\n`, { flag: 'wx' });
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
  });
}

/** @throws TypeError for what was not written by `save`. */
function measuresIn(value: Json): MeasuresData {
  if (isJsonObject(value) && Object.values(value).every((calls) => Array.isArray(calls) && calls.every(isCall))) {
    return value as unknown as MeasuresData;
  }
  throw new TypeError('The file holds no measures of models.');
}

function isCall(value: Json): boolean {
  if (!isJsonObject(value)) return false;
  const { at, succeeded, parsed, valid, latencyMs } = value as { [K in keyof RecordedModelCall]?: Json };
  return (
    typeof at === 'number' &&
    typeof succeeded === 'boolean' &&
    [parsed, valid].every((each) => each === undefined || typeof each === 'boolean') &&
    (latencyMs === undefined || typeof latencyMs === 'number')
  );
}
