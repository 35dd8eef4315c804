import { afterEach, describe, expect, it } from 'vitest';
import { type OpenAIServer, openaiServer, type ServerHandler, type ServerReply } from '#testing';
import { eventsIn, makeFolder, runIn } from './command.ts';

const servers: OpenAIServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(
  script: readonly ServerReply[] | ServerHandler,
): Promise<{ server: OpenAIServer; flags: string[] }> {
  const server = await openaiServer(script);
  servers.push(server);
  return { server, flags: ['--base-url', server.url, '--model', 'small'] };
}

/** A reply that waits to be let go, and says when it was asked for. */
function held(reply: ServerReply): { reply(): Promise<ServerReply>; asked: Promise<void>; letGo(): void } {
  let ask = (): void => {};
  let letGo = (): void => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  const free = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const wait = (): Promise<ServerReply> => {
    ask();
    return free.then(() => reply);
  };
  return { asked, letGo, reply: wait };
}

const read: ServerReply = { calls: [{ tool: 'read_file', args: { path: 'note.txt' } }] };

describe('pilotage run with a model', () => {
  it('answers on stdout, tells on stderr, and keeps keys to itself', async () => {
    const folder = makeFolder();
    folder.write('note.txt', 'the answer is 42\n');
    const { server, flags } = await serve([read, { text: 'It is 42.\nSurely.' }]);
    const env = { MY_KEY: 'sk-very-secret', OPENAI_API_KEY: 'sk-other' };
    const { code, stdout, stderr } = await folder.run(['run', 'Read it', ...flags, '--api-key-env', 'MY_KEY'], env);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'It is 42.\nSurely.\n' });
    expect(stderr).toContain('✓ read_file  {"path":"note.txt"}');
    expect(server.requests[0]?.headers.authorization).toBe('Bearer sk-very-secret');
    expect(JSON.stringify(server.requests[1]?.body)).toContain('the answer is 42');
    expect(stdout + stderr).not.toContain('sk-');
    const inspected = await folder.run(['inspect', runIn(stderr)]);
    expect(inspected.stdout + (await folder.run(['list'])).stdout).not.toContain('sk-');
    // The server says 0 tokens, as those do that do not count.
    expect(inspected.stdout).toMatch(/totals .* \(partly estimated\)/);
  });

  it('--text-calls reads the calls of a model without native ones from its text, and shows none of them', async () => {
    const folder = makeFolder();
    folder.write('note.txt', 'the answer is 42\n');
    const call = 'I look.\n```json\n{"tool": "read_file", "args": {"path": "note.txt"}}\n```';
    const { server, flags } = await serve([{ text: call }, { text: 'It is 42.' }]);
    const { code, stdout, stderr } = await folder.run(['run', 'Read it', ...flags, '--text-calls']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'It is 42.\n' });
    expect(stderr).toContain('✓ read_file  {"path":"note.txt"}');
    expect(server.requests.map(({ body }) => body.tools)).toEqual([undefined, undefined]);
    expect(JSON.stringify(server.requests[1]?.body.messages.at(-1))).toContain('the answer is 42');
  });

  it('takes the model from the environment, and sends OPENAI_API_KEY nowhere else', async () => {
    const folder = makeFolder();
    const { server, flags } = await serve(() => ({ text: 'ok' }));
    const openai = { OPENAI_BASE_URL: server.url, OPENAI_MODEL: 'big', OPENAI_API_KEY: 'sk-1' };
    expect((await folder.run(['run', 'x'], openai)).stdout).toBe('ok\n');
    expect(server.requests[0]).toMatchObject({ body: { model: 'big' }, headers: { authorization: 'Bearer sk-1' } });
    const host = new URL(server.url).host;
    expect((await folder.run(['run', 'x'], { OLLAMA_HOST: host, OLLAMA_MODEL: 'local' })).stdout).toBe('ok\n');
    expect(server.requests[1]?.body.model).toBe('local');
    await folder.run(['run', 'x', ...flags], { OPENAI_API_KEY: 'sk-1' });
    expect(server.requests[2]?.headers.authorization).toBeUndefined();
  });

  it('lets no text of the model or of a file command the terminal', async () => {
    const folder = makeFolder();
    folder.write('note.txt', '\u001b[31mred\u0007\n');
    const evil = '\u001b]0;owned\u0007\u009b31m\u202ereversed';
    const { flags } = await serve([
      { text: evil, calls: [{ tool: 'read_file', args: { path: evil } }, ...(read.calls ?? [])] },
      { text: `done ${evil}` },
    ]);
    const { code, stdout, stderr } = await folder.run(['run', `goal ${evil}`, ...flags]);
    const inspected = await folder.run(['inspect', runIn(stderr)]);
    const listed = await folder.run(['list']);
    expect(code).toBe(0);
    expect(stdout).toContain('done ␛]0;owned␇');
    const all = stdout + stderr + inspected.stdout + listed.stdout;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect(all).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
  });

  it('streams tokens as events', async () => {
    const { flags } = await serve([{ text: 'one two three' }]);
    const { stdout } = await makeFolder().run(['run', 'x', '--json', ...flags]);
    const tokens = eventsIn(stdout).flatMap((event) => (event.type === 'token' ? [event.text] : []));
    expect(tokens.join('')).toBe('one two three');
  });

  it('says how a run ended by its exit code', async () => {
    const folder = makeFolder();
    const { flags } = await serve(() => ({ text: 'half. ', finishReason: 'length' }));
    const cut = await folder.run(['run', 'x', ...flags]);
    expect(cut).toMatchObject({ code: 1, stdout: 'half. half. half. half.\n' });
    const { flags: refused } = await serve([{ error: { status: 401, message: 'wrong key' } }]);
    const keyless = await folder.run(['run', 'x', ...refused]);
    expect(keyless).toMatchObject({ code: 5, stdout: '', stderr: expect.stringContaining('refused the key') });
    const { flags: wrong } = await serve([{ error: { status: 400, message: 'too long' } }]);
    const failed = await folder.run(['run', 'x', ...wrong]);
    expect(failed).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('The run failed') });
  });

  it('waits for a model that is away, says so at once, and as long as it is told to', async () => {
    const folder = makeFolder();
    const busy: ServerReply = { error: { status: 503, message: 'being mended', retryAfter: '3' } };
    const { flags } = await serve([busy, busy, { text: 'Mended.' }]);
    const asked = await folder.run(['run', 'x', '--patience', '0', ...flags]);
    expect(asked).toMatchObject({ code: 5, stdout: '' });
    expect(asked.stderr).toContain('the model is away');
    expect(asked.stderr).toContain('being mended');
    const waited = await folder.run(['resume', runIn(asked.stderr), ...flags]);
    expect(waited).toMatchObject({ code: 0, stdout: 'Mended.\n' });
    expect(waited.stderr).toMatch(/the model is away, next try in [\d.]+ s/);
  });

  it('without a model server it says so in a line, and exits with an error', async () => {
    const { server, flags } = await serve([]);
    await server.close();
    servers.splice(0);
    const { code, stdout, stderr } = await makeFolder().run(['run', 'x', '--patience', '0.1', ...flags]);
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' });
    expect(stderr).toContain(`The run has no model. Nothing listens at ${server.url}/chat/completions (ECONNREFUSED)`);
  });

  it('goes on with a run that has failed', async () => {
    const folder = makeFolder();
    const { flags } = await serve([read, { error: { status: 400, message: 'too long' } }, { text: 'Short now.' }]);
    const failed = await folder.run(['run', 'x', ...flags]);
    expect(failed.code).toBe(3);
    const id = runIn(failed.stderr);
    expect(await folder.run(['resume', id, '--message', 'go', ...flags])).toMatchObject({ code: 2 });
    const resumed = await folder.run(['resume', id, ...flags]);
    expect(resumed).toMatchObject({ code: 0, stdout: 'Short now.\n' });
    expect(resumed.stderr).toContain('had failed, and goes on');
    expect(await folder.run(['resume', id, ...flags])).toMatchObject({ code: 0, stdout: 'Short now.\n' });
  });

  it('ends at its time limit, and holds a limit of cost', async () => {
    const folder = makeFolder();
    const wait = held({ text: 'late' });
    const { flags } = await serve(wait.reply);
    const late = await folder.run(['run', 'x', '--timeout', '0.3', ...flags]);
    expect(late).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('deadline_exceeded') });
    wait.letGo();
    const usage = { inputTokens: 4000, outputTokens: 100 };
    const { flags: costly, server } = await serve(() => ({ ...read, usage }));
    const priced = ['--prices', '2,10', '--max-cost-usd', '0.0179'];
    const spent = await folder.run(['run', 'x', ...costly, ...priced]);
    expect(spent.code).toBe(5);
    expect(spent.stderr).toContain('The limit of cost is used up.');
    expect(spent.stderr).toContain('--prices 2,10 --max-cost-usd 0.0358');
    expect(server.requests).toHaveLength(2);
  });

  it('talks with --chat', async () => {
    const folder = makeFolder();
    const { flags, server } = await serve([{ text: 'Which one?' }, { text: 'Good choice.' }]);
    const asked = await folder.run(['run', 'Choose', '--chat', ...flags]);
    expect(asked).toMatchObject({ code: 5, stdout: 'Which one?\n' });
    const run = runIn(asked.stderr);
    expect(asked.stderr).toContain(
      `pilotage resume ${run} --model small --base-url ${server.url} --chat --message '…'`,
    );
    const silent = await folder.run(['resume', run, '--chat', ...flags]);
    expect(silent).toMatchObject({ code: 5, stderr: expect.stringContaining('waits for your message') });
    expect(server.requests).toHaveLength(1);
    const answered = await folder.run(['resume', run, '--chat', ...flags, '--message', 'the red one']);
    expect(answered).toMatchObject({ code: 5, stdout: 'Good choice.\n' });
    expect(JSON.stringify(server.requests[1]?.body.messages)).toContain('the red one');
  });
});

describe('a run that is interrupted', () => {
  it('pauses at the first Ctrl-C, and goes on later', async () => {
    const folder = makeFolder();
    folder.write('note.txt', 'x');
    const first = held(read);
    const { flags, server } = await serve((_, index) => (index === 0 ? first.reply() : { text: 'done' }));
    const started = folder.start(['run', 'x', ...flags]);
    await first.asked;
    started.child.kill('SIGINT');
    await started.untilOutput(/Press Ctrl-C again/);
    first.letGo();
    const { code, stdout, stderr } = await started.done;
    const run = runIn(stderr);
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
    expect(stderr).toContain(`Go on with: pilotage resume ${run} --model small`);
    expect((await folder.run(['list', '--json'])).stdout).toContain('"status":"paused"');
    const resumed = await folder.run(['resume', run, ...flags]);
    expect(resumed).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(server.requests).toHaveLength(2);
  });

  it('stops at once at the second Ctrl-C, and goes on later', async () => {
    const folder = makeFolder();
    const never = held({ text: 'never' });
    const { flags } = await serve((_, index) => (index === 0 ? never.reply() : { text: 'done' }));
    const started = folder.start(['run', 'x', ...flags]);
    await never.asked;
    started.child.kill('SIGINT');
    await started.untilOutput(/Press Ctrl-C again/);
    started.child.kill('SIGINT');
    const { code, stderr } = await started.done;
    expect(code).toBe(130);
    expect(stderr).toContain('Stopped. Go on with: pilotage resume run_');
    const resumed = await folder.run(['resume', runIn(stderr), ...flags]);
    // The pause that was asked for had been stored: it is answered by the resume.
    expect(resumed).toMatchObject({ code: 0, stdout: 'done\n' });
    never.letGo();
  });

  it('goes on after kill -9, with a word on the way', async () => {
    const folder = makeFolder();
    const never = held({ text: 'never' });
    const { flags, server } = await serve((_, index) => (index === 0 ? never.reply() : { text: 'done' }));
    const started = folder.start(['run', 'x', '--json', ...flags]);
    await never.asked;
    started.child.kill('SIGKILL');
    const { stdout } = await started.done;
    const resumed = await folder.run(['resume', runIn(stdout), ...flags, '--message', 'be quick']);
    expect(resumed).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(JSON.stringify(server.requests[1]?.body.messages)).toContain('be quick');
    never.letGo();
  });

  it('needs its model again', async () => {
    const folder = makeFolder();
    const { flags } = await serve([{ text: 'Which one?' }]);
    const { stderr } = await folder.run(['run', 'x', '--chat', ...flags]);
    const resumed = await folder.run(['resume', runIn(stderr), '--message', 'y']);
    expect(resumed).toMatchObject({ code: 2, stderr: expect.stringContaining('Give --model and --base-url') });
  });
});
