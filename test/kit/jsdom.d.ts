/** As much of jsdom as the tests use. Its own types bring those of a browser along, for the whole project. */
declare module 'jsdom' {
  export class JSDOM {
    constructor(html: string, options?: { readonly url?: string; readonly pretendToBeVisual?: boolean });
    readonly window: Record<string, unknown> & {
      readonly document: {
        getElementById(id: string): unknown;
        querySelector(selector: string): { readonly textContent: string; click(): void } | null;
        querySelectorAll(selector: string): Iterable<{ readonly textContent: string; click(): void }>;
      };
      close(): void;
    };
  }
}
