// The table of the demo, and the record of its lease as anybody may read it there: who holds it,
// and for how long.

import { DeleteTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { type Item, type LeaseRecord, readLease } from '../../src/lease.ts';
import { createLeaseTable, rawItem, testClient } from '../support/dynamodb.ts';

const LOOK_EVERY_MS = 200;

export class LeaseTable implements AsyncDisposable {
  readonly name: string;
  /** As of the last look. */
  record: LeaseRecord;
  readonly #lease: string;
  readonly #client: DynamoDBClient;
  readonly #timer: NodeJS.Timeout;

  /** Creates the table, and watches the record of `lease`, `namespace/name`, in it. */
  static async create(endpoint: string, lease: string): Promise<LeaseTable> {
    return new LeaseTable(await createLeaseTable(endpoint), endpoint, lease);
  }

  private constructor(name: string, endpoint: string, lease: string) {
    this.name = name;
    this.record = readLease(lease, {});
    this.#lease = lease;
    this.#client = testClient(endpoint);
    // A look that fails is made up for by the next.
    this.#timer = setInterval(() => void this.look().catch(() => undefined), LOOK_EVERY_MS);
  }

  async look(): Promise<LeaseRecord> {
    const item = await rawItem(this.#client, this.name, this.#lease);
    this.record = readLease(this.#lease, (item ?? {}) as Item);
    return this.record;
  }

  /** Deletes the table: the server may be one that stays. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#client.send(new DeleteTableCommand({ TableName: this.name }));
    this.#client.destroy();
  }
}
