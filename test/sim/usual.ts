// The seeds of the usual run, which is part of the tests.

export const USUAL_SEEDS: { readonly from: number; readonly to: number } = { from: 1, to: 63 };
/** So many virtual hours, times leases, it covers at least. */
export const USUAL_LEASE_HOURS = 20_000;
