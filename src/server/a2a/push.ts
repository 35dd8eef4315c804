/** The push notification configs of tasks. Each is stored as a webhook of one run. */
import { createHash } from 'node:crypto';
import { defined, PilotageError } from '#core';
import type { Visit } from '../visit.ts';
import type { Webhook } from '../webhooks/subscription.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import { A2aRefused } from './errors.ts';
import { TOLD } from './notification.ts';
import { type A2aVersion, LEGACY_VERSION, type PushConfig } from './wire.ts';

const TOKEN = 'x-a2a-notification-token';
const MOST = 20;

export class PushConfigs {
  readonly #webhooks: Webhooks;

  constructor(webhooks: Webhooks) {
    this.#webhooks = webhooks;
  }

  /**
   * @param of the task that is to have it, and the version of its notifications. Absent: the task does not exist yet.
   * @throws A2aRefused for an address that is never posted to, and for a task that has all the configs that it may have; PilotageError `run_not_found`.
   */
  async check(
    visit: Visit,
    config: PushConfig,
    of?: { readonly taskId: string; readonly version: A2aVersion },
  ): Promise<void> {
    if (of !== undefined) await this.#assertRoom(visit, of.taskId, idOf(of.taskId, config, of.version));
    const { url } = config;
    await this.#webhooks.assertUrl(url).catch((error: unknown) => {
      if (PilotageError.is(error, 'url_refused')) throw new A2aRefused('INVALID_PARAMS', error.message);
      throw new A2aRefused('INVALID_PARAMS', 'Nothing is posted to this address: its host is not known.');
    });
  }

  /**
   * @param isOfStart true when the config came with the message that began the task: then all events of the task are posted.
   * @param version of the notifications.
   * @throws PilotageError `run_not_found`.
   */
  async put(
    visit: Visit,
    taskId: string,
    config: PushConfig,
    { version, isOfStart = false }: { readonly version: A2aVersion; readonly isOfStart?: boolean },
  ): Promise<PushConfig> {
    const { record } = await visit.run(taskId, 'answer');
    const { tenant, user } = record.identity;
    const isLegacy = version === LEGACY_VERSION;
    const id = idOf(taskId, config, version);
    await this.#assertRoom(visit, taskId, id);
    const { token, authentication } = config;
    const headers = {
      ...(token ? { [TOKEN]: token } : {}),
      ...(authentication && { authorization: `${authentication.scheme} ${authentication.credentials ?? ''}`.trim() }),
    };
    const options = { id: hookId(taskId, id), tenant, user, run: taskId, url: config.url, events: TOLD };
    const hook = await this.#webhooks.putAs(options, {
      format: isLegacy ? 'a2a-0.3' : 'a2a',
      headers,
      ...(isOfStart && { since: record.createdAt }),
    });
    return configOf(hook);
  }

  async get(visit: Visit, taskId: string, id: string): Promise<PushConfig> {
    const hook = (await this.#of(visit, taskId)).find((each) => each.id === hookId(taskId, id));
    if (hook === undefined) throw new A2aRefused('TASK_NOT_FOUND', 'The task has no such push notification config.');
    return configOf(hook);
  }

  async list(visit: Visit, taskId: string): Promise<readonly PushConfig[]> {
    return (await this.#of(visit, taskId)).map(configOf);
  }

  /** Deletes the config. It may be deleted already. */
  async delete(visit: Visit, taskId: string, id: string): Promise<void> {
    const { record } = await visit.run(taskId, 'answer');
    await this.#webhooks.delete(record.identity.tenant, hookId(taskId, id));
  }

  async #assertRoom(visit: Visit, taskId: string, id: string): Promise<void> {
    const known = await this.#of(visit, taskId);
    if (known.length >= MOST && known.every((hook) => hook.id !== hookId(taskId, id)))
      throw new A2aRefused('INVALID_PARAMS', `A task has at most ${MOST} push notification configs. Delete one first.`);
  }

  async #of(visit: Visit, taskId: string): Promise<readonly Webhook[]> {
    const { record } = await visit.run(taskId);
    const all = await this.#webhooks.beginningWith(record.identity.tenant, hooksOf(taskId));
    return all.filter(({ run, format }) => run === taskId && format !== 'events');
  }
}

/** The id of a config. In 0.3 one that says none is found by the id of its task. */
function idOf(taskId: string, config: PushConfig, version: A2aVersion): string {
  return config.id || (version === LEGACY_VERSION ? taskId : ownId(config));
}

/** A message that is sent again brings the same config once more. */
function ownId({ url, token, authentication }: PushConfig): string {
  return createHash('sha256')
    .update(JSON.stringify([url, token, authentication]))
    .digest('base64url')
    .slice(0, 22);
}

function hookId(taskId: string, id: string): string {
  return `${hooksOf(taskId)}${Buffer.from(id).toString('base64url')}`;
}

/** What the ids of all webhooks of a task begin with. */
function hooksOf(taskId: string): string {
  return `a2a:${taskId}:`;
}

function configOf({ id, run = '', url, headers = {} }: Webhook): PushConfig {
  const token = headers[TOKEN];
  const [scheme] = headers['authorization']?.split(' ') ?? [];
  // The credentials are for the receiver alone.
  const authentication = scheme === undefined ? undefined : { scheme };
  const own = Buffer.from(id.split(':').at(-1) ?? '', 'base64url').toString();
  return { id: own, taskId: run, url, ...defined({ token, authentication }) };
}
