/**
 * `node --import ./bench/cluster-host.ts …`: the process believes that it is on a machine of its own, so that nobody on this one can see that it is
 * dead, and its runs are free only when its lease is over.
 */
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';

os.hostname = () => `machine-${process.pid}`;
syncBuiltinESMExports();
