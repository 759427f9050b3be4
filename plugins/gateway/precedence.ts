import {
  allListKinds, byListKind, isNamedKind, type Item, type ListingHistory, type ListKind, type NamedKind
} from '../../protocol/lists.ts'
import { pushTo } from '../../protocol/grouping.ts'
import { itemKeysWithSkillFiles, skillFileUris } from '../../protocol/skills.ts'
import { toModelSafeSeparator } from '../../schemas/names.ts'
import { hasHashSuffix, prefixedName, acceptedPrefixesOf, prefixOf, unconvertedPrefixOf } from '../settings/index.ts'
import { isSelectedAndEnabled, showsResource, itemKindOfList, type ViewSection } from './section.ts'
import { gatewayLimits } from './limits.ts'

/** A section of a merged route, its index there, the prefix of its items' names, and the claims of its server. */
interface Claimant {
  readonly at: number, readonly section: ViewSection, readonly prefix: string, readonly claims: ListingHistory
}

/**
 * Decides which server a name, URI or template belongs to on a merged route:
 * - Admins' servers come before users' servers. Within a rank, the configured order decides.
 * - Within a rank, a server does not take a name that another server was the first to list.
 * - A server keeps its names while disconnected, after it stops listing an item, and after a restart.
 * - A user's server does not get a name that an earlier admin's server might list later.
 * - No server gets a name that an earlier server with unknown lists might have.
 * - An item of a provider without a prefix always belongs to that provider.
 */
export class Precedence {
  readonly #claimants: readonly Claimant[]
  /** The items of providers without a prefix. */
  readonly #unprefixed: Readonly<Record<ListKind, ReadonlyMap<string, Claimant>>>
  /** The configured separator, and its form in exposed names. */
  readonly #configuredSeparator: string
  readonly #separator: string
  /** The claimants with each prefix (label and separator). */
  readonly #byPrefix = new Map<string, Claimant[]>()
  readonly #prefixLengths = new Set<number>()
  readonly #longestPrefix: number
  /** For each kind of list, the claimants of each URI or template; built on first use. */
  readonly #byKey = new Map<ListKind, Map<string, Claimant | Claimant[]>>()

  /**
   * @param claimsOf the claims of each section's server
   * @param isUnconverted whether names have the label and separator as configured; false: as model APIs accept them
   */
  constructor (
    sections: readonly ViewSection[], separator: string, claimsOf: (section: ViewSection) => ListingHistory,
    isUnconverted = false
  ) {
    this.#configuredSeparator = separator
    this.#separator = isUnconverted ? separator : toModelSafeSeparator(separator)
    const prefixOfSection = isUnconverted ? unconvertedPrefixOf : prefixOf
    // Without the provider: this object may live long, and would keep the provider of a restarted server in memory.
    this.#claimants = sections.map((section, at) => ({
      at,
      section: { ...section, provider: undefined },
      prefix: section.server.unprefixed === true ? '' : prefixOfSection(section.label, separator),
      claims: claimsOf(section)
    }))
    this.#unprefixed = unprefixedItems(this.#claimants)
    for (const claimant of this.#claimants) {
      if (claimant.section.server.unprefixed === true) continue
      const { prefix } = claimant
      this.#prefixLengths.add(prefix.length)
      pushTo(this.#byPrefix, prefix, claimant)
    }
    this.#longestPrefix = Math.max(0, ...this.#prefixLengths)
  }

  get claimants (): readonly Claimant[] { return this.#claimants }

  /**
   * Whether a section may show an item under its plain name, `<label><separator><own name>`. `own`: yes, since no other
   * section can have an item of that name; `won`: yes, since it has precedence over the sections that can; `lost`: no.
   */
  plainNameStanding (at: number, kind: NamedKind, key: string): 'own' | 'won' | 'lost' {
    const own = this.#claimants[at]
    if (!own) return 'lost'
    const name = own.prefix + key
    const isHashLike = hasHashSuffix(name)
    const unprefixed = this.#unprefixed[kind].get(name)
    if (unprefixed) return unprefixed === own && !isHashLike ? 'own' : 'lost'
    if (isHashLike && name.length === 64) return 'lost'
    let isContested = false
    let rivals = 0
    // The search ends at the longest prefix, since a name may be a megabyte of separators.
    const end = Math.min(name.length, this.#longestPrefix)
    for (let found = name.indexOf(this.#separator, 1); found !== -1; found = name.indexOf(this.#separator, found + 1)) {
      const length = found + this.#separator.length
      if (length > end) break
      if (!this.#prefixLengths.has(length)) continue
      for (const rival of this.#byPrefix.get(name.slice(0, length)) ?? []) {
        if (isSameMember(rival, own)) continue
        isContested = true
        // Users' servers cannot take names from admins' servers.
        if (rival.section.isOwnedByAdmin || !own.section.isOwnedByAdmin) rivals++
        // The plain name must not look like a hashed name of a rival's item.
        if (isHashLike || rivals > gatewayLimits.nameRivals) return 'lost'
        if (!this.#keepsName(own, key, rival, name.slice(length), kind)) return 'lost'
      }
    }
    return isContested ? 'won' : 'own'
  }

  /** Whether `own` keeps a name although a rival might list an item of that name. */
  #keepsName (own: Claimant, key: string, rival: Claimant, rivalKey: string, kind: ListKind): boolean {
    if (rival.at > own.at) return hasPrecedence(own, key, rival, rivalKey, kind)
    if (rival.section.isOwnedByAdmin !== own.section.isOwnedByAdmin || !rival.claims.isKnown) return false
    return !hasPrecedence(rival, rivalKey, own, key, kind)
  }

  /** Whether a resource or template belongs to a section. */
  ownsUri (at: number, kind: 'resources' | 'resourceTemplates', key: string): boolean {
    const own = this.#claimants[at]
    const unprefixed = this.#unprefixed[kind].get(key)
    if (unprefixed) return unprefixed === own
    return own !== undefined && (this.#claimantsOf(kind).get(key) === own || this.#owner(kind, key, own) === own)
  }

  /** Whether an item with a URI belongs to a section. A skill belongs to it if all of its files do. */
  ownsItem (at: number, kind: 'resources' | 'resourceTemplates' | 'skills', item: Item): boolean {
    return kind === 'skills'
      ? skillFileUris(item).every((uri) => this.ownsUri(at, 'resources', uri))
      : this.ownsUri(at, kind, item.key)
  }

  /** The section that owns a resource, listed now or not; undefined if no server has ever listed it. */
  ownerOf (uri: string): ViewSection | undefined {
    return (this.#unprefixed.resources.get(uri) ?? this.#owner('resources', uri))?.section
  }

  /**
   * The name of the admin's server that has a prompt of this name or a resource with this URI, listed now or not;
   * undefined if there is none.
   */
  adminsServer (kind: 'prompts' | 'resources', name: string): string | undefined {
    return this.#claimants.find(({ section, claims }) => {
      if (!section.isOwnedByAdmin || section.server.unprefixed === true) return false
      const prefixes = kind === 'prompts' ? acceptedPrefixesOf(section.label, this.#configuredSeparator) : ['']
      return prefixes.some((prefix) => {
        const key = name.slice(prefix.length)
        return name.startsWith(prefix) && claims.firstListing(kind, key) !== undefined && showsItem(section, kind, key)
      })
    })?.section.server.name
  }

  /** The claimant that owns an item. @param also a section that is compared even if it has no recorded claim */
  #owner (kind: 'resources' | 'resourceTemplates', key: string, also?: Claimant): Claimant | undefined {
    let owner: Claimant | undefined
    const known = [this.#claimantsOf(kind).get(key) ?? []].flat()
    const all = also === undefined || known.includes(also)
      ? known
      : [...known, also].sort((one, other) => one.at - other.at)
    for (const each of all) {
      if (each !== also && !showsItem(each.section, kind, key)) continue
      if (!owner || !hasPrecedence(owner, key, each, key, kind)) owner = each
    }
    return owner
  }

  #claimantsOf (kind: 'resources' | 'resourceTemplates'): Map<string, Claimant | Claimant[]> {
    let byKey = this.#byKey.get(kind)
    if (byKey) return byKey
    this.#byKey.set(kind, byKey = new Map())
    for (const claimant of this.#claimants) {
      // The claim to an item without a prefix ends when the item is removed; `#unprefixed` has the present items.
      if (claimant.section.server.unprefixed === true) continue
      for (const key of claimant.claims.keys(kind)) {
        const others = byKey.get(key)
        if (Array.isArray(others)) others.push(claimant)
        else byKey.set(key, others ? [others, claimant] : claimant)
      }
    }
    return byKey
  }
}

/** The items listed by providers without a prefix, each with the first provider that shows it. */
function unprefixedItems (claimants: readonly Claimant[]): Record<ListKind, Map<string, Claimant>> {
  const found = byListKind(() => new Map<string, Claimant>())
  for (const claimant of claimants) {
    const { section } = claimant
    if (section.server.unprefixed !== true || !section.catalogue) continue
    for (const kind of allListKinds) {
      for (const key of itemKeysWithSkillFiles(section.catalogue, kind)) {
        if (found[kind].has(key) || !showsItem(section, kind, key)) continue
        found[kind].set(key, claimant)
        // The name in the form that model APIs accept is taken, too.
        if (isNamedKind(kind)) found[kind].set(prefixedName('', key), claimant)
      }
    }
  }
  return found
}

/** Whether an earlier section has precedence over a later one that lists, or might list, the same item. */
function hasPrecedence (
  earlier: Claimant, earlierKey: string, later: Claimant, laterKey: string, kind: ListKind
): boolean {
  const first = earlier.claims.firstListing(kind, earlierKey)
  if (first === undefined) return false
  if (first.isInitial || earlier.section.isOwnedByAdmin !== later.section.isOwnedByAdmin) return true
  return first.reading <= (later.claims.firstListing(kind, laterKey)?.reading ?? Infinity)
}

/** Whether two claimants are the same member of a group, which may contain a server twice. */
const isSameMember = ({ section: one }: Claimant, { section: other }: Claimant): boolean =>
  one.server.name === other.server.name && one.label === other.label

/** Whether a section shows an item with this key. */
export function showsItem (section: ViewSection, kind: ListKind, key: string): boolean {
  if (kind === 'resources') return showsResource(section, key)
  const itemKind = itemKindOfList(kind)
  return itemKind === undefined || isSelectedAndEnabled(section, itemKind, key)
}
