/** One line that says where and when something was measured. */
import { cpus } from 'node:os';

export function machine(): string {
  const [cpu] = cpus();
  const date = new Date().toISOString().slice(0, 10);
  return `Node ${process.version}, ${cpus().length} x ${cpu?.model ?? 'unknown CPU'}, ${process.platform}, ${date}`;
}
