// For users' own tests: leases in memory, and a clock that goes only when it is told to.

export { FakeClock } from './fake-clock.ts';
export { MemoryStore, type MemoryStoreOptions } from './memory-store.ts';
