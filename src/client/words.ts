/** What the client takes, in the words of the runtime, as requests have it. */
import type { InputFile } from '#core';
import type { MessageFile, UserMessage } from '#messages';

const PIECE = 0x8000;

function base64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += PIECE) text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  return btoa(text);
}

export function fileOf(file: MessageFile): object {
  if (!('bytes' in file)) return file;
  const { bytes, ...about } = file as InputFile;
  return { ...about, data: base64(bytes) };
}

export function sentMessageOf(message: string | UserMessage): object {
  if (typeof message === 'string') return { text: message };
  const { inputs, ...rest } = message;
  return inputs === undefined ? rest : { ...rest, inputs: inputs.map(fileOf) };
}
