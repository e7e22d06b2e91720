// What every lock library is made to look like, so that the same measurements fit them all.

/** How a contestant is to be set. Each translates it into its own options. */
export interface Settings {
  readonly endpoint: string;
  /** Keyed by `lease`. */
  readonly tableName: string;
  /** Keyed by `lease` and, for those that want a sort key, `part`. */
  readonly sortedTableName: string;
  readonly leaseMs: number;
  /** Between two renewals. */
  readonly renewMs: number;
  /** Between two looks of one that waits. */
  readonly pollMs: number;
}

export interface Held {
  /** 0 where there is none. */
  readonly token: number;
  /** What the library itself says, at this moment, without asking the table. */
  isHeld(): boolean;
  release(): Promise<void>;
}

/** What a refusal tells of the holder. */
export interface Refused {
  readonly holder?: string | undefined;
  readonly token?: number | undefined;
  readonly until?: number | undefined;
}

export interface Contestant {
  /** Tries once, with as little waiting as the library can be asked for. */
  tryAcquire(key: string): Promise<Held | Refused>;
  /** Waits until it is held; undefined where the library gave up, to be asked again. */
  acquire(key: string): Promise<Held | undefined>;
}

export function isHeld(answer: Held | Refused): answer is Held {
  return 'release' in answer;
}

export const CONTESTANTS = {
  ours: 'lambda-lease',
  floor: 'raw UpdateItem',
  'lock-client': 'dynamodb-lock-client, FailOpen',
  'lock-client-trust': 'dynamodb-lock-client, FailOpen, trustLocalTime',
  'lock-client-closed': 'dynamodb-lock-client, FailClosed',
  deliveryhero: '@deliveryhero/dynamodb-lock',
  'deliveryhero-trust': '@deliveryhero/dynamodb-lock, trustLocalTime',
  powertools: '@aws-lambda-powertools/idempotency',
  awslabs: 'amazon-dynamodb-lock-client (Java)',
} as const;

export type Name = keyof typeof CONTESTANTS;

/** Those that run on Node. */
export const NAMES = (Object.keys(CONTESTANTS) as Name[]).filter((name) => name !== 'awslabs');
