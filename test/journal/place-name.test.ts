/** What is taken for a place of a journal, and what would only look like one. */
import { describe, expect, it } from 'vitest';
import { isPostgresUrl } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { expectCode } from '#testing';

describe('the place of a journal', () => {
  it.each(['postgres://h/n', 'postgresql://h/n', 'POSTGRES://h/n'])('%s is a URL', (place) => {
    expect(isPostgresUrl(place)).toBe(true);
  });

  it.each([
    'runs.db',
    './a/b.db',
    '/srv/postgres/runs.db',
    'C:/runs.db',
    'C:\\runs.db',
    'notes:today.db',
    ':memory:',
  ])('%s is a path', (place) => {
    expect(isPostgresUrl(place)).toBe(false);
  });

  it.each([
    'mysql://h/n',
    'pg://h/n',
    'http://h/',
    'file:///runs.db',
    ' postgres://h/n',
    'postgres:/h/n',
    'postgres:n',
    'postgres//h/n',
  ])('%s is neither, and makes no file of that name', async (place) => {
    await expectCode((async () => isPostgresUrl(place))(), 'invalid_config');
  });
});

it('a URL of Postgres that cannot be read says what may be wrong with it, and repeats no password', () => {
  for (const url of ['postgres://app:p#ss@host/name', 'postgres://app@host:99999/name']) {
    expect(() => postgresJournal({ url })).toThrow(/^The URL of Postgres cannot be read\. .*percent encoding/);
    expect(() => postgresJournal({ url })).not.toThrow(/p#ss/);
  }
});
