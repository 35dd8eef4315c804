/** Our own API: everything that a runtime can do, over HTTP, described by `/openapi.json`. */
import { assertOptions, type OptionShape, PilotageError } from '#core';
import type { Part } from '../part.ts';
import { CONTROL_ROUTES } from './control-routes.ts';
import { DOCS_PAGE, DOCS_POLICY } from './docs-page.ts';
import { HEALTH_ROUTES } from './health-routes.ts';
import { mount } from './mount.ts';
import { openApi } from './open-api.ts';
import { READING_ROUTES } from './reading-routes.ts';
import type { ApiRoute } from './route.ts';
import { jsonReply, route, typed } from './route.ts';
import { RUN_ROUTES } from './run-routes.ts';
import { SCHEDULE_ROUTES } from './schedule-routes.ts';
import { SESSION_ROUTES } from './session-routes.ts';
import { assertSignedEvents, isSignedPath, type SignedEvents, signalRoutes } from './signal-routes.ts';
import { USER_ROUTES } from './user-routes.ts';
import { API_VERSION } from './version.ts';
import { WEBHOOK_ROUTES } from './webhook-routes.ts';

export interface ApiOptions {
  /** What stands before all of its paths, such as `/api`. Default: nothing. */
  readonly path?: string;
  /** Events that are taken from whoever signs them, without being let in otherwise. Default: none. */
  readonly signedEvents?: readonly SignedEvents[];
}

const OPTIONS: OptionShape<ApiOptions> = { path: 'text?', signedEvents: 'list?' };

/** @throws PilotageError `invalid_config`. */
export function api(options: ApiOptions = {}): Part {
  assertOptions('api', options, OPTIONS);
  const { path = '', signedEvents = [] } = options;
  if (!/^(?:\/[\w.~-]+)*$/.test(path))
    throw new PilotageError('invalid_config', `The path of api is ${JSON.stringify(path)}; give one such as "/api".`);
  assertSignedEvents(signedEvents);
  const routes = apiRoutes(path, signedEvents);
  const open = new Set(['/healthz', '/readyz', '/openapi.json', '/docs'].map((each) => `${path}${each}`));
  return {
    name: 'api',
    open: (asked) => open.has(asked) || isSignedPath(asked, path, signedEvents),
    routes: (app, context) => {
      for (const each of routes) mount(app, each, path, context);
    },
  };
}

/** The whole table. */
function apiRoutes(path: string, signedEvents: readonly SignedEvents[]): readonly ApiRoute[] {
  const description = route('get /openapi.json', {
    tag: 'description',
    summary: 'This API as OpenAPI 3.1.',
    reply: jsonReply(typed<object>({ type: 'object' })),
    handle: () => document(),
  });
  const page = route('get /docs', {
    tag: 'description',
    summary: 'A page that shows the description.',
    reply: { kind: 'html' },
    handle: () => new Response(DOCS_PAGE, { headers: { 'content-type': 'text/html; charset=utf-8', ...DOCS_POLICY } }),
  });
  const routes = [
    ...[...SESSION_ROUTES, ...RUN_ROUTES, ...READING_ROUTES, ...CONTROL_ROUTES, ...signalRoutes(signedEvents)],
    ...[...USER_ROUTES, ...SCHEDULE_ROUTES, ...WEBHOOK_ROUTES, ...HEALTH_ROUTES, description, page],
  ];
  let made: object | undefined;
  const document = (): object => {
    made ??= openApi(routes, path, API_VERSION);
    return made;
  };
  return routes;
}
