// The package, tried from its tarball by users of many kinds. Built, packed and installed once.

import { afterAll, beforeAll, describe } from 'vitest';
import { cdkApps } from './cdk.contract.ts';
import { consumers } from './consumers.contract.ts';
import { contents } from './contents.contract.ts';
import { types } from './types.contract.ts';
import { sizes } from './sizes.contract.ts';
import { expectTools, PATIENCE_MS, Stage } from './stage.ts';

describe.skipIf(!expectTools())('the package', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open();
  }, PATIENCE_MS);
  afterAll(() => stage.close());

  contents(() => stage);
  sizes(() => stage);
  types(() => stage);
  consumers(() => stage);
  cdkApps(() => stage);
});
