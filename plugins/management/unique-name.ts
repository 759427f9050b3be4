/** Returns a name that is not in `taken`, and adds it there: the given name, or the name with a number appended. */
export function uniqueName (taken: Set<string>, name: string, separator = '-'): string {
  let unused = name
  for (let number = 2; taken.has(unused); number++) unused = `${name}${separator}${number}`
  taken.add(unused)
  return unused
}
