/** Names this process as the owner of leases, so that its death can be noticed on the same machine without waiting. */
import { hostname } from 'node:os';

/** `host:pid:random`. */
export function ownerName(): string {
  return `${encodeURIComponent(hostname())}:${process.pid}:${crypto.randomUUID().slice(0, 8)}`;
}

/** The owner itself when it was a process of this machine that is gone; `undefined` when it may be alive. */
export function deadOwner(owner: string): string | undefined {
  const [host, pidText] = owner.split(':');
  const pid = Number(pidText);
  if (host !== encodeURIComponent(hostname()) || !Number.isInteger(pid) || pid <= 0) return undefined;
  try {
    process.kill(pid, 0);
    return undefined;
  } catch (error) {
    // EPERM: somebody else's living process.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH' ? owner : undefined;
  }
}
