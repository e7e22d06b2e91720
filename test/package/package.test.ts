// The package, tried from its tarball by users of many kinds. Built, packed and installed once.

import { afterAll, beforeAll, describe } from 'vitest';
import { contents } from './contents.contract.ts';
import { expectTools, Stage } from './stage.ts';

describe.skipIf(!expectTools())('the package', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open();
  }, 180_000);
  afterAll(() => stage.close());

  contents(() => stage);
});
