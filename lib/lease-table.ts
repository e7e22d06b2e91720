// The table of leases: one partition key, no sort key, no index, on demand. And who may do what
// with it: a holder with its own leases only, the lifecycle monitor, operators, and whoever only
// looks.

import { RemovalPolicy, Resource, Stack, Token } from 'aws-cdk-lib';
import type { Metric, MetricOptions } from 'aws-cdk-lib/aws-cloudwatch';
import {
  AttributeType,
  Billing,
  MultiRegionConsistency,
  TableEncryptionV2,
  TableV2,
  type ITableV2,
} from 'aws-cdk-lib/aws-dynamodb';
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Construct, IConstruct } from 'constructs';
import { checkStrongConsistency, type Replication } from './replication.ts';
import { keysOf } from './lease-keys.ts';
import { KEY_ATTRIBUTE, TIME_TO_LIVE_ATTRIBUTE, type LeaseKind } from '../src/schema.ts';

/** A table of leases, of this app or of another one. */
export interface ILeaseTable extends IConstruct {
  /** Its name, for `LEASE_TABLE_NAME`. */
  readonly tableName: string;
  /** Its ARN, in the Region of its stack. */
  readonly tableArn: string;
  /** Where there is a copy: a function in another Region finds no table of that name. */
  readonly regions: readonly string[];
  /** The customer's key that it is encrypted with, if any. Each grant includes its use. */
  readonly encryptionKey: IKey | undefined;
  /** Lets `grantee` hold, renew and release the leases named, and no others. */
  grantHolder(grantee: IGrantable, options: HolderGrantOptions): Grant;
  /** Lets `grantee` watch all leases, flag and evict them: what the lifecycle monitor does. */
  grantMonitor(grantee: IGrantable): Grant;
  /** Lets `grantee` read all leases, and change none. */
  grantView(grantee: IGrantable): Grant;
  /**
   * Lets `grantee` read all leases and intervene: suspend, release, evict, label. Neither an
   * operator nor whoever steals its credentials deletes a record, and a fencing token with it.
   */
  grantOperate(grantee: IGrantable): Grant;
  /** A metric of the table in the namespace `AWS/DynamoDB`. */
  metric(metricName: string, options?: MetricOptions): Metric;
}

/** Which leases may be held. */
export interface HolderGrantOptions {
  /**
   * Names of leases, without the namespace. `*` stands for anything: `sync/*`. A lease with slots
   * has a record for itself and one for each slot: `sync` and `sync/*`.
   */
  readonly leases: readonly string[];
  /**
   * The namespace of all of them.
   * @default default
   */
  readonly namespace?: string;
  /**
   * What the leases are for. A heartbeat or an identity may also be deleted, which its clean stop
   * does; a leader's lease never, for that would restart its fencing tokens.
   * @default leader
   */
  readonly kind?: LeaseKind;
}

/** What may be set for a table of leases. */
export interface LeaseTableProps extends Replication {
  /**
   * A fixed name. A table that is kept after its stack is gone still owns that name.
   * @default - a name that CloudFormation makes
   */
  readonly tableName?: string;
  /**
   * Whether DynamoDB clears away heartbeats and identities long after they have expired. Leases of
   * leaders are never cleared away, and nothing depends on it.
   * @default true, but not with strong consistency across Regions, where DynamoDB has none
   */
  readonly timeToLive?: boolean;
  /**
   * Continuous backups for 35 days.
   * @default true
   */
  readonly pointInTimeRecovery?: boolean;
  /**
   * Whether DynamoDB refuses to delete the table.
   * @default true, unless removalPolicy is DESTROY
   */
  readonly deletionProtection?: boolean;
  /**
   * What becomes of the table when it leaves the stack. With it the fencing tokens are lost: what
   * was fenced by higher ones refuses all new ones.
   * @default RemovalPolicy.RETAIN
   */
  readonly removalPolicy?: RemovalPolicy;
  /**
   * A key of your own that encrypts the table, which is then in one Region only.
   * @default - a key that DynamoDB owns
   */
  readonly encryptionKey?: IKey;
}

/** What has to be known of a table that exists. */
export interface LeaseTableImport {
  /**
   * The customer's key that the table is encrypted with.
   * @default - a key that DynamoDB owns
   */
  readonly encryptionKey?: IKey;
}

abstract class LeaseTableBase extends Resource implements ILeaseTable {
  abstract readonly table: ITableV2;
  abstract readonly regions: readonly string[];
  abstract readonly encryptionKey: IKey | undefined;

  get tableName(): string {
    return this.table.tableName;
  }

  get tableArn(): string {
    return this.table.tableArn;
  }

  /** The table and its replicas: a function in another Region uses the one that is there. */
  protected abstract readonly arns: string[];

  grantHolder(grantee: IGrantable, options: HolderGrantOptions): Grant {
    const { leases, namespace, kind = 'leader' } = options;
    const { operator, keys } = keysOf(leases, namespace);
    const grant = Grant.addToPrincipal({
      grantee,
      actions: [
        'dynamodb:GetItem',
        'dynamodb:UpdateItem',
        // The lease's check in a transaction of the holder's own.
        'dynamodb:ConditionCheckItem',
        ...(kind === 'leader' ? [] : ['dynamodb:DeleteItem']),
      ],
      resourceArns: this.arns,
      conditions: {
        [`ForAllValues:${operator}`]: { 'dynamodb:LeadingKeys': keys },
        // "All values" is also true of none.
        Null: { 'dynamodb:LeadingKeys': 'false' },
      },
    });
    return this.#withKey(grant, grantee);
  }

  grantMonitor(grantee: IGrantable): Grant {
    const grant = this.#grant(grantee, [
      'dynamodb:Scan',
      'dynamodb:GetItem',
      'dynamodb:UpdateItem',
      'dynamodb:DeleteItem',
    ]);
    return this.#withKey(grant, grantee);
  }

  grantView(grantee: IGrantable): Grant {
    const grant = this.#grant(grantee, ['dynamodb:Scan', 'dynamodb:GetItem']);
    return this.encryptionKey === undefined
      ? grant
      : grant.combine(this.encryptionKey.grantDecrypt(grantee));
  }

  grantOperate(grantee: IGrantable): Grant {
    const grant = this.#grant(grantee, [
      'dynamodb:Scan',
      'dynamodb:GetItem',
      'dynamodb:UpdateItem',
    ]);
    return this.#withKey(grant, grantee);
  }

  metric(metricName: string, options: MetricOptions = {}): Metric {
    return this.table.metric(metricName, options);
  }

  #grant(grantee: IGrantable, actions: string[]): Grant {
    return Grant.addToPrincipal({ grantee, actions, resourceArns: this.arns });
  }

  #withKey(grant: Grant, grantee: IGrantable): Grant {
    return this.encryptionKey === undefined
      ? grant
      : grant.combine(this.encryptionKey.grantEncryptDecrypt(grantee));
  }
}

/**
 * A DynamoDB table for leases: on demand, with point-in-time recovery, protected against deletion
 * and retained unless told otherwise.
 */
export class LeaseTable extends LeaseTableBase {
  /** A table that exists, by its name, in the Region and account of the stack. */
  static fromTableName(
    scope: Construct,
    id: string,
    tableName: string,
    options: LeaseTableImport = {},
  ): ILeaseTable {
    return new ImportedLeaseTable(scope, id, tableName, options);
  }

  /** The table itself. */
  readonly table: ITableV2;
  /** Where there is a copy. */
  readonly regions: readonly string[];
  /** The customer's key that it is encrypted with, if any. */
  readonly encryptionKey: IKey | undefined;
  protected readonly arns: string[];

  constructor(scope: Construct, id: string, props: LeaseTableProps = {}) {
    super(scope, id);
    const replicated = checkStrongConsistency(this, props);
    if (props.tableName !== undefined) checkTableName(this, props.tableName);
    const { replicaRegions = [], witnessRegion, encryptionKey } = props;
    const { removalPolicy = RemovalPolicy.RETAIN } = props;
    if (encryptionKey !== undefined && replicated !== undefined) {
      throw new Error(
        `${this.node.path}: encryptionKey is given beside replicaRegions; a key belongs to one ` +
          'Region, and each copy would need one of its own. Leave one of the two out.',
      );
    }
    if (replicated === 'strong' && props.timeToLive === true) {
      throw new Error(
        `${this.node.path}: timeToLive is true, and DynamoDB has no Time to Live in tables with ` +
          'strong consistency across Regions. Leave timeToLive out: the lifecycle monitor ' +
          'collects old heartbeats and identities there.',
      );
    }
    const timeToLive = props.timeToLive ?? replicated !== 'strong';
    const table = new TableV2(this, 'Table', {
      partitionKey: { name: KEY_ATTRIBUTE, type: AttributeType.STRING },
      billing: Billing.onDemand(),
      pointInTimeRecoverySpecification: {
        pointInTimeRecoveryEnabled: props.pointInTimeRecovery ?? true,
      },
      deletionProtection: props.deletionProtection ?? removalPolicy !== RemovalPolicy.DESTROY,
      removalPolicy,
      ...(props.tableName === undefined ? {} : { tableName: props.tableName }),
      ...(encryptionKey === undefined
        ? {}
        : { encryption: TableEncryptionV2.customerManagedKey(encryptionKey) }),
      ...(timeToLive ? { timeToLiveAttribute: TIME_TO_LIVE_ATTRIBUTE } : {}),
      ...(replicated === undefined
        ? {}
        : {
            replicas: replicaRegions.map((region) => ({ region })),
            multiRegionConsistency:
              replicated === 'strong'
                ? MultiRegionConsistency.STRONG
                : MultiRegionConsistency.EVENTUAL,
          }),
      ...(witnessRegion === undefined ? {} : { witnessRegion }),
    });
    // Its type declares `tableId?: string` where the interface's own class may leave it undefined.
    this.table = table as ITableV2;
    this.regions = [Stack.of(this).region, ...replicaRegions];
    this.encryptionKey = encryptionKey;
    this.arns = [table.tableArn, ...replicaRegions.map((region) => table.replica(region).tableArn)];
  }
}

class ImportedLeaseTable extends LeaseTableBase {
  readonly table: ITableV2;
  readonly regions: readonly string[];
  readonly encryptionKey: IKey | undefined;
  protected readonly arns: string[];

  constructor(scope: Construct, id: string, tableName: string, options: LeaseTableImport) {
    super(scope, id);
    checkTableName(this, tableName);
    this.regions = [Stack.of(this).region];
    this.encryptionKey = options.encryptionKey;
    this.table = TableV2.fromTableArn(
      this,
      'Table',
      Stack.of(this).formatArn({ service: 'dynamodb', resource: 'table', resourceName: tableName }),
    );
    this.arns = [this.table.tableArn];
  }
}

function checkTableName(scope: Construct, tableName: string): void {
  if (Token.isUnresolved(tableName) || /^[a-zA-Z0-9_.-]{3,255}$/.test(tableName)) return;
  throw new Error(
    `${scope.node.path}: tableName is "${tableName}"; it must be the name of a DynamoDB ` +
      'table, not its ARN: 3 to 255 letters, digits, dots, dashes and underscores.',
  );
}

/** A function is told the table's name, and looks for it in its own Region. */
export function checkReach(scope: Construct, fn: IConstruct, table: ILeaseTable): void {
  const { region } = Stack.of(fn);
  const unknown = [region, ...table.regions].some((each) => Token.isUnresolved(each));
  if (unknown || table.regions.includes(region)) return;
  throw new Error(
    `${scope.node.path}: its function is in ${region} and the table in ` +
      `${table.regions.join(', ')}; a function looks for the table in its own Region. Put both ` +
      'into one Region, or give the table replicaRegions.',
  );
}
