/**
 * JSON Schemas of what another agent answers `a2aTool`, as far as it is read. Absent where the protocol leaves it out: unknown fields are allowed, and
 * strings that are recorded have a bound.
 */
import type { JsonObject } from '#core';

const WORD: JsonObject = { type: 'string', maxLength: 2_048 };
const ID: JsonObject = { ...WORD, minLength: 1 };
const PARTS: JsonObject = { type: 'array', items: { type: 'object', properties: { text: { type: 'string' } } } };
const MESSAGE: JsonObject = { type: 'object', properties: { parts: PARTS }, required: ['parts'] };

export const PEER_TASK: JsonObject = {
  type: 'object',
  properties: {
    id: ID,
    contextId: WORD,
    status: { type: 'object', properties: { state: WORD, message: MESSAGE }, required: ['state'] },
    artifacts: { type: 'array', items: MESSAGE },
    history: { type: 'array', items: { type: 'object' } },
  },
  required: ['id', 'status'],
};

export const PEER_TASKS: JsonObject = {
  type: 'object',
  properties: { tasks: { type: 'array', items: PEER_TASK }, nextPageToken: WORD },
};

/** What an agent returns for a message: one of the two. */
export const BEGUN: JsonObject = {
  type: 'object',
  properties: { task: PEER_TASK, message: MESSAGE },
  oneOf: [{ required: ['task'] }, { required: ['message'] }],
};

const INTERFACE: JsonObject = {
  type: 'object',
  properties: { url: WORD, protocolBinding: WORD, protocolVersion: WORD },
  required: ['url', 'protocolBinding', 'protocolVersion'],
};

export const PEER_CARD: JsonObject = {
  type: 'object',
  properties: { supportedInterfaces: { type: 'array', items: INTERFACE } },
  required: ['supportedInterfaces'],
};
