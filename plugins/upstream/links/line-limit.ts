/** At most so many lines a second go on; how many did not is told when the next second begins. */
export function limited (most: number, pass: (line: string) => void, tell: (dropped: number) => void): (line: string) => void {
  let second = 0
  let count = 0
  return (line) => {
    const now = Math.floor(Date.now() / 1_000)
    if (now !== second) {
      if (count > most) tell(count - most)
      second = now
      count = 0
    }
    if (++count <= most) pass(line)
  }
}
