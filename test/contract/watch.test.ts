import { stores } from './stores.ts';
import { watchContract } from './watch.contract.ts';

for (const [name, makeStore] of stores) watchContract(name, makeStore);
