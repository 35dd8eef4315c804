/** The taught form: what is `exact`, and all the ways in which a block only resembles it. */
import { describe, expect, it } from 'vitest';
import { parseToolCalls, ToolCallStream } from '#parse';
import { tools } from './tools.ts';

const CALL = '{"tool": "search", "args": {"q": "x"}}';
const block = (json: string): string => `\`\`\`json\n${json}\n\`\`\``;
const BLOCK = block(CALL);

const exact = (text: string): unknown[] =>
  parseToolCalls(text, tools, { strictness: 'exact' }).calls.map(({ tool, args }) => ({ tool, args }));

const X = { tool: 'search', args: { q: 'x' } };

describe('exact calls', () => {
  it.each<[what: string, text: string]>([
    ['the block alone', BLOCK],
    ['white space around it', `\n\n${BLOCK}\n \n`],
    ['Windows line ends', BLOCK.replaceAll('\n', '\r\n')],
    ['JSON over several lines', block(JSON.stringify(JSON.parse(CALL), null, 2))],
    ['a list of one', block(`[${CALL}]`)],
    ['words before it', `I will look that up.\n\n${BLOCK}`],
    ['a statement before it, and what is done now', `The order was found. I look it up now.\n${BLOCK}`],
    ['what is not known', `I don't know the status yet, so I'll look it up:\n${BLOCK}`],
    ['what was done before', `I found two rows. Now let me look for the rest:\n${BLOCK}`],
    ['a refusal that is over', `I would not send it unseen. Let me search first:\n${BLOCK}`],
    ['thinking, whatever it says', `<think>For example, should I not call it?</think>\n${BLOCK}`],
  ])('are %s', (_what, text) => expect(exact(text)).toEqual([X]));

  it('are all calls of one list', () => {
    expect(exact(block(`[${CALL}, {"tool": "now", "args": {}}]`))).toEqual([X, { tool: 'now', args: {} }]);
  });

  it.each([
    'I refund it now.',
    'Refunding 90 now.',
    'Sure, one moment.',
    'You have confirmed, so I go ahead.',
    'Thanks for the confirmation. Here it goes:',
    'It needs no approval. I will pay.',
    'The customer is waiting, so I make the refund.',
    'Je m\u2019en occupe tout de suite.',
  ])('are made behind %s', (words) => expect(exact(`${words}\n\n${BLOCK}`)).toEqual([X]));

  it.each([
    'I cannot pay without your OK. Reply yes and I will send:',
    'Give me a sign and I do it.',
    'I need a confirmation first.',
    'Waiting for your approval before running the following.',
    'As soon as Kim has signed, I will send:',
    'I will send this tomorrow.',
    'Ignoring the injected instruction:',
    'The refund went out a minute ago.',
    'Your call.',
    'The order was found.',
    'Nothing was called:',
    'Ich brauche zuerst Ihre Freigabe.',
    'Jetzt warte ich auf Ihre Antwort.',
    'Я не буду выполнять этот вызов:',
    '呼び出しの例は次のとおりです。',
  ])('are not made behind %s', (words) => expect(exact(`${words}\n\n${BLOCK}`)).toEqual([]));

  it('carry a reason to be made again, which no placeholder is', () => {
    const again = (reason: string) =>
      parseToolCalls(block(`{"tool": "search", "args": {"q": "x"}, "again": "${reason}"}`), tools).calls[0]?.again;
    expect(again('the customer paid twice')).toBe('the customer paid twice');
    for (const reason of ['<reason>', 'reason', 'YOUR_REASON', '...']) expect(again(reason)).toBeUndefined();
  });

  it('carry their form, and are not taken twice with what the words say', () => {
    const { calls } = parseToolCalls(`I will call search(q="x") now.\n${BLOCK}`, tools);
    expect(calls).toEqual([{ ...X, form: 'exact' }]);
  });

  it.each<[what: string, text: string]>([
    ['another fence', BLOCK.replace('json', 'python')],
    ['no fence', CALL],
    ['words behind it', `${BLOCK}\nThat is the call.`],
    ['a block of calls before it', `${BLOCK}\n${BLOCK}`],
    ['other code before it', `\`\`\`js\nf();\n\`\`\`\n${BLOCK}`],
    ['a fence around it', `~~~\n${BLOCK}\n~~~`],
    ['an open fence around it', `~~~markdown\n${BLOCK}`],
    ['other keys', block('{"name": "search", "arguments": {"q": "x"}}')],
    ['a key more', block('{"tool": "search", "args": {"q": "x"}, "why": "so"}')],
    ['a key twice', block('{"tool": "now", "tool": "search", "args": {"q": "x"}}')],
    ['an argument twice', block('{"tool": "search", "args": {"q": "a", "q": "x"}}')],
    ['a placeholder in brackets', block('{"tool": "search", "args": {"q": "[Q]"}}')],
    ['no arguments', block('{"tool": "now"}')],
    ['broken JSON', block("{'tool': 'search', 'args': {'q': 'x'}}")],
    ['a comment in it', block(`${CALL} // now`)],
    ['the name in another case', block('{"tool": "Search", "args": {"q": "x"}}')],
    ['an unknown tool', block('{"tool": "delete_all", "args": {}}')],
    ['a placeholder', block('{"tool": "search", "args": {"q": "<query>"}}')],
    ['dots for a value', block('{"tool": "search", "args": {"q": "..."}}')],
    ['a quotation', `> ${BLOCK.replaceAll('\n', '\n> ')}`],
    ['quoted words before it', `The mail says:\n> please do this\n${BLOCK}`],
    ['an open quotation', `The user wrote "please run\n${BLOCK}`],
    ['words of somebody', `The page says:\n${BLOCK}`],
    ['a negation', `Do not call this:\n${BLOCK}`],
    ['a negation of another verb', `I will not search for it:\n${BLOCK}`],
    ['a negation before the last sentence', `I would never do that. It finds too much.\n\n${BLOCK}`],
    ['"instead of"', `I asked the user instead of this:\n${BLOCK}`],
    ['a question', `Shall I run this?\n${BLOCK}`],
    ['a condition', `If you give me the number, I will call:\n${BLOCK}`],
    ['an example', `For example:\n${BLOCK}`],
    ['an example with abbreviation', `Write a call, e.g.\n${BLOCK}`],
    ['how it is done', `Here is how it would look:\n${BLOCK}`],
    ['"like this"', `A call is written like this:\n${BLOCK}`],
    ['a report', `Done: I called search.\n${BLOCK}`],
    ['a report of a while ago', `As I said:\n${BLOCK}`],
    ['an open thought', `<think>maybe\n${BLOCK}`],
    ['an element around it', `<example>\n${BLOCK}`],
    ['a turn that the model made up', `Observation: none\nUser: go on\n${BLOCK}`],
    ['another language', `Zum Beispiel:\n${BLOCK}`],
  ])('are none with %s', (_what, text) => expect(exact(text)).toEqual([]));

  it('may give the reason to make them again', () => {
    const again = (reason: unknown) =>
      parseToolCalls(block(JSON.stringify({ ...X, again: reason })), tools, { strictness: 'exact' }).calls;
    expect(again(' It failed. ')).toEqual([{ ...X, form: 'exact', again: 'It failed.' }]);
    for (const nothing of ['', ' ', '...', '?']) expect(again(nothing)).toEqual([{ ...X, form: 'exact' }]);
    for (const other of [1, null, true, ['It failed.'], {}]) expect(again(other)).toEqual([]);
  });

  it('are told when they are asked for and the form is another', () => {
    const { calls, issues } = parseToolCalls(CALL, tools, { strictness: 'exact' });
    expect(calls).toEqual([]);
    expect(issues).toEqual([
      { code: 'not_taken', message: 'a call of search in a form that is too uncertain to be made' },
    ]);
  });

  it('tell an unknown tool beside a known one', () => {
    const { calls, issues } = parseToolCalls(block(`[${CALL}, {"tool": "nope", "args": {}}]`), tools);
    expect(calls).toEqual([{ ...X, form: 'exact' }]);
    expect(issues).toEqual([{ code: 'unknown_tool', message: 'there is no tool named nope' }]);
  });

  it('come only with the end of a stream, since nothing may follow them', () => {
    const stream = new ToolCallStream(tools, { strictness: 'exact' });
    expect(stream.push(BLOCK).calls).toEqual([]);
    expect(stream.end().calls).toEqual([{ ...X, form: 'exact' }]);
  });
});
