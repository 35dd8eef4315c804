/** Reads the frames of a request, knowing nothing but how a mark is written. */

export interface ReadFrame {
  readonly name: string;
  readonly attributes: string;
  /** All between its marks, the frames in it included. */
  readonly body: string;
  readonly inside: readonly ReadFrame[];
}

interface Open {
  readonly name: string;
  readonly attributes: string;
  readonly from: number;
  readonly inside: ReadFrame[];
}

/** A mark is the whole of a line. @throws Error for a mark that closes what is not open, or a frame that is left open. */
export function framesIn(text: string, names: readonly string[]): readonly ReadFrame[] {
  const top: ReadFrame[] = [];
  const open: Open[] = [];
  let at = 0;
  for (const line of text.split('\n')) {
    const [, slash = '', name = '', attributes = ''] = /^<(\/?)(\w+)((?: \w+="[^"]*")*)>$/.exec(line) ?? [];
    const end = at + line.length;
    if (names.includes(name) && slash === '') open.push({ name, attributes, from: end + 1, inside: [] });
    if (names.includes(name) && slash !== '') {
      const last = open.pop();
      if (last?.name !== name) throw new Error(`</${name}> closes ${last?.name ?? 'nothing'}`);
      const { from, inside } = last;
      const frame = { name, attributes: last.attributes, body: text.slice(from, Math.max(from, at - 1)), inside };
      (open.at(-1)?.inside ?? top).push(frame);
    }
    at = end + 1;
  }
  if (open.length > 0) throw new Error(`<${open.at(-1)?.name}> is not closed`);
  return top;
}

/** Names and places of frames without what stands in them. */
export function shapeOf(frames: readonly ReadFrame[]): string {
  return frames.map(({ name, inside }) => (inside.length === 0 ? name : `${name}(${shapeOf(inside)})`)).join(' ');
}

const OPENER =
  /(?:[<≮﹤＜‹⟨⟪《\u2329〈❮❰❬ᐸ˂«≪⧼≺⋖ᚲ]|&(?:amp;)*(?:lt|#0*60|#x0*3c);?|\\u003c|\\u\{0*3c\}|\\x3c|%(?:25)*3c)\\*$/iu;

/** True when `quoted` is `data` with nothing but backslashes added, each in the row that follows an opening. */
export function saysTheSame(quoted: string, data: string): boolean {
  let at = 0;
  for (let index = 0; index < quoted.length; index += 1) {
    if (quoted[index] === data[at]) at += 1;
    else if (quoted[index] !== '\\' || !OPENER.test(quoted.slice(Math.max(0, index - 40), index))) return false;
  }
  return at === data.length;
}
