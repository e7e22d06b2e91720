import { operatorWritesContract } from './operator-writes.contract.ts';
import { stores } from './stores.ts';

for (const [name, makeStore] of stores) operatorWritesContract(name, makeStore);
