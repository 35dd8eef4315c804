/**
 * `pilotage/server/mcp`: agents as tools of the Model Context Protocol, over HTTP, in both of its eras. It needs the package
 * `@modelcontextprotocol/server`.
 */
export type { McpAuthorization } from './authorization.ts';
export { type McpOptions, mcp } from './mcp.ts';
export type { McpAgent } from './tools.ts';
