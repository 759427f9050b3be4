const repeatedNames = new WeakMap<object, readonly string[]>()

/**
 * Returns the server names that occur more than once in the text of the settings; only the last entry of a name has
 * effect.
 * @param servers the section `mcpServers`, the same object as when `rememberRepeatedNames` was called
 */
export const repeatedServerNames = (servers: object): readonly string[] => repeatedNames.get(servers) ?? []

/**
 * Records the repeated server names for `repeatedServerNames`.
 * @param names all names in the text of the section
 */
export function rememberRepeatedNames (servers: object, names: readonly string[]): void {
  const seen = new Set<string>()
  const repeated = new Set(names.filter((name) => seen.size === seen.add(name).size))
  if (repeated.size > 0) repeatedNames.set(servers, [...repeated])
}
