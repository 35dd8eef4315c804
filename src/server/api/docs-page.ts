/** A page that shows `/openapi.json`: of our own, small, and with nothing from elsewhere. */
import { createHash } from 'node:crypto';

const STYLE = `
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  h2 { margin: 2rem 0 .5rem; border-bottom: 1px solid #8886; }
  details { border: 1px solid #8884; border-radius: .4rem; margin: .4rem 0; padding: .3rem .6rem; }
  summary { cursor: pointer; display: flex; gap: .6rem; align-items: baseline; }
  b { font: 600 12px ui-monospace, monospace; min-width: 4rem; text-transform: uppercase; }
  code, pre { font: 13px ui-monospace, monospace; }
  pre { overflow: auto; background: #8881; padding: .6rem; border-radius: .3rem; }
  small { opacity: .8; }`;

// What comes from the document is put in as text, never as HTML.
const SCRIPT = `
  const make = (name, text, ...parts) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    node.append(...parts);
    return node;
  };
  const show = (title, value) => [make('small', title), make('pre', JSON.stringify(value, null, 2))];
  const api = await (await fetch('openapi.json')).json();
  document.title = api.info.title;
  const page = document.querySelector('main');
  page.append(make('h1', api.info.title), make('p', api.info.description));
  for (const { name } of api.tags) {
    page.append(make('h2', name));
    for (const [path, methods] of Object.entries(api.paths))
      for (const [method, of] of Object.entries(methods)) {
        if (!of.tags.includes(name)) continue;
        const row = make('details', undefined, make('summary', undefined, make('b', method), make('code', path), make('small', of.summary)));
        if (of.parameters.length > 0) row.append(...show('parameters', of.parameters));
        if (of.requestBody) row.append(...show('body', of.requestBody.content));
        row.append(...show('answers', of.responses));
        page.append(row);
      }
  }
  page.append(make('h2', 'schemas'));
  for (const [name, schema] of Object.entries(api.components.schemas))
    page.append(make('details', undefined, make('summary', undefined, make('code', name)), ...show('', schema)));`;

export const DOCS_PAGE: string = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Pilotage</title>
<style>${STYLE}</style>
<main></main>
<script type="module">${SCRIPT}</script>
</html>
`;

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Nothing runs on the page but its own script, and it asks nobody but its own server. */
export const DOCS_POLICY: Readonly<Record<string, string>> = {
  'content-security-policy': `default-src 'none'; script-src ${hashOf(SCRIPT)}; style-src ${hashOf(STYLE)}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};
