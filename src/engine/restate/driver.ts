/**
 * The driver on Restate: one virtual object for each run, whose only handler carries out a slice of the run and sends itself a message for when it goes
 * on. So Restate gives each run one owner, timers, and another process when one dies. What it keeps is hints: the truth is in the journal of the
 * runs, and nothing is lost with Restate's own.
 */
import { assertOptions, type OptionShape, PilotageError } from '#core';
import type { Advance, Driver } from '#runtime';
import { type Endpoint, openEndpoint } from './endpoint.ts';
import { asksRestate } from './requests.ts';

export interface RestateOptions {
  /** Where Restate takes requests, such as `http://localhost:8080`. */
  readonly ingress: string;
  /** The name under which the runs of this journal are known there: one for each journal. Default `pilotage`. */
  readonly service?: string;
  /** How Restate reaches this process, when it carries out runs (`runtime.work()`). A process that only starts and reads runs has none. */
  readonly serve?: RestateServing;
}

export interface RestateServing {
  /** Where Restate reaches this process. 0: a free port. */
  readonly port: number;
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** True: processes of this machine share the port, and each gets some of the requests. Default false. */
  readonly sharesPort?: boolean;
  /** Restate's admin address, such as `http://localhost:9070`: this process is registered there. Absent: whoever deploys it does so. */
  readonly admin?: string;
  /** The address that is registered, such as that of a load balancer before several processes. Default: that of this process. */
  readonly url?: string;
}

const OPTIONS: OptionShape<RestateOptions> = { ingress: 'text', service: 'text?', serve: 'object?' };
const SERVING: OptionShape<RestateServing> = {
  ...({ port: 'whole', host: 'text?', sharesPort: 'flag?', admin: 'text?', url: 'text?' } as const),
};
const SERVICE = 'pilotage';
const LOOPBACK = '127.0.0.1';
/** Names that can stand in an address as they are. */
const NAME = /^[A-Za-z][\w.-]{0,99}$/;
/** @throws PilotageError `invalid_config`. */
export function restateDriver(options: RestateOptions): RestateDriver {
  return new RestateDriver(options);
}

export class RestateDriver implements Driver {
  readonly #ingress: string;
  readonly #service: string;
  readonly #serving: RestateServing | undefined;
  #endpoint: Promise<Endpoint> | undefined;
  #register: (() => Promise<void>) | undefined;

  constructor(options: RestateOptions) {
    assertOptions('restateDriver', options, OPTIONS);
    const { ingress, service = SERVICE, serve } = options;
    if (!NAME.test(service)) throw invalid(`service ${JSON.stringify(service)}`, 'letters, digits, `_`, `-` and `.`');
    if (serve !== undefined) assertOptions('serve', serve, SERVING);
    this.#ingress = addressOf('ingress', ingress);
    this.#service = service;
    this.#serving = serve && {
      ...serve,
      ...(serve.admin === undefined ? {} : { admin: addressOf('admin', serve.admin) }),
      ...(serve.url === undefined ? {} : { url: addressOf('url', serve.url) }),
    };
  }

  /**
   * Listens for Restate, and registers this process there.
   * @throws PilotageError `package_missing`, `invalid_config` without `serve`, or `engine_unavailable` when it cannot be registered; that of the port,
   * when it is taken.
   */
  async start(advance: Advance): Promise<void> {
    const serving = this.#serving;
    if (serving === undefined) {
      throw invalid('work()', 'a driver that Restate can reach: restateDriver({ ingress, serve: { port } })');
    }
    await this.stop();
    const { port: asked, host = LOOPBACK, sharesPort = false, admin, url } = serving;
    this.#endpoint = openEndpoint({ service: this.#service, advance, host, port: asked, sharesPort });
    const { port } = await this.#endpoint;
    if (admin === undefined) return;
    const uri = url ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
    this.#register = () => asksRestate(`${admin}/deployments`, 'register this process', { uri });
    await this.#register();
  }

  /** @throws PilotageError `engine_unavailable`. */
  async wake(run: string, at?: number): Promise<void> {
    const delayMs = at === undefined ? 0 : Math.max(0, Math.ceil(at - Date.now()));
    const delay = delayMs > 0 ? `?delay=${delayMs}ms` : '';
    const path = `${this.#service}/${encodeURIComponent(run)}/advance/send${delay}`;
    const wake = (): Promise<void> => asksRestate(`${this.#ingress}/${path}`, `wake the run ${run}`);
    try {
      await wake();
    } catch (error) {
      // It has forgotten all, or was not there when this process began.
      if (this.#register === undefined || !isUnknown(error)) throw error;
      await this.#register();
      await wake();
    }
  }

  async stop(): Promise<void> {
    const endpoint = this.#endpoint;
    this.#endpoint = undefined;
    this.#register = undefined;
    // What it could not be opened for was said by `start`.
    await endpoint?.then(
      (open) => open.close(),
      () => undefined,
    );
  }
}

/** Restate knows no process that carries out runs. */
function isUnknown(error: unknown): boolean {
  return PilotageError.is(error, 'engine_unavailable') && error.data?.['status'] === 404;
}

/** Without the slash at its end. */
function addressOf(option: string, address: string): string {
  if (/^https?:\/\//.test(address) && URL.canParse(address)) return address.replace(/\/+$/, '');
  throw invalid(`${option} ${JSON.stringify(address)}`, 'an address such as http://localhost:8080');
}

function invalid(what: string, wanted: string): PilotageError {
  return new PilotageError('invalid_config', `The driver for Restate: ${what} needs ${wanted}.`);
}
