/** The package of the protocol, an optional peer: it is loaded when somebody makes the part. */
import { createRequire } from 'node:module';
import { PilotageError } from '#core';

type Sdk = typeof import('@modelcontextprotocol/server');

let loaded: Sdk | undefined;

/** @throws PilotageError `package_missing`. */
export function sdk(): Sdk {
  try {
    loaded ??= createRequire(import.meta.url)('@modelcontextprotocol/server') as Sdk;
    return loaded;
  } catch (cause) {
    const message = 'mcp needs the package @modelcontextprotocol/server: npm install @modelcontextprotocol/server';
    throw new PilotageError('package_missing', message, { data: { package: '@modelcontextprotocol/server' }, cause });
  }
}
