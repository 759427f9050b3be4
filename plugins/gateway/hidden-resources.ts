import type { Item } from '../../protocol/lists.ts'
import { skillFolder } from '../../protocol/skills.ts'
import { isItemEnabled, overrideOf } from '../settings/index.ts'
import { foldersAbove, isSelectedAndEnabled, showsResource, type ViewSection } from './section.ts'

/** The resources that are hidden although a server lists them or a template matches them. */
export interface HiddenResources {
  /** The hidden resources of each server, as keys of server and normalized URI (`keyIn`). */
  readonly keys: ReadonlySet<string>
  /** The normalized URIs that are disabled on admins' servers; users' servers must not provide them either. */
  readonly byAdmins: ReadonlySet<string>
  /** Whether a skill is shown, by the key of its server and of the normalized URI of its folder (`keyIn`). */
  readonly folders: ReadonlyMap<string, boolean>
  /** The same three members, for URIs that `normalizePath` has normalized as well. */
  readonly pathNormalized: Pick<HiddenResources, 'keys' | 'byAdmins' | 'folders'>
  /** The names of servers owned by users. */
  readonly users: ReadonlySet<string>
  readonly hasHiddenSkills: boolean
}

/** Collects the resources and skills that are disabled, not selected, or hidden by hooks. */
export function collectHidden (sections: readonly ViewSection[]): HiddenResources {
  const [exact, files, users] = [emptyKeys(), emptyKeys(), new Set<string>()]
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
  let hasHiddenSkills = false
  const addSkill = (section: ViewSection, uri: string, item?: Item): void => {
    const { server, filter, isOwnedByAdmin: ofAdmin } = section
    const isHiddenByRule = item !== undefined && filter?.isHidden(server.name, 'skills', item) === true
    const isShown = !isHiddenByRule && isSelectedAndEnabled(section, 'skills', uri)
    hasHiddenSkills ||= !isShown
    const spelling = normalizeUri(uri)
    for (const [into, each] of [[exact, spelling], [files, normalizePath(spelling)]] as const) {
      const folder = keyIn(server.name, skillFolder(each) ?? each)
      into.folders.set(folder, isShown || into.folders.get(folder) === true)
      if (ofAdmin && !isItemEnabled(overrideOf(server, 'skills', uri))) into.byAdmins.add(each)
    }
  }
  for (const section of sections) {
    const { server, catalogue, filter, isOwnedByAdmin: ofAdmin } = section
    if (!ofAdmin) users.add(server.name)
    for (const uri of Object.keys(server.config.resources ?? {})) {
      if (!isItemEnabled(overrideOf(server, 'resources', uri))) hide(server.name, uri, ofAdmin)
    }
    for (const item of catalogue?.lists.resources ?? []) {
      const isShown = showsResource(section, item.key) && filter?.isHidden(server.name, 'resources', item) !== true
      if (!isShown) hide(server.name, item.key, false)
    }
    for (const uri of Object.keys(server.config.skills ?? {})) addSkill(section, uri)
    for (const item of catalogue?.lists.skills ?? []) addSkill(section, item.key, item)
  }
  return { ...exact, pathNormalized: files, users, hasHiddenSkills }
}

const emptyKeys = (): { keys: Set<string>, byAdmins: Set<string>, folders: Map<string, boolean> } =>
  ({ keys: new Set(), byAdmins: new Set(), folders: new Map() })

/** Whether a server's resource is in the folder of a hidden skill, and not in the folder of a shown skill. */
export const isInHiddenSkill = (hidden: HiddenResources, server: string, uri: string): boolean =>
  hidden.hasHiddenSkills && isInHiddenFolder(hidden, server, normalizeUri(uri))

function isInHiddenFolder ({ folders }: HiddenResources['pathNormalized'], server: string, spelling: string): boolean {
  if (folders.size === 0) return false
  const above = foldersAbove(spelling).flatMap((folder) => folders.get(keyIn(server, folder)) ?? [])
  return above.length > 0 && !above.includes(true)
}

/** Normalizes case, dot segments and escapes of a URI (RFC 3986, section 6.2.2), and removes its fragment. */
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
export function isListedResourceHidden (hidden: HiddenResources, server: string, uri: string): boolean {
  // Normalizing is expensive, so it comes last.
  return hasHiddenResources(hidden) && isHiddenAt(hidden, hidden, server, normalizeUri(uri))
}

/** Returns a function that tells whether an unlisted resource is hidden at a server, in any spelling of its URI. */
export function createHiddenUriCheck (hidden: HiddenResources, uri: string): (server: string) => boolean {
  if (!hasHiddenResources(hidden)) return () => false
  const spellings = spellingsOf(uri)
  return (server) =>
    spellings.some((each) =>
      isHiddenAt(hidden, hidden, server, each) || isHiddenAt(hidden, hidden.pathNormalized, server, each))
}

/** The normalized spellings of a URI. A server may treat all of them as the same resource. */
export function spellingsOf (uri: string): string[] {
  const spelling = normalizeUri(uri)
  // In `/a//../b`, a server may resolve the dots before or after merging the slashes.
  return [...new Set([spelling, normalizePath(spelling), normalizePath(normalizeUri(normalizePath(uri)))])]
}

export const hasHiddenResources = ({ keys, byAdmins, hasHiddenSkills }: HiddenResources): boolean =>
  keys.size > 0 || byAdmins.size > 0 || hasHiddenSkills

const isHiddenAt = (
  { users, hasHiddenSkills }: HiddenResources, of: HiddenResources['pathNormalized'], server: string, spelling: string
): boolean =>
  of.keys.has(keyIn(server, spelling)) || (of.byAdmins.has(spelling) && users.has(server)) ||
  (hasHiddenSkills && isInHiddenFolder(of, server, spelling))

/**
 * Normalizes a URI's path as file systems do: consecutive slashes, also escaped ones, become one, and a trailing slash
 * is removed. The host is put in lower case (RFC 3986, section 6.2.2.1), and userinfo is removed. A server that appends
 * the path to a folder accepts all these spellings.
 */
const normalizePath = (uri: string): string =>
  uri.replace(/^([a-z][a-z0-9+.-]*:)(\/\/[^/?#]*)?([^?#]*)/i, (_whole, scheme: string, host = '', path: string) =>
    `${scheme}${host.toLowerCase().replace(/[^/]*@/, '')}${path.replace(/(?:\/|%2f)+/gi, '/').replace(/\/$/, '')}`)

/** The key of a server's resource. @param spelling a normalized URI */
const keyIn = (server: string, spelling: string): string => `${server}\n${spelling}`
