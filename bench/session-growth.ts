/**
 * What the 10,000th turn of a conversation costs beside the hundredth. A turn goes from the message to its answer. The growth is of CPU, which
 * hears less of what else the machine does.
 */
import type { Journal } from '#pilotage/journal';
import { type Row, short } from './measure.ts';
import type { Conversation, Kind } from './session-conversations.ts';

export const TURNS = 10_000;
const HUNDREDTH = 100;
/** So many turns around the hundredth, and the last ones: each window has several compactions. */
const WINDOW = 100;
const WARM_UP_CHATS = 4;
const WARM_UP_TURNS = 150;
const ROUNDS = 9;

interface Growth {
  /** The id of the long one. */
  readonly id: string;
  readonly early: number;
  readonly late: number;
  readonly growth: number;
}

/**
 * The last turns of a long conversation take turns with those around the hundredth of another: a slow moment of the machine meets both. What only
 * some turns cost, such as a summary or a snapshot, is part of it.
 */
export async function growth({ runtimeOn, begin }: Kind, journal: Journal): Promise<Growth> {
  const runtime = runtimeOn(journal);
  const chatOf = (turns: number): Promise<Conversation> => conversationOf(begin(runtime), turns);
  for (let chat = 0; chat < WARM_UP_CHATS; chat += 1) await chatOf(WARM_UP_TURNS);
  const long = await chatOf(TURNS - WINDOW);
  const early: number[] = [];
  const late: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const young = await chatOf(HUNDREDTH - WINDOW / 2);
    for (let turn = 0; turn < WINDOW; turn += 1) {
      early.push(await cpuMs(() => young.turn(HUNDREDTH + turn)));
      late.push(await cpuMs(() => long.turn(TURNS + turn)));
    }
  }
  await runtime.close();
  await journal.close();
  const [earlyMs, lateMs] = [mean(early), mean(late)];
  return { id: long.id, early: short(earlyMs), late: short(lateMs), growth: short(lateMs / earlyMs) };
}

async function conversationOf(begun: Promise<Conversation>, turns: number): Promise<Conversation> {
  const conversation = await begun;
  for (let turn = 1; turn <= turns; turn += 1) await conversation.turn(turn);
  return conversation;
}

async function cpuMs(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function growthRow(what: string, { early, late, growth }: Growth): Row {
  const note = `at most 1.5; the 10,000th takes ${late} ms of CPU, the hundredth ${early} ms`;
  return [`a turn of ${what}, the 10,000th over the hundredth`, String(growth), note];
}
