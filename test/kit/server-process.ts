/** Servers of Postgres' protocol that tests start as processes of their own. */
import type { ChildProcess } from 'node:child_process';
import pg from 'pg';

/** Until it answers. @returns what it said, when it has ended before that. */
export async function untilAnswers(server: ChildProcess, url: string): Promise<string | undefined> {
  // Tests that fail leave no server behind.
  process.once('exit', () => server.kill('SIGKILL'));
  let said = '';
  server.stderr?.on('data', (text) => {
    said = `${said}${text}`.slice(-4_000);
  });
  for (;;) {
    if (server.exitCode !== null) return said;
    if (await answers(url)) return undefined;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Until it is gone. */
export async function ended(server: ChildProcess | undefined, signal: 'SIGKILL' | 'SIGINT'): Promise<void> {
  if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
  await new Promise<void>((resolve) => {
    server.once('exit', () => resolve());
    server.kill(signal);
  });
}
