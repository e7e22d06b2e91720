// The table itself: what it is like, and how to make one. A door to the AWS SDK, for what no lease
// needs: functions that hold leases may not describe or create tables, and should not.

import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  UpdateTimeToLiveCommand,
  type DynamoDBClientConfig,
} from '@aws-sdk/client-dynamodb';
import { sleep, type Clock } from './clock.ts';
import { KEY_ATTRIBUTE, TIME_TO_LIVE_ATTRIBUTE } from './schema.ts';

export interface TableFacts {
  readonly arn: string | undefined;
  readonly status: string | undefined;
  /** In order: the partition key first. */
  readonly keys: readonly { readonly name: string; readonly type: string }[];
  readonly billing: string;
  readonly deletionProtection: boolean;
  /** The Regions of its replicas, this one included; none where it is no global table. */
  readonly replicas: readonly string[];
  readonly consistency: 'EVENTUAL' | 'STRONG' | undefined;
}

export interface TimeToLiveFacts {
  readonly status: string | undefined;
  readonly attribute: string | undefined;
}

export interface TableAdmin {
  region(): Promise<string | undefined>;
  describe(): Promise<TableFacts>;
  timeToLive(): Promise<TimeToLiveFacts>;
  /** Resolves when the table can be used. Never touches one that exists. */
  create(options: CreateOptions): Promise<void>;
}

export interface CreateOptions {
  readonly deletionProtection: boolean;
  readonly clock: Clock;
  readonly withinMs: number;
}

/** The status on a server that knows no Time to Live: some embedded ones. */
const UNSUPPORTED = 'UNSUPPORTED';

const POLL_MS = 500;

export function tableAdmin(tableName: string, config: DynamoDBClientConfig): TableAdmin {
  const client = new DynamoDBClient(config);
  const describe = async (): Promise<TableFacts> => {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
    const types = new Map(
      Table?.AttributeDefinitions?.map((each) => [each.AttributeName, each.AttributeType]),
    );
    const replicas = Table?.Replicas ?? [];
    return {
      arn: Table?.TableArn,
      status: Table?.TableStatus,
      keys: [...(Table?.KeySchema ?? [])]
        .sort((a, b) => (a.KeyType === 'HASH' ? -1 : b.KeyType === 'HASH' ? 1 : 0))
        .map(({ AttributeName: name = '' }) => ({ name, type: types.get(name) ?? '' })),
      billing: Table?.BillingModeSummary?.BillingMode ?? 'PROVISIONED',
      deletionProtection: Table?.DeletionProtectionEnabled === true,
      replicas: replicas.flatMap(({ RegionName }) => RegionName ?? []),
      // Absent from tables that replicate as all did at first.
      consistency: Table?.MultiRegionConsistency ?? (replicas.length > 0 ? 'EVENTUAL' : undefined),
    };
  };
  return {
    region: async () => client.config.region().catch(() => undefined),
    describe,
    timeToLive: async () => {
      try {
        const { TimeToLiveDescription: found } = await client.send(
          new DescribeTimeToLiveCommand({ TableName: tableName }),
        );
        return { status: found?.TimeToLiveStatus, attribute: found?.AttributeName };
      } catch (error) {
        if (isUnknownOperation(error)) return { status: UNSUPPORTED, attribute: undefined };
        throw error;
      }
    },
    create: async ({ deletionProtection, clock, withinMs }) => {
      await client.send(
        new CreateTableCommand({
          TableName: tableName,
          AttributeDefinitions: [{ AttributeName: KEY_ATTRIBUTE, AttributeType: 'S' }],
          KeySchema: [{ AttributeName: KEY_ATTRIBUTE, KeyType: 'HASH' }],
          BillingMode: 'PAY_PER_REQUEST',
          ...(deletionProtection ? { DeletionProtectionEnabled: true } : {}),
        }),
      );
      const deadlineMs = clock.read().monotonicMs + withinMs;
      for (;;) {
        if ((await describe()).status === 'ACTIVE') break;
        if (clock.read().monotonicMs > deadlineMs) {
          throw new Error(`Table "${tableName}" is being created, and is not ACTIVE yet.`);
        }
        await sleep(clock, POLL_MS);
      }
      try {
        await client.send(
          new UpdateTimeToLiveCommand({
            TableName: tableName,
            TimeToLiveSpecification: { AttributeName: TIME_TO_LIVE_ATTRIBUTE, Enabled: true },
          }),
        );
      } catch (error) {
        // Nothing depends on it (L6).
        if (!isUnknownOperation(error)) throw error;
      }
    },
  };
}

function isUnknownOperation(error: unknown): boolean {
  return error instanceof Error && error.name === 'UnknownOperationException';
}
