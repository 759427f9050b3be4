import { isItemEnabled, overrideOf, selectsItem } from '../settings/index.ts'
import { itemKindOf, type Section } from './section.ts'

/** Resources that are hidden even if a server lists them or a template matches them. */
export interface HiddenResources {
  /** By server and normalized URI. */
  readonly keys: ReadonlySet<string>
  /** The normalized URIs that admins have disabled on their servers. Users' servers do not provide them either. */
  readonly byAdmins: ReadonlySet<string>
  /** Both with the normalization of `normalizePath`, where that differs. */
  readonly files: Pick<HiddenResources, 'keys' | 'byAdmins'>
  /** The names of users' servers. */
  readonly users: ReadonlySet<string>
}

/** Collects the resources of servers that are disabled, or not selected. */
export function collectHidden (sections: readonly Section[]): HiddenResources {
  const [exact, files, users] = [emptyKeys(), emptyKeys(), new Set<string>()]
  const kind = itemKindOf('resources')
  const hide = (server: string, uri: string, byAdmin: boolean): void => {
    const spelling = normalizeUri(uri)
    const file = normalizePath(spelling)
    for (const [each, into] of file === spelling
      ? [[spelling, exact]] as const
      : [[spelling, exact], [file, files]] as const) {
      into.keys.add(keyIn(server, each))
      if (byAdmin) into.byAdmins.add(each)
    }
  }
  for (const { server, member, catalogue, filter, isOwnedByAdmin: ofAdmin } of sections) {
    if (!ofAdmin) users.add(server.name)
    for (const uri of Object.keys(server.config[kind] ?? {})) {
      if (!isItemEnabled(overrideOf(server, kind, uri))) hide(server.name, uri, ofAdmin)
    }
    for (const item of catalogue?.lists.resources ?? []) {
      const isShown = selectsItem(member, kind, item.key) && filter?.isHidden(server.name, kind, item) !== true
      if (!isShown) hide(server.name, item.key, false)
    }
  }
  return { ...exact, files, users }
}

const emptyKeys = (): { keys: Set<string>, byAdmins: Set<string> } => ({ keys: new Set(), byAdmins: new Set() })

/** Normalizes a URI (RFC 3986, section 6.2.2): case, dot segments, needless escapes and empty parts. */
function normalizeUri (uri: string): string {
  if (!URL.canParse(uri)) return uri
  const url = new URL(uri)
  url.hash = ''
  return url.href.replace(/\?$/, '').replace(/%[0-9a-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(parseInt(escaped.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase()
  })
}

/** Whether a resource that a server lists under this URI is hidden. */
export function isListedHidden (hidden: HiddenResources, server: string, uri: string): boolean {
  // Normalizing is expensive.
  return hasHidden(hidden) && isHiddenAt(hidden, hidden, server, normalizeUri(uri))
}

/**
 * Returns a test for whether an unlisted URI is hidden at a server. Any spelling of a hidden file's path counts as that
 * file.
 */
export function unlistedHiddenTest (hidden: HiddenResources, uri: string): (server: string) => boolean {
  if (!hasHidden(hidden)) return () => false
  const spelling = normalizeUri(uri)
  // In `/a//../b`, a server may resolve the dots before or after it joins the slashes.
  const spellings = new Set([spelling, normalizePath(spelling), normalizePath(normalizeUri(normalizePath(uri)))])
  return (server) =>
    [...spellings].some((each) =>
      isHiddenAt(hidden, hidden, server, each) || isHiddenAt(hidden, hidden.files, server, each))
}

export const hasHidden = ({ keys, byAdmins }: HiddenResources): boolean => keys.size > 0 || byAdmins.size > 0

const isHiddenAt = (
  { users }: HiddenResources, { keys, byAdmins }: HiddenResources['files'], server: string, spelling: string
): boolean =>
  keys.has(keyIn(server, spelling)) || (byAdmins.has(spelling) && users.has(server))

/**
 * Normalizes a URI's path as file systems read it: consecutive slashes are one, also escaped ones, and a trailing slash
 * is ignored. The host is in lower case (RFC 3986, section 6.2.2.1), without userinfo. Servers that join the path to a
 * folder accept all these spellings.
 */
const normalizePath = (uri: string): string =>
  uri.replace(/^([a-z][a-z0-9+.-]*:)(\/\/[^/?#]*)?([^?#]*)/i, (_whole, scheme: string, host = '', path: string) =>
    `${scheme}${host.toLowerCase().replace(/[^/]*@/, '')}${path.replace(/(?:\/|%2f)+/gi, '/').replace(/\/$/, '')}`)

/** The key of a server's resource, the same for equivalent spellings of its URI, which most servers accept. */
export const hiddenKey = (server: string, uri: string): string => keyIn(server, normalizeUri(uri))
const keyIn = (server: string, spelling: string): string => `${server}\n${spelling}`
