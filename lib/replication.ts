// Whether a table in more than one Region still excludes. Under DynamoDB's default, eventual
// consistency, each Region judges a conditional write by its own copy: two holders at once.

import { Stack, Token } from 'aws-cdk-lib';
import type { Construct } from 'constructs';

export interface Replication {
  /**
   * Other Regions with a copy of the table. With strong consistency, two, or one and a witness.
   * @default - one Region
   */
  readonly replicaRegions?: readonly string[];
  /**
   * A third Region that votes and keeps no copy that could be read.
   * @default - none
   */
  readonly witnessRegion?: string;
  /**
   * Whether a lease excludes across Regions. `false` allows eventual consistency between copies:
   * a lease may then have a holder in each Region, which suffices for heartbeats and identities.
   * @default true
   */
  readonly exclusion?: boolean;
}

/** DynamoDB's sets of Regions for strong consistency. */
const REGION_SETS: readonly (readonly string[])[] = [
  ['us-east-1', 'us-east-2', 'us-west-2'],
  ['eu-west-1', 'eu-west-2', 'eu-west-3', 'eu-central-1'],
  ['ap-northeast-1', 'ap-northeast-2', 'ap-northeast-3'],
];

/** How the copies agree; undefined where there is one only. Throws for what cannot work. */
export function checkStrongConsistency(
  scope: Construct,
  { replicaRegions = [], witnessRegion, exclusion = true }: Replication,
): 'strong' | 'eventual' | undefined {
  const refuse = (message: string) => new Error(`${scope.node.path}: ${message}`);
  if (replicaRegions.length === 0) {
    if (witnessRegion === undefined) return undefined;
    throw refuse(
      `witnessRegion is "${witnessRegion}" without replicaRegions; a witness votes between two ` +
        'copies. Name one more Region in replicaRegions, or leave witnessRegion out.',
    );
  }
  const { region } = Stack.of(scope);
  if (Token.isUnresolved(region)) {
    throw refuse(
      'replicaRegions needs a stack whose Region is known at synth. Give the stack an env with a ' +
        'region, such as { env: { region: "eu-west-1" } }.',
    );
  }
  const twice = replicaRegions.find(
    (replica, index) => replica === region || replicaRegions.indexOf(replica) !== index,
  );
  if (twice !== undefined) {
    throw refuse(
      `replicaRegions names "${twice}" again; it must name other Regions than the stack's own ` +
        `("${region}"), each once.`,
    );
  }
  if (!exclusion) {
    if (witnessRegion === undefined) return 'eventual';
    throw refuse(
      'exclusion is false and witnessRegion is given; eventual consistency has no witness. ' +
        'Leave one of the two out.',
    );
  }
  const all = [region, ...replicaRegions, ...(witnessRegion === undefined ? [] : [witnessRegion])];
  if (all.length !== 3) {
    throw refuse(
      `${all.length} Regions (${all.join(', ')}) cannot agree on who holds a lease; strong ` +
        'consistency takes exactly 3: two replicaRegions, or one and a witnessRegion. For copies ' +
        'that need not exclude each other, set exclusion to false.',
    );
  }
  const set = REGION_SETS.find((regions) => regions.includes(region));
  if (set === undefined || !all.every((each) => set.includes(each))) {
    throw refuse(
      `DynamoDB has no strong consistency between ${all.join(', ')}; all three must be of one of ` +
        `these sets: ${REGION_SETS.map((regions) => regions.join(', ')).join('; ')}. For copies ` +
        'that need not exclude each other, set exclusion to false.',
    );
  }
  if (new Set(all).size !== all.length) {
    throw refuse(`witnessRegion is "${witnessRegion ?? ''}", which has a copy already.`);
  }
  return 'strong';
}
