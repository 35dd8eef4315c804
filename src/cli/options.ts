/** The words of the command line: what each command takes. What their help says stands in `help.ts`. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { defined, type Json, type JsonObject, type Labels, meantBy, type OnFail } from '#core';
import type { RunStatus } from '#journal';
import type { Prices } from '#model';
import { type BusyMode, CATCH_UP_MODES, OVERLAP_MODES } from '#runtime';
import { COMMAND_HELP, type CommandName, HELP } from './help.ts';
import {
  busyOf,
  idsOption,
  jsonObjectOption,
  jsonValue,
  labelsOption,
  lengthOption,
  momentOption,
  type NodeEdits,
  namesOption,
  nodeEditsOption,
  notNegative,
  onFailOf,
  portOption,
  positive,
  readPrices,
  rememberOption,
  sinceOption,
  statusesOf,
  wholeNumber,
  wordOption,
} from './option-values.ts';
import { UsageError } from './terminal.ts';
import { shellWord } from './text.ts';

/** The options as they were given, checked. Absent ones were not given. */
export interface Options {
  readonly model?: string;
  readonly baseUrl?: string;
  readonly apiKeyEnv?: string;
  readonly journal?: string;
  readonly config?: string;
  readonly workspace?: string;
  readonly json: boolean;
  readonly debug: boolean;
  readonly chat: boolean;
  /** The model has no native tool calls; its calls are read from its text. */
  readonly textCalls: boolean;
  readonly prices?: Prices;
  readonly maxSteps?: number;
  readonly maxCalls?: number;
  readonly maxTokens?: number;
  readonly maxCostUsd?: number;
  readonly timeoutMs?: number;
  /** What becomes of what the run has done when it fails. */
  readonly onFail?: OnFail;
  readonly patienceMs?: number;
  /** How long what is under way has to end after a SIGTERM. */
  readonly graceMs?: number;
  /** How many runs a worker carries out at once. */
  readonly concurrency?: number;
  /** Where a worker answers HTTP. 0: at any free port. */
  readonly port?: number;
  readonly host?: string;
  /** What keeps runs moving, in the place of the worker: `restate`. */
  readonly engine?: string;
  readonly ingress?: string;
  /** The port on which the engine reaches the worker. */
  readonly serve?: number;
  readonly engineAdmin?: string;
  readonly engineUrl?: string;
  /** The agents whose runs a worker takes over. */
  readonly agents?: readonly string[];
  /** One of the configured agents, such as a flow. */
  readonly agent?: string;
  /** What that agent is given. */
  readonly input?: Json;
  readonly message?: string;
  /** The session that a message is sent to, or whose runs are listed. */
  readonly session?: string;
  /** What becomes of a message while a turn is under way. */
  readonly busy?: BusyMode;
  /** The id of a message. */
  readonly id?: string;
  /** Whose sessions, or memory. */
  readonly user?: string;
  readonly tenant?: string;
  readonly status?: readonly RunStatus[];
  /** How long ago a run has ended at least. */
  readonly olderThanMs?: number;
  readonly parent?: string;
  readonly limit?: number;
  /** What the page before ends with: a run, or the number of a wait. */
  readonly after?: string;
  /** What a run is given to be found by, or found by. */
  readonly labels?: Labels;
  /** Words in the query of a run. */
  readonly text?: string;
  /** Milliseconds since the epoch. */
  readonly since?: number;
  /** The schedule that has started a run. */
  readonly schedule?: string;
  /** When a run begins. Milliseconds since the epoch. */
  readonly startsAt?: number;
  readonly cron?: string;
  readonly timezone?: string;
  readonly everyMs?: number;
  readonly overlap?: string;
  readonly catchUp?: string;
  /** Whether a database separates tenants from now on: `on`, `off`. */
  readonly rls?: string;
  /** The number of the first row of a stream, or of the first entry whose events are shown. */
  readonly from?: number;
  /** The rows that come are shown too. */
  readonly follow: boolean;
  /** The events of tasks, too. */
  readonly tasks: boolean;
  /** Which of several open pauses. */
  readonly token?: string;
  readonly args?: Json;
  readonly payload?: JsonObject;
  /** What became of a call in doubt. */
  readonly happened?: boolean;
  /** Answers by the tokens of pauses. */
  readonly all?: JsonObject;
  /** All calls that wait for an approval are answered alike. */
  readonly allApprovals: boolean;
  /** The answer holds for questions to come. */
  readonly remember?: JsonObject;
  /** What whoever approves has seen. */
  readonly digest?: string;
  /** What it came to. */
  readonly value?: Json;
  readonly reason?: string;
  /** The user in whose name a control is sent. */
  readonly as?: string;
  readonly admin: boolean;
  readonly soft: boolean;
  readonly acceptChanges: boolean;
  /** The first step of a fork, counted from 1 as `inspect` does. */
  readonly at?: number;
  readonly result?: Json;
  /** Which call of the step the result is for, counted from 1. */
  readonly call?: number;
  /** The breakpoint of `pause`. */
  readonly before?: Json;
  /** It is taken away. */
  readonly clear: boolean;
  /** The call that is cancelled: a step and a call, counted from 1, or an id. */
  readonly cancels?: string;
  readonly goal?: string;
  /** A single step. */
  readonly until?: 'next';
  readonly allowEffects: boolean;
  /** A plan is made and shown, and nothing of it is run or stored; or it is said what would be deleted. */
  readonly dryRun: boolean;
  /** A repair is done, not only shown. */
  readonly apply: boolean;
  readonly namespace?: readonly string[];
  readonly key?: string;
  readonly waitsFor?: string;
  readonly keepMs?: number;
  /** What cannot be taken back is meant. */
  readonly yes: boolean;
  /** Who does it. */
  readonly by?: string;
  /** The stored run whose plan is shown. */
  readonly run?: string;
  /** Changes to nodes of a plan, by their ids. */
  readonly nodes?: NodeEdits;
  /** Nodes of a plan that has failed, by their ids. */
  readonly nodeIds?: readonly string[];
  /** What a later command about the same run may need, too: names with their values, if they have one. */
  readonly repeated: readonly (readonly [name: string, value?: string])[];
}

export interface Command {
  readonly kind: 'command';
  readonly command: CommandName;
  /** The goal of `run` and `plan`; what `sessions` does, and to which; otherwise the run, and the message of `send`, the goal of `redirect`. */
  readonly words: readonly string[];
  readonly options: Options;
}

export type Parsed = { readonly kind: 'help'; readonly text: string } | { readonly kind: 'version' } | Command;

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;
const SEVERAL = { ...TEXT, multiple: true } as const;
const COMMON: ParseArgsOptionsConfig = {
  journal: TEXT,
  config: TEXT,
  json: FLAG,
  debug: FLAG,
  help: { ...FLAG, short: 'h' },
};
const PLANNING: ParseArgsOptionsConfig = {
  ...COMMON,
  workspace: TEXT,
  model: TEXT,
  'base-url': TEXT,
  'api-key-env': TEXT,
  prices: TEXT,
  chat: FLAG,
  'text-calls': FLAG,
};
const DRIVING: ParseArgsOptionsConfig = {
  ...PLANNING,
  'max-steps': TEXT,
  'max-calls': TEXT,
  'max-tokens': TEXT,
  'max-cost-usd': TEXT,
  timeout: TEXT,
  patience: TEXT,
  grace: TEXT,
};
const { json: _lines, ...WORKING } = PLANNING;
const SENDING_MESSAGES: ParseArgsOptionsConfig = { session: TEXT, busy: TEXT, id: TEXT };
const { json: _json, chat: _chat, ...TALKING } = DRIVING;
const SENDING: ParseArgsOptionsConfig = { ...COMMON, as: TEXT, admin: FLAG };
const ANSWERING: ParseArgsOptionsConfig = { ...SENDING, token: TEXT, reason: TEXT, payload: TEXT };
const REMEMBERING: ParseArgsOptionsConfig = { remember: TEXT, match: TEXT, 'remember-for': TEXT, all: FLAG };
/** The options of each command. */
export const TAKEN: Readonly<Record<CommandName, ParseArgsOptionsConfig>> = {
  run: { ...DRIVING, ...SENDING_MESSAGES, agent: TEXT, input: TEXT, label: SEVERAL, at: TEXT, 'on-fail': TEXT },
  work: {
    ...WORKING,
    ...{ agent: SEVERAL, concurrency: TEXT, patience: TEXT, grace: TEXT, port: TEXT, host: TEXT },
    ...{ engine: TEXT, ingress: TEXT, serve: TEXT, 'engine-admin': TEXT, 'engine-url': TEXT },
  },
  serve: { ...PLANNING, agent: SEVERAL, concurrency: TEXT, patience: TEXT, grace: TEXT, port: TEXT, host: TEXT },
  chat: { ...TALKING, session: TEXT, agent: TEXT },
  sessions: { ...COMMON, user: TEXT, tenant: TEXT, limit: TEXT },
  plan: { ...DRIVING, ...SENDING_MESSAGES, 'dry-run': FLAG, run: TEXT },
  resume: { ...DRIVING, until: TEXT, message: TEXT, token: TEXT, payload: TEXT, nodes: TEXT, 'accept-changes': FLAG },
  retry: { ...PLANNING, patience: TEXT, nodes: TEXT, 'accept-changes': FLAG },
  schedules: {
    ...DRIVING,
    ...{ agent: TEXT, input: TEXT, session: TEXT, label: SEVERAL, user: TEXT, tenant: TEXT, limit: TEXT },
    ...{ cron: TEXT, timezone: TEXT, every: TEXT, overlap: TEXT, 'catch-up': TEXT },
  },
  list: {
    ...COMMON,
    ...{ status: SEVERAL, limit: TEXT, tenant: TEXT, user: TEXT, session: TEXT, parent: TEXT },
    ...{ label: SEVERAL, agent: TEXT, text: TEXT, since: TEXT, schedule: TEXT, after: TEXT },
  },
  waiting: {
    ...COMMON,
    ...{ tenant: TEXT, user: TEXT, session: TEXT, run: TEXT, agent: TEXT },
    ...{ for: TEXT, reason: TEXT, key: TEXT, limit: TEXT, after: TEXT },
  },
  signal: { ...COMMON, id: TEXT, tenant: TEXT, keep: TEXT },
  inspect: COMMON,
  events: { ...COMMON, from: TEXT, follow: FLAG, tasks: FLAG },
  approve: { ...ANSWERING, ...REMEMBERING, args: TEXT, digest: TEXT },
  reject: { ...ANSWERING, ...REMEMBERING },
  stream: { ...COMMON, from: TEXT, follow: FLAG },
  answer: { ...ANSWERING, value: TEXT, all: TEXT },
  settle: { ...ANSWERING, happened: FLAG, 'did-not-happen': FLAG, value: TEXT },
  cancel: { ...SENDING, reason: TEXT, soft: FLAG, call: TEXT },
  send: SENDING,
  redirect: SENDING,
  pause: { ...SENDING, 'before-tool': TEXT, 'before-node': TEXT, next: FLAG, clear: FLAG },
  fork: { ...DRIVING, at: TEXT, result: TEXT, call: TEXT, goal: TEXT, 'allow-effects': FLAG },
  replay: PLANNING,
  rules: { ...COMMON, user: TEXT, tenant: TEXT, session: TEXT, run: TEXT },
  memory: { ...COMMON, user: TEXT, tenant: TEXT, namespace: TEXT, value: TEXT },
  erase: { ...COMMON, user: TEXT, tenant: TEXT, yes: FLAG },
  repair: { ...COMMON, apply: FLAG, by: TEXT, reason: TEXT },
  prune: { ...COMMON, 'older-than': TEXT, status: SEVERAL, tenant: TEXT, 'dry-run': FLAG },
  migrate: { ...COMMON, rls: TEXT },
};
/** Options that say where a run is and how it is driven, not how far. */
const REPEATED = ['journal', 'config', 'workspace', 'model', 'base-url', 'api-key-env', 'prices', 'chat', 'text-calls'];

/** @throws UsageError */
export function parseCommandLine(args: readonly string[]): Parsed {
  const [first, ...rest] = args;
  if (first === undefined) throw new UsageError('No command is given.');
  if (first === '--help' || first === '-h' || first === 'help') return { kind: 'help', text: HELP };
  if (first === '--version' || first === '-v') return { kind: 'version' };
  if (!isCommand(first)) throw new UsageError(`There is no command ${JSON.stringify(first)}.`);
  const { values, positionals } = parse(first, rest);
  if (values['help'] === true) return { kind: 'help', text: COMMAND_HELP[first] };
  const words = wordsOf(first, positionals, values);
  return { kind: 'command', command: first, words, options: optionsOf(first, values) };
}

/** Whether a command has the option, so that it can be repeated for it. */
function takes(command: CommandName, option: string): boolean {
  return Object.hasOwn(TAKEN[command], option);
}

type Values = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;

function parse(command: CommandName, args: readonly string[]): { values: Values; positionals: string[] } {
  try {
    return parseArgs({ args: [...args], options: TAKEN[command], allowPositionals: true, strict: true });
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    const [unknown, flag = ''] = /^Unknown option '--([^']+)'/.exec(said) ?? [];
    const meant = meantBy(flag, Object.keys(TAKEN[command]))?.option;
    throw new UsageError(meant === undefined ? said : `${unknown}. Did you mean --${meant}?`, { cause: error });
  }
}

function isCommand(word: string): word is CommandName {
  return Object.hasOwn(TAKEN, word);
}

const ONE_RUN = { count: 1, wanted: 'one run, such as run_…' };
const WORDS: Readonly<Partial<Record<CommandName, { readonly count: number; readonly wanted: string }>>> = {
  run: { count: 1, wanted: 'one goal, in quotes' },
  plan: { count: 1, wanted: 'one goal, in quotes, or --run with a run' },
  list: { count: 0, wanted: 'no further words' },
  waiting: { count: 0, wanted: 'no further words' },
  work: { count: 0, wanted: 'no further words' },
  serve: { count: 0, wanted: 'no further words' },
  erase: { count: 0, wanted: 'no further words' },
  prune: { count: 0, wanted: 'no further words' },
  migrate: { count: 0, wanted: 'no further words' },
  chat: { count: 0, wanted: 'no further words; what you say is read from the input' },
  send: { count: 2, wanted: 'a run and a message, in quotes' },
  stream: { count: 2, wanted: 'a run and the name of a stream' },
  redirect: { count: 2, wanted: 'a run and its new goal, in quotes' },
};

const MEMORY_ACTS = ['list', 'show', 'set', 'delete'];
/** What `sessions` does, with what it is told. */
const SESSION_WORDS: Readonly<Record<string, { readonly count: number; readonly wanted: string }>> = {
  list: { count: 1, wanted: 'no further words after list' },
  show: { count: 2, wanted: 'one session after show' },
  delete: { count: 2, wanted: 'one session after delete' },
  title: { count: 3, wanted: 'a session and a title, in quotes, after title' },
};
const ONE_SCHEDULE = { count: 2, wanted: 'the id of one schedule behind that word' };
const SCHEDULE_WORDS: typeof SESSION_WORDS = {
  list: { count: 1, wanted: 'no further words after list' },
  show: ONE_SCHEDULE,
  put: { count: 3, wanted: 'an id and what its runs work for, in quotes, after put' },
  pause: ONE_SCHEDULE,
  resume: ONE_SCHEDULE,
  trigger: ONE_SCHEDULE,
  delete: ONE_SCHEDULE,
};

function wantedOf(command: CommandName, [first = '']: readonly string[]): { count: number; wanted: string } {
  const actions = command === 'sessions' ? SESSION_WORDS : command === 'schedules' ? SCHEDULE_WORDS : undefined;
  if (actions === undefined) return WORDS[command] ?? ONE_RUN;
  const known = Object.hasOwn(actions, first) ? actions[first] : undefined;
  return known ?? { count: Number.NaN, wanted: `one of ${Object.keys(actions).join(', ')}` };
}

const STORED_PLAN = { count: 0, wanted: 'either a goal or --run' };

function wordsOf(command: CommandName, positionals: readonly string[], values: Values): readonly string[] {
  if (command === 'memory') return memoryWords(positionals);
  if (command === 'rules') return ruleWords(positionals);
  if (command === 'signal') return signalWords(positionals);
  const isStoredPlan = command === 'plan' && values['run'] !== undefined;
  const { count, wanted } = isStoredPlan ? STORED_PLAN : wantedOf(command, positionals);
  if (positionals.length === count && positionals.every((word) => word.trim() !== '')) return positionals;
  throw new UsageError(`${command} takes ${wanted}.`);
}

function memoryWords(positionals: readonly string[]): readonly string[] {
  const [act = '', key = '', ...more] = positionals;
  const isFit = MEMORY_ACTS.includes(act) && (act === 'list' ? key === '' : key !== '') && more.length === 0;
  if (isFit) return positionals;
  throw new UsageError('memory takes list, or one of show, set and delete with a key.');
}

function ruleWords(positionals: readonly string[]): readonly string[] {
  const [act = '', id = '', ...more] = positionals;
  if (more.length === 0 && ((act === 'list' && id === '') || (act === 'revoke' && id !== ''))) return positionals;
  throw new UsageError('rules takes list, or revoke with the id of a rule.');
}

function signalWords(positionals: readonly string[]): readonly string[] {
  if (positionals[0]?.trim() && positionals.length <= 2) return positionals;
  throw new UsageError(`signal takes a key, and a payload in JSON if there is one: signal order-17 '{"paid": true}'.`);
}

function namespaceOption(text: string | undefined): readonly string[] | undefined {
  const value = jsonValue(text, 'namespace');
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((part: Json) => typeof part === 'string')) return value as readonly string[];
  throw new UsageError(`--namespace takes a list of texts, such as --namespace '["memory", "facts"]'.`);
}

function untilOf(text: string | undefined): 'next' | undefined {
  if (text === undefined || text === 'next') return text;
  throw new UsageError('--until takes next: the run stops before its next call.');
}

function breakpointOf(
  tool: string | undefined,
  node: string | undefined,
  next: boolean,
  clear: boolean,
): Json | undefined {
  const given: Json[] = [];
  if (tool !== undefined) given.push({ tool });
  if (node !== undefined) given.push({ node });
  if (next) given.push('next');
  if (tool === '' || node === '') throw new UsageError('--before-tool and --before-node take a name.');
  if (given.length > 1) throw new UsageError('Give one of --before-tool, --before-node and --next.');
  if (clear && given.length === 0) throw new UsageError('--clear goes with the breakpoint that is taken away.');
  return given[0];
}

function happenedOf(did: boolean, didNot: boolean): boolean | undefined {
  if (did && didNot) throw new UsageError('Give --happened or --did-not-happen, not both.');
  return did || didNot ? did : undefined;
}

function optionsOf(command: CommandName, values: Values): Options {
  const text = (name: string): string | undefined => {
    const value = values[name];
    if (typeof value !== 'string') return undefined;
    if (value.trim() === '') throw new UsageError(`--${name} is empty.`);
    return value;
  };
  const flag = (name: string): boolean => values[name] === true;
  const prices = text('prices');
  if (command === 'cancel' && flag('soft') && text('call') !== undefined) {
    throw new UsageError('Give --soft or --call, not both: a call is stopped at once.');
  }
  const timeout = positive(text('timeout'), 'timeout');
  const every = positive(text('every'), 'every');
  const patience = notNegative(text('patience'), 'patience');
  const grace = notNegative(text('grace'), 'grace');
  const keep = notNegative(text('keep'), 'keep');
  return {
    json: flag('json'),
    debug: flag('debug'),
    chat: flag('chat'),
    textCalls: flag('text-calls'),
    admin: flag('admin'),
    soft: flag('soft'),
    acceptChanges: flag('accept-changes'),
    allowEffects: flag('allow-effects'),
    dryRun: flag('dry-run'),
    apply: flag('apply'),
    allApprovals: flag('all'),
    yes: flag('yes'),
    follow: flag('follow'),
    tasks: flag('tasks'),
    clear: flag('clear'),
    ...defined({
      by: text('by'),
      user: text('user'),
      tenant: text('tenant'),
      namespace: namespaceOption(text('namespace')),
      key: text('key'),
      waitsFor: text('for'),
      keepMs: keep === undefined ? undefined : Math.ceil(keep * 1000),
      journal: text('journal'),
      config: text('config'),
      workspace: text('workspace'),
      model: text('model'),
      baseUrl: text('base-url'),
      apiKeyEnv: text('api-key-env'),
      prices: prices === undefined ? undefined : readPrices(prices),
      maxSteps: wholeNumber(text('max-steps'), 'max-steps'),
      maxCalls: wholeNumber(text('max-calls'), 'max-calls'),
      maxTokens: wholeNumber(text('max-tokens'), 'max-tokens'),
      maxCostUsd: positive(text('max-cost-usd'), 'max-cost-usd'),
      timeoutMs: timeout === undefined ? undefined : Math.ceil(timeout * 1000),
      patienceMs: patience === undefined ? undefined : Math.ceil(patience * 1000),
      graceMs: grace === undefined ? undefined : Math.ceil(grace * 1000),
      agent: text('agent'),
      agents: namesOption(values['agent'], 'agent'),
      concurrency: wholeNumber(text('concurrency'), 'concurrency'),
      port: portOption(text('port'), 'port'),
      host: text('host'),
      engine: text('engine'),
      ingress: text('ingress'),
      serve: portOption(text('serve'), 'serve'),
      engineAdmin: text('engine-admin'),
      engineUrl: text('engine-url'),
      input: jsonValue(text('input'), 'input'),
      message: text('message'),
      session: text('session'),
      busy: busyOf(text('busy')),
      onFail: onFailOf(text('on-fail')),
      id: text('id'),
      parent: text('parent'),
      status: statusesOf(values['status']),
      olderThanMs: lengthOption(text('older-than'), 'older-than'),
      limit: wholeNumber(text('limit'), 'limit'),
      after: text('after'),
      from: wholeNumber(text('from'), 'from'),
      token: text('token'),
      args: jsonValue(text('args'), 'args'),
      payload: jsonObjectOption(text('payload'), 'payload'),
      all: jsonObjectOption(text('all'), 'all'),
      remember: rememberOption(text('remember'), text('match'), positive(text('remember-for'), 'remember-for')),
      digest: text('digest'),
      happened: happenedOf(flag('happened'), flag('did-not-happen')),
      value: jsonValue(text('value'), 'value'),
      reason: text('reason'),
      as: text('as'),
      ...(command === 'run' ? { startsAt: momentOption(text('at'), 'at') } : { at: wholeNumber(text('at'), 'at') }),
      labels: labelsOption(values['label']),
      text: text('text'),
      since: sinceOption(text('since')),
      schedule: text('schedule'),
      cron: text('cron'),
      timezone: text('timezone'),
      everyMs: every === undefined ? undefined : Math.ceil(every * 1000),
      overlap: wordOption(text('overlap'), 'overlap', OVERLAP_MODES),
      rls: wordOption(text('rls'), 'rls', ['on', 'off']),
      catchUp: wordOption(text('catch-up'), 'catch-up', CATCH_UP_MODES),
      result: jsonValue(text('result'), 'result'),
      ...(command === 'cancel' ? { cancels: text('call') } : { call: wholeNumber(text('call'), 'call') }),
      goal: text('goal'),
      until: untilOf(text('until')),
      before: breakpointOf(text('before-tool'), text('before-node'), flag('next'), flag('clear')),
      run: text('run'),
      ...(command === 'retry' ? { nodeIds: idsOption(text('nodes')) } : { nodes: nodeEditsOption(text('nodes')) }),
    }),
    repeated: REPEATED.flatMap((name): [string, string?][] => {
      const value = values[name];
      if (value === undefined) return [];
      return [value === true ? [name] : [name, String(value)]];
    }),
  };
}

// The values of options: read from their text, or refused. Values are not repeated: one of them may be a secret.

/** How this program is called: from a clone of the project it is not installed as a command. */
const PROGRAM = import.meta.url.endsWith('.ts') ? 'npm run -s pilotage --' : 'pilotage';

/** The command about a run, with those of the given options that it needs, too; ready for a shell. */
export function hint(command: CommandName, run: string, { repeated }: Options, ...more: readonly string[]): string {
  const same = repeated.filter(([name]) => takes(command, name)).flatMap(([name, ...value]) => [`--${name}`, ...value]);
  return [PROGRAM, command, run, ...[...same, ...more].map((word) => shellWord(word ?? ''))].join(' ');
}
