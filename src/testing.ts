// For users' own tests: leases in memory, a clock that goes only when it is told to, and contexts
// as Lambda gives them.

export { FakeClock } from './fake-clock.ts';
export { fakeContext, type FakeContext, type FakeContextOptions } from './fake-context.ts';
export { MemoryStore, type MemoryStoreOptions } from './memory-store.ts';
