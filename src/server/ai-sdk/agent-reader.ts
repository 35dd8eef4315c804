/** Reads a run to its end, as the parts of the AI SDK's stream: from its beginning, or from the answers on with which a call goes on with it. */
import type { FinishReason, GeneratedFile } from 'ai';
import { defined, type InputArtifact, type RunEvent } from '#core';
import { artifactUrl, TurnChunks, type UIChunk } from '#messages';
import type { Run } from '#runtime';
import type { ErrorText } from '../problem.ts';
import type { Going } from './agent-answers.ts';
import { SdkParts } from './agent-parts.ts';
import type { AgentEnd, PartSink } from './agent-result.ts';
import { MissedCalls } from './missed-calls.ts';

export interface AgentReaderOptions {
  readonly run: Run;
  readonly agent: string;
  readonly errorText: ErrorText;
  /** Absent: the run begins with the call. */
  readonly going?: Going;
  readonly onStepEnd?: (step: never) => unknown;
}

export class AgentReader {
  readonly #options: AgentReaderOptions;
  readonly #files = new Map<string, GeneratedFile>();
  /** Hears what is not told. */
  readonly #silent: SdkParts;
  readonly #missed: MissedCalls | undefined;
  #isTold: boolean;
  #stepsTold = 0;

  constructor(options: AgentReaderOptions) {
    const { agent, going } = options;
    this.#options = options;
    this.#silent = new SdkParts(() => {}, { agent });
    this.#missed = going && new MissedCalls(going.held);
    this.#isTold = going === undefined;
  }

  async read(sink: PartSink): Promise<AgentEnd> {
    const { run, agent, going, errorText } = this.#options;
    const parts = new SdkParts((part) => sink.tell(part), {
      ...{ agent, fileAt: (url) => this.#files.get(url), onTakenBack: () => sink.takeBack() },
      ...defined({ results: going?.results, calls: going?.held.ids }),
    });
    const chunk = (each: UIChunk): void => {
      if (!this.#isTold) this.#missed?.hear(each);
      (this.#isTold ? parts : this.#silent).chunk(each);
    };
    const chunks = new TurnChunks({ chunk }, { errorText, fileUrl: artifactUrl });
    for await (const event of run.events({ tasks: true })) {
      if (!this.#isTold && this.#isAnswer(event)) this.#begin(parts, sink);
      if (this.#isTold && event.type === 'planner.files' && event.path === undefined) await this.#load(event.files);
      (this.#isTold ? parts : this.#silent).hear(event);
      chunks.hear(event);
      this.#tellSteps(parts);
    }
    const last = chunks.end();
    // Nothing has come of the answers yet.
    if (!this.#isTold) this.#begin(parts, sink);
    parts.close();
    this.#tellSteps(parts);
    return ended(last, parts, sink);
  }

  #isAnswer(event: RunEvent): boolean {
    return event.type === 'pause.resumed' && this.#options.going?.tokens.has(event.token) === true;
  }

  #begin(parts: SdkParts, sink: PartSink): void {
    this.#isTold = true;
    parts.adopt(this.#silent);
    sink.tell({ type: 'start' });
    for (const each of this.#missed?.take() ?? []) parts.chunk(each);
  }

  #tellSteps({ steps }: SdkParts): void {
    for (; this.#stepsTold < steps.length; this.#stepsTold += 1)
      this.#options.onStepEnd?.(steps[this.#stepsTold] as never);
  }

  /** Whoever reads a part of the AI SDK has the bytes of its file at hand. A file that was erased is not told. */
  async #load(made: readonly InputArtifact[]): Promise<void> {
    for (const file of made) {
      const stored = await this.#options.run.artifact(file.artifactRef);
      if (stored !== undefined) this.#files.set(artifactUrl(file), generatedFile(stored.bytes, file.mime));
    }
  }
}

function generatedFile(uint8Array: Uint8Array, mediaType: string): GeneratedFile {
  return {
    mediaType,
    uint8Array,
    get base64() {
      return Buffer.from(uint8Array.buffer, uint8Array.byteOffset, uint8Array.byteLength).toString('base64');
    },
  };
}

function ended(last: UIChunk | undefined, parts: SdkParts, { tell }: PartSink): AgentEnd {
  const { steps, totalUsage } = parts;
  if (last?.type === 'error') {
    const error = new Error(last.errorText);
    tell({ type: 'error', error });
    return { steps, totalUsage, finishReason: 'error', error };
  }
  if (last?.type === 'abort') {
    tell({ type: 'abort' });
    return { steps, totalUsage, finishReason: 'other' };
  }
  const finishReason: FinishReason = last?.type === 'finish' ? last.finishReason : 'other';
  tell({ type: 'finish', finishReason, rawFinishReason: undefined, totalUsage });
  return { steps, totalUsage, finishReason };
}
