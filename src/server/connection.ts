/** What the surroundings tell of the connection of a request: Node's own server does, others need not. */

/** `undefined` where it is not known. */
export function remoteAddress(env: unknown): string | undefined {
  const { incoming } = (env ?? {}) as { readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress;
}
