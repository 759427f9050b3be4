/**
 * Limits lines to a number per second.
 * @param most lines per second that are passed on
 * @param pass gets each line within the limit
 * @param report gets the number of lines that were dropped, when the next second begins
 */
export function limitLines (most: number, pass: (line: string) => void, report: (dropped: number) => void): (line: string) => void {
  let second = 0
  let count = 0
  return (line) => {
    const now = Math.floor(Date.now() / 1_000)
    if (now !== second) {
      if (count > most) report(count - most)
      second = now
      count = 0
    }
    if (++count <= most) pass(line)
  }
}
