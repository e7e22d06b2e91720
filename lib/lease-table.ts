// The table of leases: one partition key, no sort key, no index, on demand. And who may do what
// with it: a holder with its own leases only, the lifecycle monitor, and whoever only looks.

import { RemovalPolicy, Resource, Stack, Token } from 'aws-cdk-lib';
import type { Metric, MetricOptions } from 'aws-cdk-lib/aws-cloudwatch';
import {
  AttributeType,
  Billing,
  MultiRegionConsistency,
  TableV2,
  type ITableV2,
} from 'aws-cdk-lib/aws-dynamodb';
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam';
import type { Construct, IConstruct } from 'constructs';
import { checkStrongConsistency, type Replication } from './replication.ts';
import { keysOf } from './lease-keys.ts';
import { KEY_ATTRIBUTE, TIME_TO_LIVE_ATTRIBUTE, type LeaseKind } from '../src/schema.ts';

/** A table of leases, of this app or of another one. */
export interface ILeaseTable extends IConstruct {
  readonly tableName: string;
  readonly tableArn: string;
  /** Lets `grantee` hold, renew and release the leases named, and no others. */
  grantHolder(grantee: IGrantable, options: HolderGrantOptions): Grant;
  /** Lets `grantee` watch all leases, flag and evict them: what the lifecycle monitor does. */
  grantMonitor(grantee: IGrantable): Grant;
  /** Lets `grantee` read all leases, and change none. */
  grantView(grantee: IGrantable): Grant;
  /** A metric of the table in the namespace `AWS/DynamoDB`. */
  metric(metricName: string, options?: MetricOptions): Metric;
}

export interface HolderGrantOptions {
  /** Names of leases, without the namespace. `*` stands for anything: `sync/*`. */
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
}

abstract class LeaseTableBase extends Resource implements ILeaseTable {
  abstract readonly table: ITableV2;

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
    return Grant.addToPrincipal({
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
  }

  grantMonitor(grantee: IGrantable): Grant {
    return this.#grant(grantee, [
      'dynamodb:Scan',
      'dynamodb:GetItem',
      'dynamodb:UpdateItem',
      'dynamodb:DeleteItem',
    ]);
  }

  grantView(grantee: IGrantable): Grant {
    return this.#grant(grantee, ['dynamodb:Scan', 'dynamodb:GetItem']);
  }

  metric(metricName: string, options: MetricOptions = {}): Metric {
    return this.table.metric(metricName, options);
  }

  #grant(grantee: IGrantable, actions: string[]): Grant {
    return Grant.addToPrincipal({ grantee, actions, resourceArns: this.arns });
  }
}

/**
 * A DynamoDB table for leases: on demand, with point-in-time recovery, protected against deletion
 * and retained unless told otherwise.
 */
export class LeaseTable extends LeaseTableBase {
  /** A table that exists, by its name, in the Region and account of the stack. */
  static fromTableName(scope: Construct, id: string, tableName: string): ILeaseTable {
    return new ImportedLeaseTable(scope, id, tableName);
  }

  readonly table: ITableV2;
  protected readonly arns: string[];

  constructor(scope: Construct, id: string, props: LeaseTableProps = {}) {
    super(scope, id);
    const replicated = checkStrongConsistency(this, props);
    const { replicaRegions = [], witnessRegion, removalPolicy = RemovalPolicy.RETAIN } = props;
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
    this.arns = [table.tableArn, ...replicaRegions.map((region) => table.replica(region).tableArn)];
  }
}

class ImportedLeaseTable extends LeaseTableBase {
  readonly table: ITableV2;
  protected readonly arns: string[];

  constructor(scope: Construct, id: string, tableName: string) {
    super(scope, id);
    if (!Token.isUnresolved(tableName) && !/^[a-zA-Z0-9_.-]{3,255}$/.test(tableName)) {
      throw new Error(
        `${this.node.path}: tableName is "${tableName}"; it must be the name of a DynamoDB ` +
          'table, not its ARN: 3 to 255 letters, digits, dots, dashes and underscores.',
      );
    }
    this.table = TableV2.fromTableArn(
      this,
      'Table',
      Stack.of(this).formatArn({ service: 'dynamodb', resource: 'table', resourceName: tableName }),
    );
    this.arns = [this.table.tableArn];
  }
}
