import type { Item, ListingHistory, ListKind } from '../../protocol/lists.ts'
import { skillFolder } from '../../protocol/skills.ts'
import { showsItem, type Precedence } from './precedence.ts'
import type { ViewSection, ItemTarget } from './section.ts'
import { templateLiterals, matchesTemplate, type ResourceTemplate } from './templates.ts'
import { gatewayLimits } from './limits.ts'

/** The number of characters in a template's literals. */
const literalLength = (literals: readonly string[]): number => literals.reduce((sum, { length }) => sum + length, 0)

/** The templates of a route with raw names, the longest literals first. */
export function rawTemplates (targets: ReadonlyMap<string, ItemTarget>): Array<ResourceTemplate<ItemTarget>> {
  return [...targets]
    .map(([uriTemplate, target]) => {
      const literals = templateLiterals(uriTemplate)
      return { literals, target, length: literalLength(literals) }
    })
    .sort((one, other) => other.length - one.length)
}

/**
 * The templates of a merged route, without duplicates, including those that their servers do not list now. The folder
 * of a skill counts as a template, since it may contain unlisted files.
 */
export function mergedTemplates (precedence: Precedence): Array<ResourceTemplate<ItemTarget>> {
  const kind = 'resourceTemplates'
  const found = precedence.claimants.flatMap(({ at, section, claims }) => {
    const items = new Map(section.catalogue?.lists[kind].map((item) => [item.key, item]))
    const templateOf = (literals: readonly string[], target: Omit<ItemTarget, 'provider'>, of: ListKind) => ({
      literals,
      target: { ...target, provider: section.server.name },
      ofAdmin: section.isOwnedByAdmin,
      listedAt: listedAt(claims.firstListing(of, target.key)),
      length: literalLength(literals)
    })
    const folders = (section.catalogue?.lists.skills ?? [])
      .filter((item) => showsItem(section, 'skills', item.key) && precedence.ownsItem(at, 'skills', item))
      .flatMap((item) => {
        const folder = skillFolder(item.key)
        return folder === undefined ? [] : [templateOf([`${folder}/`, ''], { key: item.key, item }, 'skills')]
      })
    return [
      ...folders,
      ...[...claims.keys(kind)]
        .filter((key) => showsItem(section, kind, key) && precedence.ownsUri(at, kind, key))
        .filter((key) => !isHiddenByRule(section, kind, items.get(key)))
        .map((key) => templateOf(templateLiterals(key), { key, item: items.get(key) }, kind))
    ]
  })
  return found
    // A template that does not begin with a scheme could capture the resources of other servers.
    .filter(({ literals }) => /^[a-z][a-z0-9+.-]*:/i.test(literals[0] ?? ''))
    // Admins' servers come first, then templates that were listed earlier, then the longest literals.
    .sort((one, other) =>
      Number(other.ofAdmin) - Number(one.ofAdmin) || one.listedAt - other.listedAt || other.length - one.length)
}

const isHiddenByRule = ({ server, filter }: ViewSection, kind: ListKind, item: Item | undefined): boolean =>
  item !== undefined && filter?.isHidden(server.name, kind, item) === true

/** When an item was first listed. For the first read of its server: 0, so that it comes before all later items. */
const listedAt = (first: ReturnType<ListingHistory['firstListing']>): number =>
  first === undefined || first.isInitial ? 0 : first.reading

/** The templates of admins' servers, for comparison with users' resources; none if no server is a user's. */
export function adminsTemplates (
  sections: readonly ViewSection[],
  templates: ReadonlyArray<ResourceTemplate<ItemTarget>>
): ReadonlyArray<ResourceTemplate<ItemTarget>> {
  if (sections.every(({ isOwnedByAdmin: ofAdmin }) => ofAdmin)) return []
  const admins = new Set(sections.filter(({ isOwnedByAdmin: ofAdmin }) => ofAdmin).map(({ server }) => server.name))
  return templates.filter(({ target }) => admins.has(target.provider))
}

/** Returns a function that tells whether a URI matches one of the templates; beyond the limits, it returns true. */
export function createReservedUriCheck (templates: ReadonlyArray<ResourceTemplate<ItemTarget>>): (uri: string) =>
boolean {
  let left: number = gatewayLimits.templateComparisons
  return (uri) => {
    left -= templates.length
    const work = { left: gatewayLimits.templateWork }
    return templates.length > 0 &&
      (left < 0 || templates.some(({ literals }) => matchesTemplate(literals, uri, work)) || work.left < 0)
  }
}

/**
 * Returns a function that finds the server that owns a URI on a merged route.
 * @param admins the templates of admins' servers, which precede users' resources
 */
export function createUriOwnerLookup (
  precedence: Precedence, admins: ReadonlyArray<ResourceTemplate<ItemTarget>>
): (uri: string) => string | undefined {
  return (uri) => {
    const owner = precedence.ownerOf(uri)
    const work = { left: gatewayLimits.templateWork }
    const template = owner?.isOwnedByAdmin === false
      ? admins.find(({ literals }) => matchesTemplate(literals, uri, work))
      : undefined
    return template?.target.provider ?? owner?.server.name
  }
}
