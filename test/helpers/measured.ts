const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN

/**
 * The median of five rounds, for tests in test/measure: one round says little on a machine that others use too.
 * @param round measures once; what it returns, a time or a size, is the figure
 */
export async function median (
  t: { comment: (text: string) => void },
  what: string,
  round: () => number | Promise<number>
): Promise<number> {
  const values: number[] = []
  for (let n = 0; n < 5; n++) values.push(await round())
  t.comment(`${what}: ${values.map((value) => value.toFixed(2)).join(', ')}`)
  return middle(values)
}

/** CPU time of this process that the function takes, in ms. */
export async function cpuTime (work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
