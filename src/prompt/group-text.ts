/** The results of a group's tasks, as a model reads them. */
import type { ErrorData, GroupView, Json, JsonObject, TaskView } from '#core';
import { asText } from './outcome-text.ts';

/** The model is sent at most this many characters of one result; when it awaits the task, it gets the whole result. */
const MAX_RESULT = 8_192;
const MAX_DESCRIPTION = 256;

/** A JSON object in the form that an await of the group gives, with each task's description. */
export function groupText({ id, status, members, reason }: GroupView): string {
  return JSON.stringify({
    group_id: id,
    status,
    ...(reason === undefined ? {} : { reason }),
    members: members.map(memberOf),
  });
}

function memberOf({ id, description, end }: TaskView): Json {
  const about = { task_id: id, description: start(description, MAX_DESCRIPTION) };
  if (end === undefined) return { ...about, status: 'running' };
  const { status, result, error } = end;
  return {
    ...about,
    status,
    ...(result === undefined ? {} : shown(result)),
    ...(error === undefined ? {} : { error: shortError(error) }),
  };
}

function shown(result: Json): JsonObject {
  const text = asText(result);
  if (text.length <= MAX_RESULT) return { result };
  const rest = `${text.length - MAX_RESULT} more characters: await the task to have them`;
  return { result: start(text, MAX_RESULT), left_out: rest };
}

function shortError({ code, message }: ErrorData): Json {
  return { code, message: start(message, MAX_RESULT) };
}

function start(text: string, chars: number): string {
  return text.length <= chars ? text : text.slice(0, chars).toWellFormed();
}
