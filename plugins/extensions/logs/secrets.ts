import type { Snapshot } from '../../../db/store.ts'
import { maskPatterns, scrubber, secretsOf } from '../../base/secrets/index.ts'

/**
 * A function that masks in a text the secrets of all servers and of the system configuration, and what looks like a credential.
 * @param snapshot the current settings
 * @param own further secrets
 */
export function maskerOf (snapshot: () => Snapshot, own: readonly string[]): (text: string) => string {
  const known = new WeakMap<object, readonly string[]>()
  const of = (config: object): readonly string[] => {
    let secrets = known.get(config)
    if (!secrets) {
      secrets = secretsOf(config as Record<string, unknown>).filter((secret) => !/^(bearer|basic)$/i.test(secret))
      known.set(config, secrets)
    }
    return secrets
  }
  let version = -1
  let sets: ReadonlyArray<readonly string[]> = []
  let scrub = (text: string): string => text
  const refresh = (): void => {
    const { version: now, servers, system } = snapshot()
    if (now === version) return
    version = now
    const found = [own, of(system), ...[...servers.values()].map(({ config }) => of(config))].filter(({ length }) => length > 0)
    // Most changes are of something else, such as when a key was used.
    if (found.length === sets.length && found.every((set, at) => set === sets[at])) return
    sets = found
    scrub = scrubber(found.flat())
  }
  return (text) => {
    refresh()
    // Patterns first: what they find by its neighbours may be a secret's part itself.
    return scrub(maskPatterns(text))
  }
}
