/** Templates by id and version, with an audit of each change. A value that its owner passes around; nothing global. */
import {
  assertKnownKeys,
  assertOptions,
  type Clock,
  captureObject,
  deepFreeze,
  defined,
  describeThrown,
  type OptionShape,
  PilotageError,
  systemClock,
} from '#core';
import { estimateTokens } from '#model';
import { userTurn } from '#prompt';
import {
  assertGiven,
  DEFAULT_TEMPLATES,
  fillText,
  type PromptTemplate,
  scanText,
  type TemplateDraft,
  type TemplateVars,
} from './template.ts';

export interface PromptAudit {
  /** `created`: the first version that there is of this id. */
  readonly type: 'template.created' | 'template.updated' | 'template.deleted';
  readonly id: string;
  readonly version: number;
  readonly author?: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Says why a template must not be used; `undefined` when it may be. A policy that throws refuses the template. */
export type TemplatePolicy = (template: Pick<PromptTemplate, 'id' | 'text' | 'requiredVars'>) => string | undefined;

export interface PromptStoreOptions {
  /** Beside the templates `plan` and `plan-ndjson`, which are there already; what `list` gave once can be given again. */
  readonly templates?: readonly (TemplateDraft | PromptTemplate)[];
  readonly clock?: Clock;
  readonly policy?: TemplatePolicy;
  /** Told before the change is made; what it throws prevents it. */
  readonly onAudit?: (event: PromptAudit) => void;
}

export interface RenderedPrompt {
  readonly text: string;
  readonly meta: { readonly tokensEstimate: number };
}

export interface PromptStore {
  /** Stores it as the next version of its id. @throws PilotageError `template_invalid` with all that is wrong. */
  put(draft: TemplateDraft): PromptTemplate;
  /** Default: the newest version. */
  get(id: string, version?: number): PromptTemplate | null;
  /** All versions, by id and then by version. */
  list(): readonly PromptTemplate[];
  /** Without a version: all of them. False when there was none. A version that is gone is never given again. */
  delete(id: string, version?: number): boolean;
  validate(template: string | TemplateDraft): { readonly ok: boolean; readonly errors: readonly string[] };
  /**
   * @param how `throwOnMissing` false: a variable that is missing leaves nothing behind. Default true.
   * @throws PilotageError `template_variable_missing` naming all of them; `template_invalid` when the policy refuses.
   */
  render(template: PromptTemplate, vars: TemplateVars, how?: { readonly throwOnMissing?: boolean }): RenderedPrompt;
}

const DRAFT: OptionShape<TemplateDraft> = {
  ...({ id: 'any', text: 'any', requiredVars: 'any?', metadata: 'any?', author: 'any?' } as const),
};
const TEMPLATE: OptionShape<TemplateDraft & Partial<Pick<PromptTemplate, 'version' | 'at'>>> = {
  ...DRAFT,
  version: 'any?',
  at: 'any?',
};
const OPTIONS: OptionShape<PromptStoreOptions> = {
  templates: 'list?',
  clock: 'clock?',
  policy: 'any?',
  onAudit: 'function?',
};

/** @throws PilotageError `template_invalid` for a template that is given and not valid. */
export function promptStore(options: PromptStoreOptions = {}): PromptStore {
  assertOptions('promptStore', options, OPTIONS);
  const { templates = [], clock = systemClock, policy, onAudit } = options;
  const shelves = new Map<string, Shelf>();
  for (const template of DEFAULT_TEMPLATES) shelfOf(shelves, template.id).add(template);
  for (const given of templates) shelfOf(shelves, given.id).add(accepted(given));

  function errorsOf(draft: TemplateDraft): string[] {
    if (typeof draft.text !== 'string') return ['the text is missing'];
    const { variables, errors } = scanText(draft.text);
    const requiredVars = draft.requiredVars ?? variables;
    const absent = requiredVars.filter((name) => !variables.includes(name));
    const refusal = refusalOf(policy, { id: draft.id, text: draft.text, requiredVars });
    return [
      ...(typeof draft.id === 'string' && draft.id !== '' ? [] : ['the id is missing']),
      ...errors,
      ...absent.map((name) => `the required variable ${name} does not stand in the text`),
      ...(refusal === undefined ? [] : [refusal]),
    ];
  }

  function accepted(draft: TemplateDraft | PromptTemplate): PromptTemplate {
    assertKnownKeys(`The template ${draft.id}`, draft, Object.keys(TEMPLATE));
    const errors = errorsOf(draft);
    if (errors.length > 0) throw invalid(draft.id, errors);
    const { version = shelves.get(draft.id)?.next ?? 1, at = clock.now() } = draft as Partial<PromptTemplate>;
    if (!(Number.isSafeInteger(version) && version > 0)) throw invalid(draft.id, [`its version is ${String(version)}`]);
    const { id, text, requiredVars = scanText(text).variables, metadata, author } = draft;
    return deepFreeze({
      id,
      version,
      text,
      requiredVars: [...requiredVars],
      ...(metadata === undefined ? {} : { metadata: captureObject(metadata, 'metadata').json }),
      ...defined({ author }),
      at,
    });
  }

  function tell(type: PromptAudit['type'], { id, version, author }: PromptTemplate): void {
    onAudit?.(Object.freeze({ type, id, version, ...defined({ author }), at: clock.now() }));
  }

  return Object.freeze({
    put(draft: TemplateDraft): PromptTemplate {
      assertKnownKeys(`The template ${draft.id}`, draft, Object.keys(DRAFT));
      const { id, text, requiredVars, metadata, author } = draft;
      const template = accepted({
        id,
        text,
        ...defined({ requiredVars, metadata, author }),
      });
      const shelf = shelfOf(shelves, id);
      tell(shelf.isEmpty ? 'template.created' : 'template.updated', template);
      shelf.add(template);
      return template;
    },
    get: (id: string, version?: number) => shelves.get(id)?.get(version) ?? null,
    list: () => [...shelves.keys()].sort().flatMap((id) => shelves.get(id)?.all ?? []),
    delete(id: string, version?: number): boolean {
      const shelf = shelves.get(id);
      const gone = shelf?.all.filter((template) => version === undefined || template.version === version) ?? [];
      for (const template of gone) {
        tell('template.deleted', template);
        shelf?.remove(template.version);
      }
      return gone.length > 0;
    },
    validate(template: string | TemplateDraft) {
      const errors = errorsOf(typeof template === 'string' ? { id: 'draft', text: template } : template);
      return { ok: errors.length === 0, errors };
    },
    render(template: PromptTemplate, vars: TemplateVars, { throwOnMissing = true } = {}): RenderedPrompt {
      const refusal = refusalOf(policy, template);
      if (refusal !== undefined) throw invalid(template.id, [refusal]);
      if (throwOnMissing) assertGiven(template, vars);
      const text = fillText(template.text, vars);
      return { text, meta: { tokensEstimate: estimateTokens({ prompt: [userTurn(text)] }) } };
    },
  });
}

/** The versions of one id. */
class Shelf {
  readonly #versions = new Map<number, PromptTemplate>();
  /** The version that comes next. */
  next = 1;

  get isEmpty(): boolean {
    return this.#versions.size === 0;
  }

  get all(): readonly PromptTemplate[] {
    return [...this.#versions.values()].sort((left, right) => left.version - right.version);
  }

  get(version?: number): PromptTemplate | undefined {
    return version === undefined ? this.all.at(-1) : this.#versions.get(version);
  }

  add(template: PromptTemplate): void {
    this.#versions.set(template.version, template);
    this.next = Math.max(this.next, template.version + 1);
  }

  remove(version: number): void {
    this.#versions.delete(version);
  }
}

function shelfOf(shelves: Map<string, Shelf>, id: string): Shelf {
  const known = shelves.get(id);
  if (known !== undefined) return known;
  const made = new Shelf();
  shelves.set(id, made);
  return made;
}

function refusalOf(policy: TemplatePolicy | undefined, template: Parameters<TemplatePolicy>[0]): string | undefined {
  try {
    return policy?.(template);
  } catch (error) {
    return `the policy failed: ${describeThrown(error)}`;
  }
}

function invalid(id: string, errors: readonly string[]): PilotageError {
  return new PilotageError(
    'template_invalid',
    `The template ${JSON.stringify(id)} cannot be used: ${errors.join('; ')}.`,
    { data: { template: id, errors: [...errors] } },
  );
}
