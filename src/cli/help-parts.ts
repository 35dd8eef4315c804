/** Parts of the help that several commands have. */
import { DEFAULT_JOURNAL_PATH } from '#journal';

/** Commands that say something to a run, and drive nothing. */
export type ControlName = 'approve' | 'reject' | 'answer' | 'settle' | 'cancel' | 'send' | 'redirect' | 'pause';
export type CommandName =
  | 'run'
  | 'chat'
  | 'sessions'
  | 'schedules'
  | 'work'
  | 'serve'
  | 'plan'
  | 'resume'
  | 'retry'
  | 'list'
  | 'inspect'
  | 'events'
  | 'stream'
  | 'waiting'
  | 'signal'
  | 'fork'
  | 'replay'
  | 'repair'
  | 'memory'
  | 'rules'
  | 'erase'
  | 'prune'
  | 'migrate'
  | ControlName;

export const EXIT_CODES: string = `Exit codes:
  0    the goal is reached (for commands that drive no run: done)
  1    the run ended otherwise: no way on, the time is over, cancelled
  2    wrong usage, or an optional package is not installed
  3    the run failed
  4    the journal cannot be used
  5    the run is paused and waits for somebody
  6    refused: by the run, because it has ended, changed or belongs to somebody else, or because
       an answer or a signal does not fit what is asked
  7    replay found a step that would be decided otherwise
  130  interrupted (Ctrl-C): the run is kept and can be resumed
  141  nobody reads the output any more: as 130
  143  terminated (SIGTERM): as 130`;

export const JOURNAL_HELP: string = `  --journal <place>      where runs are kept: a file, or a URL of Postgres (default: what PILOTAGE_JOURNAL
                         says, or ${DEFAULT_JOURNAL_PATH} in this folder). A URL may have ?schema=<name> behind it
  --config <path>        the configuration (default pilotage.config.ts in this folder, if there is one)
  --debug                show the stack of an error
  -h, --help             this text`;

export const MODEL_OPTIONS: string = `  --model <id>           the model, by the name that its server knows
  --base-url <url>       a server that speaks the OpenAI chat protocol, such as http://127.0.0.1:11434/v1
  --api-key-env <NAME>   the environment variable that holds the server's key
  --prices <in,out>      dollars for a million input and output tokens; a cost limit needs them
  --workspace <dir>      the folder that the tools may read (default: this one)
  --chat                 wait for your next message after an answer, in place of ending the run
  --text-calls           the model has no native tool calls: read them from its text`;

export const DRIVING_HELP: string = `${MODEL_OPTIONS}
  --max-steps <n>        decisions in all (default 64)
  --max-calls <n>        calls of tools in all
  --max-tokens <n>       tokens that models read and write in all
  --max-cost-usd <x>     dollars in all
  --timeout <s>          seconds from now, after which the run ends
  --patience <s>         seconds for which the run waits for a model that is away, before it is paused (default 900)
  --grace <s>            seconds that what is under way has to end after a SIGTERM, before it is aborted (default 8)
  --json                 print events, one JSON object a line, and nothing else, on stdout
${JOURNAL_HELP}

A reached limit pauses the run, and resume raises it; with --timeout it ends the run.`;

export const MODEL_HELP: string = `The configuration:
  Planner, tools, limits, memory and journal are those of pilotage.config.ts, if this folder has one, or of --config. Options
  given here come first: --model takes the place of the model of a configured react planner.

The model, where the configuration names none:
  Without --model and --base-url the environment is asked, in this order:
    OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL   (OPENAI_BASE_URL alone for a local server)
    OLLAMA_HOST and OLLAMA_MODEL                       (or OPENAI_MODEL)
  OPENAI_API_KEY is sent only to the server of OPENAI_BASE_URL; for --base-url give --api-key-env.
  With neither configuration nor model, run makes a fixed survey of the folder with the same tools; plan needs one of them.`;

export const SERVE_HELP: string = `Usage: pilotage serve [options]

Answers HTTP with the runtime of the project, and carries out due runs as work does, until SIGTERM or SIGINT. What it answers, and who may ask,
is the part server of the configuration: { parts, authenticate, hosts, origins, ... }. Without it: our own API (/docs shows it), for this machine alone.

At a SIGTERM or SIGINT it answers nobody new, lets what is under way end for so long as --grace, gives its runs back, and ends with exit code 0.
A second signal aborts what is under way.

Options:
  --port <n>             where it answers (default 4400; 0 for any free port)
  --host <host>          the address to listen at (default 127.0.0.1); others than this machine need server.authenticate
  --concurrency <n>      runs at once (default: maxLiveRuns of the configuration, or 10)
  --agent <name>         takes over runs of this agent only; may be repeated (default: of all agents that it knows)
  --grace <s>            seconds that what is under way has to end (default 8)
  --patience <s>         seconds for which a run waits for a model that is away, before it is paused (default 900)
  --json                 print what happens, one JSON object a line, on stdout
${MODEL_OPTIONS}
${JOURNAL_HELP}

${MODEL_HELP}

${EXIT_CODES}
`;

export const EVENTS_HELP: string = `Usage: pilotage events <run> [options]

What has happened in the run, and with --follow what happens, whichever process of whichever machine carries it out. This command drives nothing.
What an open question needs to be answered stands below it, or with --follow as soon as it is asked.

Options:
  --from <n>             begin with the events of this entry (default 1)
  --follow               go on with what comes, over pauses too, until the run has ended; the exit code says how
  --tasks                the events of the tasks below the run, too, at any depth, each marked with its task
  --json                 one JSON object an event; with --follow also what is not recorded, such as the words of a reply
${JOURNAL_HELP}

${EXIT_CODES}
`;
