// The seeds of the usual run, which is part of the tests.

export const USUAL_SEEDS = { from: 1, to: 200 } as const;
/** So many virtual hours, times leases, it covers at least. */
export const USUAL_LEASE_HOURS = 20_000;
