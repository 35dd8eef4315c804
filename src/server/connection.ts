/** What the platform tells of the connection of a request. Node's own server tells the remote address; others may not. */

/** The address of the client, or of the last proxy. `undefined` when it is not known. */
export function remoteAddress(env: unknown): string | undefined {
  const { incoming } = (env ?? {}) as { readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress;
}
