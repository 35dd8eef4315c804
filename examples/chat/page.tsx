/**
 * A page to start from: a chat that goes on after a reload, and after its server was away, with approvals whose arguments can be changed. `npm run chat-example`
 * bundles it and serves it beside `aiSdk()`; so does whatever serves your pages.
 */
import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  type DynamicToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';

/** The chat is the same after a reload. */
const ID = new URLSearchParams(location.search).get('chat') ?? 'talk';
const CHAT = `/api/chat/${encodeURIComponent(ID)}`;
/** Arguments that were changed, by the id of the approval. They go with every request, since it is not known which one brings the answer. */
const edits: Record<string, unknown> = {};
const transport = new DefaultChatTransport({
  api: '/api/chat',
  body: () => ({ edits }),
  // The server keeps the conversation. All of it, with its pictures, would soon be too large for a request.
  prepareSendMessagesRequest: ({ body, id, trigger, messageId, messages }) => ({
    body: { ...body, id, trigger, messageId, messages: messages.slice(-2) },
  }),
});

/** All messages, as soon as the server is there. */
async function load(): Promise<UIMessage[]> {
  const answer = await fetch(`${CHAT}/messages`).catch(() => undefined);
  if (answer?.ok) return answer.json();
  if (answer !== undefined && answer.status < 500) throw new Error(await answer.text());
  await new Promise((resolve) => setTimeout(resolve, 500));
  return load();
}

function App() {
  const [history, setHistory] = useState<UIMessage[]>();
  const [error, setError] = useState<Error>();
  useEffect(() => void load().then(setHistory, setError), []);
  if (error !== undefined) return <p role="alert">{wordsOf(error)}</p>;
  return history === undefined ? <p>…</p> : <Chat history={history} />;
}

function Chat({ history }: { readonly history: UIMessage[] }) {
  const { messages, status, error, sendMessage, setMessages, resumeStream, addToolApprovalResponse } = useChat({
    id: ID,
    messages: history,
    resume: true,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: (failed) => void (failed instanceof TypeError && comeBack()),
  });
  const isAway = useRef(false);
  const isBusy = status === 'submitted' || status === 'streaming';

  /** After the server was away: what it knows, what is under way there, and what did not get through. A message that did is known by its id. */
  async function comeBack(): Promise<void> {
    if (isAway.current) return;
    isAway.current = true;
    const known = await load().finally(() => {
      isAway.current = false;
    });
    setMessages(known);
    void resumeStream();
    for (const message of messages)
      if (message.role === 'user' && !known.some(({ id }) => id === message.id)) void sendMessage(message);
  }
  const send = (form: FormData): void => {
    const text = String(form.get('text') ?? '');
    if (text !== '') void sendMessage({ text });
  };
  const answer: Answer = (id, approved, args) => {
    if (args !== undefined) edits[id] = args;
    void addToolApprovalResponse({ id, approved });
  };

  return (
    <main data-status={status}>
      {messages.map(({ id, role, parts }) => (
        <section key={id} data-role={role}>
          {parts.map((part, index) => {
            const key = `${id} ${index}`;
            if (part.type === 'text') return <p key={key}>{part.text}</p>;
            if (part.type === 'reasoning') return <small key={key}>{part.text}</small>;
            if (part.type === 'dynamic-tool') return <Call key={key} call={part} answer={answer} />;
            if (part.type === 'file') return <img key={key} src={part.url} alt={part.filename ?? 'a file'} />;
            if ('data' in part) return <code key={key}>{JSON.stringify(part.data)}</code>;
            return null;
          })}
        </section>
      ))}
      {error !== undefined && <p role="alert">{wordsOf(error)}</p>}
      <form action={send}>
        <input name="text" aria-label="Message" autoComplete="off" />
        <button type="submit">Send</button>
        <button type="button" disabled={!isBusy} onClick={() => void fetch(`${CHAT}/stop`, { method: 'POST' })}>
          Stop
        </button>
      </form>
    </main>
  );
}

type Answer = (id: string, approved: boolean, args?: unknown) => void;

function Call({ call, answer }: { readonly call: DynamicToolUIPart; readonly answer: Answer }) {
  const [edited, setEdited] = useState<string>();
  if (call.state !== 'approval-requested')
    return (
      <details>
        <summary>{`${call.toolName}: ${call.state}`}</summary>
        <pre>{JSON.stringify(call.output ?? call.errorText ?? call.input, null, 2)}</pre>
      </details>
    );
  const { id, requestReason } = call.approval;
  const text = edited ?? JSON.stringify(call.input ?? {}, null, 2);
  const args = parsed(text);
  return (
    <fieldset>
      <legend>{`${call.toolName} ${requestReason ?? ''}`}</legend>
      <textarea aria-label="Arguments" value={text} rows={5} onChange={(event) => setEdited(event.target.value)} />
      <button type="button" disabled={args === undefined} onClick={() => answer(id, true, edited && args)}>
        Approve
      </button>
      <button type="button" onClick={() => answer(id, false)}>
        Reject
      </button>
    </fieldset>
  );
}

/** `undefined` for what is no JSON. */
function parsed(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A request that is refused is answered with problem details. */
function wordsOf({ message }: Error): string {
  return parsed(message)?.detail ?? message;
}

const root = document.getElementById('root');
if (root !== null) createRoot(root).render(<App />);
