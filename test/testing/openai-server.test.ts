import { afterEach, describe, expect, it } from 'vitest';
import { type OpenAIServer, openaiServer } from '#testing';

let server: OpenAIServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function post(body: unknown, path = '/chat/completions'): Promise<{ status: number; text: string }> {
  const response = await fetch(`${server?.url}${path}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const user = { role: 'user', content: 'hi' };
const call = (id: string, input = '{}', name = 'search') => ({
  id,
  type: 'function',
  function: { name, arguments: input },
});
const calling = (...ids: string[]) => ({ role: 'assistant', content: null, tool_calls: ids.map((id) => call(id)) });
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'ok' });

describe('openaiServer', () => {
  it('accepts pairs of calls and results, in any order of the results', async () => {
    server = await openaiServer((request, index) => ({ text: `${request.messages.length} ${index}` }));
    const messages = [user, calling('a', 'b'), result('b'), result('a'), calling('a'), result('a'), user];
    const { status, text } = await post({ model: 'm', messages });
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: '7 0' }, finish_reason: 'stop' }],
    });
    expect(server.requests[0]?.body.messages).toEqual(messages);
  });

  it.each([
    ['a call without its result', [user, calling('a')], 'results of a are missing'],
    ['something between call and result', [user, calling('a'), user, result('a')], 'before the results of a'],
    ['one of two results', [user, calling('a', 'b'), result('a'), user], 'before the results of b'],
    ['an orphan result', [user, result('a')], 'without its tool call'],
    ['two results of one call', [user, calling('a'), result('a'), result('a')], 'without its tool call'],
    ['two calls with one id', [user, calling('a', 'a'), result('a')], 'there twice'],
    [
      'arguments that are no JSON',
      [{ ...calling(), tool_calls: [call('a', '{"q')] }],
      'arguments is not a JSON object',
    ],
    [
      'arguments that are a string',
      [{ ...calling(), tool_calls: [call('a', '"q"')] }],
      'arguments is not a JSON object',
    ],
    ['a tool name with a blank', [{ ...calling(), tool_calls: [call('a', '{}', 'a b')] }], 'not a tool name'],
    ['an empty list of calls', [{ ...calling(), tool_calls: [] }], 'tool_calls is not a list'],
    ['an empty message', [{ role: 'assistant', content: null }], 'neither content nor tool_calls'],
    ['an unknown role', [{ role: 'robot', content: 'x' }], 'role is unknown'],
    ['no messages', [], 'messages is empty'],
  ])('refuses %s with 400', async (_, messages, fault) => {
    server = await openaiServer([{ text: 'x' }]);
    const { status, text } = await post({ model: 'm', messages });
    expect(status).toBe(400);
    expect(JSON.parse(text).error.message).toContain(fault);
    expect(server.requests).toHaveLength(1);
    expect((await post({ model: 'm', messages: [user] })).status).toBe(200); // the script was not touched
  });

  it('refuses bad tools, bad JSON, other paths, and what is beyond the script', async () => {
    server = await openaiServer([]);
    const tool = { type: 'function', function: { name: 'a' } };
    expect((await post({ model: 'm', messages: [user], tools: [tool, tool] })).text).toContain('a twice');
    expect((await post({ messages: [user] })).text).toContain('model is missing');
    expect((await post('{"mod')).status).toBe(400);
    expect((await post({}, '/models')).status).toBe(404);
    expect(await post({ model: 'm', messages: [user] })).toMatchObject({ status: 500 });
  });

  it('streams events: role, pieces, split arguments, reason, usage, done', async () => {
    server = await openaiServer([
      { text: 'more than twelve', calls: [{ id: 'a', tool: 'search', args: { query: 'x y z' } }] },
    ]);
    const { text } = await post({
      model: 'm',
      messages: [user],
      stream: true,
      stream_options: { include_usage: true },
    });
    const events = text
      .trim()
      .split('\n\n')
      .map((event) => event.replace(/^data: /, ''));
    expect(events.at(-1)).toBe('[DONE]');
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event));
    expect(chunks[0].choices[0].delta).toEqual({ role: 'assistant', content: '' });
    const deltas = chunks.flatMap((chunk) => chunk.choices).map((choice) => choice.delta);
    expect(deltas.filter((delta) => delta.content).length).toBe(2);
    const pieces = deltas.flatMap((delta) => delta.tool_calls ?? []).map((piece) => piece.function.arguments);
    expect(pieces.length).toBeGreaterThan(2);
    expect(JSON.parse(pieces.join(''))).toEqual({ query: 'x y z' });
    expect(chunks.at(-2).choices[0].finish_reason).toBe('tool_calls');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 0 } });
  });

  it('a handler that throws is a 500, and close ends an answer that hangs', async () => {
    server = await openaiServer((_, index) => {
      if (index === 0) throw new Error('broken handler');
      return new Promise(() => {});
    });
    expect((await post({ model: 'm', messages: [user] })).text).toContain('broken handler');
    const hanging = post({ model: 'm', messages: [user] });
    const ended = expect(hanging).rejects.toThrow();
    await expect.poll(() => server?.requests.length).toBe(2);
    await server.close();
    server = undefined;
    await ended;
  });
});
