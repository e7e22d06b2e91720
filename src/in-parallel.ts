// So many at once of what has to be done to each; the first error stops the rest.

export async function inParallel<T>(
  items: readonly T[],
  atOnce: number,
  each: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items].reverse();
  await Promise.all(
    Array.from({ length: Math.min(atOnce, items.length) }, async () => {
      for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
        await each(item).catch((error: unknown) => {
          queue.length = 0;
          throw error;
        });
      }
    }),
  );
}
