/**
 * A page to start from: a chat with approvals whose arguments can be changed, that goes on after a reload. It is served beside `aiSdk()`, by whatever serves
 * your pages; `examples/scenario-server.ts` has an agent for it.
 */
import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  type DynamicToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { type FormEvent, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';

const API = '/api/chat';
/** The chat is the same after a reload. */
const ID = new URLSearchParams(location.search).get('chat') ?? 'talk';

function App() {
  const [history, setHistory] = useState<UIMessage[]>();
  useEffect(() => {
    void fetch(`${API}/${encodeURIComponent(ID)}/messages`)
      .then((answer) => answer.json())
      .then(setHistory);
  }, []);
  return history === undefined ? <p>…</p> : <Chat history={history} />;
}

function Chat({ history }: { readonly history: UIMessage[] }) {
  const { messages, status, error, sendMessage, addToolApprovalResponse } = useChat({
    id: ID,
    messages: history,
    resume: true,
    transport: new DefaultChatTransport({ api: API }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const [edits, setEdits] = useState<Record<string, unknown>>({});
  const isBusy = status === 'submitted' || status === 'streaming';

  const send = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get('text') ?? '');
    event.currentTarget.reset();
    if (text !== '') void sendMessage({ text });
  };
  /** Arguments that were changed go with the answer. Those of all calls that wait are sent together. */
  const answer = (id: string, approved: boolean, args?: unknown): void => {
    const all = args === undefined ? edits : { ...edits, [id]: args };
    setEdits(all);
    void addToolApprovalResponse({ id, approved, options: { body: { edits: all } } });
  };

  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <section key={id} data-role={role}>
          {parts.map((part, index) => {
            const key = `${id} ${index}`;
            if (part.type === 'text') return <p key={key}>{part.text}</p>;
            if (part.type === 'reasoning') return <small key={key}>{part.text}</small>;
            if (part.type === 'dynamic-tool') return <Call key={key} call={part} answer={answer} />;
            if (part.type === 'source-url')
              return (
                <a key={key} href={part.url}>
                  {part.title ?? part.url}
                </a>
              );
            if (part.type === 'file') return <img key={key} src={part.url} alt={part.filename ?? 'a file'} />;
            if (part.type.startsWith('data-') && 'data' in part)
              return <code key={key}>{JSON.stringify(part.data)}</code>;
            return null;
          })}
        </section>
      ))}
      {error !== undefined && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input name="text" aria-label="Message" autoComplete="off" />
        <button type="submit">Send</button>
        {isBusy && (
          <button type="button" onClick={() => void fetch(`${API}/${encodeURIComponent(ID)}/stop`, { method: 'POST' })}>
            Stop
          </button>
        )}
      </form>
    </main>
  );
}

interface CallProps {
  readonly call: DynamicToolUIPart;
  readonly answer: (id: string, approved: boolean, args?: unknown) => void;
}

function Call({ call, answer }: CallProps) {
  const given = JSON.stringify(call.input ?? {}, null, 2);
  const [text, setText] = useState(given);
  if (call.state !== 'approval-requested')
    return (
      <details>
        <summary>
          {call.toolName}: {call.state}
        </summary>
        <pre>{JSON.stringify(call.output ?? call.errorText ?? call.input, null, 2)}</pre>
      </details>
    );
  const { id, requestReason } = call.approval;
  const args = parsed(text);
  return (
    <fieldset>
      <legend>
        {call.toolName} {requestReason}
      </legend>
      <textarea aria-label="Arguments" value={text} rows={5} onChange={(event) => setText(event.target.value)} />
      <button
        type="button"
        disabled={args === undefined}
        onClick={() => answer(id, true, text === given ? undefined : args)}
      >
        Approve
      </button>
      <button type="button" onClick={() => answer(id, false)}>
        Reject
      </button>
    </fieldset>
  );
}

/** `undefined` while the text is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const root = document.getElementById('root');
if (root !== null) createRoot(root).render(<App />);
