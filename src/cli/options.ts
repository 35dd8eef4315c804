/** The words of the command line: what each command takes, and what its help says. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import type { RunStatus } from '../journal/port.ts';
import type { Prices } from '../model/usage.ts';
import { DEFAULT_JOURNAL_PATH } from '../runtime/runtime.ts';
import { type ModelOptions, readPrices } from './choose-model.ts';
import { UsageError } from './exit-code.ts';

export type CommandName = 'run' | 'resume' | 'list' | 'inspect';

/** The options as they were given, checked. Absent ones were not given. */
export interface Options extends ModelOptions {
  readonly journal: string;
  readonly workspace: string;
  readonly json: boolean;
  readonly debug: boolean;
  readonly chat: boolean;
  /** The model has no native tool calls; its calls are read from its text. */
  readonly textCalls: boolean;
  readonly prices?: Prices;
  readonly maxSteps?: number;
  readonly maxCostMicroUsd?: number;
  readonly timeoutMs?: number;
  readonly message?: string;
  /** The conversation that a run continues, or whose runs are listed. */
  readonly session?: string;
  readonly status?: readonly RunStatus[];
  readonly limit?: number;
  /** What a later command about the same run needs, too; ready for a shell. */
  readonly repeated: readonly string[];
}

export type Parsed =
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  /** `subject` is the goal of `run`, the run of `resume` and `inspect`, and '' for `list`. */
  | {
      readonly kind: 'command';
      readonly command: CommandName;
      readonly subject: string;
      readonly options: Options;
    };

const STATUSES: readonly RunStatus[] = ['running', 'paused', 'finished', 'failed', 'cancelled'];

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;
const COMMON: ParseArgsOptionsConfig = { journal: TEXT, json: FLAG, debug: FLAG, help: { ...FLAG, short: 'h' } };
const DRIVING: ParseArgsOptionsConfig = {
  ...COMMON,
  workspace: TEXT,
  model: TEXT,
  'base-url': TEXT,
  'api-key-env': TEXT,
  prices: TEXT,
  chat: FLAG,
  'text-calls': FLAG,
  'max-steps': TEXT,
  'max-cost-usd': TEXT,
  timeout: TEXT,
};
const TAKEN: Readonly<Record<CommandName, ParseArgsOptionsConfig>> = {
  run: { ...DRIVING, session: TEXT },
  resume: { ...DRIVING, message: TEXT },
  list: { ...COMMON, status: { ...TEXT, multiple: true }, limit: TEXT, session: TEXT },
  inspect: COMMON,
};
/** Options that say how a run is driven, not how far. */
const REPEATED = ['journal', 'workspace', 'model', 'base-url', 'api-key-env', 'prices', 'chat', 'text-calls'];

/** @throws UsageError */
export function parseCommandLine(args: readonly string[]): Parsed {
  const [first, ...rest] = args;
  if (first === undefined) throw new UsageError('No command is given.');
  if (first === '--help' || first === '-h' || first === 'help') return { kind: 'help', text: HELP };
  if (first === '--version' || first === '-v') return { kind: 'version' };
  if (!isCommand(first)) throw new UsageError(`There is no command ${JSON.stringify(first)}.`);
  const { values, positionals } = parse(first, rest);
  if (values['help'] === true) return { kind: 'help', text: COMMAND_HELP[first] };
  return { kind: 'command', command: first, subject: subjectOf(first, positionals), options: optionsOf(values) };
}

type Values = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;

function parse(command: CommandName, args: readonly string[]): { values: Values; positionals: string[] } {
  try {
    return parseArgs({ args: [...args], options: TAKEN[command], allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function isCommand(word: string): word is CommandName {
  return Object.hasOwn(TAKEN, word);
}

const SUBJECTS: Readonly<Record<CommandName, string | undefined>> = {
  run: 'one goal, in quotes',
  resume: 'one run, such as run_…',
  list: undefined,
  inspect: 'one run, such as run_…',
};

function subjectOf(command: CommandName, positionals: readonly string[]): string {
  const wanted = SUBJECTS[command];
  const [subject = ''] = positionals;
  if (wanted === undefined) {
    if (positionals.length > 0) throw new UsageError(`${command} takes no further words.`);
  } else if (positionals.length !== 1 || subject.trim() === '') throw new UsageError(`${command} takes ${wanted}.`);
  return subject;
}

function optionsOf(values: Values): Options {
  const text = (name: string): string | undefined => {
    const value = values[name];
    if (typeof value !== 'string') return undefined;
    if (value.trim() === '') throw new UsageError(`--${name} is empty.`);
    return value;
  };
  const prices = text('prices');
  const maxSteps = wholeNumber(text('max-steps'), 'max-steps');
  const maxCostUsd = positive(text('max-cost-usd'), 'max-cost-usd');
  const timeout = positive(text('timeout'), 'timeout');
  return {
    journal: text('journal') ?? DEFAULT_JOURNAL_PATH,
    workspace: text('workspace') ?? '.',
    json: values['json'] === true,
    debug: values['debug'] === true,
    chat: values['chat'] === true,
    textCalls: values['text-calls'] === true,
    ...given('model', text('model')),
    ...given('baseUrl', text('base-url')),
    ...given('apiKeyEnv', text('api-key-env')),
    ...given('prices', prices === undefined ? undefined : readPrices(prices)),
    ...given('maxSteps', maxSteps),
    ...given('maxCostMicroUsd', maxCostUsd === undefined ? undefined : Math.round(maxCostUsd * 1_000_000)),
    ...given('timeoutMs', timeout === undefined ? undefined : Math.ceil(timeout * 1000)),
    ...given('message', text('message')),
    ...given('session', text('session')),
    ...given('status', statusesOf(values['status'])),
    ...given('limit', wholeNumber(text('limit'), 'limit')),
    repeated: REPEATED.flatMap((name) => {
      const value = values[name];
      return value === undefined ? [] : value === true ? [`--${name}`] : [`--${name}`, String(value)];
    }),
  };
}

function given<K extends string, V>(name: K, value: V | undefined): Partial<Record<K, V>> {
  return value === undefined ? {} : ({ [name]: value } as Record<K, V>);
}

function wholeNumber(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value > 0) return value;
  throw new UsageError(`--${name} takes a whole number from 1 up.`);
}

function positive(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^[\d.]+$/.test(text) && Number.isFinite(value) && value > 0) return value;
  throw new UsageError(`--${name} takes a number over 0.`);
}

function statusesOf(value: Values[string]): RunStatus[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value
    .flatMap(String)
    .flatMap((list) => list.split(','))
    .map((word) => {
      const status = STATUSES.find((known) => known === word.trim());
      if (status === undefined) throw new UsageError(`--status takes ${STATUSES.join(', ')}.`);
      return status;
    });
}

const EXIT_CODES = `Exit codes:
  0    the goal is reached (for list and inspect: done)
  1    the run ended otherwise: no way on, the time is over, cancelled
  2    wrong usage
  3    the run failed
  4    the journal cannot be used
  5    the run is paused and waits for somebody
  130  interrupted (Ctrl-C): the run is kept and can be resumed
  141  nobody reads the output any more: as 130`;

export const HELP: string = `Usage: pilotage <command> [options]

Runs agents that can be stopped, resumed and looked into.

Commands:
  run "<goal>"    start a run in this folder
  resume <run>    go on with a run that is paused, or whose process died
  list            the runs of this folder's journal
  inspect <run>   what a run did, step by step

  pilotage <command> --help   says more
  pilotage --version          the version

${EXIT_CODES}
`;

const JOURNAL_HELP = `  --journal <path>       where runs are kept (default ${DEFAULT_JOURNAL_PATH} in this folder)
  --debug                show the stack of an error
  -h, --help             this text`;

const DRIVING_HELP = `  --model <id>           the model, by the name that its server knows
  --base-url <url>       a server that speaks the OpenAI chat protocol, such as http://127.0.0.1:11434/v1
  --api-key-env <NAME>   the environment variable that holds the server's key
  --prices <in,out>      dollars for a million input and output tokens; a cost limit needs them
  --workspace <dir>      the folder that the tools may read (default: this one)
  --chat                 wait for your next message after an answer, in place of ending the run
  --text-calls           the model has no native tool calls: read them from its text
  --max-steps <n>        decisions in all (default 64)
  --max-cost-usd <x>     dollars in all
  --timeout <s>          seconds from now, after which the run ends
  --json                 print events, one JSON object a line, and nothing else, on stdout
${JOURNAL_HELP}

A reached limit pauses the run, and resume raises it; with --timeout it ends the run.`;

const MODEL_HELP = `The model:
  Without --model and --base-url the environment is asked, in this order:
    OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL   (OPENAI_BASE_URL alone for a local server)
    OLLAMA_HOST and OLLAMA_MODEL                       (or OPENAI_MODEL)
  OPENAI_API_KEY is sent only to the server of OPENAI_BASE_URL; for --base-url give --api-key-env.
  With no model, run makes a fixed survey of the folder with the same tools.`;

const COMMAND_HELP: Readonly<Record<CommandName, string>> = {
  run: `Usage: pilotage run "<goal>" [options]

Starts a run. Its tools read this folder and change nothing: list_files, read_file, search_files, git_log.
The answer goes to stdout, progress to stderr. Ctrl-C pauses the run; a second one stops at once. Both can be resumed.

Options:
  --session <name>       the conversation to continue: the model is told its last 20 goals and answers
${DRIVING_HELP}

${MODEL_HELP}

${EXIT_CODES}
`,
  resume: `Usage: pilotage resume <run> [options]

Goes on with a run: one that is paused, one that was interrupted, one whose process was killed. A run that has ended
shows its answer again. Give --model, --base-url, --text-calls, --workspace, --journal and --chat as the run
was started with.

Options:
  --message <text>       the answer to a run that waits for one; otherwise a word to the run on its way
${DRIVING_HELP}

${MODEL_HELP}

${EXIT_CODES}
`,
  list: `Usage: pilotage list [options]

The runs of the journal, newest first.

Options:
  --status <status>      only these: ${STATUSES.join(', ')}; may be repeated
  --session <name>       only the runs of this conversation
  --limit <n>            at most so many (default 50, at most 200)
  --json                 one JSON object a line
${JOURNAL_HELP}

${EXIT_CODES}
`,
  inspect: `Usage: pilotage inspect <run> [options]

What the run decided and did, with times, outcomes and costs.

Options:
  --json                 its events, one JSON object a line
${JOURNAL_HELP}

${EXIT_CODES}
`,
};
