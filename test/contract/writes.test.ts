import { stores } from './stores.ts';
import { writesContract } from './writes.contract.ts';

for (const [name, makeStore] of stores) writesContract(name, makeStore);
