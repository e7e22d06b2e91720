// Many that stand by for one lease, in one process of their own, until it is ended.

import { readFileSync } from 'node:fs';
import { LeaderElector } from '../../src/index.ts';
import { testClient } from '../support/dynamodb.ts';

export interface CrowdSettings {
  readonly endpoint: string;
  readonly tableName: string;
  readonly name: string;
  readonly standbys: number;
}

const { endpoint, tableName, name, standbys } = JSON.parse(
  process.argv[2] ?? readFileSync(0, 'utf8'),
) as CrowdSettings;
const quiet = (): void => undefined;
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };

for (let each = 0; each < standbys; each++) {
  // A client for each, as they would be processes of their own.
  const elector = new LeaderElector({
    name,
    tableName,
    client: testClient(endpoint),
    logger,
    onStartedLeading: async () => {
      process.stdout.write('led\n');
    },
  });
  void elector.run();
}
process.stdin.on('close', () => process.exit()).resume();
