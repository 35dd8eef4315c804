/** Secrets in what is written besides the usual entries, and what must not be taken for one. */
import { describe, expect, it } from 'vitest';
import { knowKey, knowKeysOf, knownSecrets, Redaction } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { repairRun } from '#runtime';
import { scriptedModel, VirtualClock } from '#testing';
import { call, pause, script } from '../kit/decisions.ts';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { httpError } from '../kit/model.ts';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const KEY = 'zq9-everywhere-of-no-shape-7431/+==';
const GITHUB = `ghp_${'a1B2c3D4'.repeat(5)}`;
const redact = { rules: [KEY] };

describe('a secret is left out of', () => {
  it('what is written of a model that is away', async () => {
    const busy = Object.assign(httpError(503), { message: `Overloaded. You sent ${KEY} and ${GITHUB}.` });
    const planner = react({
      model: scriptedModel([{ error: busy, errorAt: 'call' }]),
      retries: 0,
      clock: new ImpatientClock(),
    });
    const made = world({ planner, patienceMs: 0, redact });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'model_unavailable' }] });
    const written = JSON.stringify(await made.journal.read(run.id));
    expect(written).toContain('model_away');
    expect(written).not.toContain(KEY.slice(0, 20));
    expect(written).not.toContain(GITHUB);
  });

  it('what is written of a refused request, also when the next model is asked', async () => {
    const message = `Refused. You sent ${KEY} and ${GITHUB}.`;
    const data = { error: { code: 'content_policy_violation', message } };
    const refused = Object.assign(httpError(400), { message, data });
    const refuses = (modelId: string) => scriptedModel([{ error: refused, errorAt: 'call' }], { modelId });
    for (const rules of [redact, {}]) {
      const made = world({ planner: react({ model: [refuses('a'), refuses('b')] }), redact: rules });
      const run = await start(made);
      expect(await run.result()).toMatchObject({ reason: 'refused' });
      const written = JSON.stringify(await made.journal.read(run.id));
      expect(written).toContain('reply_refused');
      expect(written).not.toContain(GITHUB);
      expect(written.includes(KEY)).toBe(rules !== redact);
    }
  });

  it('the goal and the result of a fork', async () => {
    const made = world({ planner: script(call('echo'), pause), tools: [make('echo', () => 1)], redact });
    const run = await start(made);
    await run.result();
    const fork = await run.fork({ step: 1, goal: `Use ${KEY}`, result: { value: { key: KEY } } });
    await fork.result();
    const written = JSON.stringify(await made.journal.read(fork.id));
    expect(written).toContain('Use [redacted:secret]');
    expect(written).not.toContain(KEY);
  });

  it('why a run was let go of', async () => {
    const journal = memoryJournal();
    const first = world({ journal, planner: { name: 'p', version: '1', next: script(pause) } });
    const run = await start(first);
    await run.result();
    await first.runtime.close();
    const migrate = (): never => {
      throw new Error(`no rights with ${KEY} and ${GITHUB}`);
    };
    const later = world({ journal, planner: { name: 'p', version: '2', next: script(pause) }, redact, migrate });
    await later.runtime
      .run(run.id)
      .resume()
      .catch(() => {});
    const { problem } = (await journal.get(run.id)) ?? {};
    expect(problem?.message).toBe('no rights with [redacted:secret] and [redacted:api_key]');
  });

  it('the code of what a tool throws, the names of files, and chunks', async () => {
    knowKey(`${KEY}known`);
    const leak = make('leak', async (_, { emit, saveArtifact }) => {
      emit({ said: KEY });
      await saveArtifact('text', { mime: 'text/plain', fileName: `${KEY}.txt` });
      throw Object.assign(new Error('no'), { code: `${KEY}known` });
    });
    const made = world({ planner: script(call('leak')), tools: [leak], redact });
    const run = await start(made);
    const told: unknown[] = [];
    for await (const event of run.events()) told.push(event);
    expect(JSON.stringify(told)).toContain('"chunk":{"said":"[redacted:secret]"}');
    expect(JSON.stringify(told)).not.toContain(KEY);
    const { identity } = await run.state();
    const { rows } = await made.journal.artifacts.list(identity, 10);
    expect(rows).toMatchObject([{ fileName: '[redacted:secret].txt' }]);
    expect(JSON.stringify(await made.journal.read(run.id))).not.toContain(KEY);
  });

  it('why a run was repaired', async () => {
    const made = world({ planner: script(call('echo'), pause), tools: [make('echo', () => 1)] });
    const run = await start(made);
    await run.result();
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const [first, ...rest] = await made.journal.read(run.id);
    if (first === undefined) throw new Error('The run is empty.');
    const { identity } = await run.state();
    await journal.create({ identity, priority: 0, entries: [first, ...rest, { ...first, seq: rest.length + 2 }] });
    const deps = { journal, clock, redaction: new Redaction(redact), newToken: () => 't' };
    await repairRun(deps, run.id, { by: 'ana', reason: `it held ${KEY}` });
    const [repaired] = await entriesOf(journal, run, 'repaired');
    expect(repaired?.reason).toBe('it held [redacted:secret]');
  });

  it.each([
    'application/json; charset=utf-8',
    'application/problem+json',
    'image/svg+xml',
    'application/x-ndjson',
  ])('an artifact that calls itself %s', (mime) => {
    const bytes = Buffer.from(JSON.stringify({ a: KEY }));
    expect(Buffer.from(new Redaction(redact).bytes(bytes, mime)).toString()).toBe('{"a":"[redacted:secret]"}');
  });

  it.each<[string, string]>([
    ['an address in small letters', encodeURIComponent(KEY).replace(/%../g, (code) => code.toLowerCase())],
    ['JSON with slashes escaped', KEY.replaceAll('/', '\\/')],
    ['JSON with the end escaped', KEY.replace('==', '\\u003d\\u003d')],
  ])('%s', (_, written) => {
    expect(new Redaction(redact).known(`a ${written} b`)).toMatch(/^a \[redacted:secret\]\S* b$/);
  });

  it('a text that was cut in the middle of it', () => {
    const { known } = new Redaction(redact);
    for (const kept of [12, 20, KEY.length - 3]) {
      for (const mark of ['', '…', '...']) {
        expect(known(`Bad key: ${KEY.slice(0, kept)}${mark}`)).toBe(`Bad key: [redacted:secret]${mark}`);
      }
    }
    const base64 = Buffer.from(KEY).toString('base64');
    expect(known(`x ${base64.slice(0, 30)}`)).toBe('x [redacted:secret]');
  });
});

describe('what is no secret is left alone:', () => {
  it('bytes of text in another encoding, around a secret, too', () => {
    const redaction = new Redaction(redact);
    const latin = Buffer.from('Größe;Straße\n', 'latin1');
    expect(redaction.bytes(latin, 'text/csv')).toBe(latin);
    const with_ = Buffer.concat([latin, Buffer.from(KEY), latin]);
    const mark = Buffer.from('[redacted:secret]');
    expect(Buffer.from(redaction.bytes(with_, 'text/csv'))).toEqual(Buffer.concat([latin, mark, latin]));
    const binary = Buffer.from([0xff, 0xd8, ...Buffer.from(KEY), 0xff]);
    expect(redaction.bytes(binary, 'image/jpeg')).toBe(binary);
  });

  it('what calls itself JSON and is none, as an attachment', async () => {
    const made = world({ planner: script(), redact });
    const inputs = [{ bytes: Buffer.from('{ "a": 1, // a remark\n}'), mime: 'application/json' }];
    const run = await start(made, { inputs });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(Buffer.from(new Redaction(redact).bytes(Buffer.from(`{ ${KEY}`), 'application/json')).toString()).toBe(
      '{ [redacted:secret]',
    );
  });

  it.each([
    ['TOKENIZER_MODEL', 'Xenova-gpt-4o-mini'],
    ['GOOGLE_APPLICATION_CREDENTIALS', '/home/somebody/adc/credentials.json'],
    ['AWS_WEB_IDENTITY_TOKEN_FILE', '/var/run/secrets/aws'],
    ['PASSWORD_STORE_DIR', '~/.password-store'],
    ['TOKEN_URL', 'https://auth.example.org/oauth/token'],
    ['SESSION_COOKIE_NAME', 'pilotage_session_7'],
    ['SECRET_PROJECT', 'my-company-production-1'],
    ['OAUTH_TOKENS_AT', 'https://auth.example.org/oauth/tokens'],
  ])('the variable %s', (name, value) => {
    knowKeysOf({ [name]: value });
    expect(knownSecrets.without(`See ${value} there`)).toBe(`See ${value} there`);
  });

  it.each([
    ['GATEWAY_SECRET', '/b64+that-begins-as-a-path/77w'],
    ['GATEWAY_TOKEN_DSN', 'postgres://ana:pw-7712-x@db/x'],
    ['gateway-api-key', 'gk-7712-a-key-of-a-gateway'],
  ])('but not %s', (name, value) => {
    knowKeysOf({ [name]: value });
    expect(knownSecrets.without(`See ${value} there`)).toBe('See [redacted:secret] there');
  });

  it('the word that is given to a server which needs no key', () => {
    for (const word of ['not-needed', 'anything', 'lm-studio']) {
      knowKey(word);
      expect(knownSecrets.without(`It is ${word} here`)).toBe(`It is ${word} here`);
    }
    knowKey('token-7712');
    expect(knownSecrets.without('It is token-7712 here')).toBe('It is [redacted:secret] here');
  });

  it('what stands between the matches of a pattern that also matches nothing', () => {
    const { all } = new Redaction({ rules: [/x*/] });
    expect(all('a word xx more')).toBe('a word [redacted] more');
  });
});
