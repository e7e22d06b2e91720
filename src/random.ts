// The door to chance.

/** A source of chance. */
export interface Random {
  /** At least 0 and below 1. */
  fraction(): number;
  /** A UUID that nobody else has. */
  uuid(): string;
}

export const systemRandom: Random = {
  fraction: () => Math.random(),
  uuid: () => globalThis.crypto.randomUUID(),
};

/** `valueMs` give or take a fifth, so that processes started together drift apart. */
export function jittered(random: Random, valueMs: number): number {
  return valueMs * (0.8 + 0.4 * random.fraction());
}
