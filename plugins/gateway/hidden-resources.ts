import { isEnabled, overrideOf, selects } from '../access/overrides.ts'
import { itemKindOf, type Section } from './section.ts'

/** Resources that are not shown, whatever lists or matches them. */
export interface Hidden {
  /** By server and URI: see `hiddenKey`. */
  readonly keys: ReadonlySet<string>
  /** The URIs that admins have disabled on their servers, in normalized spelling: users' servers do not provide these either. */
  readonly byAdmins: ReadonlySet<string>
  /** The names of users' servers. */
  readonly users: ReadonlySet<string>
}

/** The resources of some servers that are disabled, or not selected. */
export function hiddenOf (sections: readonly Section[]): Hidden {
  const [keys, byAdmins, users] = [new Set<string>(), new Set<string>(), new Set<string>()]
  const kind = itemKindOf('resources')
  for (const { server, member, catalogue, ofAdmin } of sections) {
    if (!ofAdmin) users.add(server.name)
    for (const uri of Object.keys(server.config[kind] ?? {})) {
      if (isEnabled(overrideOf(server, kind, uri))) continue
      keys.add(hiddenKey(server.name, uri))
      if (ofAdmin) byAdmins.add(spelled(uri))
    }
    for (const { key } of catalogue?.lists.resources ?? []) {
      if (!selects(member, kind, key)) keys.add(hiddenKey(server.name, key))
    }
  }
  return { keys, byAdmins, users }
}

/** A URI in normalized spelling (RFC 3986 §6.2.2): case, dot segments, needless escapes and empty parts do not matter. */
export function spelled (uri: string): string {
  if (!URL.canParse(uri)) return uri
  const url = new URL(uri)
  url.hash = ''
  return url.href.replace(/\?$/, '').replace(/%[0-9a-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(parseInt(escaped.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase()
  })
}

/** Whether a server's resource is hidden. @param known its URI in normalized spelling, where that is at hand */
export function isOff ({ keys, byAdmins, users }: Hidden, server: string, uri: string, known?: string): boolean {
  // Normalizing costs more than all else that is done for a resource.
  if (keys.size === 0 && byAdmins.size === 0) return false
  const spelling = known ?? spelled(uri)
  return keys.has(keyIn(server, spelling)) || (byAdmins.has(spelling) && users.has(server))
}

/** The key of a server's resource, independent of the spelling of its URI: most servers accept any equivalent spelling. */
export const hiddenKey = (server: string, uri: string): string => keyIn(server, spelled(uri))
const keyIn = (server: string, spelling: string): string => `${server}\n${spelling}`
