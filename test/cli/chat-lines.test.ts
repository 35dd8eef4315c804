import { describe, expect, it } from 'vitest';
import { type ChatLine, parseCommandLine, readChatLine } from '#cli';

const TOKEN = 'pause_0123';
const LINES: readonly (readonly [string, ChatLine | undefined])[] = [
  ['', undefined],
  ['   ', undefined],
  [' hello  world ', { kind: 'message', text: 'hello  world' }],
  ['//stop', { kind: 'message', text: '/stop' }],
  ['/steer  go left', { kind: 'message', text: 'go left', busy: 'steer' }],
  ['/interrupt no', { kind: 'message', text: 'no', busy: 'interrupt' }],
  ['/queue later', { kind: 'message', text: 'later', busy: 'queue' }],
  ['/edit 2 a b', { kind: 'edit', turn: 2, text: 'a b' }],
  ['/regenerate', { kind: 'regenerate' }],
  ['/regenerate 3', { kind: 'regenerate', turn: 3 }],
  ['/switch 1', { kind: 'switch', branch: 1 }],
  ['/title A b', { kind: 'title', text: 'A b' }],
  ['/stop', { kind: 'stop' }],
  ['/approve', { kind: 'approve' }],
  [`/approve ${TOKEN} {"a": 1}`, { kind: 'approve', token: TOKEN, args: { a: 1 } }],
  ['/reject too much', { kind: 'reject', reason: 'too much' }],
  [`/answer ${TOKEN} 7`, { kind: 'answer', token: TOKEN, value: 7 }],
  ['/settle happened {"ok": true}', { kind: 'settle', happened: true, value: { ok: true } }],
  ['/settle happened', { kind: 'settle', happened: true }],
  [`/settle ${TOKEN} did-not-happen`, { kind: 'settle', token: TOKEN, happened: false }],
  [`/resume ${TOKEN}`, { kind: 'resume', token: TOKEN }],
];

describe('a line of a chat', () => {
  it.each(LINES)('%j', (line, said) => {
    expect(readChatLine(line)).toEqual(said);
  });

  it.each([
    '/nope',
    '/edit x y',
    '/edit 2',
    '/edit 0 x',
    '/regenerate x',
    '/switch',
    '/title',
    '/steer',
    '/stop now',
    '/approve yes please',
    '/answer blue',
    '/settle maybe',
    '/settle happened blue',
    '/resume now',
  ])('%j is wrong, and says what to write', (line) => {
    expect(readChatLine(line)).toEqual({ kind: 'wrong', why: expect.stringMatching(/takes|\/help/) });
  });
});

describe('the commands of sessions', () => {
  it.each([
    [['chat', 'hello'], 'chat takes no further words'],
    [['chat', '--json'], "Unknown option '--json'"],
    [['sessions'], 'sessions takes one of list, show, delete, title'],
    [['sessions', 'toString'], 'sessions takes one of'],
    [['sessions', 'list', 'x'], 'sessions takes no further words after list'],
    [['sessions', 'show'], 'sessions takes one session after show'],
    [['sessions', 'title', 's'], 'sessions takes a session and a title'],
    [['run', 'x', '--session', 's', '--busy', 'wait'], '--busy takes queue, steer, interrupt, reject'],
  ])('%j is wrong usage', (args, text) => {
    expect(() => parseCommandLine(args)).toThrow(text);
  });
});
