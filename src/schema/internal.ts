/** What the other rooms and the tests may use of `schema`. */
export { assertSchema, isStandard, jsonSchemaOf, standardMisfit } from './given-schema.ts';
export type { SchemaError } from './json-schema.ts';
export { compileSchema, explainSchemaError, firstIssues, schemaErrors } from './json-schema.ts';
export { TimeLimit } from './time-limit.ts';
