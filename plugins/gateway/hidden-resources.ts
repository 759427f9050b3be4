import { isEnabled, overrideOf, selects } from '../settings/index.ts'
import { itemKindOf, type Section } from './section.ts'

/** Resources that are not shown, even if a server lists them or a template matches them. */
export interface Hidden {
  /** By server and URI, in normalized spelling. */
  readonly keys: ReadonlySet<string>
  /**
   * The URIs, in normalized spelling, that admins have disabled on their servers. Users' servers do not provide them
   * either.
   */
  readonly byAdmins: ReadonlySet<string>
  /** Both in the spelling of `asFile`, if it differs. */
  readonly files: Pick<Hidden, 'keys' | 'byAdmins'>
  /** The names of users' servers. */
  readonly users: ReadonlySet<string>
}

/** The resources of some servers that are disabled, or not selected. */
export function hiddenOf (sections: readonly Section[]): Hidden {
  const [exact, files, users] = [forbidden(), forbidden(), new Set<string>()]
  const kind = itemKindOf('resources')
  const hide = (server: string, uri: string, byAdmin: boolean): void => {
    const spelling = spelled(uri)
    const file = asFile(spelling)
    for (const [each, into] of file === spelling
      ? [[spelling, exact]] as const
      : [[spelling, exact], [file, files]] as const) {
      into.keys.add(keyIn(server, each))
      if (byAdmin) into.byAdmins.add(each)
    }
  }
  for (const { server, member, catalogue, ofAdmin } of sections) {
    if (!ofAdmin) users.add(server.name)
    for (const uri of Object.keys(server.config[kind] ?? {})) {
      if (!isEnabled(overrideOf(server, kind, uri))) hide(server.name, uri, ofAdmin)
    }
    for (const { key } of catalogue?.lists.resources ?? []) {
      if (!selects(member, kind, key)) hide(server.name, key, false)
    }
  }
  return { ...exact, files, users }
}

const forbidden = (): { keys: Set<string>, byAdmins: Set<string> } => ({ keys: new Set(), byAdmins: new Set() })

/**
 * A URI in normalized spelling (RFC 3986 §6.2.2): case, dot segments, needless escapes and empty parts do not matter.
 */
function spelled (uri: string): string {
  if (!URL.canParse(uri)) return uri
  const url = new URL(uri)
  url.hash = ''
  return url.href.replace(/\?$/, '').replace(/%[0-9a-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(parseInt(escaped.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase()
  })
}

/** Whether a resource that a server lists under this URI is hidden. */
export function isOff (hidden: Hidden, server: string, uri: string): boolean {
  // Normalizing is expensive.
  return hidesAny(hidden) && isIn(hidden, hidden, server, spelled(uri))
}

/**
 * Makes a test whether a URI that a server does not list is hidden there. Another spelling of a hidden file's path
 * counts as that file.
 */
export function unlistedIsOff (hidden: Hidden, uri: string): (server: string) => boolean {
  if (!hidesAny(hidden)) return () => false
  const spelling = spelled(uri)
  // Of `/a//../b`, a server may resolve the dots before or after it joins the slashes.
  const spellings = new Set([spelling, asFile(spelling), asFile(spelled(asFile(uri)))])
  return (server) =>
    [...spellings].some((each) => isIn(hidden, hidden, server, each) || isIn(hidden, hidden.files, server, each))
}

export const hidesAny = ({ keys, byAdmins }: Hidden): boolean => keys.size > 0 || byAdmins.size > 0

const isIn = ({ users }: Hidden, { keys, byAdmins }: Hidden['files'], server: string, spelling: string): boolean =>
  keys.has(keyIn(server, spelling)) || (byAdmins.has(spelling) && users.has(server))

/**
 * A URI with its host in lower case (RFC 3986 §6.2.2.1), without a user, and with its path as file systems read one:
 * slashes in a row are one, also escaped ones, and one at the end does not count. Servers that join the path to a
 * folder accept all of these spellings.
 */
const asFile = (uri: string): string =>
  uri.replace(/^([a-z][a-z0-9+.-]*:)(\/\/[^/?#]*)?([^?#]*)/i, (_whole, scheme: string, host = '', path: string) =>
    `${scheme}${host.toLowerCase().replace(/[^/]*@/, '')}${path.replace(/(?:\/|%2f)+/gi, '/').replace(/\/$/, '')}`)

/**
 * The key of a server's resource, independent of the spelling of its URI: most servers accept any equivalent spelling.
 */
export const hiddenKey = (server: string, uri: string): string => keyIn(server, spelled(uri))
const keyIn = (server: string, spelling: string): string => `${server}\n${spelling}`
