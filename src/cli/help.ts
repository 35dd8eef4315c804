/** The commands, and what their help says. */
import { RUN_STATUSES } from '#journal';
import {
  type CommandName,
  DRIVING_HELP,
  EVENTS_HELP,
  EXIT_CODES,
  JOURNAL_HELP,
  MODEL_HELP,
  MODEL_OPTIONS,
  SERVE_HELP,
} from './help-parts.ts';

export type { CommandName, ControlName } from './help-parts.ts';

export const HELP: string = `Usage: pilotage <command> [options]

Runs agents that can be stopped, resumed, steered and looked into.

Commands:
  run "<goal>"              start a run in this folder
  plan "<goal>"             make a plan for it, show it, and carry it out
  resume <run>              go on with a run that is paused, has failed, or whose process died
  work                      carry out due runs until it is told to stop: a worker
  serve                     the same, and answer HTTP: runs and sessions for browsers and programs
  retry <run>               carry out again what has failed of a run's plan
  chat                      talk with an agent: a session whose turns are runs
  sessions <what>           list the sessions of the journal; show, delete, or give one a title
  schedules <what>          list the schedules of the journal; put, pause, resume, trigger, show or delete one
  list                      the runs of this folder's journal
  inspect <run>             what a run did, step by step
  events <run>              what happens in a run, while another process carries it out
  stream <run> <name>       the rows of a stream that its tools write
  waiting                   what the runs of the journal wait for, in the world and of people

  approve <run>             say yes to what a run asks, with other arguments if need be
  reject <run>              say no
  answer <run>              answer what a run asks, or give the value of a call that is asked about
  settle <run>              say whether a call in doubt has happened
  send <run> "<message>"    tell a run something on its way
  signal <key> [<json>]     say that something has happened that runs wait for
  redirect <run> "<goal>"   give it another goal
  pause <run>               let it stop at its next step
  cancel <run>              end it

  fork <run>                try another way from one of its steps on
  replay <run>              ask whether it would be decided in the same way today
  repair <run>              set a run right that cannot be read

  rules list                what answers of a user hold for questions to come; rules revoke takes one back
  memory list               what is remembered of a user; memory show, set and delete correct it
  erase --user <name>       erase all content of a user: runs, artifacts, memory
  prune --older-than <time> delete runs that ended long ago
  migrate                   bring the journal to the format of this version

  pilotage <command> --help   says more
  pilotage --version          the version

${EXIT_CODES}
`;

/** The session of a chat that names none. */
export const DEFAULT_SESSION = 'chat';

/** What a line of a chat may say beside a message. */
export const CHAT_HELP: string = `Lines that begin with a slash:
  /steer <text>          tells the turn under way, in place of waiting for it
  /interrupt <text>      cancels the turn under way, and has both messages answered
  /queue <text>          waits for the turn under way, as every message does on a terminal
  /stop                  cancels the turn under way
  /approve [<pause>] [<args>]        says yes to what a turn asks, with other arguments (JSON) if need be
  /reject [<pause>] [<reason>]       says no
  /answer [<pause>] <json>           answers a question, or gives the value of the call that is asked about
  /settle [<pause>] happened [<json>]  says that a call in doubt has happened, and what it came to
  /settle [<pause>] did-not-happen
  /resume [<pause>]      goes on with a turn that was paused
  /turns                 the turns so far, by their numbers
  /edit <n> <text>       sends another message in the place of that of turn n, on a branch of its own
  /regenerate [<n>]      answers the messages of turn n (default: the last one) once more, on a branch of its own
  /branches              the branches, by their numbers
  /switch <n>            goes on from the end of branch n
  /title <text>          gives the session a title
  /help                  this list
  /quit                  leaves; a turn under way is kept, and goes on with the next chat
  //<text>               a message that begins with a slash`;

const SENDER_HELP = `  --as <user>            in the name of this user, in the run's own session (default: nobody's, with every right)
  --admin                with --as: as an administrator, who may steer the runs of others, of any tenant
  --json                 print one line of JSON in place of words
${JOURNAL_HELP}`;

const ANSWER_HELP = `  --token <token>        which pause; needed only when several are open
  --reason <text>        why
  --payload <json>       an object for whoever asked
${SENDER_HELP}`;

const REMEMBER_HELP = `  --remember <scope>     the answer holds for questions to come, too: of this run, of its session, of its user (run, session, user)
  --match <which>        with --remember: for calls of the tool with the same arguments (exact, the default), for all of them (tool), or for
                         those whose arguments fit a JSON Schema: '{"properties": {"amount": {"maximum": 100}}}'
  --remember-for <s>     with --remember: for so many seconds (default: as long as there is what it holds for)`;

const STORED_HELP = `The command needs no planner and no model, and drives nothing: what you say is stored with the run. The process that drives the
run takes it, and the command waits some seconds to tell you whether it was applied or refused. When nobody drives the run,
it is stored all the same, and resume goes on with it.`;

const MESSAGE_HELP = `  --session <name>       sends it as a message to this session, where the turns before it are known; see chat
  --busy <what>          what becomes of it while a turn of the session is under way: queue (default: it waits), steer (that turn is
                         told of it), interrupt (that turn is cancelled, and both messages are answered), reject
  --id <id>              the message's id: the same message sent again is shown, and not answered twice`;

export const COMMAND_HELP: Readonly<Record<CommandName, string>> = {
  run: `Usage: pilotage run "<goal>" [options]

Starts a run. Without a configuration its tools read this folder and change nothing: list_files, read_file, search_files,
git_log. The answer goes to stdout, progress to stderr. Ctrl-C pauses the run; a second one stops at once. Both can be
resumed.

Options:
${MESSAGE_HELP}
  --agent <name>         one of the agents of the configuration, such as a flow; the goal is the name of the run then
  --input <json>         what that agent is given: the input of a flow
  --label <name=value>   to find the run by; may be repeated
  --at <time>            the run begins then, such as 2027-01-31T09:00:00+01:00, if a process is there
  --on-fail <what>       what becomes of what the run has done when it ends without having reached its goal: keep (default), or
                         undo: calls whose tools name an undo are undone first; a second cancel stops that
${DRIVING_HELP}

${MODEL_HELP}

${EXIT_CODES}
`,
  work: `Usage: pilotage work [options]

Carries out due runs of the journal, of whichever process, until SIGTERM or SIGINT: runs that were started elsewhere, whose time has come,
that were answered, or whose process died. Any number of workers share one journal. It says what happens on stderr, one JSON object a line.

At a SIGTERM or SIGINT it takes nothing more, lets what is under way end for so long as --grace, gives its runs back, and ends with exit code 0.
A second signal aborts what is under way. A journal that is away is waited for.

Options:
  --concurrency <n>      runs at once (default: maxLiveRuns of the configuration, or 10)
  --agent <name>         takes over runs of this agent only; may be repeated (default: of all agents that it knows)
  --grace <s>            seconds that what is under way has to end (default 8)
  --port <n>             answers HTTP there: /healthz, /readyz, /metrics; 0 for any free port (default: nowhere)
  --host <host>          the address of these ports (default 127.0.0.1; in a container 0.0.0.0)
  --engine restate       Restate wakes the runs
  --ingress <url>        where it takes requests
  --serve <n>            the port on which it reaches this worker
  --engine-admin <url>   registers the worker there
  --engine-url <url>     under this address
  --patience <s>         seconds for which a run waits for a model that is away, before it is paused (default 900)
${MODEL_OPTIONS}
${JOURNAL_HELP}

${MODEL_HELP}

${EXIT_CODES}
`,
  serve: SERVE_HELP,
  chat: `Usage: pilotage chat [options]

Talks in a session: each line of the input is a message, and each message is answered by a turn, which is a run. What others do in the
same session, from any process, is shown too. While a turn is under way more messages may be sent; they wait for it. The answers go to
stdout, progress to stderr. Ctrl-C cancels the turn; a second one leaves. When the lines come over a pipe, each is taken when the turns
before it have ended or wait for somebody, and the end of the input ends the chat.

${CHAT_HELP}

Options:
  --session <name>       the session (default: ${DEFAULT_SESSION})
  --agent <name>         the agent of the configuration that answers
${DRIVING_HELP.replace(/^ {2}--(?:chat|json) .*\n/gm, '')}

${MODEL_HELP}

${EXIT_CODES}
`,
  sessions: `Usage: pilotage sessions list [options]
       pilotage sessions show <session> [options]
       pilotage sessions title <session> "<title>" [options]
       pilotage sessions delete <session> [options]

Lists the sessions of the journal, those with the newest turns first; shows what was said in one, and its branches; gives it a title; deletes
it with all its runs and files, for good.

Options:
  --user <name>          whose session (default: yours; list shows those of all users)
  --tenant <name>        of which tenant (default: local)
  --limit <n>            at most so many sessions, or turns (default 50, at most 200)
  --json                 one JSON object a line
${JOURNAL_HELP}

${EXIT_CODES}
`,
  plan: `Usage: pilotage plan "<goal>" [options]
       pilotage plan "<goal>" --dry-run [options]
       pilotage plan --run <run> [options]

Starts a run that works by a plan. The plan is shown when it is made, as a tree and as a graph of levels, then each node as it
comes to its end, then the plan again, and the answer. The planner is that of the configuration; where it has none, a model
writes the plan (the planner pipeline). A run that was started so is resumed, steered and looked into as any other.

With --dry-run the planner is asked, and what it decides is shown. Nothing of it is run, and nothing is stored.
With --run the plan of a stored run is shown, with what became of each node, and what it waits for.

Options:
  --dry-run              make the plan and show it, no more
  --run <run>            show the last plan of this run
${MESSAGE_HELP}
${DRIVING_HELP}

With --json the plan is a line of the type plan among the events; with --dry-run or --run it is the only line.

${MODEL_HELP}

${EXIT_CODES}
`,
  resume: `Usage: pilotage resume <run> [options]

Goes on with a run: one that is paused, one that was interrupted, one whose process was killed. A run that has ended
shows its answer again. Give --config, --model, --base-url, --text-calls, --workspace, --journal and --chat as the run
was started with. A run that waits for an approval is answered by approve or reject.

Options:
  --message <text>       the answer to a run that waits for one; otherwise a word to the run on its way
  --token <token>        which pause to answer; needed only when several are open
  --until next           a single step: stop again before the next call begins
  --payload <json>       an object for whoever asked
  --nodes <json>         changes nodes of a paused plan that have not begun, by their ids: {"a": {"args": {…}}} gives other
                         arguments, {"b": {"skip": true}} takes it out with all that come after it
  --accept-changes       go on although the planner or the tools have changed since the run was started
${DRIVING_HELP}

${MODEL_HELP}

${EXIT_CODES}
`,
  retry: `Usage: pilotage retry <run> [options]

Carries out again what has failed of the plan of a run, and what was skipped for it. What has a value keeps it: no call is made twice
that was made, and of one that may have been made it is found out first. The run has failed, or is paused because its plan has.

Options:
  --nodes <a,b>          only these nodes, by their ids (default: all that have failed)
  --accept-changes       go on although the planner or the tools have changed since the run was started
${MODEL_OPTIONS}
  --patience <s>         seconds for which the run waits for a model that is away, before it is paused (default 900)
  --json                 print events, one JSON object a line, and nothing else, on stdout
${JOURNAL_HELP}

${MODEL_HELP}

${EXIT_CODES}
`,
  schedules: `Usage: pilotage schedules list [options]
       pilotage schedules put <id> "<query>" (--cron <cron> | --every <seconds>) [options]
       pilotage schedules show|pause|resume|trigger|delete <id> [options]

What starts runs again and again. A process that is open and knows the agent fires it, such as one with runtime.work(). The same schedule put
again changes nothing; a paused one stays paused. trigger starts its run now, and shows it. The runs: pilotage list --schedule <id>.

Options:
  --cron <cron>          minute, hour, day, month, day of the week, such as "0 9 * * 1-5"; with six fields, seconds come first
  --timezone <zone>      of the cron, such as Europe/Berlin (default UTC)
  --every <seconds>      in place of a cron
  --session <name>       each fire is a message to this session
  --overlap <mode>       while the last run is under way: skip (default), queue, parallel
  --catch-up <mode>      of what was missed: none, last (default), all
  --agent <name>         one of the agents of the configuration
  --input <json>         what that agent is given
  --label <name=value>   of its runs; may be repeated
  --user <name>          whose runs they are (default: local)
  --tenant <name>        of which tenant (default: local)
  --limit <n>            at most so many (default 50, at most 200)
${DRIVING_HELP}

${MODEL_HELP}

${EXIT_CODES}
`,
  list: `Usage: pilotage list [options]

The runs of the journal, newest first.

Options:
  --status <status>      only these: ${RUN_STATUSES.join(', ')}; may be repeated
  --tenant <name>        only runs of this tenant, and so on
  --user <name>
  --session <name>       only the runs of this conversation
  --parent <run>         only the tasks of this run
  --label <name=value>   only runs with this label; may be repeated
  --agent <name>         only the runs of this agent
  --schedule <id>        only runs that this schedule has started
  --text <words>         only runs with these words in their query
  --since <time>         only runs of the last 30m, 12h or 7d, or since 2027-01-31T09:00:00+01:00
  --limit <n>            at most so many (default 50, at most 200)
  --after <run>          the page behind this run
  --json                 one JSON object a line
${JOURNAL_HELP}

${EXIT_CODES}
`,
  waiting: `Usage: pilotage waiting [options]

What the runs of the journal wait for, oldest first: open questions and approvals with their pauses, times, and events with their keys. A run
that waits for the next try of a model or a tool that is away is not among them, nor one that waits for its tasks: list --status waiting.

Options:
  --for <what>           only these: answer, time, event
  --reason <reason>      only what is asked for this reason, such as approval_required or in_doubt
  --key <key>            only those that wait for the event of this key
  --tenant <name>        only those of this tenant, and so on
  --user <name>
  --session <name>
  --agent <name>
  --run <run>
  --limit <n>            at most so many (default 50, at most 200)
  --after <number>       the page behind the one that ended with this number
  --json                 one JSON object a line
${JOURNAL_HELP}

${EXIT_CODES}
`,
  signal: `Usage: pilotage signal <key> [<payload>] [options]

Says that something has happened outside: each run of the tenant that waits for the event of this key gets the payload, which is JSON. While none
waits it is kept, and goes to the first that does. A process that has the agent of a run goes on with it; this command drives nothing.

Options:
  --id <id>              the same signal again has the same id, and changes nothing (default: a fresh one)
  --tenant <name>        whose runs hear it (default local)
  --keep <s>             seconds for which it is kept, and its id known (default 604800)
  --json                 print one line of JSON in place of words
${JOURNAL_HELP}

${EXIT_CODES}
`,
  stream: `Usage: pilotage stream <run> <name> [options]

The rows that the run's tools have written to the stream with that name, each with its number. inspect says which streams there are.

Options:
  --from <n>             begin with this row (default 1)
  --follow               go on with the rows that come, until the run has ended or the stream is closed
  --json                 print each row whole, one JSON object a line
${JOURNAL_HELP}

${EXIT_CODES}
`,
  inspect: `Usage: pilotage inspect <run> [options]

What the run decided and did, with times, outcomes and costs; its tasks, and what it waits for.

Options:
  --json                 its events, one JSON object a line
${JOURNAL_HELP}

${EXIT_CODES}
`,
  events: EVENTS_HELP,
  approve: `Usage: pilotage approve <run> [options]

Says yes to what a run, or a task of it, waits for. A call that waits for an approval is made.

${STORED_HELP}

Options:
  --args <json>          the arguments that the call is made with, in place of its own
  --digest <text>        of what you saw, as inspect shows it: an approval of other arguments is refused. Needed when somebody has changed
                         the arguments of a call that several people approve
  --all                  every call that waits for an approval, each with the arguments that it has now
${REMEMBER_HELP}
${ANSWER_HELP}

${EXIT_CODES}
`,
  reject: `Usage: pilotage reject <run> [options]

Says no to what a run, or a task of it, waits for. A call that waits for an approval is not made; the planner is told, or the
run ends, as the tool says.

${STORED_HELP}

Options:
  --all                  every call that waits for an approval
${REMEMBER_HELP}
${ANSWER_HELP}

${EXIT_CODES}
`,
  answer: `Usage: pilotage answer <run> --value <json> [options]
       pilotage answer <run> --payload <json> [options]
       pilotage answer <run> --all <json> [options]

Answers a question of a call, or of the planner itself, which takes an object. With a value in place of a call that waits for an approval
or a login, such as one that was carried out by hand, the call is not made. --payload is for whatever the planner waits for itself. --all
answers several pauses at once, each by its token:
'{"pause_1": {"kind": "approve"}, "pause_2": {"kind": "answer", "value": 7}}'. Kinds are approve, reject, answer, payload and settle.

${STORED_HELP}

Options:
  --value <json>         the answer, or what the call comes to; it has to fit the schema of the question, or of the tool's output, if there is one
  --all <json>           answers by the tokens of the pauses
${ANSWER_HELP}

${EXIT_CODES}
`,
  settle: `Usage: pilotage settle <run> --happened [--value <json>] [options]
       pilotage settle <run> --did-not-happen [options]

Says what became of a call in doubt: one of the effect once that was under way when its process died, its time was over, or it
was stopped. Look it up by the key that the run shows, then say so. A call that happened has the value that you give; one
that did not is made, with the same key. Where the tool can look it up itself, resume lets it try again.

${STORED_HELP}

Options:
  --happened             it did
  --value <json>         what it came to (default null); it has to fit the output schema of the tool, if that has one
  --did-not-happen       it did not
${ANSWER_HELP}

${EXIT_CODES}
`,
  cancel: `Usage: pilotage cancel <run> [options]

Ends a run as cancelled, and its tasks with it. What is under way is stopped at once. With --call only that call is cancelled, and the
run goes on.

${STORED_HELP}

Options:
  --call <step.call>     cancel one call of the step under way, such as 3.1, counted as inspect does; or its id, or that of its node
  --soft                 let calls that are under way come to their end first
  --reason <text>        why
${SENDER_HELP}

${EXIT_CODES}
`,
  send: `Usage: pilotage send <run> "<message>" [options]

Tells a run something. Its planner is told at its next step.

${STORED_HELP}

Options:
${SENDER_HELP}

${EXIT_CODES}
`,
  redirect: `Usage: pilotage redirect <run> "<goal>" [options]

Gives a run another goal. Its planner is told at its next step.

${STORED_HELP}

Options:
${SENDER_HELP}

${EXIT_CODES}
`,
  pause: `Usage: pilotage pause <run> [options]

Lets a run stop at its next step, until it is resumed. With a breakpoint it goes on, and stops each time before such a call would begin.

${STORED_HELP}

Options:
  --before-tool <name>   a breakpoint: before a call of this tool
  --before-node <id>     a breakpoint: before this node of a plan, or this branch
  --next                 a breakpoint: before the next call, once
  --clear                take that breakpoint away
${SENDER_HELP}

${EXIT_CODES}
`,
  fork: `Usage: pilotage fork <run> [options]

Makes a new run that has taken the first steps of this run, with their outcomes, and drives it: with another planner,
model, goal or result from there on. Then it shows both runs side by side, in decisions and cost. The run itself is not
touched. Calls of the effect once are held back in the fork: such a call comes to effect_held_back.

Options:
  --at <step>            the first step that is the fork's own, counted from 1 as inspect does (default: after the last one)
  --result <json>        what the call of the step before came to, in place of what it did
  --call <n>             which call of that step, counted from 1; needed only when it has several
  --goal <text>          what the fork is to reach
  --allow-effects        make once calls, too
${DRIVING_HELP}

${MODEL_HELP}

${EXIT_CODES}
`,
  rules: `Usage: pilotage rules list [options]
       pilotage rules revoke <rule> [options]

Answers to questions that hold for questions to come (approve --remember, reject --remember): shows those of a user, the newest first, with
who set them and when; takes one back, so that people are asked again. Calls that it has let pass stay as they are.

Options:
  --user <name>          whose rules (default: you)
  --tenant <name>        the user's tenant (default local)
  --session <name>       only those that hold in this session
  --run <run>            those of this run alone, too
  --json                 print one JSON object a line
${JOURNAL_HELP}
`,
  memory: `Usage: pilotage memory list [options]
       pilotage memory show <key> [options]
       pilotage memory set <key> --value <json> [options]
       pilotage memory delete <key> [options]

Reads and corrects the long-term memory of a user: what agents have remembered, with the run and the step that it comes from, and what tools
have stored. What is set has no run: a person has said it. A key that is in several namespaces needs --namespace.

Options:
  --user <name>          whose memory (default: you)
  --tenant <name>        the user's tenant (default local)
  --namespace <json>     a list of texts, such as '["memory","facts"]': list what lies in it, or which of several is meant. What is
                         set anew lies in '["memory","facts"]', if nothing else is said
  --value <json>         what is set, such as '{"text": "Ann likes green tea."}'
  --json                 print one JSON object a line
${JOURNAL_HELP}
`,
  erase: `Usage: pilotage erase --user <name> --yes [options]

Erases all content of a user: what was said and done in their runs, their artifacts, the summaries of their sessions and their long-term memory.
What is left are skeletons of runs: kinds, ids, tools, statuses, numbers and times. A run that has not ended is cancelled; while a process
has it under way, it is left as it is, and told to end: erase again then. Nothing brings it back; backups are not touched.

Options:
  --user <name>          whose content
  --tenant <name>        the user's tenant (default local)
  --yes                  do it
  --json                 print one line of JSON in place of words
${JOURNAL_HELP}
`,
  prune: `Usage: pilotage prune --older-than <time> [options]

Deletes runs that have ended and have not changed for so long, with all that hangs on them. What is alive is left: a run goes with its tasks,
a conversation with its whole session, and a run that another one has gone on with goes after that one, or not at all. Artifacts go with the
last run of their session. It works in small parts, so that processes that use the journal go on meanwhile. Nothing brings the runs back;
their ids are free again.

Options:
  --older-than <time>    how long ago at least, by the journal's clock: such as 30d, 12h, 90m or 45s
  --status <list>        only such as have ended so: finished, failed, cancelled (default: all of them)
  --tenant <name>        only runs of this tenant
  --dry-run              say how many there are, and delete nothing
  --json                 print one line of JSON in place of words
${JOURNAL_HELP}
`,
  migrate: `Usage: pilotage migrate [options]

Brings a journal to the format of this version of Pilotage, and says from which format to which. A Postgres database gets its tables, if it has
none. Processes do the same when they open a journal for writing: it is for those who want to say when, or whose workers have no right to.

Options:
  --rls <on|off>         a Postgres database separates tenants from now on by row-level security, or no more. Whoever has the tables can
                         say so. All processes must then open the journal with { rls: true }
  --journal <path>       the path of the file, or the URL of the database (default: as for every command)
  --config <path>        the configuration (default pilotage.config.ts in this folder, if there is one)
  --json                 print one line of JSON in place of words
  --debug                show the stack of an error
  -h, --help             this text
`,
  repair: `Usage: pilotage repair <run> [options]

Says what is wrong with a run that cannot be read or folded, and what a repair would do; nothing is written. With --apply it is done: entries
that cannot stand are set aside, whole, in an artifact, who did it is recorded in their place, and the run is paused.

Options:
  --apply                set it right
  --by <name>            who does it; needed with --apply
  --reason <text>        why; recorded
  --json                 print one line of JSON in place of words
${JOURNAL_HELP}

${EXIT_CODES}
`,
  replay: `Usage: pilotage replay <run> [options]

Asks today's planner for every step that the run has taken, shows it what was recorded, and names the first step that it would
decide otherwise. No tool is called and nothing is written; a planner with a model asks it, and pays for it.

Options:
${MODEL_OPTIONS}
  --json                 print one line of JSON in place of words
${JOURNAL_HELP}

${MODEL_HELP}

${EXIT_CODES}
`,
};
